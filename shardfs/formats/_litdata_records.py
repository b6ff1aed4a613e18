"""Records of LitData chunks: where the bytes of one lie, and what fields are in them.

These are two matters that combine freely: ``Records`` find the bytes in one layout of a chunk or another, a
``Reader`` takes them apart.
"""

from __future__ import annotations

import struct
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache, cached

from shardfs.blob import Blob, Broken, Slice, clip, read_exactly
from shardfs.errors import Corrupt, NoKey, Unsupported
from shardfs.formats._litdata_leaves import LeafType
from shardfs.formats._litdata_spec import SINGLE
from shardfs.model import Encoded, Field, Kind, NumberedKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats._table import OffsetTable
    from shardfs.model import Services


class Records(Protocol):
    """The records of a chunk as bytes."""

    def __len__(self) -> int: ...

    def record(self, index: int, /) -> Blob:
        """The bytes of a record. Raises Corrupt where they can't be found."""
        ...


class Reader(Protocol):
    """Takes records apart."""

    @property
    def declared(self) -> Sequence[tuple[str, Kind]]:
        """(name, kind) of the fields as far as they are known without a record."""
        ...

    def fields(self, record: Blob, /) -> Sequence[Field]:
        """The fields of a record. Raises Corrupt."""
        ...


class ChunkShard(NumberedKeys):
    """A chunk as a shard."""

    __slots__ = ("_reader", "_records", "columns", "costly")

    def __init__(self, records: Records, reader: Reader, *, costly: bool) -> None:
        self._records, self._reader, self.costly = records, reader, costly
        self.columns = tuple(dict.fromkeys(name for name, _ in reader.declared))

    def __len__(self) -> int:
        return len(self._records)

    def fields(self, index: int, /) -> Sequence[Field]:
        try:
            return self._reader.fields(self._records.record(index))
        except NoKey as error:  # what is in it is known all the same
            broken = Broken(error)
            return [Field(name, kind, broken) for name, kind in self._reader.declared]

    def close(self) -> None:
        """Nothing is held open but by the blobs."""


# --- where records lie -------------------------------------------------------------------------------------

# Decompressed records or frames that are found again, however many readers come. A guess: readers go in order, so
# few are in use at a time; what they take is bounded elsewhere.
_RECENT = 256


