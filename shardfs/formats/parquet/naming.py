"""The schema of a Parquet file as Arrow sees it, also where the Arrow library refuses some of its columns.

The library says it, since that knows how each writer tells its types. It refuses a file as a whole for the sake of one
column; such a column is shown to it without what it says of its type.
"""

from __future__ import annotations

import base64
import binascii
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt
from shardfs.formats.parquet.convert import Physical
from shardfs.formats.parquet.footer import MAGIC
from shardfs.formats.parquet.schema import LOGICAL_MAP, MAPS, Element, parse_elements
from shardfs.formats.parquet.thrift import LIST, field_head, list_head, read_struct, skip
from shardfs.formats.shared.arrow.flatbuffer import Table
from shardfs.formats.shared.arrow.message import schema_of
from shardfs.formats.shared.arrow.types import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.formats.shared.arrow.types import Schema

_HINT = b"ARROW:schema"
"""The key of the schema that Arrow's writers put beside the file's own."""
_HIDDEN = b"ARROW:hidden"
_CONTINUES = b"\xff\xff\xff\xff"
# Fields of a SchemaElement up to here say how values are stored, those behind it what they mean.
_LAST_STORED, _TYPE, _REPETITION = 5, 1, 3
# As the metadata have them: zigzag.
_BYTES, _LAST_TYPE = bytes((2 * Physical.BYTE_ARRAY,)), 2 * Physical.FIXED
_ELEMENTS = 2
_INTEGERS = (8, 16, 32, 64)


class Named(NamedTuple):
    """A schema: its columns, those of them *unnamed* (by number) whose types nobody knows, and whether it is *typed*.

    That is: whether the file has the types of an Arrow table in it.
    """

    root: Element
    schema: Schema
    unnamed: frozenset[int]
    typed: bool


def named(head: bytes) -> Named:
    """The schema in *head*, a footer without row groups. Raises Corrupt, Unsupported."""
    said = read_struct(head)[0]
    root = parse_elements(said.structs(_ELEMENTS))
    hint = next((p.binary(2, b"") for p in said.structs(5) if p.binary(1, b"") == _HINT), None)
    schema = _ask(head)
    if schema is not None:
        return Named(root, schema, frozenset(), hint is not None)
    odd: frozenset[int] = frozenset()
    if hint is not None:
        shown, odd = _without_odd(hint)
        head = head.replace(hint, shown) if shown else head.replace(_HINT, _HIDDEN)
    head, refused = _mended(head, root)
    schema = _ask(head) or _ask(head.replace(_HINT, _HIDDEN))
    if schema is None:
        raise Corrupt("a Parquet schema that can't be read")
    return Named(root, schema, odd | refused, hint is not None)


def _ask(head: bytes) -> Schema | None:
    """The schema of a file with the footer *head*, which has no rows; None where the Arrow library refuses it."""
    import pyarrow as pa
    from pyarrow import parquet

    file = b"".join((MAGIC, head, struct.pack("<I", len(head)), MAGIC))
    try:
        schema = parquet.ParquetFile(pa.BufferReader(file)).schema_arrow
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    return schema_of(schema.serialize().to_pybytes())


# --- what the Arrow library does not know of Arrow ---------------------------------------------------------


def _without_odd(hint: bytes) -> tuple[bytes, frozenset[int]]:
    """The Arrow schema in base64 with nulls in place of types that Arrow lacks, and which columns have such.

    Nothing in place of a schema that can't be read.
    """
    try:
        message = bytearray(base64.b64decode(hint, validate=True))
        start = 8 if message.startswith(_CONTINUES) else 4
        header = Table.root(memoryview(bytes(message))[start:]).table(2)
        fields = header.tables(1) if header is not None else []
        found: set[int] = set()
        for number, field in enumerate(fields):
            for place in _odd_places(field, 0):
                message[start + place] = Type.NULL
                found.add(number)
    except (Corrupt, binascii.Error):
        return b"", frozenset()
    return base64.b64encode(message), frozenset(found)


def _odd_places(field: Table, depth: int) -> Iterator[int]:
    """Where the types stand that are none of Arrow's, in a field and in what it is made of."""
    number, what = field.number(2, "B"), field.table(3)
    is_known = number in Type.__members__.values()
    if number == Type.INT and what is not None:
        is_known = what.number(0, "i") in _INTEGERS
    if not is_known and field.place(2):
        yield field.place(2)
    if depth < 64:
        for child in field.tables(5):
            yield from _odd_places(child, depth + 1)


# --- what it does not know of Parquet ----------------------------------------------------------------------


def _mended(head: bytes, root: Element) -> tuple[bytes, frozenset[int]]:
    """*head* with columns that are not refused, and which of them say nothing of their types for that."""
    begin, parts = _elements(head)
    end = begin + sum(map(len, parts))
    shown, refused, at = [parts[0]], set(), 1
    for number, column in enumerate(root.children):
        own = parts[at : at + column.count]
        at += column.count
        if not _is_known(own):
            own = _with_keys(own, column)
        if not _is_known(own):
            own = [_stripped(part) for part in own]
            refused.add(number)
        shown += own
    return b"".join((head[:begin], *shown, head[end:])), frozenset(refused)


def _elements(head: bytes) -> tuple[int, list[bytes]]:
    """Where the parts of the schema begin, and their bytes."""
    number = at = 0
    while True:
        number, kind, at = field_head(head, at, number)
        if number == _ELEMENTS and kind == LIST:
            break
        if not kind:
            raise Corrupt("a Parquet footer without a schema")
        at = skip(head, at, kind)
    count, kind, at = list_head(head, at)
    begin, parts = at, []
    for _ in range(count):
        start, at = at, skip(head, at, kind)
        parts.append(head[start:at])
    return begin, parts


def _is_known(column: Sequence[bytes]) -> bool:
    """Whether the Arrow library takes a column by itself."""
    # version 1; a list of elements, of which the root has the name `r` and one child; no rows, no row groups
    count = len(column) + 1
    size = bytes((count << 4 | 12,)) if count < 15 else b"\xfc" + _varint(count)
    head = b"\x15\x02\x19" + size + b"\x48\x01r\x15\x02\x00" + b"".join(column)
    return _ask(head + b"\x16\x00\x19\x0c\x00") is not None


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def _with_keys(parts: Sequence[bytes], column: Element) -> list[bytes]:
    """A column whose maps have keys that are never null: some writers forget to say it."""
    shown = list(parts)
    for at in _keys(column, 0):
        with suppress(Corrupt, IndexError):
            shown[at] = _required(shown[at])
    return shown


def _keys(element: Element, at: int) -> Iterator[int]:
    """Which parts of an element are keys of maps; *at* is its own number."""
    is_map = element.converted in MAPS or element.logical == LOGICAL_MAP
    if is_map and element.children and element.children[0].children:
        yield at + 2
    at += 1
    for child in element.children:
        yield from _keys(child, at)
        at += child.count


def _required(part: bytes) -> bytes:
    number = at = 0
    while True:
        number, kind, at = field_head(part, at, number)
        if number == _REPETITION:
            return part[:at] + b"\0" + part[at + 1 :]
        if not kind:
            return part
        at = skip(part, at, kind)


def _stripped(part: bytes) -> bytes:
    """A part of the schema without what its values mean; of bytes where nobody knows how they are stored."""
    number = at = 0
    while True:
        start = at
        number, kind, at = field_head(part, at, number)
        if not kind or number > _LAST_STORED:
            return part[:start] + b"\0"
        if number == _TYPE and part[at] > _LAST_TYPE:
            part = part[:at] + _BYTES + part[at + 1 :]
        at = skip(part, at, kind)
