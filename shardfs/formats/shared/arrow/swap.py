"""Numbers of big-endian machines, seen as those of the others: nothing above knows the difference."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.blob import clip
from shardfs.formats.shared.arrow.types import BINARIES, TEXTS, VIEWS, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.types import ArrowField

_LARGE = frozenset({Type.LARGE_BINARY, Type.LARGE_TEXT, Type.LARGE_LIST, Type.LARGE_LIST_VIEW})
_WITH_OFFSETS = (
    (BINARIES | TEXTS | {Type.LIST, Type.LARGE_LIST, Type.MAP}) - VIEWS - {Type.FIXED_BINARY}
)
_LIST_VIEWS = frozenset({Type.LIST_VIEW, Type.LARGE_LIST_VIEW})
# Intervals are several numbers; all other values of one width are one.
_PARTS = {"day_time": (4, 4), "month_day_nano": (4, 4, 8)}


class Swapped:
    """Another blob, in which the bytes of each number are turned round."""

    __slots__ = ("_order", "_parent")

    def __init__(self, parent: Blob, widths: Sequence[int]) -> None:
        """Take numbers of *widths* bytes, which follow one another again and again."""
        self._parent = parent
        ends = accumulate(widths)
        self._order = [
            end - 1 - at for end, width in zip(ends, widths, strict=True) for at in range(width)
        ]

    def size(self) -> int:
        return self._parent.size()

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self.size())
        step = len(self._order)
        first = start - start % step
        data = self._parent.read(first, -(-stop // step) * step - first)
        turned = bytearray(-(-len(data) // step) * step)
        for at, source in enumerate(self._order):
            part = data[source::step]
            turned[at : at + len(part) * step : step] = part
        return memoryview(turned)[start - first : stop - first]


def widths_of(field: ArrowField, number: int) -> Sequence[int]:
    """The widths of the numbers in the buffer *number* of a column; none where there are no numbers in it.

    Views tell themselves apart: what stands in them may be text.
    """
    type_ = field.type if field.indices is None else field.indices
    kind = type_.type
    if number == 0:  # bits
        return ()
    if kind in _WITH_OFFSETS or kind in _LIST_VIEWS:
        is_offsets = number == 1 or kind in _LIST_VIEWS
        return ((8 if kind in _LARGE else 4),) if is_offsets else ()
    if kind is Type.UNION:
        return (4,) if number == 2 else ()
    if kind in VIEWS or kind is Type.FIXED_BINARY or type_.size <= 1:
        return ()
    return _PARTS.get(type_.unit, (type_.size,))
