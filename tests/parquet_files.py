"""Parquet data for tests, as pyarrow writes it or made by hand, and what shardfs makes of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from shardfs.blob import Blob, Bytes, Stored, read_all
from shardfs.formats.parquet.shard import ParquetShard
from shardfs.options import Options
from shardfs.views.present import Presenter
from tests import thrift
from tests.fakes import FakeServices, MemoryStore
from tests.thrift import I32

NAME = "data.parquet"


class CountingBlob(Stored):
    """A file that counts what is read of it, as (offset, length)."""

    def __init__(self, data: bytes, *, is_far: bool = False) -> None:
        self._bytes, self.is_far = Bytes(data), is_far
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return self._bytes.size()

    def read(self, offset: int, length: int, /) -> memoryview:
        data = self._bytes.read(offset, length)
        self.reads.append((offset, len(data)))
        return data

    def total(self, start: int = 0, stop: int = 1 << 62) -> int:
        """How many bytes from *start* to *stop* were read."""
        return sum(max(min(at + size, stop) - max(at, start), 0) for at, size in self.reads)


class OneFile(MemoryStore):
    """A store of one blob."""

    def __init__(self, blob: Blob) -> None:
        super().__init__({NAME: b""})
        self._blob = blob

    def open(self, path: str, /) -> Blob:
        return self._blob


def written(table: pa.Table, **options: Any) -> bytes:
    """A file. *options* are those of pyarrow's ``write_table``."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def read_back(data: bytes) -> pa.Table:
    """What pyarrow reads of a file."""
    return parquet.ParquetFile(pa.BufferReader(data)).read()


def opened(
    data: bytes | Blob, services: FakeServices | None = None, **options: Any
) -> ParquetShard:
    store = OneFile(Bytes(data) if isinstance(data, bytes) else data)
    return ParquetShard(store, store.stat(NAME), services or FakeServices(Options(**options)))


def files(shard: Any, row: int, *, raw: bool = False) -> list[tuple[str, bytes]]:
    """The files of a record, by name and in order."""
    shown = Presenter(FakeServices().memory, raw=raw).files(shard.fields(row))
    return [(file.stem + file.extension, bytes(read_all(file.blob))) for file in shown]


def contents(data: bytes, column: str = "v", **options: Any) -> list[bytes | None]:
    """The bytes of a column's fields in every row, None where a row has none."""
    shard = opened(data, **options)
    found = []
    for row in range(len(shard)):
        fields = [field for field in shard.fields(row) if field.name == column]
        found.append(bytes(read_all(fields[0].data)) if fields else None)
    return found


# --- made by hand ------------------------------------------------------------------------------------------

REQUIRED, OPTIONAL, REPEATED = range(3)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
UTF8, MAP, LIST = 0, 1, 3


def element(name: str, repetition: int = REQUIRED, **said: Any) -> dict[int, Any]:
    """A part of a schema: *type*, *length*, *children* (how many), *converted*."""
    numbers = {"type": 1, "length": 2, "children": 5, "converted": 6}
    fields = {numbers[key]: I32(value) for key, value in said.items()}
    return {3: I32(repetition), 4: name.encode(), **fields}


def root(children: int) -> dict[int, Any]:
    return {4: b"schema", 5: I32(children)}


def levels(values: list[int]) -> bytes:
    """Levels, each a run of its own, behind their length."""
    runs = b"".join(bytes([1 << 1, value]) for value in values)
    return struct.pack("<I", len(runs)) + runs


def texts(*values: bytes) -> bytes:
    """PLAIN byte strings."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def page(body: bytes, count: int, encoding: int = 0, **said: Any) -> bytes:
    """A data page of version 1. *said* overrules what the header says: *size*, *stored*, *levels* (their
    encoding), *repetition* (that of these alone)."""
    rle = I32(said.get("levels", 3))
    outer = I32(said["repetition"]) if "repetition" in said else rle
    header = {1: I32(0), 2: I32(said.get("size", len(body))), 3: I32(said.get("stored", len(body)))}
    return thrift.struct({**header, 5: {1: I32(count), 2: I32(encoding), 3: rle, 4: outer}}) + body


def page_v2(
    body: bytes,
    count: int,
    rows: int,
    repetition: bytes = b"",
    definition: bytes = b"",
    size: int | None = None,
) -> bytes:
    """A data page of version 2 that says it is not compressed; *size*: what it says it comes to all the same."""
    whole = repetition + definition + body
    header = {1: I32(3), 2: I32(len(whole) if size is None else size), 3: I32(len(whole))}
    said: dict[int, Any] = {1: I32(count), 2: I32(0), 3: I32(rows), 4: I32(0)}
    said |= {5: I32(len(definition)), 6: I32(len(repetition)), 7: False}
    return thrift.struct({**header, 8: said}) + whole


def dictionary(body: bytes, count: int) -> bytes:
    header = {1: I32(2), 2: I32(len(body)), 3: I32(len(body)), 7: {1: I32(count), 2: I32(0)}}
    return thrift.struct(header) + body


@dataclass(frozen=True)
class Made:
    """A column chunk: its pages, how many values it says to have, and what overrules its metadata by field number."""

    pages: bytes
    values: int
    type: int = BYTE_ARRAY
    said: dict[int, Any] | None = None
    chunk: dict[int, Any] | None = None


def made(schema: list[dict[int, Any]], groups: list[tuple[int, list[Made]]], **said: Any) -> bytes:
    """A file of row groups, each of so many rows. *said* overrules the footer: *rows*, *writer*."""
    parts, at, metadata = [b"PAR1"], 4, []
    for rows, chunks in groups:
        columns = []
        for chunk in chunks:
            meta = {1: I32(chunk.type), 2: [I32(0)], 3: [b"v"], 4: I32(0), 5: chunk.values}
            meta |= {6: len(chunk.pages), 7: len(chunk.pages), 9: at, **(chunk.said or {})}
            columns.append({2: at, 3: meta, **(chunk.chunk or {})})
            parts.append(chunk.pages)
            at += len(chunk.pages)
        metadata.append({1: columns, 2: at, 3: rows})
    total = said.get("rows", sum(rows for rows, _ in groups))
    footer = thrift.struct(
        {1: I32(2), 2: schema, 3: total, 4: metadata, 6: said.get("writer", b"by hand")}
    )
    return b"".join([*parts, footer, struct.pack("<I", len(footer)), b"PAR1"])
