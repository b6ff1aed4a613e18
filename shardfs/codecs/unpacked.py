"""A compressed file of any length as a plain one, readable at any offset in little memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardfs.blob import may_wait
from shardfs.cache.spill import NoRoom
from shardfs.codecs.pieces import VERSION, Pieced, Unsuited
from shardfs.codecs.replayed import Replayed
from shardfs.codecs.spilled import Spilled
from shardfs.errors import Unsupported, WouldBlock, located

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shardfs.blob import Blob
    from shardfs.cache.index import IndexCache
    from shardfs.cache.memory import Memory
    from shardfs.cache.spill import Spills
    from shardfs.codecs import Codec
    from shardfs.codecs.pieces import Indexer
    from shardfs.errors import ShardfsError

# A guess: what comes to more than this many times its size, and to more than a chunk may, is a bomb.
_MAX_RATIO = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What files are unpacked with.

    Attributes:
        memory: holds what is read.
        index: keeps the places to start from.
        spills: keep whole content.
        report: takes a word for the user.
        largest_piece: the most bytes of one file that are held in memory together.
        size_limit: the most bytes that any file may become, however small it is.
        is_fresh: not to trust what was kept before.
    """

    memory: Memory
    index: IndexCache | None
    spills: Spills | None
    report: Callable[[ShardfsError], None]
    largest_piece: int
    size_limit: int
    is_fresh: bool = False


class Unpacked:
    """The decompressed bytes of a file.

    It is read by the places to start from that its format has, else by way of a file in the disk cache, else by
    decompression anew for every step back. A way that turns out not to fit is left for the next one.
    """

    def __init__(
        self, blob: Blob, codec: Codec, indexer: Indexer | None, means: Means, *, name: str, key: str
    ) -> None:
        """Keep things under *key*, if there is one; *name* is what the user knows the file by."""
        self._ways = _ways(blob, codec, indexer, means, name, key)
        self._way: Blob | None = None
        self._lock = threading.Lock()

    def size(self) -> int:
        way = self._way or self._choose(None)
        while True:
            try:
                return way.size()
            except Unsuited as error:
                way = self._choose(way, str(error))

    def read(self, offset: int, length: int, /) -> memoryview:
        way = self._way or self._choose(None)
        while True:
            try:
                return way.read(offset, length)
            except Unsuited as error:
                way = self._choose(way, str(error))

    def _choose(self, left: Blob | None, why: str | None = None) -> Blob:
        """The way behind *left*, chosen by one thread for all."""
        if not may_wait():
            raise WouldBlock
        with self._lock:
            if self._way is None or self._way is left:
                self._way = None if left is None else self._way
                self._way = self._ways.send(why)
            return self._way


def _ways(
    blob: Blob, codec: Codec, indexer: Indexer | None, means: Means, name: str, key: str
) -> Generator[Blob, str | None, None]:
    """The ways to read a file, the best first; takes why the last one did not do.

    Not a method, and without a name for a way: what was left must not stay alive.
    """
    spills, limit = means.spills, max(means.size_limit, _MAX_RATIO * blob.size())
    whole = spills.get(key) if spills and key and not means.is_fresh else None
    if whole is not None:
        yield whole
    why: str | None = "the disk cache is off"
    if indexer is not None:
        yield _pieced(blob, indexer, means, key)
    if spills is not None:
        try:
            spill = Spilled(blob, codec, spills.create(key), limit=limit, keep=bool(key))
            why = yield spill
        except NoRoom as error:
            why = str(error)
    with located(name):
        ...
