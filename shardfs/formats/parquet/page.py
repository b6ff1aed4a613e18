"""Pages of Parquet files: where the levels and the values of one lie, and which slot holds what.

A slot is a value, a null, or the place of an empty list. A page of a column without lists has one for each row.
https://parquet.apache.org/docs/file-format/data-pages/
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Blob, Slice, read_all, read_exactly
from shardfs.errors import Corrupt, TooLarge, Unsupported
from shardfs.formats.parquet.codecs import inflate
from shardfs.formats.parquet.runs import Runs, RunTable, find_levels
from shardfs.formats.parquet.thrift import read_struct
from shardfs.formats.parquet.values import Plain, Values, open_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.formats.parquet.schema import Leaf
    from shardfs.formats.parquet.thrift import Struct
    from shardfs.model import Services

DATA, INDEX, DICTIONARY, DATA_V2 = 0, 1, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED = 0, 2, 3, 4
_LENGTH = struct.Struct("<I")
# Headers take some twenty bytes, and more where they have statistics of long texts in them.
_HEADER_READS = (128, 4 << 10, 64 << 10, 1 << 20)
# Slots of pages with lists at most. A few bytes can claim any number of them; writers begin a new page long before.
_MAX_SLOTS = 1 << 24


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before a page.

    Attributes:
        body: where the page itself begins.
        end: where it ends.
        size: how long it is when decompressed.
        slots: how many slots it has; entries for a dictionary.
        rows: how many rows begin in it, None where it does not say.
        levels: the bytes of repetition and definition levels, None where they stand behind their lengths and are
            compressed with the values.
        packed: whether the levels of repetition and of definition are in an encoding that has been out of use since
            2013. It says so of levels that are not stored, too, as parquet-mr does, where it means nothing.
    """

    kind: int
    body: int
    end: int
    size: int
    slots: int
    encoding: int
    rows: int | None = None
    levels: tuple[int, int] | None = None
    compressed: bool = True
    packed: tuple[bool, bool] = (False, False)


def read_header(file: Blob, at: int, limit: int) -> Header:
    """The header at *at* of a page that ends before *limit*. Raises Corrupt."""
    for length in _HEADER_READS:
        data = bytes(file.read(at, min(length, limit - at)))
        try:
            header, end = read_struct(data)
        except Corrupt:  # or it is longer
            if len(data) < length:
                break
        else:
            return _header(header, at + end, limit)
    raise Corrupt(f"no Parquet page begins at {at}")


