"""The messages that Arrow streams and files are made of, and the footer of files.

The framing: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc;
the messages: format/Message.fbs and format/File.fbs in Arrow's repository.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.flatbuffer import Table
from shardfs.formats.shared.arrow.types import Type, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.types import ArrowField, Schema

MAGIC = b"ARROW1"
FILE_START = 8
"""Where the messages of a file begin, behind the mark and what aligns it."""

_TAIL = struct.Struct("<i6s")
_BLOCK = struct.Struct("<qi4xq")
_PREFIX = struct.Struct("<I")
_CONTINUES = b"\xff\xff\xff\xff"
GLANCE = 1024
"""Read at first of a message: those of a few columns are shorter. A guess."""
# Versions of the metadata: V4 is that of Arrow 0.8 to 0.17, V5 that of 1.0 and later.
_V4, _V5 = 3, 4


class Header(IntEnum):
    """What a message tells, by the numbers in Message.fbs."""

    SCHEMA = 1
    DICTIONARY = 2
    BATCH = 3


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and where the body lies that belongs to it."""

    version: int
    type: int
    header: Table
    body: int
    length: int

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self.body + self.length

    @property
    def batch(self) -> Table:
        """The table `RecordBatch` of a batch of records or of a dictionary."""
        batch = self.header.table(1) if self.type == Header.DICTIONARY else self.header
        if batch is None or self.type not in (Header.BATCH, Header.DICTIONARY):
            raise Corrupt("an Arrow message that is no batch of records")
        return batch


def read_message(blob: Blob, offset: int) -> Message | None:
    """The message at *offset*; None for the mark at the end of a stream. Raises Corrupt."""
    head = blob.read(offset, GLANCE)
    prefix = _PREFIX.size
    if bytes(head[:prefix]) == _CONTINUES:
        offset, head = offset + prefix, head[prefix:]
    # Before Arrow 0.15 the length came first.
    if len(head) < prefix:
        raise Corrupt("an Arrow message that ends too early")
    (size,) = _PREFIX.unpack_from(head)
    if not size:
        return None
    data = head[prefix : prefix + size]
    if len(data) < size:
        data = read_exactly(blob, offset + prefix, size, "an Arrow message")
    return _parse(data, offset + prefix + size)


def _parse(data: memoryview, body: int) -> Message:
    whole = Table.root(data)
    header, length = whole.table(2), whole.number(3, "q")
    version = whole.number(0, "h")
    if version not in (_V4, _V5):
        raise Unsupported(f"Arrow data of version {version + 1}; 4 and 5 can be read")
    if header is None or length < 0:
        raise Corrupt("an Arrow message without content")
    return Message(version, whole.number(1, "B"), header, body, length)


def message_of(blob: Blob, offset: int, type_: Header) -> Message:
    """The message at *offset*, which must be of that type. Raises Corrupt."""
    message = read_message(blob, offset)
    if message is None or message.type != type_:
        raise Corrupt(f"an Arrow message at {offset} that is no {type_.name.lower()}")
    return message


def read_schema(blob: Blob, offset: int = 0) -> tuple[Schema, int]:
    """The schema in the message at *offset*, and the offset of the next message. Raises Corrupt, Unsupported."""
    message = message_of(blob, offset, Header.SCHEMA)
    return _checked(parse_schema(message.header), message.version), message.end


def schema_of(message: bytes) -> Schema:
    """The schema in an encapsulated message, as Parquet's `ARROW:schema` and pyarrow's ``Schema.serialize`` have it."""
    return read_schema(Bytes(message))[0]


def _checked(schema: Schema, version: int) -> Schema:
    """Refuse what was laid out otherwise in V4."""
    if version == _V4 and _has_union(schema.fields):
        raise Unsupported("an Arrow union of before Arrow 1.0")
    return schema


def _has_union(fields: Iterable[ArrowField]) -> bool:
    return any(f.type.type is Type.UNION or _has_union(f.type.children) for f in fields)


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says at its end: its schema, and the offsets of its messages."""

    schema: Schema
    batches: Sequence[int]
    dictionaries: Sequence[int]


def read_footer(blob: Blob) -> Footer:
    """The footer of a file. Raises Corrupt, Unsupported."""
    at = blob.size() - _TAIL.size
    length, magic = _TAIL.unpack(read_exactly(blob, at, _TAIL.size, "the end of an Arrow file"))
    if magic != MAGIC:
        raise Corrupt("an Arrow file that does not end in ARROW1")
    footer = Table.root(read_exactly(blob, at - length, length, "the footer of an Arrow file"))
    schema = footer.table(1)
    if schema is None:
        raise Corrupt("an Arrow file without a schema")
    found = _checked(parse_schema(schema), footer.number(0, "h"))
    batches, dictionaries = (
        [offset for offset, _, _ in footer.structs(slot, _BLOCK)] for slot in (3, 2)
    )
    return Footer(found, batches, dictionaries)