class TableRecords:
    """Records between the offsets of a table."""

    def __init__(self, table: OffsetTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.count

    def record(self, index: int, /) -> Blob:
        blob = self._table.blob
        begin, end = self._table.span(index, self._table.end, blob.size())
        return Slice(blob, begin, end - begin)


class BlockRecords:
    """Equal parts of *stream*, whose end is left out where it is no whole part, as TokensLoader does."""

    def __init__(self, stream: Slice, size: int) -> None:
        self._stream, self._size = stream, size

    def __len__(self) -> int:
        return self._stream.length // self._size

    def record(self, index: int, /) -> Blob:
        if not 0 <= index < len(self):
            raise IndexError(index)
        start, stop = index * self._size, (index + 1) * self._size
        if self._stream.start + stop > self._stream.parent.size():
            raise Corrupt(f"ends at byte {self._stream.parent.size()}, before this record does")
        return Slice(self._stream, start, self._size)


class PackedRecords:
    """Records each of which is packed by itself: compressed or encrypted."""

    def __init__(self, records: Records, unpack: Callable[[Blob], Blob]) -> None:
        self._records, self._unpack = records, unpack
        # The blob that decompresses a record must be the same for all who read it, so that it is done once.
        self._recent = cached(LRUCache(_RECENT), lock=Lock())(self._make)

    def __len__(self) -> int:
        return len(self._records)

    def record(self, index: int, /) -> Blob:
        return self._recent(index)

    def _make(self, index: int) -> Blob:
        return self._unpack(self._records.record(index))


class LockedRecords:
    """Records that can't be told apart without a key."""

    def __init__(self, count: int, error: NoKey) -> None:
        self._count, self._error = count, error

    def __len__(self) -> int:
        return self._count

    def record(self, index: int, /) -> Blob:
        raise self._error.again()


FRAMES_MAGIC = b"LDFZ01\0\0"
_FRAMES_HEAD = struct.Struct("<8sHHIII")
_FRAMES_VERSION = 1
_FRAME = struct.Struct("<IIQII")
_U32 = 4


class FrameRecords:
    """Records in zstd frames of *step* each: ``LDFZ01``, see ``litdata/streaming/framed_zstd.py`` 0.2.76.

    The offsets are those in all frames decompressed, one after the other. Neither they nor the table of frames are
    ever held.
    """

    def __init__(self, blob: Blob, expected: int | None, services: Services) -> None:
        head = read_exactly(blob, 0, _FRAMES_HEAD.size, "the head of a chunk in frames")
        _, version, _, self._count, self._step, frames = _FRAMES_HEAD.unpack(head)
        if version != _FRAMES_VERSION:
            raise Unsupported(f"is framed in version {version}; only {_FRAMES_VERSION} can be read")
        if expected is not None and self._count > expected:
            raise Corrupt(f"says it holds {self._count} records, but the index says {expected}")
        if not self._step or frames != -(-self._count // self._step):
            raise Corrupt(f"says it holds {self._count} records in {frames} frames of {self._step}")
        self._frames = _FRAMES_HEAD.size + _U32 * (self._count + 1)
        self._end = self._frames + _FRAME.size * frames
        if self._end > blob.size():
            raise Corrupt(
                f"says it holds {self._count} records, but with {blob.size()} bytes it is too short for a table of them"
            )
        self._blob, self._services = blob, services
        self._recent = cached(LRUCache(_RECENT), lock=Lock())(self._frame)

    def __len__(self) -> int:
        return self._count

    def record(self, index: int, /) -> Blob:
        if not 0 <= index < self._count:
            raise IndexError(index)
        begin, end = self._offset(index), self._offset(index + 1)
        base, frame = self._recent(index // self._step)
        if not base <= begin <= end <= base + frame.size():
            raise Corrupt(
                f"should lie from byte {begin} to {end}, but its frame reaches from {base} to {base + frame.size()}"
            )
        return Slice(frame, begin - base, end - begin)

    def _offset(self, index: int) -> int:
        at = _FRAMES_HEAD.size + _U32 * index
        return int.from_bytes(read_exactly(self._blob, at, _U32, "an offset table"), "little")

    def _frame(self, number: int) -> tuple[int, Blob]:
        """(offset of its first byte, decompressed bytes) of a frame."""
        at = self._frames + _FRAME.size * number
        entry = read_exactly(self._blob, at, _FRAME.size, "a table of frames")
        first, count, start, length, size = _FRAME.unpack(entry)
        if first != number * self._step or count != min(self._step, self._count - first):
            raise Corrupt(f"frame {number} says it holds {count} records from {first} on")
        base = self._offset(first)
        if size != self._offset(first + count) - base:
            raise Corrupt(f"frame {number} says it holds {size} bytes, but its records have others")
        if start < self._end or start + length > self._blob.size():
            raise Corrupt(
                f"frame {number} should lie from byte {start} to {start + length}, "
                f"but frames lie from {self._end} to {self._blob.size()}"
            )
        return base, self._services.inflate(Slice(self._blob, start, length), "zstd", size)


# --- what is in records ------------------------------------------------------------------------------------

# Read along with the sizes of a record's leaves: small leaves and the heads of others cost no read of their own then,
# and a page of a file costs about as much as its first bytes.
_AHEAD = 4096


class PyTreeReader:
    """``u32 size[leaves] | leaf 0 | leaf 1 ...``: what PyTreeLoader, the default, reads."""

    def __init__(self, leaves: Sequence[tuple[str, LeafType]]) -> None:
        self._leaves, self._sizes = leaves, struct.Struct(f"<{len(leaves)}I")
        self.declared: tuple[tuple[str, Kind], ...] = tuple(
            (name, leaf.declared) for name, leaf in leaves
        )

    def fields(self, record: Blob, /) -> Sequence[Field]:
        head = record.read(0, self._sizes.size + _AHEAD)
        sizes, at = leaf_sizes(head, self._sizes, record.size()), self._sizes.size
        fields = []
        for (name, leaf), size in zip(self._leaves, sizes, strict=True):
            data = Near(record, at, size, head[at : at + size])
            fields.append(Field(name, leaf.kind(data), data))
            at += size
        return fields


class WholeReader:
    """A record that is one leaf, without its size: tokens, and records of which nothing is known."""

    def __init__(self, name: str, leaf: LeafType) -> None:
        self._name, self._leaf = name, leaf
        self.declared: tuple[tuple[str, Kind], ...] = ((name, leaf.declared),)

    def fields(self, record: Blob, /) -> Sequence[Field]:
        return [Field(self._name, self._leaf.kind(record), record)]


def leaf_sizes(head: memoryview, form: struct.Struct, size: int) -> tuple[int, ...]:
    """The sizes of the leaves of a record of *size* bytes that begins with *head*.

    Raises:
        Corrupt: they do not come to the size of the record.
    """
    if len(head) < form.size:
        raise Corrupt(f"has {size} bytes, too few for the sizes of its fields")
    sizes: tuple[int, ...] = form.unpack_from(head)
    if form.size + sum(sizes) != size:
        raise Corrupt(f"has {size} bytes, but its fields come to {form.size + sum(sizes)}")
    return sizes


class Near(Slice):
    """A part of a blob of which the first bytes are at hand already."""

    __slots__ = ("_near",)

    def __init__(self, parent: Blob, start: int, length: int, near: memoryview) -> None:
        super().__init__(parent, start, length)
        self._near = near

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self.length)
        if stop <= len(self._near):
            return self._near[start:stop]
        return super().read(start, stop - start)


# --- records of which no index tells -----------------------------------------------------------------------

_SAMPLES = 8
_MAX_LEAVES = 1000


def guess_reader(records: Records) -> Reader:
    """A reader for records of unknown leaves, by a look at the first ones.

    The leaves are called by their positions; where none are to be seen, the whole record is one.
    """
    counts = set()
    for index in range(min(len(records), _SAMPLES)):
        try:
            record = records.record(index)
            counts.add(count_leaves(record.read(0, _U32 * _MAX_LEAVES), record.size()))
        except Corrupt:
            continue
    unknown = LeafType(Encoded())
    count = counts.pop() if len(counts) == 1 else None
    if count is None:
        return WholeReader(SINGLE, unknown)
    return PyTreeReader([(str(position), unknown) for position in range(count)])


def count_leaves(head: memoryview, size: int) -> int | None:
    """How many leaves a record of *size* bytes has that begins with *head*: as many as make their sizes fit."""
    total = 0
    for count, (leaf,) in enumerate(struct.iter_unpack("<I", head[: len(head) // _U32 * _U32]), 1):
        total += _U32 + leaf
        if total >= size:
            return count if total == size else None
    return None