def _header(header: Struct, body: int, limit: int) -> Header:
    kind, size, stored = header.number(1), header.number(2), header.number(3)
    if size < 0 or not 0 <= stored <= limit - body:
        raise Corrupt(f"a Parquet page of {stored} bytes at {body}, where {limit - body} are left")
    if kind == INDEX:
        return Header(kind, body, body + stored, size, 0, _PLAIN)
    said = header.struct({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(kind, 0))
    if said is None:
        raise Corrupt(f"a Parquet page of type {kind} at {body} without its particulars")
    slots, encoding = said.number(1), said.number(4 if kind == DATA_V2 else 2)
    if slots < 0:
        raise Corrupt(f"a Parquet page of {slots} values at {body}")
    if kind == DATA_V2:
        rows, levels = said.number(3), (said.number(6), said.number(5))
        if rows < 0 or min(levels) < 0 or sum(levels) > min(stored, size):
            raise Corrupt(f"a Parquet page of {rows} rows with levels of {levels} bytes at {body}")
        # parquet-cpp before 2.0 says of values that it compressed that they are not; what they come to tells it.
        compressed = bool(said.number(7, 1)) or stored != size
        return Header(kind, body, body + stored, size, slots, encoding, rows, levels, compressed)
    packed = (
        kind == DATA and said.number(4, _RLE) == _BIT_PACKED,
        kind == DATA and said.number(3, _RLE) == _BIT_PACKED,
    )
    return Header(kind, body, body + stored, size, slots, encoding, packed=packed)


def open_dictionary(
    file: Blob, header: Header, codec: int, leaf: Leaf, services: Services
) -> Plain:
    """The dictionary of a chunk. Raises Corrupt, Unsupported."""
    if header.kind != DICTIONARY or header.encoding not in (_PLAIN, _PLAIN_DICTIONARY):
        raise Unsupported(f"a Parquet dictionary in encoding {header.encoding}")
    body = Slice(file, header.body, header.end - header.body)
    return Plain(inflate(body, codec, header.size, services), leaf, header.slots, services)


class Span(NamedTuple):
    """Where something lies in a page."""

    start: int
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length


class Places(NamedTuple):
    """Where in a page its levels lie, and where its values begin."""

    repetition: Span
    definition: Span
    values: int


class Layout:
    """A page of which *data* has the levels at its beginning."""

    def __init__(self, data: Blob, header: Header, leaf: Leaf) -> None:
        self._data, self._header, self._leaf = data, header, leaf
        self._known: Places | None = None

    def places(self) -> Places:
        """Where the parts of the page lie. Raises Corrupt."""
        if self._known is None:
            self._known = self._find()
        return self._known

    def levels(self, which: int) -> Slice:
        """The levels of repetition (0) or definition (1)."""
        places = self.places()
        return Slice(self._data, *(places.definition if which else places.repetition))

    def _find(self) -> Places:
        if self._header.levels is not None:
            repetition, definition = self._header.levels
            return Places(Span(0, repetition), Span(repetition, definition), 0)
        outer = self._prefixed(0, self._leaf.depth)
        inner = self._prefixed(outer.stop, self._leaf.levels)
        return Places(outer, inner, inner.stop)

    def _prefixed(self, at: int, limit: int) -> Span:
        """The levels whose length stands at *at*; nothing where there are no levels but 0."""
        if not limit:
            return Span(at, 0)
        data = read_exactly(self._data, at, _LENGTH.size, "the levels of a Parquet page")
        return Span(at + _LENGTH.size, _LENGTH.unpack(data)[0])


class Levels:
    """The levels of one kind in a page: *limit* at most, 0 without being stored where that is the limit."""

    def __init__(
        self, layout: Layout, which: int, limit: int, slots: int, services: Services
    ) -> None:
        """Take *which* as the number of their place in the layout."""
        self._layout, self._which, self._limit, self._slots = layout, which, limit, slots
        self._table = services.derive(partial(_level_table, layout, which, limit, slots))

    def span(self, start: int, stop: int) -> Sequence[int]:
        """Those of some slots, as bytes."""
        return self._runs().span(start, stop) if self._limit else bytes(stop - start)

    def find(self, slot: int) -> int | None:
        """How many before *slot* are the limit, None where that one is not."""
        if not self._limit:
            return slot
        runs = self._runs()
        return runs.rank(slot, self._limit) if runs[slot] == self._limit else None

    def rank(self, slot: int) -> int:
        """How many before *slot* are the limit."""
        return self._runs().rank(slot, self._limit) if self._limit else slot

    def zeros(self) -> Iterator[int]:
        """The slots where they are 0."""
        return self._runs().zeros() if self._limit else iter(range(self._slots))

    def _runs(self) -> Runs:
        data = self._layout.levels(self._which)
        return Runs(data, self._limit.bit_length(), self._slots, RunTable.of(self._table))


def _level_table(layout: Layout, which: int, limit: int, slots: int) -> bytes:
    return find_levels(read_all(layout.levels(which)), limit, slots).to_bytes()


def _row_starts(repetitions: Levels, slots: int) -> bytes:
    """Where each row begins, as i64, and where the last one ends."""
    starts = array("q", repetitions.zeros())
    starts.append(slots)
    return starts.tobytes()


class Page:
    """A page of data. Immutable and thread-safe; reads obey ``blob.no_wait``, and all of them raise Corrupt.

    What is worked out of it is held under the memory budget, and worked out again after that took it back.

    Attributes:
        name: what it is called in messages.
        definitions: of its slots.
        repetitions: of its slots.
    """

    def __init__(
        self,
        file: Blob,
        header: Header,
        codec: int,
        leaf: Leaf,
        dictionary: Callable[[], Plain | None],
        services: Services,
    ) -> None:
        _check(header, leaf)
        self._header, self._leaf, self._dictionary = header, leaf, dictionary
        self._services, self._slots = services, header.slots
        self.name = f"the page at byte {header.body}"
        body = Slice(file, header.body, header.end - header.body)
        if header.levels is None:
            levels = self._content = inflate(body, codec, header.size, services)
        else:
            ahead = sum(header.levels)
            rest = Slice(body, ahead, body.length - ahead)
            codec = codec if header.compressed else 0
            levels, self._content = body, inflate(rest, codec, header.size - ahead, services)
        self._layout = Layout(levels, header, leaf)
        self.repetitions = Levels(self._layout, 0, leaf.depth, header.slots, services)
        self.definitions = Levels(self._layout, 1, leaf.levels, header.slots, services)
        self._starts = services.derive(partial(_row_starts, self.repetitions, header.slots))
        self._known_values: Values | None = None

    def values(self) -> Values:
        """The values, numbered by ``definitions.rank``."""
        found = self._known_values
        if found is None:
            start, size = self._layout.places().values, self._content.size()
            if start > size:
                raise Corrupt(f"a Parquet page of {size} bytes with levels of {start}")
            data = Slice(self._content, start, size - start)
            count, encoding = self.definitions.rank(self._slots), self._header.encoding
            made = open_values(data, encoding, self._leaf, count, self._dictionary, self._services)
            # Of two that are made at a time the first stays, so that all share what is worked out.
            found = self._known_values = self._known_values or made
        return found

    def rows(self) -> int:
        """How many rows begin in it, by its levels: some writers count the values of lists instead."""
        return self._starts.size() // 8 - 1 if self._leaf.depth else self._slots

    def row(self, number: int) -> tuple[int, int]:
        """(start, stop) of the slots of the row that begins as the *number*-th in it. Raises Corrupt."""
        if not 0 <= number < self.rows():
            raise Corrupt(f"row {number} of a Parquet page of {self.rows()}")
        if not self._leaf.depth:
            return number, number + 1
        start, stop = self._starts.read(8 * number, 16).cast("q")
        return start, stop

    def lead(self) -> int:
        """How many slots before the first row belong to the row of the page before."""
        return self._starts.read(0, 8).cast("q")[0] if self._leaf.depth else 0


def _check(header: Header, leaf: Leaf) -> None:
    """Refuse a page that can't be read. Raises Corrupt, Unsupported."""
    if header.kind not in (DATA, DATA_V2):
        raise Corrupt(f"a Parquet page of type {header.kind} among those of data")
    if any(
        packed and limit
        for packed, limit in zip(header.packed, (leaf.depth, leaf.levels), strict=True)
    ):
        raise Unsupported(
            "levels in the encoding BIT_PACKED, out of use since 2013, are not supported: write the file anew"
        )
    if leaf.depth and header.slots > _MAX_SLOTS:
        raise TooLarge(f"a Parquet page of {header.slots} values, more than {_MAX_SLOTS}")
