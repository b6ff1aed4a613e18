"""What is mounted where, read from the kernel's table without touching any mount; and unmounting.

Asking a mount itself hangs when its daemon does, so only ``is_dead`` does that, and does not wait for long.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from shardfs.errors import NotFound, ShardfsError, Unreadable, UsageError

TYPE = "fuse.shardfs"

_MOUNTINFO = Path("/proc/self/mountinfo")
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8  # <sys/mount.h>
# The second is for a question on its way while the daemon dies.
_NOBODY_THERE = (errno.ENOTCONN, errno.ECONNABORTED)
_PATIENCE = 2.0  # seconds; a live daemon answers statfs in less than a millisecond


class Busy(ShardfsError):
    """Something is still in use on the mount."""

    errno = errno.EBUSY


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of the mount table.

    Attributes:
        path: the mount point.
        device: the number of its file system, ``major:minor``; no two mounted ones share it.
        type: the file system, with its subtype (`fuse.shardfs`).
        source: what is mounted, as the file system calls it.
    """

    path: str
    device: str
    type: str
    source: str

    @property
    def is_ours(self) -> bool:
        """Whether it is a shardfs mount, of whatever user."""
        return self.type == TYPE


def parse(table: bytes) -> list[Mount]:
    """The mounts in the text of ``/proc/PID/mountinfo``, in its order: later ones lie on top of earlier ones.

    Layout: proc_pid_mountinfo(5). Lines of another layout are left out.
    """
    mounts = []
    for line in table.splitlines():
        before, _, after = line.partition(b" - ")
        left, right = before.split(b" "), after.split(b" ")
        if len(left) >= 6 and len(right) >= 2:
            fields = (left[4], left[2], right[0], right[1])
            mounts.append(Mount(*(os.fsdecode(_unescape(field)) for field in fields)))
    return mounts


def _unescape(text: bytes) -> bytes:
    """The kernel writes space, tab, newline, backslash and # as a backslash and three octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 0xFF]), text)


def read() -> list[Mount]:
    """The mounts that this process sees."""
    return parse(_MOUNTINFO.read_bytes())


def top(path: str) -> Mount | None:
    """The uppermost mount at the mount point *path*, which is as ``locate`` gives it."""
    return next((mount for mount in reversed(read()) if mount.path == path), None)


def locate(path: Path) -> str:
    """*path* as the mount table has it: absolute, without symbolic links.

    A mount point itself is not looked at, since that would ask its daemon.
    """
    absolute = os.path.abspath(path)
    parent, name = os.path.split(absolute)
    place = os.path.join(os.path.realpath(parent), name)
    return place if top(place) is not None else os.path.realpath(place)


def is_dead(mount: Mount) -> bool:
    """Whether the daemon of a FUSE mount is gone. One that does not answer is alive, as far as anybody can tell.

    Statfs is what is asked, since the kernel may answer stat from memory for a dead mount too.
    """
    answers: list[bool] = []

    def ask() -> None:
        try:
            os.statvfs(mount.path)
        except OSError as error:
            answers.append(error.errno in _NOBODY_THERE)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return any(answers)


def unmount(path: str, *, lazy: bool = False) -> Mount:
    """Unmount the shardfs mount at *path* (as ``locate`` gives it), a dead one even when it is in use.

    *lazy* takes it out of the tree now and ends it when nothing uses it any more.

    Raises:
        NotFound: no shardfs mount is there; nothing else is ever unmounted.
        Busy: it is in use.
        Unreadable: it can't be unmounted, with the reason.
    """
    mount = top(path)
    if mount is None or not mount.is_ours:
        what = "not a mount point" if mount is None else f"not a shardfs mount but {mount.type}"
        raise NotFound(f"{path} is {what}")
    try:
        _unmount(path, lazy=lazy)
    except Busy:
        if not is_dead(mount):
            raise
        _unmount(path, lazy=True)
    return mount


def _unmount(path: str, *, lazy: bool) -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazy else 0)
        if libc.umount2(os.fsencode(path), flags) == 0:
            return
        number = ctypes.get_errno()
        reason = os.strerror(number)
    else:
        program = shutil.which("fusermount3")
        if program is None:
            raise UsageError("fusermount3 is not installed (package fuse3)")
        command = [program, "-u", *(["-z"] if lazy else []), "--", path]
        run = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
        if run.returncode == 0:
            return
        reason = run.stderr.strip().removeprefix("fusermount3: ") or "fusermount3 failed"
        number = errno.EBUSY if "busy" in reason.lower() else errno.EPERM
    if number == errno.EBUSY:
        raise Busy(f"{path} is in use; --lazy unmounts it as soon as it is not")
    raise Unreadable(f"{path} cannot be unmounted: {reason}")
