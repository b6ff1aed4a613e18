"""A compressed file with places inside from which decompression can begin: random access piece by piece.

An ``Indexer`` knows how to find such places in files of one codec. ``Pieced`` finds them as far as it is read, and
keeps the table of them, so that a later mount begins with it.
"""

from __future__ import annotations

import struct
import threading
from array import array
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cachetools import LRUCache

from shardfs.blob import Slice, clip, read_exactly
from shardfs.codecs.inflated import Inflated
from shardfs.errors import LASTING, Corrupt, Unreadable
from shardfs.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shardfs.blob import Blob
    from shardfs.cache.memory import Memory
    from shardfs.codecs import Codec

# Part of the key of every table: to be counted up when a table means something else than before.
VERSION = 1

# Pieces are objects of a few hundred bytes; what they hold is bounded by the memory budget.
_KNOWN_PIECES = 256
# A guess: with more places than this in a file, finding and keeping them costs more than it is worth.
_MAX_PIECES = 1 << 18

_COUNT = struct.Struct("<I")


class Unsuited(Exception):
    """A way to unpack a file does not fit it: another one must be taken, from the beginning."""


class Piece(NamedTuple):
    """A part of a file that can be decompressed without what is before it.

    Attributes:
        first, last: where its compressed bytes lie, [first, last).
        size: decompressed bytes, more than none.
        state: what the decompressor must know to begin there.
        content: the decompressed bytes, where finding the piece brought them about.
    """

    first: int
    last: int
    size: int
    state: bytes = b""
    content: bytes | None = None


class Indexer(Protocol):
    """Finds pieces in files of one codec."""

    def pieces(self, blob: Blob, largest: int, /) -> Iterator[Piece]:
        """The pieces of *blob* in order, each of at most about *largest* decompressed bytes.

        Raises Corrupt where they can't be found, Unsuited where they would be too large.
        """
        ...

    def open(self, part: Blob, state: bytes, /) -> tuple[Blob, Codec]:
        """What must be decompressed, and how, for the piece whose compressed bytes are *part*."""
        ...


class PieceTable:
    """Where the pieces of a file lie; grows at the end, while others read in it.

    u32 count | u64 end of each, decompressed | u64 first of each | u64 last of each
    u64 where each state begins, and one more | states
    """

    def __init__(self) -> None:
        self.ends, self.firsts, self.lasts = array("Q"), array("Q"), array("Q")
        self._states: list[bytes] = []
        self._kept: Callable[[int], bytes] = self._states.__getitem__

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def size(self) -> int:
        """Decompressed bytes of all pieces."""
        return self.ends[-1] if self.ends else 0

    def start(self, index: int) -> int:
        return self.ends[index - 1] if index else 0

    def state(self, index: int) -> bytes:
        return self._kept(index)

    def append(self, piece: Piece) -> None:
        if len(self) == _MAX_PIECES:
            raise Unsuited(f"more than {_MAX_PIECES} pieces")
        self.firsts.append(piece.first)
        self.lasts.append(piece.last)
        self._states.append(piece.state)
        self.ends.append(self.size + piece.size)  # last: now it can be seen

    def pack(self) -> bytes:
        starts, at = array("Q", [0]), 0
        for state in self._states:
            at += len(state)
            starts.append(at)
        arrays = (self.ends, self.firsts, self.lasts, starts)
        return b"".join([_COUNT.pack(len(self)), *(a.tobytes() for a in arrays), *self._states])

    @classmethod
    def load(cls, blob: Blob, stored: int) -> PieceTable:
        """The table in *blob*, of a file of *stored* compressed bytes. Its states are read when they are needed.

        Raises Corrupt where it is none.
        """
        table = cls()
        (count,) = _COUNT.unpack(read_exactly(blob, 0, _COUNT.size, "table"))
        length, at = 8 * count, _COUNT.size
        columns = (table.ends, table.firsts, table.lasts)
        if at + (len(columns) + 1) * length > blob.size():
            raise Corrupt(f"no table of {count} pieces fits in {blob.size()} bytes")
        for column in columns:
            column.frombytes(read_exactly(blob, at, length, "table"))
            at += length
        ranges = zip(table.firsts, table.lasts, strict=True)
        if any(first > last or last > stored for first, last in ranges):
            raise Corrupt("a table of pieces that lie outside of the file")
        if any(a >= b for a, b in zip([0, *table.ends], table.ends, strict=False)):
            raise Corrupt("a table of pieces without bytes")
        states = at + length + 8

        def state(index: int) -> bytes:
            begin, end = struct.unpack("<QQ", read_exactly(blob, at + 8 * index, 16, "table"))
            return bytes(read_exactly(blob, states + begin, end - begin, "table"))

        table._kept = state
        return table


