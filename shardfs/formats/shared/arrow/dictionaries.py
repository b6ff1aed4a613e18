"""The dictionaries of an Arrow stream or file: columns that others hold numbers of."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.body import Body, lay_out, place_of
from shardfs.formats.shared.arrow.cells import Joined
from shardfs.formats.shared.arrow.message import Header, message_of
from shardfs.formats.shared.arrow.nested import cells_of
from shardfs.formats.shared.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.batches import DictionaryPlace
    from shardfs.formats.shared.arrow.types import ArrowField, Schema
    from shardfs.formats.shared.columns import Cells
    from shardfs.model import Services

# Dictionaries that are found again. A guess: tables have fewer columns with one.
_RECENT = 64


class Dictionaries:
    """Finds dictionaries as they are at a batch, since a stream may replace them or add to them."""

    def __init__(
        self,
        blob: Blob,
        schema: Schema,
        places: Iterable[DictionaryPlace],
        services: Services,
    ) -> None:
        """Take the *schema* of a table and the *places* of dictionaries, in order. Raises Corrupt."""
        self._blob, self._services = blob, services
        self._plans = {
            number: lay_out([field], is_big=schema.is_big)
            for number, field in _values(schema.fields).items()
        }
        self._places = list(places)
        self._numbers: dict[int, list[int]] = {}
        for index, place in enumerate(self._places):
            self._numbers.setdefault(place.number, []).append(index)
        self._recent: Recent[Cells] = Recent(_RECENT)

    def find(self, batch: int, number: int) -> Cells:
        """The dictionary *number* for the batch *batch*. Raises Corrupt."""
        indices = self._numbers.get(number, [])
        stop = bisect_right(indices, batch, key=lambda index: self._places[index].before)
        if not stop or number not in self._plans:
            raise Corrupt(f"an Arrow dictionary {number} that is not there")
        return self._recent.get(indices[stop - 1], self._read)

    def _read(self, last: int) -> Cells:
        """The dictionary whose last part is the place *last*: what was written whole, and what was added since."""
        number = self._places[last].number
        indices = self._numbers[number]
        stop = bisect_right(indices, last)
        start = stop - 1
        while start > 0 and self._places[indices[start]].adds:
            start -= 1
        parts = [self._part(self._places[index]) for index in indices[start:stop]]
        return parts[0][0] if len(parts) == 1 else Joined(parts)

    def _part(self, place: DictionaryPlace) -> tuple[Cells, int]:
        """The values that one message has, and how many."""
        message = message_of(self._blob, place.offset, Header.DICTIONARY)
        plan = self._plans[place.number]
        body = Body(self._blob, place_of(message), plan, self._services)
        find = partial(self.find, place.before)
        return cells_of(body, plan.columns[0], find), body.rows


def _values(fields: Iterable[ArrowField], above: tuple[int, ...] = ()) -> dict[int, ArrowField]:
    """The columns that dictionaries are, by their numbers. Raises Corrupt where one is a part of itself."""
    found: dict[int, ArrowField] = {}
    for field in fields:
        number = field.dictionary
        if number in above:
            raise Corrupt(f"an Arrow dictionary {number} that is a part of itself")
        below = above if number is None else (*above, number)
        known = _values(field.type.children, below)
        if number is not None:
            known[number] = replace(field, dictionary=None, indices=None)
        for key, value in known.items():
            if found.setdefault(key, value).type != value.type:
                raise Corrupt(f"an Arrow dictionary {key} of two types")
    return found
