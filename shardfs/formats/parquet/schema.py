"""The schema of a Parquet file: its columns as Arrow sees them, and at which levels their parts are there.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift and LogicalTypes.md beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.formats.parquet.convert import Physical, converter, fits
from shardfs.formats.shared.arrow.types import EXTENSION, LISTS, DataType, Type
from shardfs.formats.shared.column_text import PARQUET_INTERVAL
from shardfs.formats.shared.variant import EXTENSION as VARIANT_EXTENSION

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from shardfs.formats.parquet.convert import Converter
    from shardfs.formats.parquet.thrift import Struct
    from shardfs.formats.shared.arrow.types import ArrowField

_MAX_DEPTH = 64
_MAX_ELEMENTS = 1 << 14
_OPTIONAL, _REPEATED = 1, 2
MAPS = (1, 2)
"""Numbers of the converted types MAP and, as old writers have it, MAP_KEY_VALUE."""
_INTERVAL, _INTERVAL_SIZE = 21, 12
LOGICAL_MAP, _LOGICAL_VARIANT = 2, 16


INTERVAL = DataType(Type.INTERVAL, size=_INTERVAL_SIZE, unit=PARQUET_INTERVAL)

_WIDTHS = {
    **{Physical.INT32: 4, Physical.INT64: 8, Physical.INT96: 12},
    **{Physical.FLOAT: 4, Physical.DOUBLE: 8},
}


@dataclass(frozen=True, slots=True)
class Element:
    """A part of the schema as the file has it.

    Attributes:
        physical: None for groups.
        converted: what its values mean, as old files have it, by the numbers in parquet.thrift; -1 for nothing.
        logical: likewise as newer ones have it, by its number in the union `LogicalType`.
    """

    name: bytes
    repetition: int
    physical: Physical | None
    width: int
    children: tuple[Element, ...]
    converted: int = -1
    logical: int = -1

    @property
    def count(self) -> int:
        """How many parts of the schema it takes."""
        return 1 + sum(child.count for child in self.children)

    @property
    def is_empty(self) -> bool:
        """Whether it is a group of nothing, or of groups of nothing."""
        return self.physical is None and all(child.is_empty for child in self.children)

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
        size: how many of them are Arrow's, 0 where they differ.
        convert: what makes Arrow's bytes, where they are others.
        levels: the largest definition level, at which a value is there.
        depth: the largest repetition level: how many lists stand around it.
        counted: whether the statistics of a chunk can be relied on to count its nulls.
    """

    number: int
    physical: Physical
    width: int
    size: int
    convert: Converter | None
    levels: int
    depth: int
    counted: bool


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

    field: ArrowField
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
        width = _WIDTHS.get(physical, 0) if physical is not None else 0
        if physical is Physical.FIXED:
            width = element.number(2, 0)
        if width < 0 or count < 0:
            raise Corrupt(f"a Parquet schema with {count} parts in one, or values of {width} bytes")
        children = tuple(parse(depth + 1) for _ in range(count))
        said = element.struct(10)
        logical = -1 if said is None else next(said.numbers(), -1)
        name, repetition = element.binary(4, b""), element.number(3, 0)
        return Element(name, repetition, physical, width, children, element.number(6, -1), logical)

    return parse(0)


def _physical(element: Struct) -> Physical:
    try:
        return Physical(element.number(1))
    except ValueError:
        return Physical.UNKNOWN


def nodes_of(
    root: Element,
    fields: Sequence[ArrowField],
    unnamed: Container[int] = (),
    *,
    typed: bool,
) -> list[Node | ShardfsError]:
    """The columns below *root*, which are *fields*; what is wrong with one where it is not stored as it should be.

    Groups of nothing have no values and are left out, as Arrow does. *unnamed* are columns of root whose types
    are not known. *typed* tells whether the file has the types of an Arrow table in it, and *fields* are of these.

    Raises:
        Corrupt: there are not as many.
    """
    if len(root.children) != len(fields):
        raise Corrupt(f"a Parquet file of {len(root.children)} columns, as Arrow {len(fields)}")
    nodes: list[Node | ShardfsError] = []
    first = 0
    for number, (element, field) in enumerate(zip(root.children, fields, strict=True)):
        if element.is_empty:
            continue
        try:
            if number in unnamed:
                raise _unknown(element, field)
            nodes.append(_Shaper(element, first, typed=typed).node(element, field, _Around()))
        except (Corrupt, Unsupported) as error:
            nodes.append(error.again())
        first += sum(1 for _ in element.leaves())
    return nodes


