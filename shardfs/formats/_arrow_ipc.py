"""Arrow IPC files read in place: a value is a slice of the file, and no more of a batch is read than it needs.

Only the types that Python values of JSON come to: null, bool, integers, floats, binary, text, lists and structs.
Unlike the Arrow library this takes nothing on trust, so that damaged files are errors and nothing worse.
The layout: https://arrow.apache.org/docs/format/Columnar.html and format/*.fbs in its repository.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shardfs.blob import Blob, Bytes, Slice, read_exactly
from shardfs.errors import Corrupt, TooLarge, Unsupported
from shardfs.formats._flatbuffer import Table
from shardfs.formats._recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.model import Services

MAGIC = b"ARROW1"
_TAIL = struct.Struct("<i6s")
_PREFIX = struct.Struct("<Ii")
_CONTINUES = 0xFFFFFFFF
_BLOCK = struct.Struct("<qi4xq")
_PAIR = struct.Struct("<qq")
_RECORD_BATCH = 3
_ZSTD = 1
_MAX_DEPTH = 64
_MAX_COLUMNS = 1 << 14
# Values in one cell: more than a person or a program expects in a piece of JSON, and what a few stored bytes can claim.
_MAX_VALUES = 1 << 23
# Batches that are found again. A guess: readers go in order.
_RECENT = 32


class Type(IntEnum):
    """The types of columns, by their numbers in Schema.fbs."""

    NULL = 1
    INT = 2
    FLOAT = 3
    BINARY = 4
    TEXT = 5
    BOOL = 6
    LIST = 12
    STRUCT = 13
    LARGE_BINARY = 19
    LARGE_TEXT = 20
    LARGE_LIST = 21


_TEXTS = (Type.TEXT, Type.LARGE_TEXT)
_BYTES = (Type.BINARY, Type.LARGE_BINARY, *_TEXTS)
_LISTS = (Type.LIST, Type.LARGE_LIST)
_LARGE = (Type.LARGE_BINARY, Type.LARGE_TEXT, Type.LARGE_LIST)
_BUFFERS = {Type.NULL: 0, Type.STRUCT: 1} | dict.fromkeys(_BYTES, 3)  # all others have 2
_CODES = {
    **{"|i1": "b", "<i2": "h", "<i4": "i", "<i8": "q", "|u1": "B", "<u2": "H", "<u4": "I"},
    **{"<u8": "Q", "<f2": "e", "<f4": "f", "<f8": "d"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a part of a nested one.

    Attributes:
        dtype: of numbers, as in ``numpy.dtype.str``.
        node: which of a batch's nodes tells of it.
        buffer: the first of its buffers in a batch.
    """

    name: str
    type: Type
    dtype: str
    node: int
    buffer: int
    children: tuple[Column, ...]


def parse_schema(schema: Table) -> tuple[Column, ...]:
    """The columns of a file. Raises Corrupt, Unsupported."""
    if schema.number(0, "h"):
        raise Unsupported("an Arrow file of a big-endian machine")
    nodes = buffers = 0

    def column(field: Table, depth: int) -> Column:
        nonlocal nodes, buffers
        if depth > _MAX_DEPTH or nodes > _MAX_COLUMNS:
            raise Corrupt("an Arrow schema that is nested too deeply or too wide")
        kind = _type(field)
        node, buffer = nodes, buffers
        nodes, buffers = nodes + 1, buffers + _BUFFERS.get(kind, 2)
        children = tuple(column(child, depth + 1) for child in field.tables(5))
        if kind in _LISTS and len(children) != 1:
            raise Corrupt(f"an Arrow list of {len(children)} types")
        return Column(field.text(0), kind, _dtype(kind, field.table(3)), node, buffer, children)

    return tuple(column(field, 0) for field in schema.tables(1))


def _type(field: Table) -> Type:
    number = field.number(2, "B")
    if field.table(4) is not None:
        raise Unsupported("an Arrow dictionary column")
    try:
        return Type(number)
    except ValueError as error:
        raise Unsupported(f"an Arrow column of type {number}") from error


