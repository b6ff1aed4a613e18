"""Legal file names for whatever a dataset calls its shards, records and fields.

Names are text in which undecodable bytes stand as surrogate escapes (PEP 383), as everywhere in Python.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, TypeVar

from shardfs.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

NAME_MAX = 255
"""The longest file name in bytes that Linux allows."""

_WHOLE = {"": "%", ".": "%2E", "..": "%2E%2E"}

# Extensions that are spelled in several ways, a family a line.
_FAMILIES = """
    .jpg .jpeg .jpe .jfif .jif
    .tif .tiff
    .jp2 .jpg2
    .j2k .j2c .jpc
    .heic .heif .hif
    .djvu .djv
    .fits .fit .fts
    .dcm .dicom
    .mpg .mpeg .mpe
    .mov .qt
    .mkv .mk3d
    .3gp .3gpp
    .ts .mts .m2ts
    .ogg .oga
    .wav .wave
    .aiff .aif .aifc
    .mid .midi
    .au .snd
    .htm .html .xhtml
    .yml .yaml
    .txt .text
    .md .markdown
    .jsonl .ndjson .jsonlines .ldjson
    .h5 .hdf5 .hdf
    .sqlite .sqlite3
    .parquet .parq .pq
    .pkl .pickle
    .pt .pth
    .gz .gzip
    .zst .zstd
    .bz2 .bzip2
    .tgz .tar.gz
    .usdc .usd
"""
_SPELLINGS = {
    one: tuple(other for other in family if other != one)
    for family in map(str.split, _FAMILIES.strip().splitlines())
    for one in family
}


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


def unescape(name: str) -> str:
    """What *name* was made of by ``escape``, if it was changed at all."""
    for whole, escaped in _WHOLE.items():
        if name == escaped:
            return whole
    return name.replace("%2F", "/").replace("%00", "\0") if "%" in name else name


def extended(stem: str, extension: str) -> tuple[str, str]:
    """(stem, extension) of what is called *stem* and gets *extension*: not twice, nor in two spellings.

    *stem* is already escaped. *extension* begins with its dot or is empty.
    """
    lower = stem.lower()
    for spelling in (extension, *_SPELLINGS.get(extension, ())):
        if spelling and lower.endswith(spelling) and len(stem) > len(spelling):
            return stem[: -len(spelling)], stem[-len(spelling) :]
    return stem, extension


def with_extension(stem: str, extension: str) -> str:
    """*stem* + *extension*, not twice, and cut to what a file name may hold."""
    return shorten(*extended(stem, extension))


def shorten(stem: str, extension: str = "") -> str:
    """A name of at most 255 bytes: *stem* cut at a character, `~` and 8 hex digits of its hash, then *extension*."""
    if len(stem) + len(extension) <= NAME_MAX // 4:  # a character takes four bytes at most
        return stem + extension
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
    last: dict[tuple[str, str], int] = {}  # thousands may want one name
    for stem, extension in names:
        name = shorten(stem, extension)
        number = last.get((stem, extension), 0)
        while name in taken:
            number += 1
            short, tail = (stem, extension) if extension else split_extension(stem)
            name = shorten(short, f"~{number}{tail}")
        taken.add(name)
        if number:
            last[stem, extension] = number
        yield name


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


# More names than this from one pattern are a slip of the finger, not a dataset.
_MAX_EXPANSION = 1_000_000


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern with braces spells, in order, as shells and WebDataset do.

    `{000..099}` counts, with the zero padding of its ends, `{3..1}` down, `{0..9..2}` by steps; `{a,b}` lists.
    Braces that are neither stand for themselves.

    Raises:
        UsageError: more than a million names.
    """
    opened = pattern.find("{")
    while opened >= 0:
        closed = _closing(pattern, opened)
        choices = _choices(pattern[opened + 1 : closed]) if closed > 0 else None
        if choices is not None:
            tails = expand_braces(pattern[closed + 1 :])
            if len(choices) * len(tails) > _MAX_EXPANSION:
                raise UsageError(f"{pattern}: spells more than {_MAX_EXPANSION} names")
            return [pattern[:opened] + choice + tail for choice in choices for tail in tails]
        opened = pattern.find("{", opened + 1)
    return [pattern]


def _closing(text: str, opened: int) -> int:
    """Where the brace at *opened* is closed, -1 where it is not."""
    depth = 0
    for at in range(opened, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return at
    return -1


def _choices(inside: str) -> list[str] | None:
    """What a pair of braces around *inside* stands for, None where it is no pattern."""
    counted = re.fullmatch(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?", inside, re.ASCII)
    if counted:
        first, last, step = counted[1], counted[2], abs(int(counted[3] or 1)) or 1
        begin, end = int(first), int(last)
        if abs(end - begin) // step > _MAX_EXPANSION:
            raise UsageError(f"{{{inside}}}: spells more than {_MAX_EXPANSION} names")
        padded = any(re.match(r"-?0\d", text) for text in (first, last))
        width = max(len(first), len(last)) if padded else 0
        numbers = range(begin, end + 1, step) if begin <= end else range(begin, end - 1, -step)
        return [f"{number:0{width}d}" for number in numbers]
    parts, depth, start = [], 0, 0
    for at, character in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(inside[start:at])
            start = at + 1
    if not parts:
        return None
    return [name for part in [*parts, inside[start:]] for name in expand_braces(part)]


# What is no path but a URL (`zenodo:123` too) or a DOI.
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|10\.[0-9]{4,}/")


def without_secrets(source: str) -> str:
    """*source* for all to see: a URL or DOI without user, password and query, which may sign it."""
    if not _ELSEWHERE.match(source):
        return source
    return re.sub(r"://[^/]*@", "://", source).partition("?")[0]


def only_folder(folders: set[T], source: str) -> T:
    """The one of *folders* that all that *source* names lies in. Raises UsageError where they are several."""
    if len(folders) > 1:
        raise UsageError(
            f"{without_secrets(source)}: names files in several folders; mount the folder above them"
        )
    return next(iter(folders))
