"""The index.json of a MosaicML Streaming dataset, and what its shards say of themselves without one.

Written by ``streaming/base/format`` of mosaicml-streaming, in version 2 since 0.1.1. Everything in it is checked
here, so that the rest can rely on types and ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, Unsupported, located
from shardfs.formats.shared.jsontext import checked, member, natural, optional, parse_object, shown
from shardfs.names import from_bytes, safe_parts, to_bytes, without_suffix

if TYPE_CHECKING:
    from collections.abc import Iterator

INDEX = "index.json"
VERSION = 2
CODECS = ("zstd", "gz", "br", "bz2", "snappy")
"""The compressions there are; each is the suffix that it adds to a file's name, too."""
BINARY = "mds"
FORMATS = (BINARY, "json", "csv", "tsv", "xsv")

_MAX_U32 = (1 << 32) - 1
# File sizes are signed 64-bit numbers for Linux.
_MAX_BYTES = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the index names.

    Attributes:
        name: its path from the index's folder, as the index says it.
        bytes: its length, None where nothing says it.
        hashes: (algorithm, hex digits) pairs.
    """

    name: str
    bytes: int | None
    hashes: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str | None:
        """Where it lies in the store; None where the name leads out of it."""
        parts = safe_parts(self.name)
        return "/".join(parts) if parts else None


@dataclass(frozen=True, slots=True)
class Part:
    """One file in two forms, of which any may be there: *raw* as it is read, *zip* compressed."""

    raw: StoredFile
    zip: StoredFile | None

    def files(self) -> Iterator[StoredFile]:
        yield self.raw
        if self.zip is not None:
            yield self.zip


@dataclass(frozen=True, slots=True)
class Column:
    """A column; *size* is that of each of its values in bytes, None where they vary."""

    name: str
    encoding: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What the index says of a shard.

    Attributes:
        format: ``mds``, ``json``, ``csv``, ``tsv`` or ``xsv``, or else the shard is unsupported.
        samples: how many records it holds; None where there is no index.
        compression: the codec of the compressed forms, without a level.
        columns: in the order of storage; None where there is no index.
        data: the file of the records.
        meta: the file that says where in *data* the records lie, for all formats but ``mds``.
        newline: what ends a record in a text.
        separator: what stands between the values of a record.
        unsupported: why the shard can't be read.
    """

    format: str
    samples: int | None
    compression: str | None
    columns: tuple[Column, ...] | None
    data: Part
    meta: Part | None = None
    newline: str = "\n"
    separator: str = ""
    unsupported: str = ""

    @property
    def name(self) -> str:
        """The path of the shard's folder: that of its file less the format's suffix."""
        path = self.data.raw.path or self.data.raw.name.rpartition("/")[2]
        folder, slash, name = path.rpartition("/")
        return folder + slash + without_suffix(name, (f".{self.format}",))

    def files(self) -> Iterator[StoredFile]:
        yield from self.data.files()
        if self.meta is not None:
            yield from self.meta.files()


# --- index.json --------------------------------------------------------------------------------------------


def parse_index(text: bytes) -> tuple[ShardInfo, ...]:
    """The shards in their order.

    Raises:
        Corrupt: it is not such an index.
        Unsupported: it has another version.
    """
    index = parse_object(text)
    version = member(index, "version", int)
    if version != VERSION:
        raise Unsupported(_other_version(version))
    shards: list[ShardInfo] = []
    shared: dict[tuple[Column, ...], tuple[Column, ...]] = {}
    for number, entry in enumerate(member(index, "shards", list)):
        with located(f"shard {number}"):
            shards.append(_shard(checked(entry, dict, "it"), shared))
    return tuple(shards)


def parse_config(text: bytes) -> tuple[Column, ...]:
    """The columns by the config text inside a shard. Raises Corrupt, Unsupported."""
    config = parse_object(text)
    version = member(config, "version", int)
    if version != VERSION:
        raise Unsupported(_other_version(version))
    return _columns(config, BINARY)


