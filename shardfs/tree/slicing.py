"""The part of a dataset that one of several readers gets, divided as `split_dataset_by_node` of `datasets` does."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Dataset, Field, FieldInfo, Shard, ShardRef


def sliced(dataset: Dataset, rank: int, world: int) -> Dataset:
    """What reader *rank* of *world* gets: every world-th shard where that is fair, else every world-th row.

    Shards and records keep their names.
    """
    if world <= 1:
        return dataset
    return (Shards if len(dataset.shards) % world == 0 else Rows)(dataset, rank, world)


class Shards:
    """Every *world*-th shard of a dataset."""

    def __init__(self, dataset: Dataset, rank: int, world: int) -> None:
        self._dataset, self._rank, self._world = dataset, rank, world
        self.format = dataset.format
        self.shards: Sequence[ShardRef] = dataset.shards[rank::world]

    def open_shard(self, index: int, /) -> Shard:
        return self._dataset.open_shard(self._rank + index * self._world)

    def owns(self, path: str, /) -> bool:
        return self._dataset.owns(path)

    def info(self) -> Mapping[str, object]:
        return {**self._dataset.info(), "rank": self._rank, "world": self._world}


class Rows:
    """Every *world*-th row of a dataset, counted over all its shards."""

    def __init__(self, dataset: Dataset, rank: int, world: int) -> None:
        self._dataset, self._rank, self._world = dataset, rank, world
        self.format = dataset.format

    @cached_property
    def shards(self) -> Sequence[ShardRef]:
        return [replace(ref, records=None) for ref in self._dataset.shards]

    def open_shard(self, index: int, /) -> Shard:
        # Rows before this shard decide which of its rows come first.
        before = sum(self._count(shard) for shard in range(index))
        first = (self._rank - before) % self._world
        return Strided(self._dataset.open_shard(index), first, self._world)

    def _count(self, index: int) -> int:
        records = self._dataset.shards[index].records
        return len(self._dataset.open_shard(index)) if records is None else records

    def owns(self, path: str, /) -> bool:
        return self._dataset.owns(path)

    def info(self) -> Mapping[str, object]:
        return {**self._dataset.info(), "rank": self._rank, "world": self._world}


class Strided:
    """Every *step*-th record of a shard, from *first* on."""

    def __init__(self, shard: Shard, first: int, step: int) -> None:
        self._shard, self._first, self._step = shard, first, step
        self.nested, self.loose, self.costly = shard.nested, 0, False

    @property
    def columns(self) -> Sequence[str]:
        return self._shard.columns

    def schema(self) -> Sequence[FieldInfo]:
        return self._shard.schema()

    @property
    def capacity(self) -> int:
        return self._shard.capacity

    def __len__(self) -> int:
        return max(len(self._shard) - self._first + self._step - 1, 0) // self._step

    def has(self, index: int, /) -> bool:
        return self._shard.has(self._first + index * self._step)

    def key(self, index: int, /) -> str:
        return self._shard.key(self._first + index * self._step)

    def find(self, key: str, /) -> int | None:
        found = self._shard.find(key)
        if found is None or found < self._first or (found - self._first) % self._step:
            return None
        return (found - self._first) // self._step

    def fields(self, index: int, /) -> Sequence[Field]:
        return self._shard.fields(self._first + index * self._step)

    def early(self, index: int, name: str, /) -> Sequence[Field] | None:
        return self._shard.early(self._first + index * self._step, name)

    def close(self) -> None:
        self._shard.close()
