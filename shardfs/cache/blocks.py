"""The blocks of a remote file: in memory, on disk, on their way.

A block is on its way once, however many threads wait for it: whoever claims it brings it, from the disk cache or else
from the source, and the others wait for that.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakValueDictionary

from shardfs.cache.kept import BLOCK, Kept
from shardfs.cache.readahead import Cursors
from shardfs.errors import ShardfsError, Unexpected, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from shardfs.cache.disk import DiskCache
    from shardfs.cache.memory import Memory
    from shardfs.stores import RemoteBlob


class Block:
    """Bytes of a file, held in memory while the budget allows. Keeps the other blocks known meanwhile."""

    __slots__ = ("__weakref__", "_table", "data")

    def __init__(self, table: Table, data: memoryview) -> None:
        self._table, self.data = table, data


Claims: TypeAlias = "dict[int, Future[Block]]"
"""Blocks on their way, by number."""


class Onward(Protocol):
    """What to go on with behind the blocks that were claimed first."""

    def reach(self, first: int) -> int:
        """The block behind the last that a request from *first* on asks for, at least one."""
        ...

    def go_on(self, number: int) -> bool:
        """Whether the block *number*, behind the last that was claimed, is claimed after all, or soon."""
        ...


@dataclass(frozen=True, slots=True)
class Keep:
    """Where blocks are kept.

    Attributes:
        memory: for as long as the budget allows.
        disk: for later mounts, if anything does that.
        offline: whether what is not kept is not to be had.
    """

    memory: Memory
    disk: DiskCache | None
    offline: bool = False


class Counter:
    """How many blocks came from where."""

    def __init__(self) -> None:
        self.memory = self.disk = self.fetched = 0

    def counts(self) -> Mapping[str, int]:
        return {
            "blocks_from_memory": self.memory,
            "blocks_from_disk": self.disk,
            "blocks_fetched": self.fetched,
        }


@dataclass(frozen=True, slots=True)
class File:
    """A remote file; the attributes are those of ``Blobs.open``."""

    key: str
    size: int
    source: Callable[[], RemoteBlob]
    name: str
    least: int


class Table:
    """The blocks of a file that are in memory, and those on their way."""

    def __init__(self, file: File, keep: Keep, counter: Counter, share: int) -> None:
        """Fetch by *share* requests at a time."""
        self.file, self.share, self._counter = file, share, counter
        self.slots, self.cursors = threading.Semaphore(share), Cursors()
        self.waiting = 0
        """How many threads wait for a slot."""
        self._memory, self._offline = keep.memory, keep.offline
        self._kept = Kept(keep.disk, file.key, file.size) if keep.disk and file.key else None
        self.count = -(-file.size // BLOCK)
        self._held: WeakValueDictionary[int, Block] = WeakValueDictionary()
        self._coming: Claims = {}
        self._lock = threading.Lock()

    def at_hand(self, number: int) -> Block | None:
        """A block, if it is in memory."""
        block = self._held.get(number)
        if block is not None:
            self._memory.get(block)  # used now
            self._counter.memory += 1
        return block

    def is_there(self, number: int) -> bool:
        """Whether a block need not be fetched."""
        if number in self._coming or number in self._held:
            return True
        return self._kept is not None and self._kept.has(number)

    def claim(self, numbers: Iterable[int]) -> tuple[Claims, Claims]:
        """The blocks *numbers* as they come, and those of them that nobody else brings: the caller has to."""
        coming, mine = {}, {}
        with self._lock:
            for number in numbers:
                future = self._coming.get(number)
                if future is None:
                    future = Future()
                    block = self._held.get(number)
                    if block is not None:  # another thread was quicker
                        future.set_result(block)
                    else:
                        self._coming[number] = mine[number] = future
                coming[number] = future
        return coming, mine

    def give_up(self, claims: Claims, error: ShardfsError) -> None:
        """Tell those who wait for claimed blocks that they won't come."""
        while claims:
            number, future = claims.popitem()
            if not future.done():
                with self._lock:
                    del self._coming[number]
                future.set_exception(error)

    def take_from_disk(self, claims: Claims) -> None:
        """Bring those of the claimed blocks that the disk cache has; the others stay claimed."""
        if self._kept is None:
            return
        for number in list(claims):
            data = self._kept.get(number)
            if data is not None:
                self._counter.disk += 1
                self._arrive(number, claims, data)

    def fetch_in_turn(self, claims: Claims) -> None:
        """Bring claimed blocks as soon as there is a slot."""
        with self._lock:
            self.waiting += 1
        with self.slots:
            with self._lock:
                self.waiting -= 1
            self.fetch(claims)

    def fetch(self, claims: Claims, onward: Onward | None = None) -> None:
        """Bring claimed blocks, and what *onward* claims behind them. A failure goes to those who wait for them."""
        try:
            self.take_from_disk(claims)
            if claims and self._offline:
                raise Unreadable(f"{self.file.name}: offline, and not all of it was read before")
            while claims:
                run, *others = runs(claims)
                self._stream(run, claims, None if others else onward)
        except ShardfsError as error:
            self.give_up(claims, error)
        except BaseException as error:
            self.give_up(claims, unexpected(self.file.name, error))
            raise

    def _stream(self, run: Sequence[int], claims: Claims, onward: Onward | None) -> None:
        """Fetch blocks that follow one another, each of which is there as soon as its last byte is.

        Those that came are claimed no more: who has fetched must not keep them in memory.
        """
        number = run[0]
        reach = run[-1] + 1 if onward is None else min(onward.reach(number), self.count)
        start, stop = number * BLOCK, min(reach * BLOCK, self.file.size)
        data, filled = bytearray(self._length(number)), 0
        keep = nullcontext() if self._kept is None else self._kept.writer()
        with keep as kept, closing(self.file.source().stream(start, stop - start)) as pieces:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    part = rest[: len(data) - filled]
                    data[filled : filled + len(part)] = part
                    filled, rest = filled + len(part), rest[len(part) :]
                    if filled < len(data):
                        continue
                    self._counter.fetched += 1
                    self._arrive(number, claims, memoryview(data).toreadonly())
                    if kept is not None:
                        kept.add(number, data)
                    number += 1
                    if number == reach or not (
                        number in claims or (onward is not None and onward.go_on(number))
                    ):
                        return
                    data, filled = bytearray(self._length(number)), 0
        raise Unreadable(f"{self.file.name}: the source sent too little")

    def _arrive(self, number: int, claims: Claims, data: memoryview) -> None:
        block = Block(self, data)
        self._memory.put(block, block, len(data))
        with self._lock:
            self._held[number] = block
            del self._coming[number]
        claims.pop(number).set_result(block)

    def _length(self, number: int) -> int:
        return min(BLOCK, self.file.size - number * BLOCK)


def runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """*numbers* in order, those together that follow one another."""
    for _, run in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        yield [number for _, number in run]


def unexpected(name: str, error: BaseException) -> ShardfsError:
    """*error*, which nobody thought of, as a failure of the file *name*."""
    return Unexpected(f"{name}: {type(error).__name__}: {error} (please report this)")
