"""Whether the disk cache is a place where nobody else can put files.

What is read from there is shown as the user's data, so it must be what shardfs wrote: checksums tell damage, but
whoever can write a file can write its checksum, too.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make(folder: Path) -> None:
    """Make *folder*, for the user alone, if it is not there. Where that fails, writing a file will say so."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def distrust(folder: Path, inside: Sequence[str]) -> str:
    """Why *folder* with the folders *inside* can't be trusted, "" where it can or is not there.

    It may be a link to a folder of the user; those inside may not. The folders above it may belong to anybody, but
    if all the world may write in one, then only as in /tmp, where nobody can rename what belongs to another.
    """
    try:
        place = folder.resolve()
        fault = _fault(str(place), os.stat(place))
        for name in inside:
            fault = fault or _fault_inside(f"{place}/{name}")
        for above in place.parents:
            mode = os.stat(above).st_mode
            if not fault and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                fault = f"others can replace what is in {above}"
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return ""
    return fault


def _fault_inside(place: str) -> str:
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return ""
    return f"{place} is a link" if stat.S_ISLNK(status.st_mode) else _fault(place, status)


def _fault(place: str, status: os.stat_result) -> str:
    if status.st_uid != os.geteuid():
        return f"{place} belongs to another user"
    if status.st_mode & _OTHERS:
        return f"others can write in {place} (chmod go-w cures that)"
    return ""
