"""Feather files of version 1, as pandas and R wrote them before 2020: columns one behind the other, and a footer.

Source: cpp/src/arrow/ipc/feather.fbs and feather.cc in Arrow's repository. Version 2 is an Arrow file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.batches import MAX_ROWS
from shardfs.formats.shared.arrow.body import Body, Place, lay_out
from shardfs.formats.shared.arrow.flatbuffer import Table
from shardfs.formats.shared.arrow.ipc import Batch
from shardfs.formats.shared.arrow.nested import cells_of
from shardfs.formats.shared.arrow.types import ArrowField, DataType, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardfs.blob import Blob
    from shardfs.formats.shared.columns import Cells
    from shardfs.model import Services

_MAGIC = b"FEA1"
_TAIL = struct.Struct("<I4s")
# Files of earlier versions, of the first months of 2016, are not padded.
_VERSION = 2
_ALIGNMENT = 8

_UNITS = ("s", "ms", "us", "ns")
# What columns may be beside how they are stored.
_CATEGORY = 1
_TEMPORAL = {2: (Type.TIMESTAMP, 8), 3: (Type.DATE, 4), 4: (Type.TIME, 4)}
_TYPES = {
    0: DataType(Type.BOOL, "|b1"),
    1: DataType(Type.INT, "|i1", 1),
    2: DataType(Type.INT, "<i2", 2),
    3: DataType(Type.INT, "<i4", 4),
    4: DataType(Type.INT, "<i8", 8),
    5: DataType(Type.INT, "|u1", 1),
    6: DataType(Type.INT, "<u2", 2),
    7: DataType(Type.INT, "<u4", 4),
    8: DataType(Type.INT, "<u8", 8),
    9: DataType(Type.FLOAT, "<f4", 4),
    10: DataType(Type.FLOAT, "<f8", 8),
    11: DataType(Type.TEXT),
    12: DataType(Type.BINARY),
    17: DataType(Type.LARGE_TEXT),
    18: DataType(Type.LARGE_BINARY),
}
# How wide the offsets are that stand before the values.
_OFFSETS = {Type.TEXT: 4, Type.BINARY: 4, Type.LARGE_TEXT: 8, Type.LARGE_BINARY: 8}


def is_feather(blob: Blob) -> bool:
    """Whether a file is one of version 1."""
    return blob.read(0, len(_MAGIC)) == _MAGIC


class FeatherTable:
    """A file as rows, which are one batch."""

    def __init__(self, blob: Blob, services: Services) -> None:
        """Read the end of the file, which tells what is in it. Raises Corrupt, Unsupported."""
        table = _footer(blob)
        self.rows = table.number(1, "q")
        if not 0 <= self.rows <= MAX_ROWS:
            raise Corrupt(f"a Feather file of {self.rows} rows")
        columns = _Columns(blob, services)
        arrays = [
            (columns.field(n, part), _member(part, 1)) for n, part in enumerate(table.tables(2))
        ]
        self.schema = Schema(tuple(field for field, _ in arrays))
        plan = lay_out(self.schema.fields, is_big=False)
        self._batch = Batch(columns.body(self.rows, arrays), plan.columns, columns.find)

    def __len__(self) -> int:
        return 1

    def batch(self, number: int) -> Batch:
        """The batch, which is the only one."""
        return self._batch

    def locate(self, row: int) -> tuple[int, int]:
        """(batch, row in it) of a row."""
        if not 0 <= row < self.rows:
            raise IndexError(row)
        return 0, row


class _Columns:
    """What the columns of a file are made of."""

    def __init__(self, blob: Blob, services: Services) -> None:
        self._blob, self._services = blob, services
        self._levels: dict[int, tuple[ArrowField, Table]] = {}

    def field(self, number: int, column: Table) -> ArrowField:
        """A column, by its number. Raises Corrupt."""
        name, kind, what = column.text(0), column.number(2, "B"), column.table(3)
        stored = _type(_member(column, 1).number(0, "b"))
        if kind != _CATEGORY or what is None:
            return ArrowField(name, _meaning(kind, what, stored))
        if stored.type is not Type.INT:
            raise Corrupt("a Feather category without numbers")
        levels = _member(what, 0)
        field = ArrowField(name, _type(levels.number(0, "b")))
        self._levels[number] = field, levels
        return ArrowField(name, field.type, number, stored)

    def find(self, number: int) -> Cells:
        """The levels of a category. Raises Corrupt."""
        field, array = self._levels[number]
        (layout,) = lay_out([field], is_big=False).columns
        return cells_of(self.body(array.number(3, "q"), [(field, array)]), layout, self.find)

    def body(self, rows: int, arrays: Iterable[tuple[ArrowField, Table]]) -> Body:
        """Where the values of columns lie. Raises Corrupt."""
        nodes, buffers, fields = [], list[tuple[int, int]](), []
        for field, array in arrays:
            fields.append(field)
            nodes.append((array.number(3, "q"), array.number(4, "q")))
            buffers += _buffers(field.indices or field.type, array)
        place = Place(0, self._blob.size(), rows, nodes, buffers)
        return Body(self._blob, place, lay_out(fields, is_big=False), self._services)


def _footer(blob: Blob) -> Table:
    at = blob.size() - _TAIL.size
    tail = read_exactly(blob, at, _TAIL.size, "the end of a Feather file")
    length, magic = _TAIL.unpack(tail)
    if magic != _MAGIC:
        raise Corrupt("a Feather file that does not end in FEA1")
    table = Table.root(read_exactly(blob, at - length, length, "the footer of a Feather file"))
    version = table.number(3, "i")
    if version < _VERSION:
        raise Unsupported(
            "is Feather of 2016, which is not supported: "
            "pyarrow.feather reads it, and writes version 2"
        )
    return table


def _member(table: Table, field: int) -> Table:
    found = table.table(field)
    if found is None:
        raise Corrupt("a Feather column without values")
    return found


def _type(number: int) -> DataType:
    unknown = DataType(Type.BINARY, unsupported=f"a Feather column of type {number}")
    return _TYPES.get(number, unknown)


def _meaning(kind: int, what: Table | None, stored: DataType) -> DataType:
    """The type of values that are *stored* as some, of which *what* tells more. Raises Corrupt."""
    if what is None or kind not in _TEMPORAL:
        return stored
    meaning, size = _TEMPORAL[kind]
    if stored.size != size:
        raise Corrupt(f"a Feather column of times in {stored.size} bytes each")
    if meaning is Type.DATE:
        return DataType(meaning, size=size, unit="day")
    unit = what.number(0, "b")
    if not 0 <= unit < len(_UNITS):
        raise Corrupt(f"a Feather column of unit {unit}")
    zone = what.text(1) if meaning is Type.TIMESTAMP else ""
    return DataType(meaning, size=size, unit=_UNITS[unit], zone=zone)


def _buffers(type_: DataType, array: Table) -> list[tuple[int, int]]:
    """(offset, length) of the bits of nulls, offsets and values of a column, which lie in this order."""
    at, length, size = (array.number(slot, "q") for slot in (2, 3, 5))
    if min(at, length, size) < 0:
        raise Corrupt(f"a Feather column of {length} values in {size} bytes at {at}")
    end, parts = at + size, []
    sizes = [-(-length // 8) if array.number(4, "q") > 0 else 0]
    if type_.type in _OFFSETS:
        sizes.append((length + 1) * _OFFSETS[type_.type])
    for part in sizes:
        parts.append((at, part))
        at += -(-part // _ALIGNMENT) * _ALIGNMENT
    return [*parts, (at, max(end - at, 0))]
