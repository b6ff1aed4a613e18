"""Legal file names for whatever a dataset calls its shards, records and fields.

Names are text in which undecodable bytes stand as surrogate escapes (PEP 383), as everywhere in Python.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME_MAX = 255
"""The longest file name in bytes that Linux allows."""

_WHOLE = {"": "%", ".": "%2E", "..": "%2E%2E"}


def to_bytes(name: str) -> bytes:
    """The bytes of a file name."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON can hold: no file name can
        return name.encode("utf-8", "surrogatepass")


def from_bytes(name: bytes) -> str:
    """The text that stands for the bytes of a file name."""
    return name.decode("utf-8", "surrogateescape")


def escape(name: str) -> str:
    """*name* with what can't stand in a file name percent-encoded: `/`, NUL, `.`, `..`, nothing."""
    if name.isascii():
        if "/" not in name and "\0" not in name and name not in _WHOLE:
            return name
    else:
        name = from_bytes(to_bytes(name))
    return _WHOLE.get(name) or name.replace("/", "%2F").replace("\0", "%00")


def with_extension(stem: str, extension: str) -> str:
    """*stem* + *extension*, not twice, and cut to what a file name may hold.

    *stem* is already escaped. *extension* begins with its dot or is empty.
    """
    stem, extension = _split(stem, extension)
    name = stem + extension
    if len(name) <= NAME_MAX // 4 or len(to_bytes(name)) <= NAME_MAX:
        return name
    return shorten(stem, extension)


def shorten(stem: str, extension: str = "") -> str:
    """A name of at most 255 bytes: *stem* cut at a character, `~` and 8 hex digits of its hash, then *extension*."""
    whole, tail = to_bytes(stem), to_bytes(extension)
    if len(whole) + len(tail) <= NAME_MAX:
        return stem + extension
    if len(tail) > NAME_MAX // 2:  # an extension that is no extension
        whole, tail, stem, extension = whole + tail, b"", stem + extension, ""
    mark = f"~{hashlib.sha256(whole).hexdigest()[:8]}"
    cut = whole[: NAME_MAX - len(mark) - len(tail)]
    while cut and (whole[len(cut)] & 0xC0) == 0x80:  # not inside a UTF-8 sequence
        cut = cut[:-1]
    return from_bytes(cut) + mark + extension


def split_extension(name: str) -> tuple[str, str]:
    """(stem, extension): the extension is the part from the last dot, empty where the name only begins with one."""
    dot = name.rfind(".")
    return (name[:dot], name[dot:]) if dot > 0 else (name, "")


def distinct(names: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Whole names for (stem, extension) pairs, in their order; the second of a name is `stem~1.ext`."""
    taken: set[str] = set()
    for stem, extension in names:
        name = with_extension(stem, extension)
        number = 0
        while name in taken:
            number += 1
            short, tail = _split(stem, extension)
            name = shorten(short, f"~{number}{tail}")
        taken.add(name)
        yield name


def _split(stem: str, extension: str) -> tuple[str, str]:
    """(stem, extension), without the extension at the end of the stem if it is there already."""
    if extension and len(stem) > len(extension) and stem.lower().endswith(extension):
        return stem[: -len(extension)], stem[-len(extension) :]
    return stem, extension


def without_suffix(name: str, suffixes: Iterable[str]) -> str:
    """*name* less the longest of *suffixes* that it ends in, but never nothing."""
    for suffix in sorted(suffixes, key=len, reverse=True):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def safe_parts(path: str) -> list[str] | None:
    """The parts of a relative path inside a source; None where it could lead out of it (`..`, absolute, NUL)."""
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or ".." in parts:
        return None
    return [part for part in parts if part not in ("", ".")]
