"""The index.json of a LitData dataset: which chunks there are, and what is in them.

Written by ``litdata/streaming/writer.py``, 0.2.0 to 0.2.76. Everything in it is checked here, so that the rest can
rely on types and ranges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from shardfs.errors import Corrupt, Unsupported, located
from shardfs.formats.litdata.leaves import LeafType, leaf_type
from shardfs.formats.litdata.spec import leaf_names
from shardfs.formats.litdata.temporal import TemporalReader
from shardfs.formats.shared.jsontext import checked, member, natural, optional, parse_object, shown
from shardfs.names import from_bytes, safe_parts, to_bytes

INDEX = "index.json"

# Record numbers are u32 in the chunks, and sizes of files are i64.
_MAX_U32 = (1 << 32) - 1
_MAX_I64 = (1 << 63) - 1

_COMPRESSED = re.compile(r"(?<=.)\.zstd(?::\d+)?(?=\.bin$)", re.DOTALL)
_SUFFIX = re.compile(r"(?<=.)(?:\.zstd(?::\d+)?)?\.bin$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as the index has it, or with nothing but its name where there is no index.

    Attributes:
        file: the name of its file as the index says it.
        path: where that lies in the store; None where the name leads out of it.
        records: how many there are.
        size: bytes, after decompression where the whole file is compressed.
        tokens: how many there are, where records are tokens.
    """

    file: str
    path: str | None
    records: int | None = None
    size: int | None = None
    tokens: int | None = None

    @property
    def inflated(self) -> str | None:
        """Where a reader that decompressed the file may have left the result."""
        return self.path and _COMPRESSED.sub("", self.path)

    @property
    def name(self) -> str:
        """The path of the shard's folder."""
        return _SUFFIX.sub("", self.path or self.file.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field of every record: its name, what its type is called, what that stands for."""

    name: str
    type: str
    means: LeafType


@dataclass(frozen=True, slots=True)
class Encryption:
    algorithm: str
    level: str


@dataclass(frozen=True, slots=True)
class Config:
    """What all chunks of a dataset have in common.

    Attributes:
        leaves: the fields in their order, None where there is no index to tell.
        loader: the class that is to read the records.
        compression: the codec, with its level.
        level: where it is applied: to a ``batch`` of records or to a ``sample``; "" for the whole file.
        ipc_compressed: whether the buffers of Arrow chunks are compressed.
        temporal: what reads the records of a TemporalArrayLoader.
    """

    leaves: tuple[Leaf, ...] | None = None
    loader: str = ""
    compression: str = ""
    level: str = ""
    ipc_compressed: bool = False
    encryption: Encryption | None = None
    temporal: TemporalReader | None = None

    @property
    def tokens(self) -> Leaf | None:
        """The only leaf of datasets whose records are tokens."""
        is_tokens = self.loader == _TOKENS and self.leaves and len(self.leaves) == 1
        return self.leaves[0] if is_tokens and self.leaves else None


@dataclass(frozen=True, slots=True)
class Index:
    chunks: tuple[Chunk, ...] = ()
    config: Config = field(default_factory=Config)
    updated_at: str = ""
    keyed: bool = False
    """Whether there is a folder of tables from keys to record numbers beside the chunks."""


_TOKENS, _TEMPORAL, _PARQUET = "TokensLoader", "TemporalArrayLoader", "ParquetLoader"


def is_index(value: object) -> bool:
    """Whether the value of an index.json looks like LitData's, be it damaged."""
    return isinstance(value, dict) and not value.keys().isdisjoint(("chunks", "config"))


def is_parquet_index(value: object) -> bool:
    """Whether the value of an index.json looks like one whose chunks are Parquet files."""
    config = value.get("config") if isinstance(value, dict) else None
    return isinstance(config, dict) and config.get("item_loader") == _PARQUET


def parse_index(text: bytes) -> Index:
    """The index that a JSON text holds.

    Raises:
        Corrupt: it is none.
        Unsupported: the dataset is of a kind that can't be read.
    """
    index = parse_object(text)
    config = parse_config(member(index, "config", dict))
    chunks = parse_chunks(index)
    updated_at, keys = optional(index, "updated_at", str), optional(index, "keys", dict)
    return Index(chunks, config, updated_at or "", keyed=keys is not None)


def parse_chunks(index: dict[str, Any]) -> tuple[Chunk, ...]:
    """The chunks that an index names. Raises Corrupt."""
    chunks = []
    for number, entry in enumerate(member(index, "chunks", list)):
        with located(f"chunk {number}"):
            chunks.append(_chunk(checked(entry, dict, "it")))
    return tuple(chunks)


def _chunk(entry: dict[str, Any]) -> Chunk:
    file = member(entry, "filename", str)
    if not file:
        raise Corrupt("filename is empty")
    file = from_bytes(to_bytes(file))
    parts, tokens = safe_parts(file), optional(entry, "dim", int)
    return Chunk(
        file,
        "/".join(parts) if parts else None,
        natural(member(entry, "chunk_size", int), _MAX_U32, "chunk_size"),
        natural(member(entry, "chunk_bytes", int), _MAX_I64, "chunk_bytes"),
        None if tokens is None else natural(tokens, _MAX_I64, "dim"),
    )


def parse_config(config: dict[str, Any]) -> Config:
    """What a ``config`` says. Raises Corrupt, Unsupported."""
    loader = optional(config, "item_loader", str) or ""
    if loader == _PARQUET:
        raise Unsupported("the chunks are Parquet files; mount these without their index.json")
    leaves = _leaves(config)
    if not loader and len(leaves) == 1 and leaves[0].type.startswith("no_header_tensor:"):
        loader = _TOKENS
    compression = optional(config, "compression", str) or ""
    if compression.partition(":")[0] not in ("", "zstd"):
        raise Unsupported(f"the compression {shown(compression)} is not known")
    level = optional(config, "compression_level", str) or ""
    if level not in ("", "chunk", "batch", "sample"):
        raise Unsupported(f"the compression_level {shown(level)} is not known")
    schema = member(config, "temporal_schema", dict) if loader == _TEMPORAL else None
    return Config(
        leaves=leaves,
        loader=loader,
        compression=compression,
        level=level.replace("chunk", ""),
        ipc_compressed=bool(optional(config, "ipc_compression", str)),
        encryption=_encryption(config),
        temporal=None if schema is None else TemporalReader(schema),
    )


def _leaves(config: dict[str, Any]) -> tuple[Leaf, ...]:
    types = [
        checked(name, str, "a type in data_format")
        for name in optional(config, "data_format", list) or []
    ]
    spec = optional(config, "data_spec", str)
    names = tuple(map(str, range(len(types)))) if spec is None else leaf_names(spec)
    if len(names) != len(types):
        raise Corrupt(f"data_spec has {len(names)} leaves, but data_format {len(types)}")
    return tuple(
        Leaf(name, type_, leaf_type(type_)) for name, type_ in zip(names, types, strict=True)
    )


def _encryption(config: dict[str, Any]) -> Encryption | None:
    found = optional(config, "encryption", dict)
    if found is None:
        return None
    level = member(found, "level", str)
    if level not in ("chunk", "sample"):
        raise Unsupported(f"the encryption level {shown(level)} is not known")
    return Encryption(member(found, "algorithm", str), level)