def _dtype(kind: Type, what: Table | None) -> str:
    """The dtype of numbers, "" for all else."""
    if kind is Type.INT:
        bits = what.number(0, "i") if what else 0
        if bits not in (8, 16, 32, 64):
            raise Corrupt(f"an Arrow integer of {bits} bits")
        letter = "i" if what and what.number(1, "B") else "u"
        return f"{'|' if bits == 8 else '<'}{letter}{bits // 8}"
    if kind is Type.FLOAT:
        precision = what.number(0, "h") if what else 0
        if precision not in (0, 1, 2):
            raise Corrupt(f"an Arrow float of precision {precision}")
        return f"<f{2 << precision}"
    return ""


class IpcFile:
    """A file of record batches."""

    def __init__(self, blob: Blob, services: Services) -> None:
        """Read the end of the file, which tells what is in it. Raises Corrupt, Unsupported."""
        self._blob, self._services = blob, services
        at = blob.size() - _TAIL.size
        length, magic = _TAIL.unpack(read_exactly(blob, at, _TAIL.size, "the end of an Arrow file"))
        if magic != MAGIC:
            raise Corrupt("an Arrow file that does not end in ARROW1")
        footer = Table.root(read_exactly(blob, at - length, length, "the footer of an Arrow file"))
        schema = footer.table(1)
        if schema is None:
            raise Corrupt("an Arrow file without a schema")
        self.columns = parse_schema(schema)
        self._blocks = footer.structs(3, _BLOCK)
        self._recent: Recent[Batch] = Recent(_RECENT)

    def __len__(self) -> int:
        return len(self._blocks)

    def batch(self, number: int) -> Batch:
        """The rows of a batch. Raises Corrupt, Unsupported."""
        return self._recent.get(number, self._batch)

    def _batch(self, number: int) -> Batch:
        offset, length, body_length = self._blocks[number]
        body = Slice(self._blob, offset + length, body_length)
        if body.start + body.length > self._blob.size():
            raise Corrupt(f"batch {number} ends at {body.start + body.length}, outside of its file")
        message = read_exactly(self._blob, offset, length, "a message of an Arrow file")
        return Batch(body, message, self._services)


