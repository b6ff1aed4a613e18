"""The values of nested Arrow columns: lists, structs, maps, unions, and runs of equal values."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.cells import (
    Dictionary,
    Looked,
    Masked,
    Numbers,
    leaf,
    read_offsets,
)
from shardfs.formats.shared.arrow.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.shared.arrow.body import Body, Layout
    from shardfs.formats.shared.columns import Budget, Cells

    Find = Callable[[int], Cells]
    """The values of a dictionary, by its number."""


def cells_of(body: Body, layout: Layout, find: Find) -> Masked:
    """The values of a column, or of a part of a nested one, in a batch; *find* gives dictionaries. Raises Corrupt."""
    if layout.field.type.unsupported:
        raise Unsupported(layout.field.type.unsupported)
    if layout.field.dictionary is not None:
        return _dictionary(body, layout, partial(find, layout.field.dictionary))
    found = leaf(body, layout)
    return _NESTED[layout.field.type.type](body, layout, find) if found is None else found


def _dictionary(body: Body, layout: Layout, find: Callable[[], Cells]) -> Dictionary:
    try:
        return Dictionary(body, layout, find())
    except Corrupt as error:
        return Dictionary(body, layout, error)


class Structs(Masked):
    """Values of several members."""

    __slots__ = ("_children", "_keys")

    def __init__(self, body: Body, layout: Layout, find: Find) -> None:
        super().__init__(body, layout)
        self._children = [cells_of(body, child, find) for child in layout.children]
        self._keys = unique([child.field.name for child in layout.children])

    def child(self, number: int, /) -> Cells:
        return self._children[number]

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        seen = None if all(valid) else valid
        parts = [child.values(start, stop, budget, seen) for child in self._children]
        rows = zip(*parts, strict=True) if parts else [()] * (stop - start)
        return [dict(zip(self._keys, row, strict=True)) for row in rows]


def unique(names: Sequence[str]) -> list[str]:
    """Keys for members, the second of a name as `name~1`."""
    taken: dict[str, None] = {}
    for name in names:
        key, number = name, 0
        while key in taken:
            number += 1
            key = f"{name}~{number}"
        taken[key] = None
    return list(taken)


class Lists(Masked):
    """Lists whose items lie side by side, those of one behind those of the other."""

    __slots__ = ("_items",)

    def __init__(self, body: Body, layout: Layout, find: Find) -> None:
        super().__init__(body, layout)
        self._items = cells_of(body, layout.children[0], find)

    def child(self, number: int, /) -> Cells:
        return self._items

    def span(self, index: int, /) -> tuple[int, int]:
        begin, end = self._offsets(index, index + 1)
        return begin, end

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        if start == stop:
            return 0, 0
        if not self._complete(start, stop):
            return None
        offsets = self._offsets(start, stop)
        whole = offsets[0], offsets[-1]
        return whole if offsets == tuple(_steps(offsets[0], size, stop - start)) else None

    def _offsets(self, start: int, stop: int) -> Sequence[int]:
        """Where the lists begin, and where the last ends."""
        self._check(start, stop)
        return read_offsets(self._body, self._layout, start, stop)

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        offsets = self._offsets(start, stop)
        base, seen = offsets[0], _items_seen(offsets, valid, budget)
        items = self._items.values(base, offsets[-1], budget, seen)
        return [list(items[a - base : b - base]) for a, b in pairwise(offsets)]


def _items_seen(
    offsets: Sequence[int], valid: Sequence[bool], budget: Budget
) -> Sequence[bool] | None:
    """Which items stand in a list that is not null; None where all do."""
    if all(valid):
        return None
    budget.spend(offsets[-1] - offsets[0])
    spans = zip(pairwise(offsets), valid, strict=True)
    return [there for (begin, end), there in spans for _ in range(begin, end)]


def _steps(first: int, size: int, count: int) -> Sequence[int]:
    return range(first, first + size * count + 1, size) if size else [first] * (count + 1)


class FixedLists(Lists):
    """Lists that all have as many items."""

    __slots__ = ()

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        if size != self._layout.field.type.size or not self._complete(start, stop):
            return None
        return start * size, stop * size

    def _offsets(self, start: int, stop: int) -> Sequence[int]:
        self._check(start, stop)
        size = self._layout.field.type.size
        return _steps(start * size, size, stop - start)


class ListViews(Lists):
    """Lists whose items may lie anywhere, those of two lists in one place."""

    __slots__ = ()

    def span(self, index: int, /) -> tuple[int, int]:
        self._check(index, index + 1)
        code = "q" if self._layout.field.type.type is Type.LARGE_LIST_VIEW else "i"
        (begin,) = self._body.numbers(self._layout, 1, code, index, index + 1)
        (count,) = self._body.numbers(self._layout, 2, code, index, index + 1)
        if begin < 0 or count < 0:
            raise Corrupt(f"an Arrow list of {count} items at {begin}")
        return begin, begin + count

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        if start == stop:
            return 0, 0
        if not self._complete(start, stop):
            return None
        spans = [self.span(index) for index in range(start, stop)]
        steps = _steps(spans[0][0], size, stop - start)
        is_even = spans == list(pairwise(steps))
        return (spans[0][0], spans[-1][1]) if is_even else None

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        return [
            list(self._items.values(*self.span(index), budget)) if there else None
            for index, there in enumerate(valid, start)
        ]


class Maps(Lists):
    """Lists of keys and values, shown as pairs since a key may be there twice and need not be text."""

    __slots__ = ("_members",)

    def __init__(self, body: Body, layout: Layout, find: Find) -> None:
        super().__init__(body, layout, find)
        self._members = [cells_of(body, child, find) for child in layout.children[0].children]

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        offsets = self._offsets(start, stop)
        base, end, seen = offsets[0], offsets[-1], _items_seen(offsets, valid, budget)
        keys, values = (child.values(base, end, budget, seen) for child in self._members)
        pairs = [[key, value] for key, value in zip(keys, values, strict=True)]
        return [pairs[a - base : b - base] for a, b in pairwise(offsets)]


class Unions(Masked):
    """Values of several types, each shown as what it is."""

    __slots__ = ("_children", "_numbers")

    def __init__(self, body: Body, layout: Layout, find: Find) -> None:
        super().__init__(body, layout)
        self._children = [cells_of(body, child, find) for child in layout.children]
        self._numbers = {code: number for number, code in enumerate(layout.field.type.codes)}

    def is_null(self, index: int, /) -> bool:
        if super().is_null(index):
            return True
        cells, at = self._choice(index)
        return cells.is_null(at)

    def _valid(self, start: int, stop: int) -> Sequence[bool] | None:
        if self._body.has_bits_of_unions:
            return super()._valid(start, stop)
        self._check(start, stop)  # nulls are those of the children
        return None

    def _some(self, start: int, stop: int, valid: Sequence[bool], budget: Budget) -> Sequence[Any]:
        found: list[Any] = []
        for index, there in enumerate(valid, start):
            if there:
                cells, at = self._choice(index)
                found += cells.values(at, at + 1, budget)
            else:
                found.append(None)
        return found

    def _choice(self, index: int) -> tuple[Cells, int]:
        """The child that a value stands in, and at which index."""
        self._check(index, index + 1)
        (code,) = self._body.numbers(self._layout, 1, "b", index, index + 1)
        if code not in self._numbers:
            raise Corrupt(f"an Arrow union with an unknown type {code}")
        if self._layout.field.type.unit == "dense":
            (index,) = self._body.numbers(self._layout, 2, "i", index, index + 1)
        return self._children[self._numbers[code]], index


class Runs(Looked):
    """Values that stand once for a whole run of equal ones, and the numbers at which the runs end."""

    __slots__ = ("_ends", "_runs", "_values")

    def __init__(self, body: Body, layout: Layout, find: Find) -> None:
        super().__init__(body, layout)
        self._ends = Numbers(body, layout.children[0])
        self._values = cells_of(body, layout.children[1], find)
        self._runs, _ = body.node(layout.children[0])

    def _valid(self, start: int, stop: int) -> Sequence[bool] | None:
        self._check(start, stop)  # nulls are those of the values
        return None

    def _look(self, index: int) -> tuple[Cells, int]:
        return self._values, bisect_right(range(self._runs), index, key=self._ends.number)


_NESTED: dict[Type, Callable[[Body, Layout, Find], Masked]] = {
    Type.STRUCT: Structs,
    Type.LIST: Lists,
    Type.LARGE_LIST: Lists,
    Type.FIXED_LIST: FixedLists,
    Type.LIST_VIEW: ListViews,
    Type.LARGE_LIST_VIEW: ListViews,
    Type.MAP: Maps,
    Type.UNION: Unions,
    Type.RUN_ENDS: Runs,
}
