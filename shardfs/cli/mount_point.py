"""The folder to mount on: cleared of a dead mount, checked, made and removed as needed."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardfs.cli import status
from shardfs.errors import UsageError
from shardfs.registry import source_row
from shardfs.system import mount_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger("shardfs")

_FAREWELL = 5.0  # seconds that a daemon may take to end after its mount is gone


def check(path: str, source: str, *, allow_non_empty: bool) -> bool:
    """See that the folder *path* (as ``mount_table.locate`` gives it) can be mounted on, clearing away a dead mount.

    Returns whether the folder belongs to the mount: it is to be made, or was made for the one that died.

    Raises:
        UsageError: it can't be mounted on, with the reason.
    """
    owned = detach_dead(path)
    mount = mount_table.top(path)
    if mount is not None and mount.is_ours:
        source_there = mount.source.removeprefix("shardfs:")
        raise UsageError(
            f"{path} is already mounted from {source_there} (shardfs umount {path} ends that)"
        )
    _check_apart(path, source)
    return _is_missing(path, allow_non_empty=allow_non_empty) or owned


@contextmanager
def present(path: str, *, owned: bool) -> Iterator[None]:
    """A context in which the folder is there; one that the mount owns is made, and removed at the end.

    Raises:
        UsageError: it can't be made.
    """
    if not owned:
        yield
        return
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # busy or filled by now: then it is somebody's
            os.rmdir(path)


def detach_dead(path: str) -> bool:
    """Take away what daemons that were killed left mounted at *path*; whether the folder was made for one of them."""
    made = False
    while (mount := mount_table.top(path)) is not None:
        if not (mount.is_ours and mount_table.is_dead(mount)):
            break
        record = status.records().get(mount.device)
        made |= record is not None and record.made
        mount_table.unmount(path, lazy=True)
        log.info("%s: a dead mount was taken away", path)
    return made


def _check_apart(path: str, source: str) -> None:
    """Refuse a mount whose daemon would have to read its own mount."""
    if source_row(source).remote:
        return
    real = os.path.realpath(source)
    if _is_inside(real, path):
        raise UsageError(f"{path} holds the source; the mount point must be elsewhere")
    if os.path.isdir(real) and _is_inside(path, real):
        raise UsageError(f"{path} is inside the source; the mount point must be elsewhere")


def _is_inside(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _is_missing(path: str, *, allow_non_empty: bool) -> bool:
    """Whether the folder is still to be made."""
    try:
        with os.scandir(path) as entries:
            is_empty = next(entries, None) is None
    except FileNotFoundError as error:
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):  # a mistyped path, rather than one to be made
            raise UsageError(f"{path} cannot be made: there is no folder {parent}") from error
        return True
    except NotADirectoryError as error:
        raise UsageError(f"{path} is not a folder") from error
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            raise UsageError(f"{path} is a dead mount of another program; unmount it") from error
        raise UsageError(f"{path} cannot be mounted on: {error.strerror}") from error
    if not (is_empty or allow_non_empty):
        raise UsageError(f"{path} is not empty (--allow-non-empty mounts over it)")
    return False


def release(path: str, *, lazy: bool) -> Mapping[str, Any]:
    """Unmount *path* and, unless *lazy*, wait a moment for its daemon to end; the faults that it had met.

    Raises as ``mount_table.unmount``.
    """
    there = mount_table.top(path)
    record = status.records().get(there.device) if there is not None else None
    answer = (status.ask(record) if record is not None else None) or {}
    mount = mount_table.unmount(path, lazy=lazy)
    if record is None or record.device != mount.device:
        return {}
    if not record.is_alive:
        status.remove(record)
        if record.made:
            with contextlib.suppress(OSError):
                os.rmdir(path)
    elif not lazy:
        deadline = time.monotonic() + _FAREWELL
        while record.is_alive and time.monotonic() < deadline:
            time.sleep(0.01)
    met: Mapping[str, Any] = answer.get("faults") or {}
    return met
