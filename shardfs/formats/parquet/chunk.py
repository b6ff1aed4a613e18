"""Column chunks of Parquet files: in which page a row is, without reading the pages before it.

The page index of the file tells where its pages lie. Where there is none, their headers are passed over once.
https://parquet.apache.org/docs/file-format/pageindex/
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Blob, Bytes, expect, may_wait, read_all, read_exactly
from shardfs.errors import Corrupt, WouldBlock
from shardfs.formats.parquet.convert import Physical
from shardfs.formats.parquet.page import (
    DICTIONARY,
    INDEX,
    Header,
    Page,
    open_dictionary,
    read_header,
)
from shardfs.formats.parquet.thrift import read_struct
from shardfs.formats.parquet.values import LOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.formats.parquet.footer import ChunkPlace
    from shardfs.formats.parquet.schema import Leaf
    from shardfs.formats.parquet.values import Plain
    from shardfs.formats.shared.recent import Recent
    from shardfs.model import Services

VERSION = "parquet pages 2"
# Chunks whose pages are remembered where no page index tells of them: a dozen pages or more. A guess.
_WORTH = 16 << 20
# Values of which the lengths are rather fetched one by one than with all that is between: longer than this, where more
# than that lies before the one that is looked for. Guesses: what costs as much as a round trip, and four of these.
_FAR, _TOGETHER = 256 << 10, 1 << 20
# What of a page is read in any case: its header and the first length.
_HEAD = 128
# A page's place takes about twenty bytes: a million and a half of them.
_MAX_INDEX = 32 << 20


class Part(NamedTuple):
    """Slots of a page, from *start* to *stop*."""

    page: Page
    start: int
    stop: int


class PageTable(NamedTuple):
    """Where the pages of a chunk lie: offsets, and the first row that begins in each.

    Attributes:
        dictionary: the offset of the dictionary, 0 where there is none.
        told: whether the page index tells it, by which pages end where rows do; else the pages themselves do, of which
            the last row may go on in the next one.
    """

    dictionary: int
    told: int
    offsets: Sequence[int]
    rows: Sequence[int]

    def to_bytes(self) -> bytes:
        return array("q", [self.dictionary, self.told, *self.offsets, *self.rows]).tobytes()

    @classmethod
    def of(cls, blob: Blob) -> PageTable:
        """The table that ``to_bytes`` made."""
        numbers = read_all(blob).cast("q")
        middle = 1 + len(numbers) // 2
        return cls(numbers[0], numbers[1], numbers[2:middle], numbers[middle:])


def parse_page_index(data: bytes, place: ChunkPlace, rows: int) -> PageTable:
    """The table in an OffsetIndex, of a chunk of *rows* rows. Raises Corrupt where it can't be that."""
    locations = read_struct(data)[0].structs(1)
    offsets = [location.number(1) for location in locations]
    ends = [location.number(1) + location.number(2) for location in locations]
    firsts = [location.number(3) for location in locations]
    fits = (
        offsets
        and place.start <= offsets[0]
        and ends[-1] <= place.end
        and firsts[0] == 0
        and firsts[-1] < max(rows, 1)
        and all(end <= offset for end, offset in zip(ends, offsets[1:], strict=False))
        and all(a < b for a, b in pairwise(firsts))
    )
    if not fits:
        raise Corrupt("a Parquet page index that does not fit its column")
    return PageTable(place.start if place.start < offsets[0] else 0, 1, offsets, firsts)


@dataclass(frozen=True, slots=True)
class Source:
    """What all chunks of a file have in common.

    Attributes:
        pages: those that were looked at last.
        remember: keeps what a function computes of the file, under the name of what it is.
        packs_all: whether all pages of compressed columns are, even those that deny it.
    """

    file: Blob
    services: Services
    pages: Recent[Page]
    remember: Callable[[str, Callable[[], bytes]], Blob]
    packs_all: bool = False