def shaped(
    root: Element, nodes: Sequence[Node | ShardfsError], fields: Sequence[ArrowField]
) -> tuple[ArrowField, ...]:
    """The columns that *nodes* are: *fields*, but of types that only the file's own schema tells."""
    there = (field for e, field in zip(root.children, fields, strict=True) if not e.is_empty)
    pairs = zip(nodes, there, strict=True)
    return tuple(node.field if isinstance(node, Node) else field for node, field in pairs)


class _Around(NamedTuple):
    """What stands around an element: as in ``Node``."""

    level: int = 0
    depth: int = 0
    there: int = 0

    def optional(self) -> _Around:
        return self._replace(level=self.level + 1)

    def repeated(self) -> _Around:
        return _Around(self.level + 1, self.depth + 1, self.level + 1)


class _Shaper:
    """Brings a column of the file, where lists and maps are two groups each, into the shape of Arrow's."""

    def __init__(self, column: Element, first: int, *, typed: bool) -> None:
        """Number its leaves from *first* on."""
        self._column, self._count, self._typed = column, first, typed

    def node(self, element: Element, field: ArrowField, around: _Around) -> Node:
        """An element of which nothing was looked at yet."""
        if element.repetition == _REPEATED:  # without a group around it that says so: never null
            item = self._inside(element, _item(field), around.repeated())
            return Node(_with(field, (item,)), *around, item.leaves, (item,))
        if element.repetition == _OPTIONAL:
            around = around.optional()
        return self._inside(element, field, around)

    def _inside(self, element: Element, field: ArrowField, around: _Around) -> Node:
        """An element whose own repetition is counted already."""
        if element.physical is not None:
            if element.converted == _INTERVAL and element.width == _INTERVAL_SIZE:
                field = replace(field, type=INTERVAL)
            leaf = self._leaf(element, field, around)
            return Node(field, *around, (leaf,))
        if field.type.type is Type.STRUCT:
            if len(element.children) != len(field.type.children):
                raise _misfit(field)
            pairs = zip(element.children, field.type.children, strict=True)
            children = tuple(
                self.node(child, member, around) for child, member in pairs if not child.is_empty
            )
        else:
            children = (self._repeated(element, field, around.repeated()),)
        leaves = tuple(leaf for child in children for leaf in child.leaves)
        if not leaves:
            raise _misfit(field)
        return Node(_made_of(element, field, children), *around, leaves, children)

    def _leaf(self, element: Element, field: ArrowField, around: _Around) -> Leaf:
        physical, width, type_ = element.physical, element.width, field.type
        if physical is None:
            raise _misfit(field)
        convert = converter(physical, width, type_)
        if convert is None and not fits(physical, width, type_):
            raise _misfit(field)
        number, self._count = self._count, self._count + 1
        size = width if type_.type is Type.NULL else type_.size
        counted = element is self._column or (self._typed and field.dictionary is None)
        return Leaf(number, physical, width, size, convert, around.level, around.depth, counted)

    def _repeated(self, element: Element, field: ArrowField, around: _Around) -> Node:
        """The item of a list or the entry of a map: the repeated group, or what stands alone in it."""
        item = _item(field)
        if len(element.children) != 1 or element.children[0].repetition != _REPEATED:
            raise _misfit(field)
        (repeated,) = element.children
        if field.type.type is not Type.MAP and _is_wrapper(repeated, element):
            return self.node(repeated.children[0], item, around)
        return self._inside(repeated, item, around)


def _is_wrapper(repeated: Element, outer: Element) -> bool:
    """Whether a repeated group only wraps the item, by the rules for old files in LogicalTypes.md."""
    old_names = (b"array", outer.name + b"_tuple")
    return len(repeated.children) == 1 and repeated.name not in old_names


def _made_of(element: Element, field: ArrowField, children: tuple[Node, ...]) -> ArrowField:
    """A field whose parts are those of *children*."""
    field = _with(field, children)
    if element.logical == _LOGICAL_VARIANT and field.type.type is Type.STRUCT:
        return replace(field, metadata={**field.metadata, EXTENSION: VARIANT_EXTENSION})
    return field


def _with(field: ArrowField, children: tuple[Node, ...]) -> ArrowField:
    parts = tuple(child.field for child in children)
    return replace(field, type=replace(field.type, children=parts))


def _unknown(element: Element, field: ArrowField) -> Unsupported:
    kind = "a group" if element.physical is None else element.physical.name
    return Unsupported(
        f"Parquet column {field.name!r} ({kind}) is of a type that is not supported; the others can be read"
    )


def _item(field: ArrowField) -> ArrowField:
    if field.type.type not in LISTS and field.type.type is not Type.MAP:
        raise _misfit(field)
    return field.type.children[0]


def _misfit(field: ArrowField) -> Corrupt:
    return Corrupt(f"Parquet column {field.name!r} is not stored as what it should be")
