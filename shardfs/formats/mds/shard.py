"""Shards in MosaicML's binary format, MDS.

u32 n | u32 offsets[n + 1] | config text | samples
sample: u32 size of each value whose column has no fixed size | values of all columns
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from shardfs.blob import Broken, Slice, expect, read_exactly
from shardfs.errors import Corrupt, ShardfsError, located
from shardfs.formats.mds.encodings import OPAQUE, reader
from shardfs.formats.mds.index import parse_config
from shardfs.formats.shared.offsets import TOGETHER, OffsetTable
from shardfs.model import Field, FieldInfo, NumberedKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.formats.mds.encodings import Reader
    from shardfs.formats.mds.index import Column

# A guess: some ten thousand columns.
_MAX_CONFIG = 1 << 20


class MdsShard(NumberedKeys):
    """An MDS shard, uncompressed. Two offsets, the sizes and the heads of arrays and lists are read a record."""

    def __init__(
        self,
        data: Blob,
        columns: Sequence[Column] | None,
        *,
        samples: int | None,
        costly: bool,
    ) -> None:
        """Take *columns* and *samples* from the index, or from the shard itself where they are None."""
        self._data, self.costly = data, costly
        self._table = OffsetTable.of(data, samples)
        if columns is None:
            columns = _own_columns(data, self._table)
        self.columns = [column.name for column in columns]
        self._infos = [FieldInfo(column.name, column.encoding) for column in columns]
        self._sizes = [column.size for column in columns]
        self._words = struct.Struct(f"<{self._sizes.count(None)}I")
        self._readers = [reader(column.encoding) for column in columns]

    def __len__(self) -> int:
        return self._table.count

    def schema(self) -> Sequence[FieldInfo]:
        return self._infos

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, end = self._table.span(index, self._table.end, self._data.size())
        expect(self._data, [(begin, min(end - begin, TOGETHER))])
        first = begin + self._words.size
        if first > end:
            raise Corrupt(f"has {end - begin} bytes at offset {begin}, too few for its sizes")
        words = read_exactly(self._data, begin, self._words.size, "the sizes of a record")
        sizes = value_sizes(self._sizes, self._words.unpack(words))
        if first + sum(sizes) != end:
            raise Corrupt(
                f"has values of {sum(sizes)} bytes, but {end - first} bytes for them at offset {first}"
            )
        fields = []
        for name, size, read in zip(self.columns, sizes, self._readers, strict=True):
            fields.append(_field(name, Slice(self._data, first, size), read))
            first += size
        return fields

    def close(self) -> None:
        """Do nothing: nothing but the blob is held."""


def value_sizes(fixed: Sequence[int | None], varying: Sequence[int]) -> list[int]:
    """The sizes of all values of a record, of which those that are None in *fixed* stand in *varying*."""
    rest = iter(varying)
    return [next(rest) if size is None else size for size in fixed]


def _field(name: str, value: Blob, read: Reader) -> Field:
    try:
        return Field(name, read(value), value)
    except ShardfsError as error:
        return Field(name, OPAQUE, Broken(error))


def _own_columns(data: Blob, table: OffsetTable) -> tuple[Column, ...]:
    """The columns by the config text, which lies between the table and the first record."""
    size = table.first() - table.end
    if not 0 <= size <= _MAX_CONFIG:
        raise Corrupt(f"has {size} bytes for its column names between table and records")
    with located("the config text"):
        return parse_config(bytes(read_exactly(data, table.end, size, "the config text")))


__all__ = ["MdsShard", "value_sizes"]
