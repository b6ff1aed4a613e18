"""What a mount needs of the machine, checked before, so that each lack is told with its cure."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from shardfs.errors import UsageError

if TYPE_CHECKING:
    from shardfs.options import MountOptions

_DEVICE = "/dev/fuse"
_FUSE = os.makedev(10, 229)  # <linux/miscdevice.h>
_FUSE_CONF = Path("/etc/fuse.conf")


def check(settings: MountOptions) -> None:
    """See whether this process may mount.

    Raises:
        UsageError: it may not, and what to do.
    """
    check_device(_DEVICE)
    if os.geteuid() == 0:
        return
    if shutil.which("fusermount3") is None:
        raise UsageError("fusermount3 is not installed or not in PATH (package fuse3)")
    if settings.allow_other or settings.allow_root:
        check_allow_other(_FUSE_CONF)


def check_device(device: str) -> None:
    """Whether the FUSE device is one and can be opened; raises UsageError."""
    try:
        there = os.stat(device)
        if not (stat.S_ISCHR(there.st_mode) and there.st_rdev == _FUSE):
            raise UsageError(
                f"{device} is no FUSE device; as root, remove it and make it by `mknod -m 666 {device} c 10 229`"
                f" (or start the container with --device {device} --cap-add SYS_ADMIN)"
            )
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except UsageError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
            cure = "load it with `modprobe fuse`; in a container, start that with"
            raise UsageError(
                f"no {device}: {cure} --device {device} --cap-add SYS_ADMIN"
            ) from error
        if error.errno == errno.EPERM:  # the device controller of a container
            cure = f"start the container with --device {device} --cap-add SYS_ADMIN"
        else:
            cure = f"an administrator can allow it with `chmod 666 {device}`"
        raise UsageError(f"{device} cannot be opened: {error.strerror}; {cure}") from error


def check_allow_other(conf: Path) -> None:
    """Whether ordinary users may let others use their mounts; raises UsageError."""
    try:
        text = conf.read_text(errors="replace")
    except FileNotFoundError:
        text = ""
    except OSError:  # not for this user to know: fusermount3 will say
        return
    if not re.search(r"^\s*user_allow_other\s*$", text, re.MULTILINE):
        raise UsageError(f"allow_other and allow_root need the line user_allow_other in {conf}")


def refusal(place: str, words: str) -> UsageError:
    """What to tell the user when mounting on *place* failed and libfuse or fusermount3 said *words*, in one line."""
    said = re.sub(r"\b(fuse|fusermount3?): ", "", words)
    cure = ""
    if "Operation not permitted" in said:
        cure = (
            " (the system forbids it: containers need --device /dev/fuse --cap-add SYS_ADMIN and on some"
            " systems --security-opt apparmor:unconfined)"
        )
    elif "Permission denied" in said:
        cure = " (ordinary users must own the mount point, and AppArmor must allow it)"
    return UsageError(f"cannot mount on {place}: {said or 'libfuse gives no reason'}{cure}")
