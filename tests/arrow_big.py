"""Streams of this machine turned into such as a big-endian machine writes; shardfs only tells where buffers lie."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from shardfs.blob import Bytes
from shardfs.formats.shared.arrow.message import Header, Message, read_message
from tests.arrow_made import CONTINUES

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAIR = struct.Struct("<qq")
VIEWS = (-1,)
"""In place of widths: entries of 16 bytes, which are not alike."""


def big_endian(data: bytes, schema: pa.Schema) -> bytes:
    """An uncompressed stream with all numbers in it turned round."""
    dictionaries = list(_dictionaries(schema))
    parts, at = [], 0
    while (message := read_message(Bytes(data), at)) is not None:
        head, body = data[at : message.body], data[message.body : message.end]
        if message.type == Header.SCHEMA:
            parts.append(_marked(head))
        elif message.type == Header.BATCH:
            parts.append(head + _turned(body, message, [field.type for field in schema]))
        else:
            values = dictionaries[message.header.number(0, "q")]
            parts.append(head + _turned(body, message, [values]))
        at = message.end
    return b"".join(parts) + data[at:]


def _dictionaries(schema: pa.Schema) -> Iterator[pa.DataType]:
    """The types of dictionaries in the order of their numbers."""
    for field in schema:
        yield from _dictionaries_in(field.type)


def _dictionaries_in(type_: pa.DataType) -> Iterator[pa.DataType]:
    if pt.is_dictionary(type_):
        yield type_.value_type
        return
    for child in children(type_):
        yield from _dictionaries_in(child)


def children(type_: pa.DataType) -> list[pa.DataType]:
    if pt.is_map(type_):
        return [pa.struct([type_.key_field, type_.item_field])]
    if not pt.is_nested(type_):
        return []
    return [type_.field(number).type for number in range(type_.num_fields)]


def widths(type_: pa.DataType) -> list[tuple[int, ...]]:
    """Of each buffer of a column of its own, the widths of the numbers in it."""
    if pt.is_dictionary(type_):
        return [(), _plain(type_.index_type)]
    if pt.is_null(type_):
        return []
    if pt.is_struct(type_) or pt.is_fixed_size_list(type_):
        return [()]
    name = str(type_)
    if pt.is_list_view(type_) or pt.is_large_list_view(type_):
        return [(), *[(8 if name.startswith("large") else 4,)] * 2]
    if name in ("string_view", "binary_view"):
        return [(), VIEWS]
    if pt.is_map(type_) or pt.is_list(type_) or pt.is_large_list(type_):
        return [(), (8 if name.startswith("large") else 4,)]
    if name in ("string", "binary", "large_string", "large_binary"):
        return [(), (8 if name.startswith("large") else 4,), ()]
    return [(), _plain(type_)]


def _plain(type_: pa.DataType) -> tuple[int, ...]:
    if pt.is_boolean(type_) or (pt.is_fixed_size_binary(type_) and not pt.is_decimal(type_)):
        return ()
    return (4, 4, 8) if pt.is_interval(type_) else (type_.bit_width // 8,)


def _turned(body: bytes, message: Message, types: list[pa.DataType]) -> bytes:
    places = iter(message.batch.structs(2, _PAIR))
    more = iter(message.batch.numbers(4, "q"))
    found = bytearray(body)

    def turn(type_: pa.DataType) -> None:
        for parts in widths(type_):
            start, length = next(places)
            found[start : start + length] = _swapped(body[start : start + length], parts)
            for _ in range(next(more) if parts == VIEWS else 0):
                next(places)
        for child in [] if pt.is_dictionary(type_) else children(type_):
            turn(child)

    for type_ in types:
        turn(type_)
    return bytes(found)


def _swapped(data: bytes, parts: tuple[int, ...]) -> bytes:
    if not parts:
        return data
    out, at, turns = bytearray(data), 0, 0
    while parts != VIEWS and at + parts[turns % len(parts)] <= len(data):
        width = parts[turns % len(parts)]
        out[at : at + width] = data[at : at + width][::-1]
        at, turns = at + width, turns + 1
    for entry in range(0, len(data) - 15, 16) if parts == VIEWS else ():
        (length,) = struct.unpack_from("<i", data, entry)
        for place in (0,) if length <= 12 else (0, 8, 12):
            out[entry + place : entry + place + 4] = data[entry + place : entry + place + 4][::-1]
    return bytes(out)


def _marked(message: bytes) -> bytes:
    """The message of a schema, with another in front that names the same columns and the other byte order."""
    old = message[8:]
    vector = _follow(old, _slot(old, _header(old), 1))
    # tables of a message and of a schema, whose fields lie in the old message behind them
    front = bytearray(72)
    struct.pack_into("<I", front, 0, 24)
    struct.pack_into("<6H", front, 8, 12, 16, 4, 6, 8, 0)
    struct.pack_into("<ihBxI", front, 24, 16, 4, 1, 56 - 32)
    struct.pack_into("<4H", front, 44, 8, 12, 4, 8)
    struct.pack_into("<ihxxI", front, 56, 12, 1, len(front) + vector - 64)
    data = bytes(front) + old
    return CONTINUES + struct.pack("<I", len(data)) + data


def _header(data: bytes) -> int:
    return _follow(data, _slot(data, _follow(data, 0), 2))


def _follow(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def _slot(data: bytes, table: int, slot: int) -> int:
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    return table + int(struct.unpack_from("<H", data, vtable + 4 + 2 * slot)[0])
