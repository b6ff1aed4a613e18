"""What is known of running mounts without asking them: the mount table, and a small record that each daemon leaves."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardfs.cli.console import printable
from shardfs.cli.values import show_size
from shardfs.system import mount_table

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("shardfs")


@dataclass(frozen=True, slots=True)
class Record:
    """What a daemon says of its mount.

    Attributes:
        pid: the daemon.
        device: the number of the mounted file system, as in the mount table.
        source: what is mounted.
        mount_point: where.
        since: when it was mounted, seconds since 1970.
        cache_dir: where its disk cache lies; None where it has none.
        made: whether the mount point was made for the mount, so that it goes with it.
    """

    pid: int
    device: str
    source: str
    mount_point: str
    since: float
    cache_dir: str | None
    made: bool


def folder() -> Path:
    """Where this user's records lie."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    with contextlib.suppress(OSError):
        if runtime and os.stat(runtime).st_uid == os.geteuid():
            return Path(runtime, "shardfs")
    return Path(tempfile.gettempdir(), f"shardfs-{os.geteuid()}")


def _is_private(path: Path) -> bool:
    """Whether *path* is a folder that only this user can have written to: /tmp is everybody's."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not stat.S_IMODE(found.st_mode) & 0o077
    )


def write(record: Record) -> None:
    """Leave *record* for others to find. A mount that can't is no worse otherwise, so that is only logged."""
    place = folder()
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(place):
            log.warning("%s is not this user's own folder: `shardfs status` will know less", place)
            return
        new = place / f"{record.pid}.new"
        new.write_text(json.dumps(asdict(record)))
        new.replace(_place(record))
    except OSError as error:
        log.warning("no record for `shardfs status`: %s", error)


def remove(record: Record) -> None:
    """Take back what ``write`` left."""
    with contextlib.suppress(OSError):
        _place(record).unlink()


def _place(record: Record) -> Path:
    return folder() / f"{record.pid}.json"


def records() -> dict[str, Record]:
    """The records of this user by device; those of mounts that are gone are cleared away."""
    place = folder()
    if not _is_private(place):
        return {}
    mounted = {mount.device for mount in mount_table.read() if mount.is_ours}
    found: dict[str, Record] = {}
    for file in place.glob("*.json"):
        record = _read(file)
        if record is not None and record.device in mounted:
            found[record.device] = record
        elif record is None or not is_alive(record.pid):
            with contextlib.suppress(OSError):
                file.unlink()
    return found


def _read(file: Path) -> Record | None:
    try:
        return Record(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # half written, or by another version
        return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended yet."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    # proc_pid_stat(5): the state follows the name, which may hold anything. A zombie waits for a parent that
    # never asks, as there are in containers.
    return line.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def overview() -> Iterator[dict[str, Any]]:
    """All shardfs mounts as values for JSON, in the order of the mount table; null for what is not known."""
    known = records()
    for mount in mount_table.read():
        if not mount.is_ours:
            continue
        record = known.get(mount.device)
        yield {
            "mount_point": mount.path,
            "source": record.source if record else mount.source.removeprefix("shardfs:"),
            "state": ("running" if is_alive(record.pid) else "dead") if record else None,
            "pid": record.pid if record else None,
            "since": record.since if record else None,
            "cache_dir": record.cache_dir if record else None,
            "cache_bytes": _used(record.cache_dir) if record and record.cache_dir else None,
        }


def _used(cache: str) -> int:
    """Bytes on disk below *cache*."""
    total = 0
    for path, _, names in os.walk(cache):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def show(mounts: list[dict[str, Any]]) -> str:
    """The overview for people, several lines a mount."""
    return "".join(_paragraph(mount) for mount in mounts) or "no shardfs mounts\n"


def _paragraph(mount: dict[str, Any]) -> str:
    lines = [printable(f"{mount['mount_point']}"), printable(f"  source  {mount['source']}")]
    if mount["pid"] is not None:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(mount["since"]))
        lines.append(f"  daemon  {mount['pid']} ({mount['state']}), since {since}")
    if mount["cache_dir"] is not None:
        used = show_size(mount["cache_bytes"])
        lines.append(printable(f"  cache   {used} in {mount['cache_dir']}"))
    return "\n".join(lines) + "\n"
