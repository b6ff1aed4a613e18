"""Arrow IPC streams and files read in place: a value is a slice of the file, and no more is read than it needs.

The Arrow library is not used for it, see ``cells``.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.batches import DictionaryPlace, RowIndex
from shardfs.formats.shared.arrow.body import Body, lay_out, place_of
from shardfs.formats.shared.arrow.dictionaries import Dictionaries
from shardfs.formats.shared.arrow.message import Header, message_of, read_footer, read_schema
from shardfs.formats.shared.arrow.nested import cells_of
from shardfs.formats.shared.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.body import Layout
    from shardfs.formats.shared.arrow.types import Schema
    from shardfs.formats.shared.columns import Cells
    from shardfs.model import Services

# Batches that are found again. A guess: readers go in order.
_RECENT = 32


class Batch:
    """Rows of a table."""

    def __init__(self, body: Body, columns: Sequence[Layout], find: Callable[[int], Cells]) -> None:
        self.rows = body.rows
        self._body, self._columns, self._find = body, columns, find
        self._known: dict[int, Cells] = {}

    @property
    def packed(self) -> bool:
        """Whether it is compressed."""
        return bool(self._body.codec)

    def cells(self, number: int) -> Cells:
        """The values of the column *number*. Raises Corrupt."""
        found = self._known.get(number)
        if found is None:
            layout = self._columns[number]
            length, _ = self._body.node(layout)
            if length != self.rows:
                raise Corrupt(f"an Arrow batch of {self.rows} rows with a column of {length}")
            found = self._known[number] = cells_of(self._body, layout, self._find)
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
        self._plan = lay_out(schema.fields, is_big=schema.is_big)
        self._dictionaries = Dictionaries(blob, schema, dictionaries, services)
        self._recent: Recent[Batch] = Recent(_RECENT)

    def __len__(self) -> int:
        return len(self._offsets)

    def batch(self, number: int) -> Batch:
        """The batch *number*. Raises Corrupt, Unsupported."""
        return self._recent.get(number, self._read)

    def _read(self, number: int) -> Batch:
        message = message_of(self._blob, self._offsets[number], Header.BATCH)
        body = Body(self._blob, place_of(message), self._plan, self._services)
        return Batch(body, self._plan.columns, partial(self._dictionaries.find, number))


class IpcFile(Batches):
    """A file, found out by its footer."""

    def __init__(self, blob: Blob, services: Services) -> None:
        """Read the end of the file, which tells what is in it. Raises Corrupt, Unsupported."""
        footer = read_footer(blob)
        dictionaries = [
            DictionaryPlace.of(offset, message_of(blob, offset, Header.DICTIONARY), 0)
            for offset in footer.dictionaries
        ]
        super().__init__(blob, footer.schema, footer.batches, dictionaries, services)


class IpcTable(Batches):
    """A file or stream as rows.

    Attributes:
        index: where its batches lie and which rows they hold.
    """

    def __init__(self, blob: Blob, services: Services, index: RowIndex) -> None:
        """Take what *index* is about. Raises Corrupt, Unsupported."""
        self.index = index
        schema = read_footer(blob).schema if index.by_footer else read_schema(blob)[0]
        super().__init__(blob, schema, index.offsets, index.dictionaries(), services)
        self._last = (0, 0, 0)

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.index.rows

    def locate(self, row: int) -> tuple[int, int]:
        """(batch, row in it) of a row."""
        first, stop, number = self._last
        if not first <= row < stop:
            if not 0 <= row < self.index.rows:
                raise IndexError(row)
            number = bisect_right(self.index.ends, row)
            first = self.index.ends[number - 1] if number else 0
            self._last = first, self.index.ends[number], number
        return number, row - first