class Batch:
    """Rows of an IPC file. What is read are the buffers of the values that are asked for, and of them a part."""

    def __init__(self, body: Slice, message: memoryview, services: Services) -> None:
        self._body, self._services = body, services
        begin = _PREFIX.size
        if len(message) < begin or _PREFIX.unpack_from(message)[0] != _CONTINUES:
            raise Corrupt("an Arrow message without its mark")
        whole = Table.root(message[begin:])
        batch = whole.table(2)
        if whole.number(1, "B") != _RECORD_BATCH or batch is None:
            raise Corrupt("an Arrow message that is no batch of records")
        self.rows = batch.number(0, "q")
        self._nodes = batch.structs(1, _PAIR)
        self._buffers = batch.structs(2, _PAIR)
        compression = batch.table(3)
        self._compressed = compression is not None
        if compression is not None and compression.number(0, "b") != _ZSTD:
            raise Unsupported("an Arrow file compressed with something else than zstd")
        self._opened: dict[int, Blob] = {}

    def is_null(self, column: Column, row: int) -> bool:
        return not self._valid(column, row, row + 1)[0]

    def stored(self, column: Column, row: int) -> Blob:
        """The bytes of a value of a column of binary, text, integers or floats; of a bool, 1 or 0."""
        if column.type in _BYTES:
            begin, end = self._offsets(column, row, row + 1)
            data = self._buffer(column.buffer + 2)
            if end > data.size():
                raise Corrupt(f"a value in an Arrow file ends at {end} of {data.size()}")
            return Slice(data, begin, end - begin)
        if column.type is Type.BOOL:
            return Bytes(bytes(self._bits(column.buffer + 1, row, row + 1)))
        width = int(column.dtype[2:])
        return Slice(self._buffer(column.buffer + 1), row * width, width)

    def value(self, column: Column, row: int) -> Any:
        """A value of any column as a Python object."""
        return self._values(column, row, row + 1)[0]

    # --- values from start to stop ---

    def _values(self, column: Column, start: int, stop: int) -> Sequence[Any]:
        if stop - start > _MAX_VALUES:
            raise TooLarge(f"a list of {stop - start} values, more than {_MAX_VALUES}")
        values = self._unmasked(column, start, stop)
        valid = self._valid(column, start, stop)
        return [value if there else None for there, value in zip(valid, values, strict=True)]

    def _unmasked(self, column: Column, start: int, stop: int) -> Sequence[Any]:
        """The values without regard to which are null."""
        if column.type is Type.NULL:
            return [None] * (stop - start)
        if column.type is Type.STRUCT:
            parts = {child.name: self._values(child, start, stop) for child in column.children}
            return [
                {name: part[row] for name, part in parts.items()} for row in range(stop - start)
            ]
        if column.type in _LISTS:
            return list(self._lists(column, start, stop))
        if column.type in _BYTES:
            return list(self._texts(column, start, stop))
        if column.type is Type.BOOL:
            return self._bits(column.buffer + 1, start, stop)
        return self._unpack(column.buffer + 1, _CODES[column.dtype], start, stop)

    def _lists(self, column: Column, start: int, stop: int) -> Iterator[Sequence[Any]]:
        offsets = self._offsets(column, start, stop)
        values = self._values(column.children[0], offsets[0], offsets[-1])
        return (values[begin - offsets[0] : end - offsets[0]] for begin, end in pairwise(offsets))

    def _texts(self, column: Column, start: int, stop: int) -> Iterator[Any]:
        offsets = self._offsets(column, start, stop)
        base, length = offsets[0], offsets[-1] - offsets[0]
        data = read_exactly(self._buffer(column.buffer + 2), base, length, "text in an Arrow file")
        for begin, end in pairwise(offsets):
            value = data[begin - base : end - base]
            try:
                yield str(value, "utf-8") if column.type in _TEXTS else value
            except UnicodeDecodeError as error:
                raise Corrupt(f"a text that is no UTF-8 ({error})") from error

    def _offsets(self, column: Column, start: int, stop: int) -> Sequence[int]:
        """Where the values begin, and where the last ends. Raises Corrupt where they don't ascend."""
        code = "q" if column.type in _LARGE else "i"
        offsets = self._unpack(column.buffer + 1, code, start, stop + 1)
        if offsets[0] < 0 or any(begin > end for begin, end in pairwise(offsets)):
            raise Corrupt("a value in an Arrow file that ends before it begins")
        return offsets

    def _valid(self, column: Column, start: int, stop: int) -> Sequence[bool]:
        """Which values are not null. Raises Corrupt where there are not that many."""
        if column.node >= len(self._nodes):
            raise Corrupt("an Arrow batch with fewer columns than its schema")
        length, nulls = self._nodes[column.node]
        if not 0 <= start <= stop <= length:
            raise Corrupt(f"values {start} to {stop} of an Arrow column of {length}")
        if column.type is Type.NULL or not nulls:
            return [column.type is not Type.NULL] * (stop - start)
        return self._bits(column.buffer, start, stop)

    # --- buffers ---

    def _bits(self, buffer: int, start: int, stop: int) -> Sequence[bool]:
        first = start // 8
        data = read_exactly(self._buffer(buffer), first, -(-stop // 8) - first, "bits")
        return [bool(data[bit // 8 - first] >> bit % 8 & 1) for bit in range(start, stop)]

    def _unpack(self, buffer: int, code: str, start: int, stop: int) -> Sequence[Any]:
        width = struct.calcsize(f"<{code}")
        data = read_exactly(
            self._buffer(buffer), start * width, (stop - start) * width, "an Arrow buffer"
        )
        return struct.unpack(f"<{stop - start}{code}", data)

    def _buffer(self, number: int) -> Blob:
        # A second blob that another thread made at the same time is thrown away, so that all share one decompression.
        found = self._opened.get(number)
        return self._opened.setdefault(number, self._open(number)) if found is None else found

    def _open(self, number: int) -> Blob:
        if number >= len(self._buffers):
            raise Corrupt("an Arrow batch with fewer buffers than its schema")
        start, length = self._buffers[number]
        if start < 0 or length < 0 or start + length > self._body.length:
            raise Corrupt(f"a buffer of {length} bytes at {start} of {self._body.length}")
        stored = Slice(self._body, start, length)
        if not self._compressed or not length:
            return stored
        # A compressed buffer begins with its length as an i64; -1 says that the rest is as it is.
        (size,) = struct.unpack("<q", read_exactly(stored, 0, 8, "the length of an Arrow buffer"))
        rest = Slice(stored, 8, length - 8)
        if size == -1:
            return rest
        if size < 0:
            raise Corrupt(f"an Arrow buffer of {size} bytes")
        return self._services.inflate(rest, "zstd", size)
