"""Spaces of shards for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardfs.cache.memory import Memory
from shardfs.journal import Journal
from shardfs.model import ShardRef
from shardfs.options import Options
from shardfs.tree.shards import ShardSpace
from shardfs.views.present import Presenter
from tests.fakes import FakeDataset, FakeShard, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.cache.disk import DiskCache
    from shardfs.errors import ShardfsError
    from shardfs.model import Dataset
    from shardfs.tree.inodes import Ino
    from shardfs.tree.nodes import Attr


class Space(ShardSpace):
    """A space of one dataset, with the journal at hand."""

    def __init__(
        self,
        dataset: Dataset,
        store: MemoryStore | None = None,
        index: DiskCache | None = None,
        **options: Any,
    ) -> None:
        self.journal = Journal()
        presenter = Presenter(Memory(1 << 20), raw=False)
        super().__init__(presenter, self.journal, Options(**options), index)
        assert self.add(dataset, store or MemoryStore({})) == 0

    def at(self, path: str, shard: int = 0) -> Attr:
        attr = self.folder_attr(shard)
        for part in path.split("/"):
            attr = self.lookup(attr.ino, part)
        return attr

    def content(self, path: str, shard: int = 0) -> bytes:
        blob = self.open(self.at(path, shard).ino)
        return bytes(blob.read(0, blob.size()))

    def names(self, ino: Ino) -> list[str]:
        return [listed.name for listed in self.scan(ino, 0)]


def space(*records: Mapping[str, bytes | ShardfsError] | ShardfsError, **options: Any) -> Space:
    return Space(FakeDataset({"one": FakeShard(records)}), **options)


class Versioned(FakeDataset):
    """A shard whose file had another version when the index was read, or has none at all."""

    @property
    def shards(self) -> Sequence[ShardRef]:
        return [ShardRef("one", "one.bin", 1, 1, "v3")]
