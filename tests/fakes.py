"""Small stand-ins for the protocols, some of which misbehave on demand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

from shardfs.blob import Blob, Broken, Bytes, clip, may_wait
from shardfs.cache.memory import Derived, Memory
from shardfs.codecs.inflated import Inflated
from shardfs.errors import Changed, Corrupt, IsAFolder, NotFound, ShardfsError, WouldBlock
from shardfs.journal import Journal
from shardfs.model import NO_PARAMETERS, Field, Kind, NumberedKeys, Parameters, Plain, ShardRef
from shardfs.names import to_bytes
from shardfs.options import Options
from shardfs.registry import CHARSETS, CODECS, load_codec
from shardfs.stores import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.stores import Store, Watch


class SlowBlob:
    """Bytes that are not at hand: inside no_wait() every read would block. Counts what it serves."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int, /) -> memoryview:
        if not may_wait():
            raise WouldBlock
        start, stop = clip(offset, length, len(self._data))
        self.reads.append((start, stop - start))
        return memoryview(self._data)[start:stop]


class FailingBlob(SlowBlob):
    """Fails at every byte from *at* on."""

    def __init__(self, data: bytes, at: int) -> None:
        super().__init__(data)
        self._at = at

    def read(self, offset: int, length: int, /) -> memoryview:
        if offset + length > self._at:
            raise Corrupt(f"injected at {self._at}")
        return super().read(offset, length)


class MemoryStore:
    """Files in memory, by path."""

    def __init__(self, files: Mapping[str, bytes], url: str = "memory://") -> None:
        self.url, self.files = url, dict(files)
        self.opened: list[str] = []

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        lead = f"{prefix}/" if prefix else ""
        names = {
            path[len(lead) :].partition("/")[0] for path in self.files if path.startswith(lead)
        }
        if not names:
            raise NotFound(prefix)
        return [self.stat(lead + name) for name in sorted(names, key=to_bytes)]

    def stat(self, path: str, /) -> Entry:
        data = self.files.get(path)
        if data is not None:
            return Entry(path, len(data), 1, f"v{len(data)}")
        if not path or any(known.startswith(f"{path}/") for known in self.files):
            return Entry(path, 0, 1, "", is_dir=True)
        raise NotFound(path)

    def open(self, path: str, /) -> Blob:
        if self.stat(path).is_dir:
            raise IsAFolder(path)
        self.opened.append(path)
        return Bytes(self.files[path])

    def watch(self, path: str, version: str, /) -> Watch | None:
        def look() -> None:
            if path not in self.files or self.stat(path).version != version:
                raise Changed

        return look


class UnwatchedStore(MemoryStore):
    """One that looks after versions when it is read, as remote ones do."""

    def watch(self, path: str, version: str, /) -> None:
        return None


class FakeServices:
    """Services with real codecs and memory, and reports that a test can look at."""

    def __init__(
        self, options: Options | None = None, parameters: Parameters = NO_PARAMETERS
    ) -> None:
        self.options, self.parameters = options or Options(), parameters
        self.memory = Memory(self.options.memory_limit)
        self.reports: list[ShardfsError] = []

    def inflate(self, blob: Blob, codec: str, size: int | None, /) -> Blob:
        limit = self.options.max_chunk_size
        return Inflated(
            blob, load_codec((*CODECS, *CHARSETS), codec), size, memory=self.memory, limit=limit
        )

    def unpack(self, store: Store, entry: Entry, codec: str, /) -> Blob:
        blob = self.inflate(store.open(entry.path), codec, None)
        return Bytes(bytes(blob.read(0, blob.size())))

    def derive(self, build: Callable[[], bytes], /) -> Blob:
        return Derived(build, self.memory)

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        return Derived(build, self.memory)

    def report(self, error: ShardfsError, /) -> None:
        self.reports.append(error)


Record: TypeAlias = "Mapping[str, bytes | ShardfsError]"


class FakeShard(NumberedKeys):
    """Records as dictionaries; a record that is an error raises it."""

    def __init__(
        self,
        records: Sequence[Record | ShardfsError],
        *,
        costly: bool = False,
        kind: Kind | None = None,
    ) -> None:
        self.records, self.costly, self._kind = records, costly, kind or Plain(".txt")
        self.asked = 0
        self.closed = False

    @property
    def columns(self) -> Sequence[str]:
        good = (record for record in self.records if not isinstance(record, ShardfsError))
        return list(dict.fromkeys(name for record in good for name in record))

    def __len__(self) -> int:
        return len(self.records)

    def fields(self, index: int, /) -> Sequence[Field]:
        self.asked += 1
        record = self.records[index]
        if isinstance(record, ShardfsError):
            raise record.again()
        return [
            Field(name, self._kind, Broken(data) if isinstance(data, ShardfsError) else Bytes(data))
            for name, data in record.items()
        ]

    def close(self) -> None:
        self.closed = True


class KeyedShard(FakeShard):
    """Records by keys that may have folders in them; *known* keys were found so far, where a scan goes on."""

    nested = True

    def __init__(
        self,
        records: Mapping[str, Record | ShardfsError],
        loose: Mapping[str, Record] | None = None,
    ) -> None:
        super().__init__([*records.values(), *(loose or {}).values()])
        self._keys = [*records, *(loose or {})]
        self._count = len(records)
        self.loose = len(loose or {})
        self.known = self._count

    @property
    def capacity(self) -> int:
        return len(self._keys)

    def __len__(self) -> int:
        if self.known < self._count and not may_wait():
            raise WouldBlock
        self.known = self._count
        return self._count

    def has(self, index: int, /) -> bool:
        if index >= self.known and self.known < self._count:
            if not may_wait():
                raise WouldBlock
            self.known = min(index + 1, self._count)
        return index < self._count

    def key(self, index: int, /) -> str:
        return self._keys[index]

    def find(self, key: str, /) -> int | None:
        found = next((i for i, k in enumerate(self._keys[: self.known]) if k == key), None)
        if found is None and self.known < self._count:
            if not may_wait():
                raise WouldBlock
            self.known = self._count
            return self.find(key)
        return found


class MemberShard(KeyedShard):
    """The parts of a record are files that have their names, `key.field`; loose ones are called as the field is."""

    def fields(self, index: int, /) -> Sequence[Field]:
        base = "" if index >= self._count else self._keys[index].rpartition("/")[2] + "."
        fields = super().fields(index)
        return [field._replace(filename=base + field.name) for field in fields]


class FakeDataset:
    """Shards by name; one that is an error can't be opened."""

    format = "fake"

    def __init__(self, shards: Mapping[str, FakeShard | ShardfsError]) -> None:
        self.by_name = dict(shards)
        self.opened: list[str] = []
        self._lock = threading.Lock()

    @property
    def shards(self) -> Sequence[ShardRef]:
        return [
            ShardRef(name, "", None if isinstance(shard, ShardfsError) else len(shard), 1, "")
            for name, shard in self.by_name.items()
        ]

    def open_shard(self, index: int, /) -> FakeShard:
        name, shard = list(self.by_name.items())[index]
        with self._lock:
            self.opened.append(name)
        if isinstance(shard, ShardfsError):
            raise shard
        return shard

    def owns(self, path: str, /) -> bool:
        return path.endswith(".owned")

    def info(self) -> Mapping[str, object]:
        return {"writer": "fake"}


def journal() -> Journal:
    return Journal()