def lone_shard(name: str) -> ShardInfo | None:
    """What the name of a file tells of it; None where it is not that of an MDS shard."""
    stem, _, last = name.rpartition(".")
    spelled = {"zst": "zstd"}.get(last.lower(), last.lower())
    codec = spelled if spelled in CODECS else None
    raw = StoredFile(stem if codec else name, None)
    if not raw.name.lower().endswith(f".{BINARY}"):
        return None
    zipped = StoredFile(name, None) if codec else None
    return ShardInfo(BINARY, None, codec, None, Part(raw, zipped))


def _shard(
    entry: dict[str, Any], shared: dict[tuple[Column, ...], tuple[Column, ...]]
) -> ShardInfo:
    format_ = member(entry, "format", str)
    compression = optional(entry, "compression", str)
    codec = compression.partition(":")[0] if compression else None
    samples = natural(member(entry, "samples", int), _MAX_U32, "samples")
    data = _part(entry, "data", codec)
    problem = _unsupported(member(entry, "version", int), format_)
    if problem:
        return ShardInfo(format_, samples, codec, None, data, unsupported=problem)
    # Most shards have the same columns: hold them once.
    columns = _columns(entry, format_)
    columns = shared.setdefault(columns, columns)
    if format_ == BINARY:
        return ShardInfo(format_, samples, codec, columns, data)
    meta, newline = _part(entry, "meta", codec), optional(entry, "newline", str)
    newline, separator = "\n" if newline is None else newline, _separator(entry, format_)
    return ShardInfo(format_, samples, codec, columns, data, meta, newline, separator)


def _separator(entry: dict[str, Any], format_: str) -> str:
    """What stands between the values of a line, nothing in JSON."""
    if format_ != "xsv":
        return {"csv": ",", "tsv": "\t"}.get(format_, "")
    separator = member(entry, "separator", str)
    if not separator:
        raise Corrupt("separator is empty")
    return separator


def _unsupported(version: int, format_: str) -> str:
    if version != VERSION:
        return _other_version(version)
    if format_ not in FORMATS:
        return f"has the unknown format {shown(format_)}"
    return ""


def _other_version(version: int) -> str:
    return f"has version {shown(version)}; only version {VERSION} can be read"


def _part(entry: dict[str, Any], what: str, codec: str | None) -> Part:
    raw = _file(member(entry, f"raw_{what}", dict), f"raw_{what}")
    zipped = optional(entry, f"zip_{what}", dict)
    return Part(raw, _file(zipped, f"zip_{what}") if zipped is not None and codec else None)


def _file(entry: dict[str, Any], what: str) -> StoredFile:
    with located(what):
        name, size = member(entry, "basename", str), member(entry, "bytes", int)
        hashes = optional(entry, "hashes", dict) or {}
        natural(size, _MAX_BYTES, "bytes")
        pairs = tuple((algorithm, member(hashes, algorithm, str)) for algorithm in hashes)
        return StoredFile(from_bytes(to_bytes(name)), size, pairs)


def _columns(entry: dict[str, Any], format_: str) -> tuple[Column, ...]:
    if format_ == "json":
        encodings = member(entry, "columns", dict)
        return tuple(Column(name, member(encodings, name, str)) for name in encodings)
    names = [checked(name, str, "a column name") for name in member(entry, "column_names", list)]
    codes = [checked(code, str, "an encoding") for code in member(entry, "column_encodings", list)]
    sizes = _sizes(entry) if format_ == BINARY else [None] * len(names)
    if not len(names) == len(codes) == len(sizes):
        raise Corrupt(f"{len(names)} columns with {len(codes)} encodings and {len(sizes)} sizes")
    return tuple(map(Column, names, codes, sizes))


def _sizes(entry: dict[str, Any]) -> list[int | None]:
    return [
        None if size is None else natural(checked(size, int, "a size"), _MAX_U32, "a size")
        for size in member(entry, "column_sizes", list)
    ]
