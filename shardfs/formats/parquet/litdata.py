"""Datasets of LitData whose chunks are Parquet files: an index.json that names these, for its ParquetLoader."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_all
from shardfs.errors import Corrupt, NotAFolder, NotFound, OutsideSource, Unreadable, located
from shardfs.formats.litdata.index import INDEX, Chunk, is_parquet_index, parse_chunks
from shardfs.formats.parquet.shard import SUFFIXES, ParquetShard
from shardfs.formats.shared.jsontext import parse, parse_object
from shardfs.model import ShardRef
from shardfs.names import without_suffix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Dataset, Services, Shard
    from shardfs.stores import Entry, Store


class LitDataParquet:
    """The format `litdata-parquet`."""

    name: ClassVar[str] = "litdata-parquet"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        if INDEX not in names:
            return False
        try:
            return is_parquet_index(parse(bytes(read_all(store.open(INDEX)))))
        except Corrupt:
            return False

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> Dataset:
        with located(INDEX):
            chunks = parse_chunks(parse_object(bytes(read_all(store.open(INDEX)))))
        return LitDataParquetDataset(store, chunks, services)


class LitDataParquetDataset:
    """Files in the order of their index."""

    format = LitDataParquet.name

    def __init__(self, store: Store, chunks: Sequence[Chunk], services: Services) -> None:
        self._store, self._chunks, self._services = store, chunks, services
        self._owned = frozenset(chunk.path for chunk in chunks)
        self.shards = tuple(map(self._ref, chunks))

    def _ref(self, chunk: Chunk) -> ShardRef:
        name = without_suffix(chunk.path or chunk.file.rpartition("/")[2], SUFFIXES)
        entry = self._entry(chunk)
        if entry is None:
            return ShardRef(name, chunk.path or "", chunk.records, 0, "")
        return ShardRef(name, entry.path, chunk.records, entry.mtime_ns, entry.version)

    def _entry(self, chunk: Chunk) -> Entry | None:
        try:
            return self._store.stat(chunk.path) if chunk.path is not None else None
        except (NotFound, NotAFolder):
            return None

    def open_shard(self, index: int, /) -> Shard:
        chunk = self._chunks[index]
        if chunk.path is None:
            raise OutsideSource(f"{INDEX} names {chunk.file!r}, which leads outside of the source")
        entry = self._entry(chunk)
        if entry is None:
            raise Unreadable(f"{INDEX} tells of it, but it is missing")
        shard = ParquetShard(self._store, entry, self._services)
        if chunk.records != len(shard):
            fault = Corrupt(f"has {len(shard)} rows, but {INDEX} says {chunk.records}")
            self._services.report(fault.at(chunk.path))
        return shard

    def owns(self, path: str, /) -> bool:
        return path in self._owned

    def info(self) -> Mapping[str, object]:
        return {
            "shards": len(self.shards),
            "records": sum(chunk.records or 0 for chunk in self._chunks),
        }
