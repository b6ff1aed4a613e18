"""A source behind a network that is not there: it waits, fails and counts on demand."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from shardfs.blob import clip, may_wait
from shardfs.cache.blocks import Keep
from shardfs.cache.cached import Blobs, Means
from shardfs.cache.memory import Memory
from shardfs.cache.readahead import Shares
from shardfs.cache.workers import Workers
from shardfs.errors import WouldBlock
from shardfs.stores import Entry
from tests.fakes import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.cache.cached import CachedBlob
    from shardfs.cache.disk import DiskCache
    from shardfs.errors import ShardfsError

# Bytes that come at a time: not a divisor of a block.
_PIECE = 50_000


class RemoteBytes:
    """Bytes that must be fetched.

    Attributes:
        fetched: (offset, length) of each request.
        error: what requests raise behind *fails_after* bytes.
        gate: what requests wait for before each piece.
        most: how many requests there were at a time.
        sent: how many bytes came.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fetched: list[tuple[int, int]] = []
        self.error: Exception | None = None
        self.fails_after = 0
        self.gate = threading.Event()
        self.gate.set()
        self.most = self._now = self.sent = 0
        self._lock = threading.Lock()

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, len(self.data))
        return memoryview(b"".join(self.stream(start, stop - start)))

    def stream(self, offset: int, length: int, /) -> Generator[bytes, None, None]:
        if not may_wait():
            raise WouldBlock
        with self._lock:
            self.fetched.append((offset, length))
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            yield from self._pieces(offset, offset + length)
        finally:
            with self._lock:
                self._now -= 1

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        if self.error is not None and not self.fails_after:
            raise self.error
        for at in range(start, stop, _PIECE):
            assert self.gate.wait(20)
            piece = self.data[at : min(at + _PIECE, stop)]
            self.sent += len(piece)
            yield piece
            if self.error is not None and at + _PIECE - start >= self.fails_after:
                raise self.error


class RemoteFiles(MemoryStore):
    """Files behind a network. Counts what it is asked; entries may be listed without what ``stat`` tells.

    Attributes:
        version: that of all files together, if there is one.
        everything: what ``whole`` tells.
        copies: files that are on this machine.
    """

    least = 1
    complete = hub_rules = False

    def __init__(self, files: Mapping[str, bytes], *, terse: bool = False) -> None:
        super().__init__(files, "remote://host")
        self._known = MemoryStore({})
        self._known.files = self.files
        self.asked: list[str] = []
        self.recalled: list[str] = []
        self.error: ShardfsError | None = None
        self.closed = False
        self.version = ""
        self.everything: Sequence[Entry] | None = None
        self.copies: dict[str, Blob] = {}
        self.blobs: dict[str, RemoteBytes] = {}
        self._terse = terse

    def list(self, prefix: str = "", /) -> list[Entry]:
        self._ask(f"list {prefix}")
        entries = self._known.list(prefix)
        return (
            [Entry(e.path, 0, 1, "", is_dir=e.is_dir) for e in entries]
            if self._terse
            else [*entries]
        )

    def stat(self, path: str, /) -> Entry:
        self._ask(f"stat {path}")
        entry = self._known.stat(path)
        return entry if path else replace(entry, version=self.version)

    def whole(self) -> Sequence[Entry] | None:
        self._ask("whole")
        return self.everything

    def at_hand(self, entry: Entry, /) -> Blob | None:
        return self.copies.get(entry.path)

    def recall(self, path: str, /) -> None:
        self.recalled.append(path)

    def blob(self, entry: Entry, /) -> RemoteBytes:
        return self.blobs.setdefault(entry.path, RemoteBytes(self.files[entry.path]))

    def counts(self) -> Mapping[str, int]:
        return {"requests": len(self.asked)}

    def close(self) -> None:
        self.closed = True

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.error is not None:
            raise self.error.again()


def means(
    disk: DiskCache | None = None,
    *,
    memory: int = 64 << 20,
    connections: int = 8,
    offline: bool = False,
) -> Means:
    return Means(
        keep=Keep(Memory(memory), disk, offline),
        workers=Workers(2 * connections),
        shares=Shares(memory // 4),
        connections=connections,
    )


def cached(
    source: RemoteBytes, what: Means | None = None, *, key: str = "key", least: int = 1
) -> CachedBlob:
    return open_in(Blobs(what or means()), source, key=key, least=least)


def open_in(
    blobs: Blobs,
    source: RemoteBytes,
    *,
    key: str = "key",
    least: int = 1,
    find: Callable[[], RemoteBytes] | None = None,
) -> CachedBlob:
    return blobs.open(key, source.size(), find or (lambda: source), name="the file", least=least)
