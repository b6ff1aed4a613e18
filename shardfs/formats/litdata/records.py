"""Where the records of a LitData chunk lie, in one layout or another, packed one by one or not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

from shardfs.blob import Blob, Slice, expect, read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.offsets import TOGETHER
from shardfs.formats.shared.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.errors import NoKey
    from shardfs.formats.shared.offsets import OffsetTable
    from shardfs.model import Services


class Records(Protocol):
    """The records of a chunk as bytes."""

    def __len__(self) -> int: ...

    def record(self, index: int, /) -> Blob:
        """The bytes of a record. Raises Corrupt where they can't be found."""
        ...


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
        expect(blob, [(begin, min(end - begin, TOGETHER))])
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
        self._recent: Recent[Blob] = Recent(_RECENT)

    def __len__(self) -> int:
        return len(self._records)

    def record(self, index: int, /) -> Blob:
        return self._recent.get(index, self._make)

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
        _, version, _, count, step, frames = _FRAMES_HEAD.unpack(head)
        if version != _FRAMES_VERSION:
            raise Unsupported(f"is framed in version {version}; only {_FRAMES_VERSION} can be read")
        if expected is not None and count > expected:
            raise Corrupt(f"says it holds {count} records, but the index says {expected}")
        if not step or frames != -(-count // step):
            raise Corrupt(f"says it holds {count} records in {frames} frames of {step}")
        self._frames = _FRAMES_HEAD.size + _U32 * (count + 1)
        self._end = self._frames + _FRAME.size * frames
        if self._end > blob.size():
            raise Corrupt(
                f"says it holds {count} records, but with {blob.size()} bytes it is too short for a table of them"
            )
        self._blob, self._services = blob, services
        self._count, self._step = int(count), int(step)
        self._recent: Recent[tuple[int, Blob]] = Recent(_RECENT)

    def __len__(self) -> int:
        return self._count

    def record(self, index: int, /) -> Blob:
        if not 0 <= index < self._count:
            raise IndexError(index)
        begin, end = self._offset(index), self._offset(index + 1)
        base, frame = self._recent.get(index // self._step, self._frame)
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
