"""Records of LitData's TemporalArrayLoader: arrays over time, in rows that hold one moment of several arrays.

A record is ``u32 frames | group | group ...``, a group *frames* rows of one C-aligned struct, as numpy lays it out with
``align=True``. The structs are described once, in the index. Source: ``litdata/streaming/temporal.py`` 0.2.76.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from shardfs.blob import Slice, clip, read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.jsontext import checked, member, shown
from shardfs.formats.shared.offsets import read_u32
from shardfs.model import Array, Field, Kind, Plain

if TYPE_CHECKING:
    from shardfs.blob import Blob

_VERSION = 1
_HEAD = 4
_DTYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32))")
_DECLARED = Plain(".npy")


@dataclass(frozen=True, slots=True)
class Column:
    """An array in the rows of a group. *size* and *offset* are in bytes; *shape* is that of one moment."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Group:
    """Arrays that share rows of *stride* bytes."""

    stride: int
    columns: tuple[Column, ...]


class TemporalReader:
    """Makes fields of records."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises Corrupt, Unsupported where *schema*, ``temporal_schema`` of the index, is no such description."""
        version = member(schema, "version", int)
        if version != _VERSION:
            raise Unsupported(f"temporal_schema has version {version}; only {_VERSION} can be read")
        fields = member(schema, "fields", dict)
        order = [checked(name, str, "a name") for name in member(schema, "field_order", list)]
        self._groups = tuple(
            parse_group(checked(names, list, "a group"), fields)
            for names in member(schema, "groups", list)
        )
        grouped = [column.name for group in self._groups for column in group.columns]
        if sorted(grouped) != sorted(order) or len(set(order)) != len(order):
            raise Corrupt("the groups of temporal_schema don't have each field once")
        self.declared: tuple[tuple[str, Kind], ...] = tuple((name, _DECLARED) for name in order)

    def fields(self, record: Blob) -> list[Field]:
        frames = read_u32(record, 0, "the number of frames")
        size = _HEAD + frames * sum(group.stride for group in self._groups)
        if size != record.size():
            raise Corrupt(f"{frames} frames take {size} bytes, but {record.size()} are there")
        found: dict[str, Field] = {}
        start = _HEAD
        for group in self._groups:
            rows = Slice(record, start, frames * group.stride)
            for column in group.columns:
                kind = Array(column.dtype, (frames, *column.shape))
                alone = column.size == group.stride
                data = rows if alone else Strided(rows, group.stride, column.offset, column.size)
                found[column.name] = Field(column.name, kind, data)
            start += rows.size()
        return [found[name] for name, _ in self.declared]


def parse_group(names: list[Any], fields: dict[str, Any]) -> Group:
    """The struct of the fields *names*, laid out as a C compiler does. Raises Corrupt."""
    columns, end, alignment = [], 0, 1
    for name in names:
        field = member(fields, checked(name, str, "a name in a group"), dict)
        dtype, shape = member(field, "dtype", str), member(field, "shape", list)
        if not _DTYPE.fullmatch(dtype):
            raise Corrupt(f"{shown(name)} has the dtype {shown(dtype)}")
        if any(checked(extent, int, "an extent") < 1 for extent in shape):
            raise Corrupt(f"{shown(name)} has an extent of less than 1")
        width = int(dtype[2:])
        aligned = width // 2 if dtype[1] == "c" else width  # a complex number is two numbers
        offset = end + -end % aligned
        columns.append(Column(name, dtype, tuple(shape), width * prod(shape), offset))
        end, alignment = offset + columns[-1].size, max(alignment, aligned)
    if not columns:
        raise Corrupt("temporal_schema has a group without fields")
    return Group(end + -end % alignment, tuple(columns))


class Strided:
    """One column of rows: *size* bytes at *offset* of every *stride* bytes of another blob."""

    __slots__ = ("_offset", "_parent", "_rows", "_stride", "_width")

    def __init__(self, parent: Blob, stride: int, offset: int, size: int) -> None:
        self._parent, self._stride, self._offset, self._width = parent, stride, offset, size
        self._rows = parent.size() // stride

    def size(self) -> int:
        return self._rows * self._width

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self.size())
        if start == stop:
            return memoryview(b"")
        first, last = start // self._width, (stop - 1) // self._width
        reach = (last - first) * self._stride + self._width
        begin = first * self._stride + self._offset
        rows = read_exactly(self._parent, begin, reach, "a column of rows")
        column = b"".join(rows[at : at + self._width] for at in range(0, reach, self._stride))
        return memoryview(column)[start - first * self._width :][: stop - start]
