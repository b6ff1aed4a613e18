"""The values of Arrow columns, read in place: each type's way to find the bytes of one, and to make JSON of many.

Unlike the Arrow library this takes nothing on trust, so that damaged files are errors and nothing worse.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import partial
from itertools import pairwise
from operator import and_
from typing import TYPE_CHECKING, Any

from shardfs.blob import Blob, Bytes, Slice, read_exactly
from shardfs.errors import Corrupt, utf8_fault
from shardfs.formats.shared.arrow.types import BOOL_EXTENSION, TEMPORALS, TEXTS, VIEWS, Type
from shardfs.formats.shared.column_text import text_reader, wide_integer
from shardfs.numbers import float_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.shared.arrow.body import Body, Layout
    from shardfs.formats.shared.columns import Budget, Cells

CODES = {
    **{"|i1": "b", "<i2": "h", "<i4": "i", "<i8": "q", "|u1": "B", "<u2": "H", "<u4": "I"},
    **{"<u8": "Q", "<f2": "e", "<f4": "f", "<f8": "d"},
}
"""struct's codes of numbers."""

_LARGE = frozenset({Type.LARGE_BINARY, Type.LARGE_TEXT, Type.LARGE_LIST})
_STRINGS = frozenset({Type.BINARY, Type.LARGE_BINARY, Type.TEXT, Type.LARGE_TEXT})
_FIXED = TEMPORALS | {Type.FIXED_BINARY, Type.DECIMAL, Type.INT}


class Masked:
    """What all columns have: a number of values, some of which may be null. Also a column of nulls."""

    __slots__ = ("_body", "_layout", "_length", "_nulls")

    def __init__(self, body: Body, layout: Layout) -> None:
        self._body, self._layout = body, layout
        self._length, self._nulls = body.node(layout)

    def is_null(self, index: int, /) -> bool:
        valid = self._valid(index, index + 1)
        return valid is not None and not valid[0]

    def stored(self, index: int, /) -> Blob:
        raise self._mistaken()

    def child(self, number: int, /) -> Cells:
        raise self._mistaken()

    def span(self, index: int, /) -> tuple[int, int]:
        raise self._mistaken()

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        return None

    def run(self, start: int, stop: int, /) -> Blob | None:
        return None

    def values(
        self, start: int, stop: int, budget: Budget, seen: Sequence[bool] | None = None, /
    ) -> Sequence[Any]:
        """The values; those that are not *seen*, since something above them is null, may be anything."""
        if start == stop:
            return ()
        self._check(start, stop)
        budget.spend(stop - start)
        valid = self._valid(start, stop)
        if seen is not None:
            valid = seen if valid is None else list(map(and_, valid, seen))
        values = self._some(start, stop, valid or [True] * (stop - start), budget)
        if valid is None:
            return values
        return [value if there else None for there, value in zip(valid, values, strict=True)]

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        """The values; what stands in the place of those that are not *valid* may be anything."""
        return [None] * (stop - start)

    def _valid(self, start: int, stop: int) -> Sequence[bool] | None:
        """Which values are not null; None where none is."""
        self._check(start, stop)
        if self._layout.field.type.type is Type.NULL:
            return [False] * (stop - start)
        if not self._nulls or (self._nulls < 0 and not self._body.buffer(self._layout, 0).size()):
            return None
        return self._body.bits(self._layout, 0, start, stop)

    def _complete(self, start: int, stop: int) -> bool:
        """Whether none of the values is null."""
        valid = self._valid(start, stop)
        return valid is None or all(valid)

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self._length:
            raise Corrupt(f"values {start} to {stop} of an Arrow column of {self._length}")

    def _mistaken(self) -> TypeError:
        return TypeError(f"not of a column of {self._layout.field.type.type.name}")


class Numbers(Masked):
    """Integers and floats."""

    __slots__ = ("_code", "_width")

    def __init__(self, body: Body, layout: Layout) -> None:
        super().__init__(body, layout)
        type_ = layout.field.type if layout.field.indices is None else layout.field.indices
        self._code, self._width = CODES[type_.dtype], type_.size

    def stored(self, index: int, /) -> Blob:
        return Slice(self._body.buffer(self._layout, 1), index * self._width, self._width)

    def run(self, start: int, stop: int, /) -> Blob | None:
        if not self._complete(start, stop):
            return None
        data = self._body.buffer(self._layout, 1)
        if stop * self._width > data.size():
            raise Corrupt(f"numbers in an Arrow file end at {stop * self._width} of {data.size()}")
        return Slice(data, start * self._width, (stop - start) * self._width)

    def number(self, index: int) -> int:
        """One of the integers."""
        self._check(index, index + 1)
        return int(self._body.numbers(self._layout, 1, self._code, index, index + 1)[0])

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        numbers = self._body.numbers(self._layout, 1, self._code, start, stop)
        if self._code in "ef":  # whose digits beyond their own width would be noise
            return [float(float_text(number, f"<{self._code}")) for number in numbers]
        return numbers


