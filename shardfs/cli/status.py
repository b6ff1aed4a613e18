"""What is known of running mounts without touching them.

That is the mount table, a small record that each daemon leaves, and what the daemon answers, if it does in time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardfs.cli import answers
from shardfs.cli.console import printable
from shardfs.cli.values import show_count, show_size, show_time
from shardfs.system import mount_table, process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger("shardfs")


@dataclass(frozen=True, slots=True)
class Record:
    """What a daemon says of its mount.

    Attributes:
        pid: the daemon.
        birth: what tells it from other processes of that number.
        device: the number of the mounted file system, as in the mount table.
        source: what is mounted.
        mount_point: where.
        since: when it was mounted, seconds since 1970.
        cache_dir: where its disk cache lies; None where it has none.
        made: whether the mount point was made for the mount, so that it goes with it.
        log: the file that the daemon writes its messages to; None where there is none.
    """

    pid: int
    birth: str
    device: str
    source: str
    mount_point: str
    since: float
    cache_dir: str | None
    made: bool
    log: str | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the daemon has not ended yet."""
        return bool(self.birth) and process.birth(self.pid) == self.birth


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


def write(record: Record) -> bool:
    """Leave *record* for others to find; whether that went. A mount is no worse without, so that is only logged."""
    place = folder()
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(place):
            log.warning("%s is not this user's own folder: `shardfs status` will know less", place)
            return False
        _clear(record.device)
        new = place / f"{record.pid}.new"
        new.write_text(json.dumps(asdict(record)))
        new.replace(_place(record))
    except OSError as error:
        log.warning("no record for `shardfs status`: %s: %s", place, error.strerror)
        return False
    return True


def _clear(device: str) -> None:
    """Take away what is said of an earlier mount that had the same number: no two mounted ones share it."""
    for file in folder().glob("*.json"):
        record = _read(file)
        if record is not None and record.device == device:
            remove(record)


def remove(record: Record) -> None:
    """Take back what ``write`` left."""
    with contextlib.suppress(OSError):
        _place(record).unlink()
    with contextlib.suppress(OSError):
        socket_of(record.pid).unlink()


def _place(record: Record) -> Path:
    return folder() / f"{record.pid}.json"


def socket_of(pid: int) -> Path:
    """Where a daemon answers."""
    return folder() / f"{pid}.socket"


def records() -> dict[str, Record]:
    """The records of this user by device; those of mounts that are gone are cleared away."""
    place = folder()
    if not _is_private(place):
        return {}
    mounted = {mount.device for mount in mount_table.read() if mount.is_ours}
    found: dict[str, Record] = {}
    for file in place.glob("*.json"):
        record = _read(file)
        if record is None:
            with contextlib.suppress(OSError):
                file.unlink()
        elif record.device not in mounted:
            if not record.is_alive:
                remove(record)
        elif record.device not in found or record.is_alive:
            found[record.device] = record
    return found


def _read(file: Path) -> Record | None:
    try:
        return Record(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # half written, or by another version
        return None


def overview() -> Iterator[dict[str, Any]]:
    """All shardfs mounts as values for JSON, in the order of the mount table; null for what is not known."""
    known = records()
    for mount in mount_table.read():
        if mount.is_ours:
            yield _facts(mount, known.get(mount.device))


def ask(record: Record) -> dict[str, Any] | None:
    """What the daemon of *record* says; None where it doesn't answer, be it stopped, busy or gone."""
    return answers.asked(socket_of(record.pid)) if record.is_alive else None


def _facts(mount: mount_table.Mount, record: Record | None) -> dict[str, Any]:
    """What is known of a mount; docs/desktop.md says what each means."""
    answer = ask(record) if record else None
    state = None
    if record is not None:
        state = "running" if answer else "silent" if record.is_alive else "dead"
    cache = record.cache_dir if record else None
    known = answer or {}
    return {
        "mount_point": mount.path,
        "source": record.source if record else mount.source.removeprefix("shardfs:"),
        "state": state,
        "pid": record.pid if record else None,
        "since": _iso(record.since) if record else None,
        "uptime": round(max(time.time() - record.since, 0), 3) if record else None,
        "requests": known.get("requests"),
        "bytes_read": known.get("bytes_read"),
        "memory_bytes": (known.get("memory") or {}).get("bytes"),
        "cache_dir": cache,
        "cache_bytes": _used(cache) if cache else None,
        "faults": known.get("faults"),
        "log": record.log if record else None,
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


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
    lines = [f"{mount['mount_point']}", f"  source  {mount['source']}"]
    if mount["pid"] is not None:
        up = show_time(mount["uptime"])
        lines.append(f"  daemon  {mount['pid']} ({_STATES[mount['state']]}), up {up}")
    if mount["requests"] is not None:
        read = show_size(mount["bytes_read"])
        lines.append(f"  served  {show_count(mount['requests'], 'request')}, {read}")
    if mount["cache_dir"] is not None:
        lines.append(f"  cache   {show_size(mount['cache_bytes'])} in {mount['cache_dir']}")
    if mount["faults"] is not None:
        lines.append(f"  faults  {faults(mount['faults'])}")
    if mount["log"] is not None:
        lines.append(f"  log     {mount['log']}")
    return "".join(printable(line) + "\n" for line in lines)


_STATES = {"running": "running", "silent": "does not answer", "dead": "dead"}


def faults(met: Mapping[str, Any]) -> str:
    """How many faults were met, and the last one, for people."""
    last = met.get("last") or {}
    return f"{met['count']:,}, the last: {last['message']}" if last else "none"
