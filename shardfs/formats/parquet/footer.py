"""The end of a Parquet file, which tells what is in it: the schema, the row groups, where each column's chunk lies.

The row groups of a file may be a hundred thousand. They are passed over once, to note where each one's metadata lie;
those are read when a row of the group is looked at.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt, NoKey, ShardfsError, TooLarge, Unsupported
from shardfs.formats.parquet.thrift import (
    I64,
    LIST,
    STRUCT,
    field_head,
    list_head,
    read_struct,
    skip,
    varint,
    zigzag,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.formats.parquet.thrift import Struct

MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_END = struct.Struct("<I4s")
# Guesses: a million row groups of a few columns have such a footer.
_MAX_FOOTER, _MAX_GROUPS = 512 << 20, 1 << 22
# What the tree has numbers for.
_MAX_ROWS = (1 << 32) - 2
_ROW_GROUPS, _ROWS = 4, 3
# Bytes that the header of a dictionary can have, which parquet-mr before 1.2.9 did not count.
_MOST_HEADER = 100
# An empty list of structs, in the place of the row groups.
_NO_GROUPS = b"\x0c"


@dataclass(frozen=True, slots=True)
class FooterPlace:
    """Where the footer lies in its file."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A footer without its row groups.

    Attributes:
        head: the footer as it would be if there were none.
        rows: how many rows there are up to the end of each row group.
        places: where in the footer each row group's metadata begin, and where the last ones end.
    """

    head: bytes
    rows: Sequence[int]
    places: Sequence[int]


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """Where the values of one column of one row group lie.

    Attributes:
        codec: their compression, by the numbers in parquet.thrift.
        values: how many there are, nulls and empty lists included.
        start: where the first page begins.
        end: where the last page ends, as the file says it.
        limit: where it may end: old writers leave out the header of the dictionary.
        dictionary: whether there is a dictionary before the data.
        index: where the index of the pages lies and how long it is, (0, 0) for none.
        nulls: how many of the values are none, None where the file does not say.
        bulk: how many bytes they are said to come to when decompressed.
        problem: why it can't be read.
    """

    codec: int = 0
    values: int = 0
    start: int = 0
    end: int = 0
    limit: int = 0
    dictionary: bool = False
    index: tuple[int, int] = (0, 0)
    nulls: int | None = None
    bulk: int = 0
    problem: ShardfsError | None = None


def find_footer(blob: Blob) -> FooterPlace:
    """Where the footer of the file *blob* lies. Raises Corrupt, NoKey."""
    size = blob.size()
    if size < len(MAGIC) + _END.size:
        raise Corrupt(f"is no Parquet file: it has {size} bytes")
    length, magic = _END.unpack(read_exactly(blob, size - _END.size, _END.size, "the end"))
    if magic == _ENCRYPTED:
        raise NoKey(
            "a Parquet file with an encrypted footer, for which there is no way to give a key"
        )
    if magic != MAGIC:
        raise Corrupt("is no Parquet file: it does not end in PAR1")
    start = size - _END.size - length
    if start < len(MAGIC):
        raise Corrupt(f"a Parquet file of {size} bytes with a footer of {length}")
    if length > _MAX_FOOTER:
        raise TooLarge(f"a Parquet footer of {length} bytes")
    return FooterPlace(start, length)


def summarize(footer: bytes) -> Summary:
    """What *footer* says of the file as a whole. Raises Corrupt."""
    counts, places = array("q"), array("q")
    try:
        begin = at = _row_groups(footer)
        count, kind, at = list_head(footer, at)
        if count and kind != STRUCT:
            raise Corrupt("a Parquet footer whose row groups are no structs")
        if count > _MAX_GROUPS:
            raise TooLarge(f"a Parquet file of {count} row groups, more than {_MAX_GROUPS}")
        for _ in range(count):
            places.append(at)
            rows, at = _row_count(footer, at)
            counts.append(rows)
        places.append(at)
    except IndexError:
        raise Corrupt(f"a Parquet footer that ends within its {len(footer)} bytes") from None
    ends = array("q", accumulate(counts))
    if ends and ends[-1] > _MAX_ROWS:
        raise Corrupt(f"a Parquet file that says it has {ends[-1]} rows")
    return Summary(footer[:begin] + _NO_GROUPS + footer[at:], ends, places)


def _row_groups(footer: bytes) -> int:
    """Where the list of the row groups begins. Raises Corrupt, IndexError."""
    number = at = 0
    while True:
        number, kind, at = field_head(footer, at, number)
        if not kind:
            raise Corrupt("a Parquet footer without row groups")
        if number == _ROW_GROUPS and kind == LIST:
            return at
        at = skip(footer, at, kind)


def _row_count(footer: bytes, at: int) -> tuple[int, int]:
    """The rows of the row group whose metadata begin at *at*, and where they end. Raises Corrupt, IndexError."""
    number, rows = 0, -1
    while True:
        number, kind, at = field_head(footer, at, number)
        if not kind:
            break
        if number == _ROWS and kind == I64:
            value, at = varint(footer, at)
            rows = zigzag(value)
        else:
            at = skip(footer, at, kind)
    if rows < 0:
        raise Corrupt(f"a Parquet row group of {rows} rows")
    return rows, at


def chunk_places(group: bytes, count: int, limit: int) -> tuple[ChunkPlace, ...]:
    """Where the *count* chunks of a row group lie, by its metadata, in a file whose pages end before *limit*.

    Raises:
        Corrupt: there are not that many. What is wrong with one chunk is its ``problem``.
    """
    chunks = read_struct(group)[0].structs(1)
    if len(chunks) != count:
        raise Corrupt(f"a Parquet row group of {len(chunks)} columns instead of {count}")
    return tuple(_chunk_place(chunk, limit) for chunk in chunks)


def _chunk_place(chunk: Struct, limit: int) -> ChunkPlace:
    try:
        return _checked_place(chunk, limit)
    except ShardfsError as error:
        return ChunkPlace(problem=error.again())


def _checked_place(chunk: Struct, limit: int) -> ChunkPlace:
    if 8 in chunk:
        raise NoKey("an encrypted Parquet column, for which there is no way to give a key")
    if chunk.binary(1, b""):
        raise Unsupported("a Parquet column whose values lie in another file")
    said = chunk.struct(3)
    if said is None:
        raise Corrupt("a Parquet column without metadata")
    pages, length, values = said.number(9), said.number(7), said.number(5)
    dictionary = said.number(11, 0)
    start = dictionary if 0 < dictionary < pages else pages
    if not len(MAGIC) <= start <= start + length <= limit or values < 0:
        raise Corrupt(
            f"a Parquet column of {values} values in {length} bytes at {start} of {limit}"
        )
    statistics = said.struct(12)
    nulls = statistics.number(3, -1) if statistics is not None else -1
    return ChunkPlace(
        codec=said.number(4),
        values=values,
        start=start,
        end=start + length,
        limit=min(start + length + _MOST_HEADER, limit),
        dictionary=start < pages,
        index=(chunk.number(4, 0), chunk.number(5, 0)),
        nulls=None if nulls < 0 else nulls,
        bulk=said.number(6, 0),
    )


def to_bytes(summary: Summary) -> bytes:
    """*summary* as ``from_blob`` reads it."""
    rows, places = array("q", summary.rows), array("q", summary.places)
    counts = struct.pack("<QQ", len(summary.head), len(rows))
    return b"".join((counts, summary.head, rows.tobytes(), places.tobytes()))


def from_blob(blob: Blob) -> Summary:
    """The summary that was kept in *blob*. Raises Corrupt."""
    length, count = struct.unpack("<QQ", read_exactly(blob, 0, 16, "a kept footer"))
    head = read_exactly(blob, 16, length, "a kept footer")
    rows, places = array("q"), array("q")
    rows.frombytes(read_exactly(blob, 16 + length, 8 * count, "a kept footer"))
    places.frombytes(read_exactly(blob, 16 + length + 8 * count, 8 * (count + 1), "a kept footer"))
    return Summary(bytes(head), rows, places)
