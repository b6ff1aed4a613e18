"""The schema of a Parquet file: its columns as Arrow sees them, and at which levels their parts are there.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift and LogicalTypes.md beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats._arrow_types import LISTS, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.formats._arrow_types import ArrowField, DataType
    from shardfs.formats._parquet_thrift import Struct

_MAX_DEPTH = 64
_MAX_ELEMENTS = 1 << 14
_OPTIONAL, _REPEATED = 1, 2


class Physical(IntEnum):
    """How values are stored, by the numbers in parquet.thrift."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED = 7


_WIDTHS = {
    **{Physical.INT32: 4, Physical.INT64: 8, Physical.INT96: 12},
    **{Physical.FLOAT: 4, Physical.DOUBLE: 8},
}


@dataclass(frozen=True, slots=True)
class Element:
    """A part of the schema as the file has it; *physical* is None for groups."""

    name: bytes
    repetition: int
    physical: Physical | None
    width: int
    children: tuple[Element, ...]

    def leaves(self) -> Iterator[Element]:
        """The parts that have values, in the order of their column chunks."""
        if self.physical is not None:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A sequence of values.

    Attributes:
        number: which of a row group's column chunks has it.
        width: bytes of a stored value, 0 where they differ.
        levels: the largest definition level, at which a value is there.
        depth: the largest repetition level: how many lists stand around it.
    """

    number: int
    physical: Physical
    width: int
    type: DataType
    levels: int
    depth: int


@dataclass(frozen=True, slots=True)
class Node:
    """A column or a part of a nested one.

    Attributes:
        level: the definition level from which on it is no null.
        depth: how many lists stand around it.
        there: the definition level from which on the innermost of them has an item for it.
        leaves: what it is made of, itself where it is a leaf.
        children: members of a struct; the item of a list or the entry of a map.
    """

    type: DataType
    level: int
    depth: int
    there: int
    leaves: tuple[Leaf, ...]
    children: tuple[Node, ...] = ()


def parse_elements(elements: Sequence[Struct]) -> Element:
    """The root of the schema, of which *elements* are the parts in depth-first order. Raises Corrupt."""
    if len(elements) > _MAX_ELEMENTS:
        raise Unsupported(f"a Parquet schema of {len(elements)} parts")
    rest = iter(elements)

    def parse(depth: int) -> Element:
        element = next(rest, None)
        if element is None or depth > _MAX_DEPTH:
            raise Corrupt("a Parquet schema that is nested too deeply or lacks a part")
        count = element.number(5, 0)
        physical = _physical(element) if 1 in element and not count else None
        width = element.number(2, 0) if physical is Physical.FIXED else _WIDTHS.get(physical, 0)
        if width < 0 or count < 0:
            raise Corrupt(f"a Parquet schema with {count} parts in one, or values of {width} bytes")
        children = tuple(parse(depth + 1) for _ in range(count))
        return Element(element.binary(4, b""), element.number(3, 0), physical, width, children)

    return parse(0)


def _physical(element: Struct) -> Physical:
    try:
        return Physical(element.number(1))
    except ValueError:
        raise Unsupported(f"a Parquet column of type {element.number(1)}") from None


def nodes_of(root: Element, fields: Sequence[ArrowField]) -> tuple[Node, ...]:
    """The columns below *root*, which are *fields*. Raises Corrupt where the two don't fit each other."""
    if len(root.children) != len(fields):
        raise Corrupt(
            f"a Parquet file of {len(root.children)} columns, of which Arrow sees {len(fields)}"
        )
    shaper = _Shaper()
    return tuple(
        shaper.node(element, field, 0, 0, 0)
        for element, field in zip(root.children, fields, strict=True)
    )


class _Shaper:
    """Brings the file's schema, in which lists and maps are two groups each, into the shape of Arrow's."""

    def __init__(self) -> None:
        self._count = 0

    def node(self, element: Element, field: ArrowField, level: int, depth: int, there: int) -> Node:
        """An element with the levels of what stands around it."""
        if element.repetition == _REPEATED:  # without a group around it that says so: never null
            item = self._inside(element, _item(field.type), level + 1, depth + 1, level + 1)
            return Node(field.type, level, depth, there, item.leaves, (item,))
        if element.repetition == _OPTIONAL:
            level += 1
        return self._inside(element, field, level, depth, there)

    def _inside(
        self, element: Element, field: ArrowField, level: int, depth: int, there: int
    ) -> Node:
        """An element whose own repetition is counted in the levels already."""
        type_ = field.type
        if element.physical is not None:
            if type_.type in LISTS or type_.type in (Type.STRUCT, Type.MAP):
                raise _misfit(field)
            leaf = Leaf(self._count, element.physical, element.width, type_, level, depth)
            self._count += 1
            return Node(type_, level, depth, there, (leaf,))
        if type_.type is Type.STRUCT:
            if len(element.children) != len(type_.children):
                raise _misfit(field)
            children = tuple(
                self.node(child, member, level, depth, there)
                for child, member in zip(element.children, type_.children, strict=True)
            )
        else:
            children = (self._repeated(element, field, level + 1, depth + 1),)
        leaves = tuple(leaf for child in children for leaf in child.leaves)
        return Node(type_, level, depth, there, leaves, children)

    def _repeated(self, element: Element, field: ArrowField, level: int, depth: int) -> Node:
        """The item of a list or the entry of a map: the repeated group, or what stands alone in it."""
        item = _item(field.type)
        if len(element.children) != 1 or element.children[0].repetition != _REPEATED:
            raise _misfit(field)
        (repeated,) = element.children
        if field.type.type is not Type.MAP and _is_wrapper(repeated, element):
            return self.node(repeated.children[0], item, level, depth, level)
        return self._inside(repeated, item, level, depth, level)


def _is_wrapper(repeated: Element, around: Element) -> bool:
    """Whether a repeated group only wraps the item, by the rules for old files in LogicalTypes.md."""
    old_names = (b"array", around.name + b"_tuple")
    return len(repeated.children) == 1 and repeated.name not in old_names


def _item(type_: DataType) -> ArrowField:
    if type_.type not in LISTS and type_.type is not Type.MAP:
        raise Corrupt("a repeated Parquet column that Arrow does not see as a list")
    return type_.children[0]


def _misfit(field: ArrowField) -> Corrupt:
    return Corrupt(f"Parquet column {field.name!r} is not stored as what it should be")