class Chunk:
    """The values of one column of one row group, by row. Immutable and thread-safe; reads obey ``blob.no_wait``."""

    def __init__(
        self, source: Source, number: int, place: ChunkPlace, leaf: Leaf, rows: int
    ) -> None:
        """Take *number* as the chunk's own in the file. Raises what is wrong with it."""
        if place.problem is not None:
            raise place.problem.again()
        if not leaf.depth and place.values != rows:
            raise Corrupt(f"a Parquet column of {place.values} values for {rows} rows")
        self.leaf, self.place = leaf, place
        self._source, self._number, self._rows = source, number, rows
        self._known_table: Blob | None = None
        self._known_dictionary: Plain | None = None

    def parts(self, row: int) -> Iterator[Part]:
        """The slots of a row, in one page or in several. Raises Corrupt."""
        table, number = self._locate(row)
        page, at = self._page(table, number), row - table.rows[number]
        yield Part(page, *page.row(at))
        is_last = self.leaf.depth and at == page.rows() - 1 and not table.told
        while is_last and number + 1 < len(table.rows):
            number += 1
            page = self._page(table, number)
            yield Part(page, 0, page.lead())
            is_last = not page.rows()

    def spans(self, row: int) -> Iterator[tuple[int, int]]:
        """(offset, length) of what is read of the file to find the value of a row. Raises Corrupt."""
        table, number = self._locate(row)
        if table.dictionary:
            yield table.dictionary, min(table.offsets[0] - table.dictionary, _TOGETHER)
        begin, first = table.offsets[number], table.rows[number]
        length = [*table.offsets[number + 1 : number + 2], self.place.end][0] - begin
        rows = [*table.rows[number + 1 : number + 2], self._rows][0] - first
        if self.place.codec:  # what is packed is mostly read as a whole
            yield begin, length if length <= _TOGETHER else _before(row - first, length, rows)
        elif self.leaf.physical is Physical.BYTE_ARRAY:
            yield begin, _before(row - first, length, rows)
        else:
            yield begin, min(length, _FAR)

    def _locate(self, row: int) -> tuple[PageTable, int]:
        """The pages, and which of them a row begins in. Raises Corrupt."""
        table = self._table()
        number = bisect_right(table.rows, row) - 1
        if not 0 <= row < self._rows or number < 0:
            raise Corrupt(f"row {row} of a Parquet column that has {self._rows}")
        return table, number

    def _page(self, table: PageTable, number: int) -> Page:
        def make(_: int) -> Page:
            page = self._open_page(table.offsets[number])
            end = [*table.rows[number + 1 : number + 2], self._rows][0]
            if page.rows() != end - table.rows[number] and (table.told or self.leaf.depth):
                raise Corrupt(f"{page.name} has {page.rows()} rows, where {end} should end")
            if page.lead() and (table.told or not number):
                raise Corrupt(f"{page.name} begins with {page.lead()} values that belong to no row")
            return page

        return self._source.pages.get(self._number << 32 | number, make)

    def _open_page(self, at: int) -> Page:
        source, place = self._source, self.place
        header = read_header(source.file, at, place.limit)
        if source.packs_all:
            header = replace(header, compressed=True)
        return Page(source.file, header, place.codec, self.leaf, self._dictionary, source.services)

    def _dictionary(self) -> Plain | None:
        """The dictionary, the same for all pages so that it is decompressed once."""
        at = self._table().dictionary
        if at and self._known_dictionary is None:
            source, place = self._source, self.place
            header = read_header(source.file, at, place.limit)
            made = open_dictionary(source.file, header, place.codec, self.leaf, source.services)
            self._known_dictionary = self._known_dictionary or made
        return self._known_dictionary

    def _table(self) -> PageTable:
        if self._known_table is None:
            if not may_wait():
                raise WouldBlock
            made = self._open_table()
            self._known_table = self._known_table or made
        return PageTable.of(self._known_table)

    def _open_table(self) -> Blob:
        source, place = self._source, self.place
        at, length = place.index
        if 0 < length <= _MAX_INDEX and at > 0:
            with suppress(Corrupt):  # then the pages themselves tell
                data = bytes(read_exactly(source.file, at, length, "a Parquet page index"))
                return Bytes(parse_page_index(data, place, self._rows).to_bytes())
        walk = partial(_walk, source.file, place, self.leaf, self._rows, source.services)
        if place.end - place.start < _WORTH:
            return source.services.derive(walk)
        return source.remember(f"{VERSION} {self._number}", walk)


def _before(row: int, length: int, rows: int) -> int:
    """How much of a page of *length* bytes and *rows* rows to read for the value of a *row* in it.

    Only the lengths of the values before it tell where that lies. Where they are far from one another each is looked
    at by itself, and so is a large value; else one that is longer than most comes along, too.
    """
    each = length // max(rows, 1)
    if each > _FAR and row * each > _TOGETHER:
        return min(length, _HEAD)
    return min(length, row * each + min(max(2 * each, LOOK), _FAR))


def _walk(file: Blob, place: ChunkPlace, leaf: Leaf, rows: int, services: Services) -> bytes:
    """The table of a chunk of *rows* rows, by the headers of all its pages.

    What these say of the rows in them counts where it comes to as many; else the levels tell.
    """
    said, total = _walk_pages(file, place, leaf, services, counts=False)
    if total != rows and leaf.depth:
        said, _ = _walk_pages(file, place, leaf, services, counts=True)
    return said.to_bytes()


def _walk_pages(
    file: Blob, place: ChunkPlace, leaf: Leaf, services: Services, *, counts: bool
) -> tuple[PageTable, int]:
    """The table of a chunk, and how many rows there are; *counts*: by the levels, whatever headers say.

    A damaged page is taken for one of all rows that are left, so that whoever looks for these meets the damage.
    """
    offsets, rows = array("q"), array("q")
    at, slots, row, dictionary = place.start, 0, 0, 0
    try:
        while slots < place.values and at < place.end:
            expect(file, [(at, _HEAD)])  # and nothing of the page behind it
            header = read_header(file, at, place.limit)
            if header.kind == DICTIONARY:
                dictionary = dictionary or at
            elif header.kind != INDEX:
                begun = header.rows if not counts and header.rows is not None else None
                if begun is None:
                    begun = _rows_in(header, file, place, leaf, services)
                offsets.append(at)
                rows.append(row)
                row, slots = row + begun, slots + header.slots
            at = header.end
    except Corrupt:
        offsets.append(at)
        rows.append(row)
    return PageTable(dictionary, 0, offsets, rows), row


def _rows_in(header: Header, file: Blob, place: ChunkPlace, leaf: Leaf, services: Services) -> int:
    """How many rows begin in a page, by its levels where it has lists."""
    return Page(file, header, place.codec, leaf, lambda: None, services).rows()
