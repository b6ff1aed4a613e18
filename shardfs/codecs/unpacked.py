"""A compressed file of any length as a plain one, readable at any offset in little memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from shardfs.blob import may_wait
from shardfs.cache.disk import NoRoom
from shardfs.codecs._pass import Limits
from shardfs.codecs.pieces import VERSION, Pieced, Unsuited
from shardfs.codecs.replayed import Replayed
from shardfs.codecs.spilled import Spilled
from shardfs.errors import ShardfsError, Spoilt, Unreadable, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.cache.disk import DiskCache
    from shardfs.cache.memory import Memory
    from shardfs.cache.spill import Spills
    from shardfs.codecs import Codec
    from shardfs.codecs.pieces import Indexer

# A guess: what comes to more than this many times its size, and to more than a chunk may, is a bomb.
_MAX_RATIO = 256
# How often what was kept of a file may turn out to be damaged.
_MAX_RENEWALS = 3


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
    index: DiskCache | None
    spills: Spills | None
    report: Callable[[ShardfsError], None]
    largest_piece: int
    size_limit: int
    is_fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A compressed file: what is kept of it stands under *key*, if there is one; the user knows it by its *name*."""

    blob: Blob
    codec: Codec
    indexer: Indexer | None
    name: str
    key: str


class Unpacked:
    """The decompressed bytes of a file.

    It is read by the places to start from that its format has, else by way of a file in the disk cache, else by
    decompression anew for every step back. A way that turns out not to fit is left for the next one.
    """

    def __init__(self, packed: Packed, means: Means) -> None:
        self._all_ways = [partial(way, packed, means) for way in _WAYS]
        self._ways = list(self._all_ways)
        self._way: Blob | None = None
        self._renewals = _MAX_RENEWALS
        self._lock = threading.Lock()

    def size(self) -> int:
        way = self._way or self._leave(None)
        while True:
            try:
                return way.size()
            except Unsuited as error:
                way = self._leave(way, str(error))
            except Spoilt:
                way = self._renew(way)

    def read(self, offset: int, length: int, /) -> memoryview:
        way = self._way or self._leave(None)
        while True:
            try:
                return way.read(offset, length)
            except Unsuited as error:
                way = self._leave(way, str(error))
            except Spoilt:
                way = self._renew(way)

    def _leave(self, left: Blob | None, why: str = "") -> Blob:
        """The way behind *left*, chosen by one thread for all."""
        if not may_wait():
            raise WouldBlock
        with self._lock:
            if self._way is left:
                self._way = None
            while self._way is None:
                try:
                    self._way = self._ways[0](why)
                except Unsuited as error:
                    why = str(error)
                del self._ways[0]
            return self._way

    def _renew(self, left: Blob) -> Blob:
        """The first of all ways that fits now: what was kept of the file on disk was damaged, and is gone."""
        if not may_wait():
            raise WouldBlock
        with self._lock:
            if self._way is left:
                if not self._renewals:  # what is written can't be read, time and again
                    raise Unreadable(
                        "the disk cache loses what is written (--no-disk-cache does without)"
                    )
                self._renewals -= 1
                self._way, self._ways = None, list(self._all_ways)
        return self._leave(None)


def _by_whole_content(packed: Packed, means: Means, _: str) -> Blob:
    """What was written to disk by this mount or another before."""
    if means.spills is not None and packed.key and not means.is_fresh:
        kept = means.spills.get(packed.key)
        if kept is not None:
            return kept
    raise Unsuited("never unpacked before")


def _by_pieces(packed: Packed, means: Means, _: str) -> Blob:
    if packed.indexer is None:
        raise Unsuited("no places to start from")
    index, key = means.index, f"{packed.key}\0pieces {VERSION}"

    def keep(table: bytes) -> Blob | None:
        if index is None or not packed.key:
            return None
        index.put(key, table)
        return index.get(key)

    is_known = index is not None and packed.key and not means.is_fresh
    return Pieced(
        packed.blob,
        packed.indexer,
        memory=means.memory,
        largest=means.largest_piece,
        kept=index.get(key) if index is not None and is_known else None,
        keep=keep,
    )


def _by_spilling(packed: Packed, means: Means, _: str) -> Blob:
    if means.spills is None:
        raise Unsuited("the disk cache is off")
    try:
        spill = means.spills.create(packed.key)
    except NoRoom as error:
        raise Unsuited(str(error)) from error
    return Spilled(
        packed.blob, packed.codec, spill, limits=_limits(packed, means), keep=bool(packed.key)
    )


def _by_replaying(packed: Packed, means: Means, why: str) -> Blob:
    error = ShardfsError(f"slow: every step back in it decompresses from the beginning ({why})")
    error.places.append(packed.name)
    means.report(error)
    return Replayed(packed.blob, packed.codec, memory=means.memory, limits=_limits(packed, means))


_WAYS = (_by_whole_content, _by_pieces, _by_spilling, _by_replaying)


def _limits(packed: Packed, means: Means) -> Limits:
    size = max(means.size_limit, _MAX_RATIO * packed.blob.size())
    return Limits(size, means.size_limit)
