"""Parquet data for tests, as pyarrow writes it, and what shardfs makes of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import parquet

from shardfs.blob import Blob, Bytes, Stored, read_all
from shardfs.formats._parquet_shard import ParquetShard
from shardfs.options import Options
from shardfs.views.present import Presenter
from tests.fakes import FakeServices, MemoryStore

NAME = "data.parquet"


class CountingBlob(Stored):
    """A file that counts what is read of it, as (offset, length)."""

    def __init__(self, data: bytes) -> None:
        self._bytes = Bytes(data)
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


def opened(data: bytes | Blob, services: FakeServices | None = None, **options: Any) -> ParquetShard:
    store = OneFile(Bytes(data) if isinstance(data, bytes) else data)
    services = services or FakeServices(Options(**options))
    return ParquetShard(store, store.stat(NAME), services)


def files(shard: Any, row: int, *, raw: bool = False) -> list[tuple[str, bytes]]:
    """The files of a record, by name and in order."""
    shown = Presenter(FakeServices().memory, raw=raw).files(shard.fields(row))
    return [(file.stem + file.extension, bytes(read_all(file.blob))) for file in shown]


def contents(data: bytes, column: str = "v") -> list[bytes | None]:
    """The stored bytes of a column in every row, None for a null."""
    shard = opened(data)
    return [_content(shard, row, column) for row in range(len(shard))]


def _content(shard: ParquetShard, row: int, column: str) -> bytes | None:
    found = [field for field in shard.fields(row) if field.name == column]
    return bytes(read_all(found[0].data)) if found else None


def read_back(data: bytes) -> pa.Table:
    """What pyarrow reads of a file."""
    return parquet.ParquetFile(pa.BufferReader(data)).read()