class Pieced:
    """The decompressed bytes of a blob: only the pieces that are read are held, under the memory budget.

    Reads raise Unsuited where no pieces can be found on the way to what they need.
    """

    def __init__(
        self,
        blob: Blob,
        indexer: Indexer,
        *,
        memory: Memory,
        largest: int,
        kept: Blob | None,
        keep: Callable[[bytes], Blob | None],
    ) -> None:
        """Begin with the table that was *kept*, if it is one; otherwise make it, and have it from then on by *keep*."""
        self._blob, self._indexer, self._memory, self._largest = blob, indexer, memory, largest
        self._keep = keep
        self._pieces: LRUCache[int, Inflated] = LRUCache(_KNOWN_PIECES)
        self._pieces_lock, self._turns = threading.Lock(), Turns()
        table = self._load(kept)
        self._table, self._complete = table or PieceTable(), table is not None
        self._finder: Iterator[Piece] | None = None
        self._problem = ""
        """Why no more pieces can be found."""

    def size(self) -> int:
        self._reach(None)
        return self._table.size

    def read(self, offset: int, length: int, /) -> memoryview:
        self._reach(max(offset, 0) + max(length, 0))
        table = self._table
        start, stop = clip(offset, length, table.size)
        parts, index = [], bisect_right(table.ends, start)
        while start < stop:
            begin = table.start(index)
            part = self._piece(index).read(start - begin, stop - start)
            parts.append(part)
            start, index = start + len(part), index + 1
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _reach(self, stop: int | None) -> None:
        """Know the pieces up to *stop*, or all."""
        self._turns.until(lambda: self._is_known(stop), self._find_next)

    def _is_known(self, stop: int | None) -> bool:
        if self._complete or (stop is not None and self._table.size >= stop):
            return True
        if self._problem:
            raise Unsuited(self._problem)
        return False

    def _find_next(self) -> None:
        if self._finder is None:
            found = self._indexer.pieces(self._blob, self._largest)
            self._finder = islice(found, len(self._table), None)
        finder, self._finder = (
            self._finder,
            None,
        )  # what has failed must not look as if it had ended
        try:
            piece = next(finder, None)
            if piece is None:
                self._finish()
                return
            if piece.content is not None:
                made = self._open(piece.first, piece.last, piece.size, piece.state)
                made.fill(piece.content)
                with self._pieces_lock:
                    self._pieces[len(self._table)] = made
            self._table.append(piece)
        except (*LASTING, Unsuited) as error:
            self._problem = str(error)
            return
        self._finder = finder

    def _finish(self) -> None:
        # The states of the new table stay on disk.
        self._table = self._load(self._keep(self._table.pack())) or self._table
        self._complete = True

    def _load(self, kept: Blob | None) -> PieceTable | None:
        if kept is None:
            return None
        stored = self._blob.size()
        try:
            return PieceTable.load(kept, stored)
        except (Corrupt, Unreadable):
            return None

    def _piece(self, index: int) -> Inflated:
        with self._pieces_lock:
            piece = self._pieces.get(index)
        if piece is not None:
            return piece
        table = self._table
        first, last = table.firsts[index], table.lasts[index]
        size = table.ends[index] - table.start(index)
        made = self._open(first, last, size, table.state(index))
        with self._pieces_lock:
            return self._pieces.setdefault(index, made)

    def _open(self, first: int, last: int, size: int, state: bytes) -> Inflated:
        stored, codec = self._indexer.open(Slice(self._blob, first, last - first), state)
        return Inflated(stored, codec, size, memory=self._memory, limit=size)
