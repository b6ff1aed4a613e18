"""Arrow streams and files put together by hand: what no writer at hand writes, as big-endian machines did."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CONTINUES = b"\xff\xff\xff\xff"
V4, V5 = 3, 4
LITTLE, BIG = 0, 1
SCHEMA, DICTIONARY, BATCH = 1, 2, 3


# --- FlatBuffers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number of a ``struct`` type."""

    code: str
    value: int


@dataclass(frozen=True)
class Structs:
    """A vector of structs, or of numbers."""

    form: str
    values: Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Repeated:
    """A vector of tables that are all one."""

    table: Mapping[int, Any]
    count: int


Table = Mapping[int, Any]
"""Fields by their slots: Number, Structs, str, Table, a list of tables, Repeated."""


def flatbuffer(root: Table) -> bytes:
    """A message whose root is a table."""
    out = bytearray(8)
    struct.pack_into("<I", out, 0, _put(out, root))
    return bytes(out) + bytes(-len(out) % 8)


def _put(out: bytearray, value: Any) -> int:
    """Add a thing that offsets lead to. Returns where it lies."""
    out += bytes(-len(out) % 8)
    if isinstance(value, str):
        data = value.encode()
        at = len(out)
        out += struct.pack("<I", len(data)) + data + b"\0"
        return at
    if isinstance(value, Structs):
        out += bytes(4)  # so that the structs are aligned
        at = len(out)
        out += struct.pack("<I", len(value.values))
        for row in value.values:
            out += struct.pack(f"<{value.form}", *row)
        return at
    if isinstance(value, list):
        at = len(out)
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for number, item in enumerate(value):
            place = at + 4 + 4 * number
            struct.pack_into("<I", out, place, _put(out, item) - place)
        return at
    if isinstance(value, Repeated):
        at = len(out)
        out += struct.pack("<I", value.count) + bytes(4 * value.count)
        target = _put(out, value.table)
        for place in range(at + 4, at + 4 + 4 * value.count, 4):
            struct.pack_into("<I", out, place, target - place)
        return at
    return _put_table(out, value)


def _put_table(out: bytearray, table: Table) -> int:
    slots = max(table, default=-1) + 1
    begin = len(out)
    out += bytes((4 + 2 * slots + 7) // 8 * 8)
    at = len(out)
    out += bytes(8 + 8 * slots)
    struct.pack_into("<HH", out, begin, 4 + 2 * slots, 8 + 8 * slots)
    struct.pack_into("<i", out, at, at - begin)
    for slot, value in table.items():
        place = at + 8 + 8 * slot
        struct.pack_into("<H", out, begin + 4 + 2 * slot, place - at)
        if isinstance(value, Number):
            struct.pack_into(f"<{value.code}", out, place, value.value)
        else:
            struct.pack_into("<I", out, place, _put(out, value) - place)
    return at


# --- schemas -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A field of a schema: the number of its type, the fields of the type's table, and children."""

    name: str
    type: int
    what: Table = field(default_factory=dict)
    children: tuple[Column, ...] = ()
    dictionary: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Table:
        found: dict[int, Any] = {0: self.name, 1: Number("B", 1), 2: Number("B", self.type)}
        found[3], found[5] = self.what, [child.table() for child in self.children]
        if self.dictionary is not None:
            found[4] = {0: Number("q", self.dictionary), 1: integer("", 32).what}
        if self.metadata:
            found[6] = [{0: key, 1: value} for key, value in self.metadata.items()]
        return found


def integer(name: str, bits: int, *, signed: bool = True) -> Column:
    return Column(name, 2, {0: Number("i", bits), 1: Number("B", int(signed))})


def floating(name: str, precision: int) -> Column:
    return Column(name, 3, {0: Number("h", precision)})


# --- streams and files -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Body:
    """What a batch holds: (values, nulls) of each column, and buffers."""

    rows: int
    nodes: Sequence[tuple[int, int]]
    buffers: Sequence[bytes]
    views: Sequence[int] = ()

    def table(self) -> Table:
        places, at = [], 0
        for buffer in self.buffers:
            places.append((at, len(buffer)))
            at += -(-len(buffer) // 8) * 8
        table: dict[int, Any] = {0: Number("q", self.rows)}
        table[1], table[2] = Structs("qq", self.nodes), Structs("qq", places)
        if self.views:
            table[4] = Structs("q", [(count,) for count in self.views])
        return table

    def data(self) -> bytes:
        return b"".join(buffer + bytes(-len(buffer) % 8) for buffer in self.buffers)


def schema(columns: Sequence[Column], order: int = LITTLE) -> Table:
    return {0: Number("h", order), 1: [column.table() for column in columns]}


def message(
    kind: int,
    header: Table,
    body: bytes = b"",
    *,
    version: int = V5,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    whole: dict[int, Any] = {0: Number("h", version), 1: Number("B", kind), 2: header}
    whole[3] = Number("q", len(body))
    if metadata:
        whole[4] = [{0: key, 1: value} for key, value in metadata.items()]
    data = flatbuffer(whole)
    return CONTINUES + struct.pack("<I", len(data)) + data + body


def batch(body: Body, *, version: int = V5, metadata: Mapping[str, str] | None = None) -> bytes:
    return message(BATCH, body.table(), body.data(), version=version, metadata=metadata)


def dictionary(number: int, body: Body, *, is_delta: bool = False) -> bytes:
    header = {0: Number("q", number), 1: body.table(), 2: Number("B", int(is_delta))}
    return message(DICTIONARY, header, body.data())


def stream(
    columns: Sequence[Column], messages: Sequence[bytes], order: int = LITTLE, version: int = V5
) -> bytes:
    begin = message(SCHEMA, schema(columns, order), version=version)
    return begin + b"".join(messages) + CONTINUES + bytes(4)


def file(
    columns: Sequence[Column],
    batches: Sequence[bytes],
    dictionaries: Sequence[bytes] = (),
    order: int = LITTLE,
) -> bytes:
    """A file whose messages are found by its footer alone: no schema stands in front."""
    data, places = bytearray(b"ARROW1\0\0"), []
    for part in (*dictionaries, *batches):
        (size,) = struct.unpack_from("<I", part, 4)
        places.append((len(data), 8 + size, len(part) - 8 - size))
        data += part
    blocks = [
        Structs("qi4xq", found)
        for found in (places[: len(dictionaries)], places[len(dictionaries) :])
    ]
    footer = flatbuffer({0: Number("h", V5), 1: schema(columns, order), 2: blocks[0], 3: blocks[1]})
    return bytes(data) + footer + struct.pack("<i", len(footer)) + b"ARROW1"
