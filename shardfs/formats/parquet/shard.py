"""Parquet files as shards: rows are records, columns fields."""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from shardfs.blob import Blob, expect, read_exactly
from shardfs.errors import Corrupt, ShardfsError
from shardfs.formats.parquet.cells import Leaves, RowCells
from shardfs.formats.parquet.chunk import Chunk, Source
from shardfs.formats.parquet.footer import (
    ChunkPlace,
    chunk_places,
    find_footer,
    from_blob,
    summarize,
    to_bytes,
)
from shardfs.formats.parquet.naming import named
from shardfs.formats.parquet.schema import nodes_of, shaped
from shardfs.formats.parquet.thrift import read_struct
from shardfs.formats.shared.arrow.type_names import schema_info
from shardfs.formats.shared.arrow.types import Schema
from shardfs.formats.shared.columns import row_fields
from shardfs.formats.shared.features import columns_of
from shardfs.formats.shared.recent import Recent
from shardfs.model import NumberedKeys
from shardfs.registry import suffixes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.formats.parquet.footer import FooterPlace, Summary
    from shardfs.formats.parquet.schema import Leaf
    from shardfs.formats.shared.columns import Cells
    from shardfs.model import Field, FieldInfo, Services
    from shardfs.stores import Entry, Store

SUFFIXES = suffixes_of("parquet")

_VERSION = "parquet footer 1"
# Writers that say of compressed pages of version 2 that they are not; where nothing is saved, no size tells it.
_DENIES = re.compile(rb"parquet-cpp version [01]\.")
# Footers that are remembered: those of thousands of row groups, which take a second and more to pass over.
_WORTH = 4 << 20
# Row groups, and pages beyond one for each column, that are found again. Guesses: readers go in order.
_RECENT_GROUPS, _RECENT_PAGES = 8, 64
# Records of files whose listing is remembered, which takes memory for each; beyond, sizes are found again each time.
_MOST_LISTED = 1 << 20


class ParquetShard(NumberedKeys):
    """The rows of a file. Its columns are told apart by number, since names may be there twice."""

    def __init__(self, store: Store, entry: Entry, services: Services) -> None:
        """Read the footer. Raises Corrupt, NoKey, Unsupported."""
        file, remember = store.open(entry.path), partial(services.remember, store, entry)
        self._file, self._services = file, services
        self._footer = find_footer(file)
        self._summary = _read_summary(file, self._footer, remember)
        said = read_struct(self._summary.head)[0]
        root, schema, unnamed, typed = named(self._summary.head)
        self._nodes = nodes_of(root, schema.fields, unnamed, typed=typed)
        self._schema = Schema(shaped(root, self._nodes, schema.fields), schema.metadata)
        self._columns = columns_of(self._schema)
        self.columns: Sequence[str] = tuple(dict.fromkeys(c.name for c in self._columns))
        self._width = sum(1 for _ in root.leaves())
        recent = 2 * self._width + _RECENT_PAGES
        self._groups: Recent[tuple[ChunkPlace, ...]] = Recent(_RECENT_GROUPS)
        self._chunks: Recent[Chunk] = Recent(recent)
        packs_all = _DENIES.match(said.binary(6, b"")) is not None
        self._source = Source(file, services, Recent(recent), remember, packs_all)
        rows = said.number(3, len(self))
        if rows != len(self):
            fault = Corrupt(f"says it has {rows} rows, but its row groups have {len(self)}")
            services.report(fault.at(entry.path))
        self.costly = self._is_costly()

    def __len__(self) -> int:
        return self._summary.rows[-1] if self._summary.rows else 0

    def schema(self) -> Sequence[FieldInfo]:
        return schema_info(self._schema)

    def _is_costly(self) -> bool:
        if not 0 < len(self) <= _MOST_LISTED:
            return False
        try:
            return any(place.codec for place in self._places(0))
        except Corrupt:  # its records say so
            return False

    def fields(self, index: int, /) -> Sequence[Field]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        ends = self._summary.rows
        group = bisect_right(ends, index)
        self._places(group)  # where these can't be read, nothing of the record can
        row = index - (ends[group - 1] if group else 0)
        leaves = Leaves(partial(self._chunk, group), row)
        expect(self._file, self._spans(leaves))
        return row_fields(self._columns, partial(self._cells, leaves), 0, self._services)

    def _spans(self, leaves: Leaves) -> Iterator[tuple[int, int]]:
        """What is read of the file to find the values of a row that are shown."""
        shown = self._services.options.columns
        for node, column in zip(self._nodes, self._columns, strict=True):
            if isinstance(node, ShardfsError) or (shown and column.name not in shown):
                continue
            for leaf in node.leaves:
                with suppress(ShardfsError):  # which whoever reads it meets
                    yield from leaves[leaf].spans()

    def _cells(self, leaves: Leaves, number: int) -> Cells:
        """The values of a column in the row that *leaves* are of."""
        node = self._nodes[number]
        if isinstance(node, ShardfsError):
            raise node.again()
        return RowCells(node, leaves)

    def _chunk(self, group: int, leaf: Leaf) -> Chunk:
        """The column chunk that has the values of *leaf* in a row group."""

        def make(number: int) -> Chunk:
            ends = self._summary.rows
            rows = ends[group] - (ends[group - 1] if group else 0)
            return Chunk(self._source, number, self._places(group)[leaf.number], leaf, rows)

        return self._chunks.get(group * self._width + leaf.number, make)

    def _places(self, group: int) -> tuple[ChunkPlace, ...]:
        return self._groups.get(group, self._read_group)

    def _read_group(self, group: int) -> tuple[ChunkPlace, ...]:
        """Where the chunks of a row group lie."""
        begin, end = self._summary.places[group], self._summary.places[group + 1]
        data = read_exactly(
            self._file, self._footer.start + begin, end - begin, "the metadata of a row group"
        )
        return chunk_places(bytes(data), self._width, self._footer.start)

    def close(self) -> None:
        """Nothing is held open but by the blobs."""


def _read_summary(
    file: Blob, footer: FooterPlace, remember: Callable[[str, Callable[[], bytes]], Blob]
) -> Summary:
    """What the footer says of the file as a whole; remembered where it takes long to find out."""

    def build() -> Summary:
        return summarize(bytes(read_exactly(file, footer.start, footer.length, "the footer")))

    if footer.length < _WORTH:
        return build()
    return from_blob(remember(_VERSION, lambda: to_bytes(build())))
