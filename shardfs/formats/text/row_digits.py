"""How many digits the numbers of a text's rows have, foretold where counting the rows would take long.

Names of records are padded to the digits of the largest number, so that the first name can't be told before all rows
were counted, unless an estimate leaves no reasonable doubt.
"""

from __future__ import annotations

import zlib
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from shardfs.blob import expect
from shardfs.errors import Corrupt
from shardfs.formats.text.rows import PIECE, before_damage
from shardfs.model import number_width

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.formats.shared.compressed import Content
    from shardfs.formats.text.rows import Text

# Up to this size all rows are counted at once.
_SMALL = 4 << 20
# Lines are counted in so many places, evenly spread, since files may be sorted by length: in a few of them first, which
# are enough where the number would have to be quite another for other digits.
_PLACES, _FEW = 16, 4
_PLACE = 64 << 10
# By how much an estimate may be wrong. Guesses: at the least, by how many standard errors of what was seen in places
# all over the file, and where only its beginning was seen.
_LEAST, _ERRORS, _AHEAD = 1.02, 4, 4.0


def foretold(content: Content, text: Text, *, by_line: bool) -> int | None:
    """The digits of the largest number of a row, None where only counting tells.

    *by_line*: a row is a line, so that rows can be counted anywhere.
    """
    if content.size is not None and content.size <= _SMALL:
        return None
    try:
        if content.size is not None and by_line:
            rates = _rates_all_over(content.blob, content.size, _FEW)
            found = _clear(fmean(rates) * content.size, max(_doubt(rates), _AHEAD))
            if found is None:
                rates = _rates_all_over(content.blob, content.size, _PLACES)
                found = _clear(fmean(rates) * content.size, _doubt(rates))
            return found
        return _clear(_from_beginning(content, text), _AHEAD)
    except Corrupt:
        return None


def _rates_all_over(blob: Blob, size: int, count: int) -> list[float]:
    """Lines a byte, in *count* places evenly spread over the file."""
    step = (size - _PLACE) // (count - 1)
    # None lies across what is fetched together.
    places = [step * place // _PLACE * _PLACE for place in range(count)]
    expect(blob, ((at, _PLACE) for at in places))
    return [bytes(blob.read(at, _PLACE)).count(b"\n") / _PLACE for at in places]


def _doubt(rates: list[float]) -> float:
    """By which factor the mean of *rates* may be off."""
    mean = fmean(rates)
    return _LEAST + _ERRORS * stdev(rates) / (mean * sqrt(len(rates))) if mean else _AHEAD


def _from_beginning(content: Content, text: Text) -> float:
    """Rows in all, if all are like the first ones, and compressed as well as zlib compresses these."""
    data = before_damage(text.blob, text.begin, PIECE)
    rows = len(text.finder().feed(data, text.begin))
    if content.size is not None:
        return rows / max(len(data), 1) * content.size
    return rows / len(zlib.compress(data)) * content.stored


def _clear(rows: float, doubt: float) -> int | None:
    """The digits of the number of *rows*, None where it may be *doubt* times more or less and then have others."""
    least, most = number_width(int(rows / doubt) + 1), number_width(int(rows * doubt) + 1)
    return least if least == most else None
