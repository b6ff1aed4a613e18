"""Arrow IPC streams and files read in place: a value is a slice of the file, and no more is read than it needs.

The Arrow library is not used for it, see ``_arrow_cells``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from cachetools import LRUCache, cached

from shardfs.blob import Blob, Bytes, Slice
from shardfs.errors import Corrupt
from shardfs.formats._arrow_body import Body, lay_out
from shardfs.formats._arrow_cells import Joined
from shardfs.formats._arrow_index import DictionaryPlace, RowIndex, index_stream
from shardfs.formats._arrow_message import Header, read_footer, read_message, read_schema
from shardfs.formats._arrow_nested import cells_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shardfs.formats._arrow_body import Layout
    from shardfs.formats._arrow_message import Message
    from shardfs.formats._arrow_types import ArrowField, Schema
    from shardfs.formats._columns import Cells
    from shardfs.model import Services

# Batches and dictionaries that are found again. A guess: readers go in order.
_RECENT = 32


class Batch:
    """Rows of a table."""

    def __init__(self, body: Body, layouts: Sequence[Layout]) -> None:
        self.rows = body.rows
        self._body, self._layouts = body, layouts
        self._known: dict[int, Cells] = {}

    @property
    def packed(self) -> bool:
        """Whether it is compressed."""
        return bool(self._body.codec)

    def cells(self, number: int) -> Cells:
        """The values of the column *number*. Raises Corrupt."""
        found = self._known.get(number)
        if found is None:
            layout = self._layouts[number]
            length, _ = self._body.node(layout)
            if length != self.rows:
                raise Corrupt(f"an Arrow batch of {self.rows} rows with a column of {length}")
            found = self._known[number] = cells_of(self._body, layout)
        return found


class Batches:
    """The batches of a stream or file."""

    def __init__(
        self,
        blob: Blob,
        schema: Schema,
        offsets: Sequence[int],
        dictionaries: Iterable[DictionaryPlace],
        services: Services,
    ) -> None:
        self.schema = schema
        self._blob, self._offsets, self._services = blob, offsets, services
        self._layouts = lay_out(schema.fields)
        self._values = _dictionary_values(schema.fields)
        self._places: dict[int, list[DictionaryPlace]] = {}
        for place in dictionaries:
            self._places.setdefault(place.number, []).append(place)
        self.batch = cached(LRUCache(_RECENT), lock=Lock())(self._batch)
        self._dictionary = cached(LRUCache(_RECENT), lock=Lock())(self._read_dictionary)

    def __len__(self) -> int:
        return len(self._offsets)

    def _batch(self, number: int) -> Batch:
        message = self._message(self._offsets[number], Header.BATCH)
        return Batch(self._body(message, number), self._layouts)

    def _body(self, message: Message, number: int) -> Body:
        """The body of *message*, for which dictionaries are those that come before the batch *number*."""
        if message.end > self._blob.size():
            raise Corrupt(
                f"ends at byte {self._blob.size()}, inside a batch that should reach to {message.end}"
            )
        body = Slice(self._blob, message.body, message.length)
        return Body(message.batch, body, self._services, partial(self._find_dictionary, number))

    def _message(self, offset: int, type_: Header) -> Message:
        message = read_message(self._blob, offset)
        if message is None or message.type != type_:
            raise Corrupt(f"an Arrow message at {offset} that is no {type_.name.lower()}")
        return message

    def _find_dictionary(self, batch: int, number: int) -> Cells:
        """A dictionary as it is at a batch: what was written last, and what was added since."""
        places = self._places.get(number, [])
        stop = bisect_right(places, batch, key=lambda place: place.before)
        start = stop - 1
        while start > 0 and places[start].adds:
            start -= 1
        if not stop:
            raise Corrupt(f"an Arrow dictionary {number} that is not there")
        return self._dictionary(number, tuple(places[start:stop]))

    def _read_dictionary(self, number: int, places: tuple[DictionaryPlace, ...]) -> Cells:
        (layout,) = lay_out([self._values[number]])
        parts = []
        for place in places:
            message = self._message(place.offset, Header.DICTIONARY)
            body = self._body(message, place.before)
            parts.append((cells_of(body, layout), body.rows))
        return parts[0][0] if len(parts) == 1 else Joined(parts)


def _dictionary_values(
    fields: Iterable[ArrowField], above: tuple[int, ...] = ()
) -> dict[int, ArrowField]:
    """The columns that dictionaries are, by their numbers. Raises Corrupt where one is a part of itself."""
    found: dict[int, ArrowField] = {}
    for field in fields:
        number = field.dictionary
        if number in above:
            raise Corrupt(f"an Arrow dictionary {number} that is a part of itself")
        below = above if number is None else (*above, number)
        known = _dictionary_values(field.type.children, below)
        if number is not None:
            known[number] = replace(field, dictionary=None, indices=None)
        for key, value in known.items():
            if found.setdefault(key, value).type != value.type:
                raise Corrupt(f"an Arrow dictionary {key} of two types")
    return found


class IpcFile(Batches):
    """A file, found out by its footer."""

    def __init__(self, blob: Blob, services: Services) -> None:
        """Read the end of the file, which tells what is in it. Raises Corrupt, Unsupported."""
        footer = read_footer(blob)
        dictionaries = [
            DictionaryPlace.of(offset, message, 0)
            for offset in footer.dictionaries
            if (message := read_message(blob, offset)) is not None
        ]
        super().__init__(blob, footer.schema, footer.batches, dictionaries, services)


class IpcStream(Batches):
    """A stream, or a file as the stream that is in it.

    Attributes:
        index: where its batches lie and which rows they hold.
    """

    def __init__(
        self, blob: Blob, services: Services, *, start: int = 0, index: RowIndex | None = None
    ) -> None:
        """Take the stream that begins at *start*; read it through for an *index* where there is none."""
        schema, _ = read_schema(blob, start)
        self.index = index or RowIndex(Bytes(index_stream(blob, start)))
        super().__init__(blob, schema, self.index.offsets, self.index.dictionaries(), services)
        self._recent = (0, 0, 0)

    def locate(self, row: int) -> tuple[int, int]:
        """(batch, row in it) of a row."""
        first, stop, number = self._recent
        if not first <= row < stop:
            if not 0 <= row < self.index.rows:
                raise IndexError(row)
            number = bisect_right(self.index.ends, row)
            first = self.index.ends[number - 1] if number else 0
            self._recent = first, self.index.ends[number], number
        return number, row - first
