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
from shardfs.formats.shared.arrow.types import metadata_of, parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.types import Schema

MAGIC = b"ARROW1"
# Where the messages of a file begin, behind the mark and what aligns it.
_FILE_START = 8
_TAIL = struct.Struct("<i6s")
_BLOCK = struct.Struct("<qi4xq")
_PREFIX = struct.Struct("<I")
_CONTINUES = b"\xff\xff\xff\xff"
GLANCE = 1024
"""Read at first of a message: those of a few columns are shorter. A guess."""
# Versions of the metadata: V4 is that of Arrow 0.8 to 0.17, V5 that of 1.0 and later.
V4, _V5 = 3, 4
# How Arrow 0.17 told the compression of a batch, before there was a field for it.
_COMPRESSION = "ARROW:experimental_compression"


_CODECS = ("lz4", "zstd")
# No message is shorter: less than that is the beginning of one whose length is missing.
_LEAST = 12
# A schema whose length is missing is looked for in as many bytes. A guess.
_MOST_BARE = 1 << 20


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
    metadata: Mapping[str, str]

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

    @property
    def codec(self) -> str:
        """The compression of the buffers of a batch, "" for none. Raises Unsupported."""
        compression = self.batch.table(3)
        if compression is None:
            name = self.metadata.get(_COMPRESSION, "") if self.version == V4 else ""
            name = name.lower().removesuffix("_frame")
            if name not in ("", *_CODECS):
                raise Unsupported(f"Arrow data in an unknown compression ({name})")
            return name
        number = compression.number(0, "b")
        if not 0 <= number < len(_CODECS) or compression.number(1, "b"):
            raise Unsupported(f"Arrow data in an unknown compression ({number})")
        return _CODECS[number]


def read_message(blob: Blob, offset: int) -> Message | None:
    """The message at *offset*; None for the mark at the end of a stream. Raises Corrupt."""
    if offset < 0:
        raise Corrupt(f"an Arrow message at {offset}")
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
    if version not in (V4, _V5):
        raise Unsupported(f"Arrow data of version {version + 1}; 4 and 5 can be read")
    if header is None or length < 0:
        raise Corrupt("an Arrow message without content")
    return Message(version, whole.number(1, "B"), header, body, length, metadata_of(whole, 4))


def message_of(blob: Blob, offset: int, type_: Header) -> Message:
    """The message at *offset*, which must be of that type. Raises Corrupt."""
    message = read_message(blob, offset)
    if message is None or message.type != type_:
        raise Corrupt(f"an Arrow message at {offset} that is no {type_.name.lower()}")
    return message


def is_file(blob: Blob) -> bool:
    """Whether Arrow data is a file, which is a stream, too, between a mark and a footer."""
    return blob.read(0, len(MAGIC)) == MAGIC


def read_schema(blob: Blob) -> tuple[Schema, int]:
    """The schema that a stream begins with, and the offset of the next message. Raises Corrupt, Unsupported."""
    start = _FILE_START if is_file(blob) else 0
    if start and int.from_bytes(blob.read(start, _PREFIX.size), "little") < _LEAST:
        return _bare_schema(blob, start)
    message = message_of(blob, start, Header.SCHEMA)
    return parse_schema(message.header), message.end


def _bare_schema(blob: Blob, start: int) -> tuple[Schema, int]:
    """The schema where its length is missing, as in the files of Polars 2: it ends where the next message begins."""
    data = blob.read(start, _MOST_BARE)
    message = _parse(data, 0)
    if message.type != Header.SCHEMA:
        raise Corrupt(f"an Arrow message at {start} that is no schema")
    places = range(0, len(data), len(_CONTINUES) * 2)
    end = next((at for at in places if data[at : at + 4] == _CONTINUES), len(data))
    return parse_schema(message.header), start + end


def schema_of(message: bytes) -> Schema:
    """The schema in an encapsulated message, as Parquet's `ARROW:schema` and pyarrow's ``Schema.serialize`` have it."""
    return read_schema(Bytes(message))[0]


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
    batches, dictionaries = (
        [offset for offset, _, _ in footer.structs(slot, _BLOCK)] for slot in (3, 2)
    )
    return Footer(parse_schema(schema), batches, dictionaries)