class Bools(Masked):
    """Truth values, which are bits."""

    __slots__ = ()

    def stored(self, index: int, /) -> Blob:
        return Bytes(bytes(self._body.bits(self._layout, 1, index, index + 1)))

    def run(self, start: int, stop: int, /) -> Blob | None:
        if not self._complete(start, stop):
            return None
        return Bytes(bytes(self._body.bits(self._layout, 1, start, stop)))

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        return self._body.bits(self._layout, 1, start, stop)


class TruthBytes(Numbers):
    """Truth values that take a byte each; all but 0 are true."""

    __slots__ = ()

    def stored(self, index: int, /) -> Blob:
        return Bytes(bytes([self.number(index) != 0]))

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        return [number != 0 for number in super()._some(start, stop, valid, budget)]


class Fixed(Masked):
    """Values of one width that are no plain numbers: bytes, decimals, dates, wide integers."""

    __slots__ = ("_show", "_width")

    def __init__(self, body: Body, layout: Layout) -> None:
        super().__init__(body, layout)
        self._width = layout.field.type.size
        self._show: Callable[[memoryview], Any] = text_reader(layout.field) or memoryview
        if layout.field.type.type is Type.INT:
            self._show = partial(wide_integer, layout.field.type)

    def stored(self, index: int, /) -> Blob:
        return Slice(self._body.buffer(self._layout, 1), index * self._width, self._width)

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        width, count = self._width, stop - start
        budget.spend_bytes(width * count)
        data = read_exactly(
            self._body.buffer(self._layout, 1), start * width, count * width, "an Arrow buffer"
        )
        return [
            self._show(data[number * width : (number + 1) * width]) if there else None
            for number, there in enumerate(valid)
        ]


class Strings(Masked):
    """Text and binary."""

    __slots__ = ()

    def stored(self, index: int, /) -> Blob:
        begin, end = self._offsets(index, index + 1)
        data = self._body.buffer(self._layout, 2)
        if end > data.size():
            raise Corrupt(f"a value in an Arrow file ends at {end} of {data.size()}")
        return Slice(data, begin, end - begin)

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        offsets = self._offsets(start, stop)
        base, length = offsets[0], offsets[-1] - offsets[0]
        budget.spend_bytes(length)
        buffer = self._body.buffer(self._layout, 2)
        data = read_exactly(buffer, base, length, "text in an Arrow file")
        is_text = self._layout.field.type.type in TEXTS
        parts = [data[a - base : b - base] for a, b in pairwise(offsets)]
        if not is_text:
            return parts
        return [as_text(part) if there else "" for part, there in zip(parts, valid, strict=True)]

    def _offsets(self, start: int, stop: int) -> Sequence[int]:
        return read_offsets(self._body, self._layout, start, stop)


def read_offsets(body: Body, layout: Layout, start: int, stop: int) -> Sequence[int]:
    """Where the values from *start* to *stop* begin, and where the last ends. Raises Corrupt where they descend."""
    code = "q" if layout.field.type.type in _LARGE else "i"
    offsets = body.numbers(layout, 1, code, start, stop + 1)
    if offsets[0] < 0 or any(a > b for a, b in pairwise(offsets)):
        raise Corrupt("a value in an Arrow file that ends before it begins")
    return offsets


