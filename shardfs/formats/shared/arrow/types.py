"""Arrow's types and schemas, as far as they say how values are stored and what they mean.

Source: format/Schema.fbs in Arrow's repository, and https://arrow.apache.org/docs/format/CanonicalExtensions.html.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardfs.formats.shared.arrow.flatbuffer import Table

# As deep as the Arrow library reads, and more columns than anything has: tables of genes have tens of thousands.
_MAX_DEPTH = 64
_MAX_FIELDS = 1 << 17
# Decimals of 256 bits have 76 digits, and Parquet's of any length are read as these.
_MAX_SCALE = 76
EXTENSION = "ARROW:extension:name"
"""The key of the name of an extension type."""
# Integers of as many bytes are Polars' own: neither struct nor numpy knows them.
_WIDE = 16
_EXTENSION_METADATA = "ARROW:extension:metadata"


class Type(IntEnum):
    """The kinds of types, by their numbers in Schema.fbs."""

    UNKNOWN = -1
    NULL = 1
    INT = 2
    FLOAT = 3
    BINARY = 4
    TEXT = 5
    BOOL = 6
    DECIMAL = 7
    DATE = 8
    TIME = 9
    TIMESTAMP = 10
    INTERVAL = 11
    LIST = 12
    STRUCT = 13
    UNION = 14
    FIXED_BINARY = 15
    FIXED_LIST = 16
    MAP = 17
    DURATION = 18
    LARGE_BINARY = 19
    LARGE_TEXT = 20
    LARGE_LIST = 21
    RUN_ENDS = 22
    BINARY_VIEW = 23
    TEXT_VIEW = 24
    LIST_VIEW = 25
    LARGE_LIST_VIEW = 26


TEXTS = frozenset({Type.TEXT, Type.LARGE_TEXT, Type.TEXT_VIEW})
BINARIES = frozenset({Type.BINARY, Type.LARGE_BINARY, Type.BINARY_VIEW, Type.FIXED_BINARY})
LISTS = frozenset(
    {Type.LIST, Type.LARGE_LIST, Type.LIST_VIEW, Type.LARGE_LIST_VIEW, Type.FIXED_LIST}
)
TEMPORALS = frozenset({Type.DATE, Type.TIME, Type.TIMESTAMP, Type.INTERVAL, Type.DURATION})
VIEWS = frozenset({Type.BINARY_VIEW, Type.TEXT_VIEW})
BOOL_EXTENSION = "arrow.bool8"
"""The extension type of truth values that are bytes."""
_MANY = frozenset({Type.STRUCT, Type.UNION})
_CHILDREN = {**dict.fromkeys(LISTS | {Type.MAP}, 1), Type.RUN_ENDS: 2}


@dataclass(frozen=True, slots=True)
class DataType:
    """A type.

    Attributes:
        dtype: of integers, floats and truth values, as in ``numpy.dtype.str``; "" for all else.
        size: the bytes of a value where all have the same number, the items of a list where all have as many.
        unit: of dates, times and durations: `s`, `ms`, `us`, `ns`, `day`; of intervals `month`, `day_time`,
            `month_day_nano`; of unions `sparse`, `dense`; of integers without a dtype `i`, `u`.
        zone: of timestamps, "" for none.
        scale: decimal digits behind the point.
        children: what it is made of: members of a struct, the one `item` of a list, the struct of key and value
            of a map, run ends and values.
        codes: of unions, the type codes of the children.
        unsupported: why values can't be read, "" where they can.
    """

    type: Type
    dtype: str = ""
    size: int = 0
    unit: str = ""
    zone: str = ""
    scale: int = 0
    children: tuple[ArrowField, ...] = ()
    codes: tuple[int, ...] = ()
    unsupported: str = ""


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A column, or a part of a nested one.

    Attributes:
        type: what its values are; for a dictionary, what the values in the dictionary are.
        dictionary: the number of its dictionary, None where it has none.
        indices: the integers in its place where it has a dictionary.
        metadata: of the field, texts by keys.
        nullable: whether it may be null, as the schema says.
    """

    name: str
    type: DataType
    dictionary: int | None = None
    indices: DataType | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    nullable: bool = True

    @property
    def extension(self) -> str:
        """The name of its extension type, "" for none."""
        return self.metadata.get(EXTENSION, "")

    @property
    def extension_metadata(self) -> str:
        """What the extension type says of itself."""
        return self.metadata.get(_EXTENSION_METADATA, "")


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, and what is said of the whole.

    Attributes:
        is_big: whether the numbers in it are those of a big-endian machine.
    """

    fields: tuple[ArrowField, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_big: bool = False


def parse_schema(schema: Table) -> Schema:
    """The schema in a message or footer. Raises Corrupt, Unsupported."""
    order = schema.number(0, "h")
    if order not in (0, 1):
        raise Unsupported(f"an Arrow schema of byte order {order}; 0 and 1 can be read")
    count = 0

    def parse_field(table: Table, depth: int) -> ArrowField:
        nonlocal count
        count += 1
        if depth > _MAX_DEPTH or count > _MAX_FIELDS:
            raise Unsupported(
                f"an Arrow schema of more than {_MAX_DEPTH} levels or {_MAX_FIELDS} columns"
            )
        children = tuple(parse_field(child, depth + 1) for child in table.tables(5))
        type_, nullable = _data_type(table, children), bool(table.number(1, "B"))
        encoding = table.table(4)
        if encoding is None:
            metadata = metadata_of(table, 6)
            return ArrowField(table.text(0), type_, metadata=metadata, nullable=nullable)
        indices = _integer(encoding.table(1), default=32)
        if not indices.dtype:
            raise Corrupt(f"an Arrow dictionary with indices of {indices.size} bytes")
        number = encoding.number(0, "q")
        return ArrowField(table.text(0), type_, number, indices, metadata_of(table, 6), nullable)

    fields = tuple(parse_field(table, 0) for table in schema.tables(1))
    return Schema(fields, metadata_of(schema, 2), order == 1)


def metadata_of(table: Table, slot: int) -> dict[str, str]:
    """Texts by keys, as schemas, columns and messages may have them."""
    return {pair.text(0): pair.text(1) for pair in table.tables(slot)}


def _data_type(table: Table, children: tuple[ArrowField, ...]) -> DataType:
    number, what = table.number(2, "B"), table.table(3)
    if what is None or not number:
        raise Corrupt(f"an Arrow column of type {number} without its particulars")
    if number > max(Type):
        why = f"an Arrow column of type {number}, which is newer than this version of shardfs"
        return DataType(Type.UNKNOWN, children=children, unsupported=why)
    kind = Type(number)
    if kind not in _CHILDREN and kind not in _MANY:
        children = ()  # which other readers overlook, too
    if len(children) != _CHILDREN.get(kind, len(children)):
        raise Corrupt(f"an Arrow {kind.name.lower()} of {len(children)} types")
    if kind is Type.MAP and len(children[0].type.children) != 2:
        raise Corrupt("an Arrow map of something else than keys and values")
    try:
        return _particular(kind, what, children)
    except Unsupported as error:  # where its values lie is known, so that the others can be read
        return DataType(kind, children=children, unsupported=error.message)


def _particular(kind: Type, what: Table, children: tuple[ArrowField, ...]) -> DataType:
    if kind is Type.UNION:
        return _union(what, children)
    if kind is Type.FIXED_LIST:
        return DataType(kind, size=_positive(what.number(0, "i")), children=children)
    return DataType(kind, children=children) if children else _scalar(kind, what)


def _scalar(kind: Type, what: Table) -> DataType:
    if kind is Type.INT:
        return _integer(what)
    if kind is Type.FLOAT:
        size = 2 << _one_of(what.number(0, "h"), (0, 1, 2), "floats of precision")
        return DataType(kind, f"<f{size}", size)
    if kind is Type.BOOL:
        return DataType(kind, "|b1")
    if kind is Type.FIXED_BINARY:
        return DataType(kind, size=_positive(what.number(0, "i")))
    if kind is Type.DECIMAL:
        bits = _one_of(what.number(2, "i", 128), (32, 64, 128, 256), "decimals of bits")
        scale = what.number(1, "i")
        if abs(scale) > _MAX_SCALE:
            raise Corrupt(f"an Arrow schema with a decimal of scale {scale}")
        return DataType(kind, size=bits // 8, scale=scale)
    return _temporal(kind, what)


_UNITS = ("s", "ms", "us", "ns")
_INTERVALS = (("month", 4), ("day_time", 8), ("month_day_nano", 16))


def _temporal(kind: Type, what: Table) -> DataType:
    """Dates, times and the like; all other types have no particulars."""
    if kind is Type.DATE:
        unit = _one_of(what.number(0, "h", 1), (0, 1), "times of unit")
        return DataType(kind, size=(4, 8)[unit], unit=("day", "ms")[unit])
    if kind is Type.INTERVAL:
        name, size = _INTERVALS[_one_of(what.number(0, "h"), (0, 1, 2), "times of unit")]
        return DataType(kind, size=size, unit=name)
    if kind in (Type.TIME, Type.TIMESTAMP, Type.DURATION):
        default = 0 if kind is Type.TIMESTAMP else 1
        unit = _one_of(what.number(0, "h", default), (0, 1, 2, 3), "times of unit")
        bits = what.number(1, "i", 32) if kind is Type.TIME else 64
        size = _one_of(bits, (32, 64), "times of bits") // 8
        zone = what.text(1) if kind is Type.TIMESTAMP else ""
        return DataType(kind, size=size, unit=_UNITS[unit], zone=zone)
    return DataType(kind)


def _integer(what: Table | None, default: int = 0) -> DataType:
    bits = what.number(0, "i") if what else default
    size = _one_of(bits, (8, 16, 32, 64, 128), "integers of bits") // 8
    letter = "i" if what is None or what.number(1, "B") else "u"
    if size == _WIDE:
        return DataType(Type.INT, size=size, unit=letter)
    return DataType(Type.INT, f"{'|' if size == 1 else '<'}{letter}{size}", size)


def _union(what: Table, children: tuple[ArrowField, ...]) -> DataType:
    mode = what.number(0, "h")
    if mode not in (0, 1):
        raise Corrupt(f"an Arrow union of mode {mode}")
    codes = what.numbers(1, "i") or tuple(range(len(children)))
    if len(codes) != len(children):
        raise Corrupt(f"an Arrow union of {len(children)} types with {len(codes)} codes")
    unit = ("sparse", "dense")[mode]
    return DataType(Type.UNION, unit=unit, children=children, codes=codes)


def _one_of(value: int, allowed: tuple[int, ...], what: str) -> int:
    if value not in allowed:
        raise Unsupported(f"an Arrow column of {what} {value}")
    return value


def _positive(size: int) -> int:
    if size < 0:
        raise Corrupt(f"an Arrow schema with a size of {size}")
    return size
