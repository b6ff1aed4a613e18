"""Parquet files, with or without the metadata of Hugging Face's `datasets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.formats.parquet.shard import SUFFIXES, ParquetShard
from shardfs.formats.shared.media import with_media
from shardfs.model import ShardRef
from shardfs.names import without_suffix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Dataset, Services, Shard
    from shardfs.stores import Store


class Parquet:
    """The format `parquet`."""

    name: ClassVar[str] = "parquet"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        return any(name.lower().endswith(SUFFIXES) for name in names)

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> Dataset:
        return ParquetDataset(store, names, services)


class ParquetDataset:
    """Files, each a shard."""

    format = Parquet.name

    def __init__(self, store: Store, names: Sequence[str], services: Services) -> None:
        self._store, self._services = store, services
        chosen = frozenset(names)
        self._entries = [entry for entry in store.list() if entry.path in chosen]
        self._owned = frozenset(entry.path for entry in self._entries)
        self.shards = tuple(
            ShardRef(without_suffix(e.path, SUFFIXES), e.path, None, e.mtime_ns, e.version)
            for e in self._entries
        )

    def open_shard(self, index: int, /) -> Shard:
        entry = self._entries[index]
        return with_media(ParquetShard(self._store, entry, self._services), self._store, entry)

    def owns(self, path: str, /) -> bool:
        return path in self._owned

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards)}