def as_text(data: memoryview) -> str:
    """Stored text. Raises Corrupt."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt(utf8_fault(error)) from error


class Views(Masked):
    """Text and binary whose short values stand in the table of the others: 16 bytes each, which begin with a length."""

    __slots__ = ()

    _ENTRY, _BIG_ENTRY = struct.Struct("<i4xii"), struct.Struct(">i4xii")
    _INLINE = 12

    def stored(self, index: int, /) -> Blob:
        self._check(index, index + 1)
        table, size = self._body.buffer(self._layout, 1), self._ENTRY.size
        entry = read_exactly(table, index * size, size, "an Arrow view")
        form = self._BIG_ENTRY if self._body.is_big else self._ENTRY
        length, number, offset = form.unpack(entry)
        if 0 <= length <= self._INLINE:
            return Slice(table, index * size + 4, length)
        if not 0 <= number < self._body.parts(self._layout):
            raise Corrupt(f"an Arrow view of a buffer {number} that is not there")
        data = self._body.buffer(self._layout, 2 + number)
        if length < 0 or offset < 0 or offset + length > data.size():
            raise Corrupt(f"an Arrow view of {length} bytes at {offset} of {data.size()}")
        return Slice(data, offset, length)

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        is_text = self._layout.field.type.type in TEXTS
        values: list[Any] = []
        for index, there in enumerate(valid, start):
            blob = self.stored(index) if there else Bytes(b"")
            budget.spend_bytes(blob.size())
            data = blob.read(0, blob.size())
            values.append(as_text(data) if is_text else data)
        return values


class Looked(Masked):
    """Values that stand in a dictionary or in runs: each is looked up in the column of the different ones."""

    __slots__ = ()

    def is_null(self, index: int, /) -> bool:
        if super().is_null(index):
            return True
        cells, at = self._look(index)
        return cells.is_null(at)

    def stored(self, index: int, /) -> Blob:
        cells, at = self._look(index)
        return cells.stored(at)

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        values: list[Any] = []
        for index, there in enumerate(valid, start):
            if there:
                cells, at = self._look(index)
                values += cells.values(at, at + 1, budget)
            else:
                values.append(None)
        return values

    def _look(self, index: int) -> tuple[Cells, int]:
        """The column of different values, and which of them the value *index* is."""
        raise NotImplementedError


class Dictionary(Looked):
    """Values that are numbers of others."""

    __slots__ = ("_indices", "_values")

    def __init__(self, body: Body, layout: Layout, values: Cells | Corrupt) -> None:
        """Take the others, or why they can't be read: a writer may leave them out where all is null."""
        super().__init__(body, layout)
        self._indices, self._values = Numbers(body, layout), values

    def _look(self, index: int) -> tuple[Cells, int]:
        if isinstance(self._values, Corrupt):
            raise self._values.again()
        return self._values, self._indices.number(index)


class Joined:
    """Columns one behind the other: a dictionary and what was added to it."""

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Sequence[tuple[Cells, int]]) -> None:
        self._parts = [cells for cells, _ in parts]
        self._ends: list[int] = []
        for _, length in parts:
            self._ends.append(length + (self._ends[-1] if self._ends else 0))

    def is_null(self, index: int, /) -> bool:
        cells, at = self._find(index)
        return cells.is_null(at)

    def stored(self, index: int, /) -> Blob:
        cells, at = self._find(index)
        return cells.stored(at)

    def child(self, number: int, /) -> Cells:
        raise TypeError("dictionaries are looked up value by value")

    def span(self, index: int, /) -> tuple[int, int]:
        raise TypeError("dictionaries are looked up value by value")

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        return None

    def run(self, start: int, stop: int, /) -> Blob | None:
        return None

    def values(self, start: int, stop: int, budget: Budget, /) -> Sequence[Any]:
        found: list[Any] = []
        for index in range(start, stop):
            cells, at = self._find(index)
            found += cells.values(at, at + 1, budget)
        return found

    def _find(self, index: int) -> tuple[Cells, int]:
        number = bisect_right(self._ends, index)
        if index < 0 or number >= len(self._parts):
            raise Corrupt(f"value {index} of an Arrow dictionary of {self._ends[-1:]}")
        return self._parts[number], index - (self._ends[number - 1] if number else 0)


def leaf(body: Body, layout: Layout) -> Masked | None:
    """The cells of a column that is not nested; None of one that is."""
    kind = layout.field.type.type
    if layout.field.type.dtype == "|i1" and layout.field.extension == BOOL_EXTENSION:
        return TruthBytes(body, layout)
    if kind in (Type.INT, Type.FLOAT) and layout.field.type.dtype:
        return Numbers(body, layout)
    if kind in VIEWS:
        return Views(body, layout)
    if kind in _STRINGS:
        return Strings(body, layout)
    if kind is Type.BOOL:
        return Bools(body, layout)
    if kind is Type.NULL:
        return Masked(body, layout)
    return Fixed(body, layout) if kind in _FIXED else None
