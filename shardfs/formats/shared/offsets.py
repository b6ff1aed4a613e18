"""Tables of u32 in front of data, as LitData and MosaicML write them: where records lie, how long list items are."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt, TooLarge

if TYPE_CHECKING:
    from shardfs.blob import Blob

_U32 = struct.Struct("<I")
_PAIR = struct.Struct("<II")

TOGETHER = 256 << 10
"""So much of a record, from its beginning, comes together where it is far. A guess: most pictures are no larger."""
MAX_ITEMS = 1 << 16
"""The longest list that is shown as one file an item. A guess: what a person can look through, and little memory."""


def read_u32(blob: Blob, offset: int, what: str) -> int:
    """The number at *offset*. Raises Corrupt."""
    (number,) = _U32.unpack(read_exactly(blob, offset, _U32.size, what))
    return int(number)


@dataclass(frozen=True, slots=True)
class OffsetTable:
    """``u32 n | u32 offsets[n + 1]`` at the beginning of *blob*; item i is what lies from offset i to offset i + 1.

    The table is never held: an item costs a read of the two offsets around it.
    """

    blob: Blob
    count: int

    @classmethod
    def of(cls, blob: Blob, expected: int | None) -> OffsetTable:
        """The table of *blob*, which may hold fewer items than *expected* (None: not known), but not more.

        Raises:
            Corrupt: it holds more, or the blob is too short for the table.
        """
        count = read_u32(blob, 0, "the number of records")
        if expected is not None and count > expected:
            raise Corrupt(f"says it holds {count} records, but the index says {expected}")
        table = cls(blob, count)
        if table.end > blob.size():
            raise Corrupt(
                f"says it holds {count} records, but with {blob.size()} bytes it is too short for a table of them"
            )
        return table

    @property
    def end(self) -> int:
        """The offset of the first byte behind the table."""
        return _U32.size * (self.count + 2)

    def first(self) -> int:
        """The offset at which the first item begins, or would."""
        return read_u32(self.blob, _U32.size, "an offset table")

    def span(self, index: int, low: int, high: int) -> tuple[int, int]:
        """(begin, end) of item *index*.

        Raises:
            Corrupt: it ends before it begins, or reaches out of [low, high), where the items lie.
        """
        if not 0 <= index < self.count:
            raise IndexError(index)
        where = _U32.size * (index + 1)
        begin, end = _PAIR.unpack(read_exactly(self.blob, where, _PAIR.size, "an offset table"))
        if not low <= begin <= end <= high:
            raise Corrupt(
                f"record {index} should lie from byte {begin} to {end}, but records lie from {low} to {high}"
            )
        return begin, end


def item_spans(data: Blob, start: int = 0) -> tuple[tuple[int, int], ...]:
    """(start, length) of each item of a list ``u32 n | u32 sizes[n] | items`` that *data* holds from *start* on.

    Raises:
        Corrupt: the sizes do not come to exactly what *data* has.
        TooLarge: there are more than ``MAX_ITEMS``.
    """
    count = read_u32(data, start, "the number of items")
    begin = start + _U32.size * (count + 1)
    if begin > data.size():
        raise Corrupt(f"a list of {count} items in {data.size()} bytes")
    if count > MAX_ITEMS:
        raise TooLarge(f"a list of {count} items, more than {MAX_ITEMS}")
    table = read_exactly(data, start + _U32.size, _U32.size * count, "a table of sizes")
    sizes = struct.unpack(f"<{count}I", table)
    ends = list(accumulate(sizes, initial=begin))
    if ends[-1] != data.size():
        raise Corrupt(f"the items of a list reach to byte {ends[-1]} of {data.size()}")
    return tuple(zip(ends, sizes, strict=False))
