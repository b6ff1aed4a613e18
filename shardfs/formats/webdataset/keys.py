"""Which record a member of a tar archive belongs to: WebDataset's rules for names.

^((?:.*/|)[^.]+)[.]([^/]*)$     key and field (webdataset.tariterators.base_plus_ext)
^__[^/]*__($|/)                 what is no part of any record (webdataset.tariterators.meta_prefix)
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_DEPTH = 255
"""The most folders in a name. A guess: nothing real is as deep."""

_META = re.compile(rb"__[^/]*__($|/)")


class Place(NamedTuple):
    """Where a member is shown.

    Attributes:
        folder: the key, or for a member without one the folder that it stands in ("" for the top).
        rest: the field, or for a member without a key its file name.
        has_key: whether it has one.
    """

    folder: bytes
    rest: bytes
    has_key: bool


def place(name: bytes) -> Place:
    """Where the member *name* belongs; empty and `.` parts don't count."""
    base = name.rfind(b"/") + 1
    dot = _key_end(name, base)
    if dot < 0:
        parts = _parts(name)
        return Place(b"/".join(parts[:-1]), parts[-1] if parts else b"", False)
    return Place(normal(name[:dot]) if base else name[:dot], name[dot + 1 :], True)


def _key_end(name: bytes, base: int) -> int:
    """Where the key ends in *name*, whose last part begins at *base*; -1 where it has none.

    The expression above, without its quadratic time: the key ends at the first dot of the last part. A
    last part that begins with a dot leaves a key that ends in `/`, which is no name.
    """
    dot = name.find(b".", base)
    if dot <= base or (name.startswith(b"__") and _META.match(name)):
        return -1
    newline = name.find(b"\n", 0, max(base - 1, 0))
    if newline >= 0:  # which `.*/` does not go beyond, so that dots behind it count, too
        begin = name.rfind(b"/", 0, newline) + 1
        if name.find(b".", begin, base) >= 0:
            return -1
    return dot


def normal(path: bytes) -> bytes:
    """*path* without empty and `.` parts."""
    return b"/".join(_parts(path))


def _parts(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def link_target(name: bytes, link: bytes) -> bytes | None:
    """The member that a symbolic link *name* leads to; None where that is outside of the archive."""
    if link.startswith(b"/"):
        return None
    found = _parts(name)[:-1]
    for part in _parts(link):
        if part != b"..":
            found.append(part)
        elif found:
            found.pop()
        else:
            return None
    return b"/".join(found)
