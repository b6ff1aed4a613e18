"""The values of one row of a Parquet file, as the columns of a table ask for them.

Lists and structs are told by levels: https://parquet.apache.org/docs/file-format/nestedencoding/
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from functools import partial
from itertools import compress
from operator import and_
from typing import TYPE_CHECKING, Any

from shardfs.blob import Blob, Concat, Lazy, read_all
from shardfs.errors import Corrupt, located
from shardfs.formats.parquet.convert import Physical
from shardfs.formats.shared.arrow.cells import CODES, as_text
from shardfs.formats.shared.arrow.nested import unique
from shardfs.formats.shared.arrow.types import TEXTS, Type
from shardfs.formats.shared.column_text import text_reader
from shardfs.formats.shared.shredded import is_variant, variant_value
from shardfs.numbers import float_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.formats.parquet.chunk import Chunk, Part
    from shardfs.formats.parquet.schema import Leaf, Node
    from shardfs.formats.shared.arrow.types import ArrowField
    from shardfs.formats.shared.columns import Budget

# Byte strings of which to look at one page costs more than it is worth to know whether one is null: longer than this on
# the average, in chunks longer than that. Guesses.
_DEAR, _MOST = 1 << 10, 256 << 10


class LeafRow:
    """The slots of one row in one column chunk, numbered from 0."""

    def __init__(self, chunk: Chunk, row: int) -> None:
        self._chunk, self._row = chunk, row
        self._known_parts: tuple[Part, ...] | None = None
        self._known_levels: tuple[bytes, bytes] | None = None

    @property
    def has_value(self) -> bool:
        """Whether its only value is there for sure, as statistics say it that are believed.

        The levels tell, and writers count wrongly. But of pictures and the like these are not looked for without need.
        """
        place, leaf = self._chunk.place, self._chunk.leaf
        is_long = place.bulk > max(_DEAR * place.values, _MOST)
        is_dear = is_long and leaf.physical is Physical.BYTE_ARRAY
        return is_dear and not leaf.depth and leaf.counted and place.nulls == 0

    def spans(self) -> Iterator[tuple[int, int]]:
        """(offset, length) of what is read of the file to find them. Raises Corrupt."""
        yield from self._chunk.spans(self._row)

    def levels(self) -> tuple[bytes, bytes]:
        """The repetition and the definition levels. Raises Corrupt."""
        if self._known_levels is None:
            repetitions, definitions = bytearray(), bytearray()
            for page, start, stop in self._parts():
                with located(page.name):
                    repetitions += bytes(page.repetitions.span(start, stop))
                    definitions += bytes(page.definitions.span(start, stop))
            self._known_levels = bytes(repetitions), bytes(definitions)
        return self._known_levels

    def stored(self, slot: int) -> Blob:
        """The bytes of the value in a slot. Raises Corrupt."""
        for page, start, stop in self._parts():
            if slot < stop - start:
                with located(page.name):
                    number = page.definitions.find(start + slot)
                    if number is None:
                        raise Corrupt("a Parquet value that is null, against what its column says")
                    return page.values().stored(number)
            slot -= stop - start
        raise Corrupt(f"a Parquet row without its value {slot}")

    def run(self, start: int, stop: int, count: int) -> Blob | None:
        """The bytes of all values in some slots; None where they are not *count*. Raises Corrupt."""
        pieces: list[Blob] = []
        at = 0
        for page, first, end in self._parts():
            low, high = max(start, at), min(stop, at + end - first)
            if low < high:
                with located(page.name):
                    rank = page.definitions.rank
                    low, high = rank(first + low - at), rank(first + high - at)
                    pieces.append(page.values().run(low, high))
                count -= high - low
            at += end - first
        if count:
            return None
        return pieces[0] if len(pieces) == 1 else Concat(pieces)

    def _parts(self) -> tuple[Part, ...]:
        if self._known_parts is None:
            self._known_parts = tuple(self._chunk.parts(self._row))
        return self._known_parts


class Leaves:
    """The leaves of a row, each looked for when it is needed."""

    def __init__(self, chunk: Callable[[Leaf], Chunk], row: int) -> None:
        self._chunk, self._row = chunk, row
        self._known: dict[int, LeafRow] = {}

    def __getitem__(self, leaf: Leaf) -> LeafRow:
        found = self._known.get(leaf.number)
        if found is None:
            found = self._known.setdefault(leaf.number, LeafRow(self._chunk(leaf), self._row))
        return found


class RowCells:
    """The values of a column, or of a part of a nested one, in one row."""

    def __init__(self, node: Node, leaves: Leaves) -> None:
        self._node, self._leaves = node, leaves
        self._known: Sequence[int] | None = None

    def is_null(self, index: int, /) -> bool:
        if self._node.level == self._node.there:
            return False
        leaf = self._node.leaves[0]
        if self._leaves[leaf].has_value:
            return False
        return self._leaves[leaf].levels()[1][self._slot(index)] < self._node.level

    def stored(self, index: int, /) -> Blob:
        (leaf,) = self._node.leaves
        if not self._node.depth and not index:
            return Lazy(partial(self._leaves[leaf].stored, 0))
        return self._leaves[leaf].stored(self._slot(index))

    def child(self, number: int, /) -> RowCells:
        return RowCells(self._node.children[number], self._leaves)

    def span(self, index: int, /) -> tuple[int, int]:
        self._slot(index)
        return self._items(index, index + 1, self.child(0))

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        items = self.child(0)
        first, end = self._items(start, stop, items)
        if end - first != size * (stop - start):
            return None
        if size:  # the first item of a list stands where the list does
            heads, own = items.slots()[first:end:size], self.slots()[start:stop]
            return (first, end) if list(heads) == list(own) else None
        return None if any(map(self.is_null, range(start, stop))) else (first, end)

    def run(self, start: int, stop: int, /) -> Blob | None:
        (leaf,) = self._node.leaves
        slots, row = self.slots(), self._leaves[leaf]
        if start == stop:
            return row.run(0, 0, 0)
        self._slot(stop - 1)
        end = slots[stop] if stop < len(slots) else len(row.levels()[0])
        return row.run(self._slot(start), end, stop - start)

    def values(self, start: int, stop: int, budget: Budget, /) -> Sequence[Any]:
        if start == stop:
            return ()
        self._slot(stop - 1)
        budget.spend(stop - start)
        if is_variant(self._node.field):
            return [self._variant(index, budget) for index in range(start, stop)]
        if self._node.field.type.type is Type.STRUCT:
            return self._structs(start, stop, budget)
        if self._node.children:
            return [self._list(index, budget) for index in range(start, stop)]
        if self._node.field.type.dtype in CODES:
            return self._numbers(start, stop, budget)
        return self._plain(start, stop, budget)

    def _structs(self, start: int, stop: int, budget: Budget) -> Sequence[Any]:
        keys = unique([child.field.name for child in self._node.children])
        parts = [self.child(number).values(start, stop, budget) for number in range(len(keys))]
        return [
            None if self.is_null(index) else dict(zip(keys, row, strict=True))
            for index, row in enumerate(zip(*parts, strict=True), start)
        ]

    def _variant(self, index: int, budget: Budget) -> Any:
        if self.is_null(index):
            return None
        return variant_value(self._node.field, self, index, budget)

    def _list(self, index: int, budget: Budget) -> Any:
        """A list; a map as pairs, since a key may be there twice and need not be text."""
        if self.is_null(index):
            return None
        items, (start, stop) = self.child(0), self.span(index)
        if self._node.field.type.type is not Type.MAP:
            return list(items.values(start, stop, budget))
        pairs = (items.child(number).values(start, stop, budget) for number in range(2))
        return list(map(list, zip(*pairs, strict=True)))

    def _plain(self, start: int, stop: int, budget: Budget) -> Sequence[Any]:
        read = reader_of(self._node.field)
        values: list[Any] = []
        for index in range(start, stop):
            if self.is_null(index):
                values.append(None)
            else:
                blob = self.stored(index)
                budget.spend_bytes(blob.size())
                values.append(read(read_all(blob)))
        return values

    def _numbers(self, start: int, stop: int, budget: Budget) -> Sequence[Any]:
        """Integers and floats: all at once where none is null, as they mostly come."""
        dtype = self._node.field.type.dtype
        data = self.run(start, stop)
        if data is None:
            return self._plain(start, stop, budget)
        return read_numbers(read_all(data), dtype)

    # --- slots ---

    def slots(self) -> Sequence[int]:
        """The slots at which its values begin."""
        if self._known is None:
            self._known = range(1)
            if self._node.depth:
                levels = self._leaves[self._node.leaves[0]].levels()
                self._known = begins(*levels, self._node.depth, self._node.there)
        return self._known

    def _slot(self, index: int) -> int:
        slots = self.slots()
        if not 0 <= index < len(slots):
            raise Corrupt(f"value {index} of a Parquet row that has {len(slots)}")
        return slots[index]

    def _items(self, start: int, stop: int, items: RowCells) -> tuple[int, int]:
        """Which of the items are those of some lists."""
        own, inner = self.slots(), items.slots()
        first = bisect_left(inner, own[start]) if start < len(own) else len(inner)
        return first, bisect_left(inner, own[stop]) if stop < len(own) else len(inner)


def begins(repetitions: bytes, definitions: bytes, depth: int, there: int) -> Sequence[int]:
    """The slots at which an item begins in lists that stand *depth* deep and have one from the level *there* on."""
    starts = repetitions.translate(bytes(level <= depth for level in range(256)))
    exist = definitions.translate(bytes(level >= there for level in range(256)))
    numbers = range(len(starts))
    if 0 not in starts and 0 not in exist:
        return numbers
    return array("I", compress(numbers, map(and_, starts, exist)))


def reader_of(field: ArrowField) -> Callable[[memoryview], Any]:
    """What makes a value for JSON of stored bytes."""
    dtype = field.type.dtype
    if dtype in CODES:
        return lambda data: read_numbers(data, dtype)[0]
    if field.type.type is Type.BOOL:
        return lambda data: bool(data[0])
    return as_text if field.type.type in TEXTS else text_reader(field) or memoryview


def read_numbers(data: memoryview, dtype: str) -> Sequence[Any]:
    """Numbers one behind the other."""
    code = CODES[dtype]
    numbers = struct.unpack(f"<{len(data) // int(dtype[2:])}{code}", data)
    if code in "ef":  # whose digits beyond their own width would be noise
        return [float(float_text(number, f"<{code}")) for number in numbers]
    return numbers
