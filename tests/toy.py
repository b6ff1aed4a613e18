"""A format for tests: a shard `x.toy` is a JSON object of records by key, each an object of texts by field.

`toy.json` makes a dataset of a folder: `{"shards": {"sub/x.toy": 3}}`, in order, with the number of records or null.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from shardfs.errors import Corrupt
from shardfs.model import ShardRef
from shardfs.registry import Row
from tests.fakes import FakeShard, KeyedShard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Services
    from shardfs.stores import Store

ROW = Row("toy", "toy:Toy", markers=("toy.json",), suffixes=(".toy",), lone=(".json",))


def toy(*records: Mapping[str, str], **keyed: Mapping[str, str]) -> bytes:
    """The content of a shard: numbered records, or records by key."""
    return json.dumps(keyed or {str(number): each for number, each in enumerate(records)}).encode()


def index(*shards: str, **counts: int | None) -> bytes:
    return json.dumps({"shards": dict.fromkeys(shards) | counts}).encode()


class Toy:
    name: ClassVar[str] = "toy"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        return True

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> ToyDataset:
        if "toy.json" not in names:
            return ToyDataset(store, dict.fromkeys(names))
        return ToyDataset(store, _parsed(store, "toy.json")["shards"])


class ToyDataset:
    format = "toy"

    def __init__(self, store: Store, counts: Mapping[str, int | None]) -> None:
        self._store, self._counts = store, counts
        self.shards = [self._ref(path, count) for path, count in counts.items()]

    def _ref(self, path: str, count: int | None) -> ShardRef:
        entry = self._store.stat(path)
        name = path.removesuffix(".toy").removesuffix(".json")
        return ShardRef(name, path, count, entry.mtime_ns, entry.version)

    def open_shard(self, index: int, /) -> FakeShard:
        records = _parsed(self._store, self.shards[index].file)
        stored = {k: {n: text.encode() for n, text in each.items()} for k, each in records.items()}
        is_numbered = all(key.isdigit() for key in stored)
        return FakeShard(list(stored.values())) if is_numbered else KeyedShard(stored)

    def owns(self, path: str, /) -> bool:
        return path in self._counts or path.endswith(".lock")

    def info(self) -> Mapping[str, object]:
        return {"writer": "a test"}


def _parsed(store: Store, path: str) -> Any:
    blob = store.open(path)
    try:
        return json.loads(bytes(blob.read(0, blob.size())))
    except ValueError as error:
        raise Corrupt(str(error)).at(path) from error
