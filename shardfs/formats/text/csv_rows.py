"""Rows and cells of separated values, as the csv module of Python reads them (and RFC 4180 describes most of it).

A cell that begins with a quotation mark reaches to the next single one, over delimiters and ends of lines; two of
them stand for one. A quotation mark anywhere else is a character like others. Rows end in LF, CR or CR LF; empty
lines, and those of spaces and tabs alone, are no rows, as for pandas.
"""

from __future__ import annotations

import csv
import re
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.formats.text.rows import Finder

_QUOTE = b'"'
_DELIMITERS = ",;\t|"
# How many rows of the beginning must have as many cells as the header: some may be ragged.
_REGULAR = 0.9

_LINES = re.compile(rb"\n\n*")
_RUN = re.compile(rb'"+')
_LINE_END = re.compile(rb"\r\n?|\n")

# Where a finder stands: before a row, at the beginning of a cell, in a cell, in quotation marks, behind one in there.
_ROW, _CELL, _PLAIN, _QUOTED, _HALF = range(5)


class _Tokens(NamedTuple):
    """What matters to a finder.

    Attributes:
        blanks: what makes no row of a line: not what separates cells.
        empty: empty lines; *line_end*: the end of a line, and empty ones behind it.
        outside: the same outside of quotation marks, and quoted cells. Groups: 2 and 4 are empty and stand where a
            row begins; 1, 3 and 5 match where quotation marks are not closed in the data, all of which is then taken
            in. Branches begin with literals, since only then the search is fast.
    """

    blanks: bytes
    empty: re.Pattern[bytes]
    line_end: re.Pattern[bytes]
    outside: re.Pattern[bytes]


@lru_cache(maxsize=8)
def _tokens(delimiter: bytes) -> _Tokens:
    d, blanks = re.escape(delimiter), b" \t".replace(delimiter, b"")
    closed = rb'"[^"]*(?:""[^"]*)*"(?!")'
    opened = rb'"(?s:.*)()'
    empty = rb"(?:[%b]*[\r\n])*" % blanks
    outside = (
        rb"%b(?:%b(?:%b%b)*|%b)" % (d, closed, d, closed, opened)
        + rb"|\r%b()(?:%b|%b)?" % (empty, closed, opened)
        + rb"|\n%b()(?:%b|%b)?" % (empty, closed, opened)
    )
    return _Tokens(blanks, re.compile(empty), re.compile(rb"[\r\n]" + empty), re.compile(outside))


class CsvRows:
    """Finds rows. *skipping*: all up to the first end of a line is passed over, whatever it is."""

    def __init__(self, delimiter: bytes, *, skipping: bool = False) -> None:
        self.fault = ""
        self._delimiter, self._tokens = delimiter, _tokens(delimiter)
        self._state, self._skipping = _ROW, skipping
        self._row = 0
        self._held = b""

    @property
    def between(self) -> bool:
        return self._state == _ROW

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        starts: list[int] = []
        data, at = self._held + data, at - len(self._held)
        data = self._hold(data)
        begin = self._begin(data, at, starts) if data else 0
        if begin < len(data):
            self._outside(data, at, begin, starts)
        if starts:
            self._row = starts[-1]
        return starts

    def finish(self) -> tuple[int, Finder] | None:
        """Where quotation marks are not closed, the row that they are in is broken; the next line begins another."""
        if self._state != _QUOTED:
            return None
        return self._row, CsvRows(self._delimiter, skipping=True)

    def _hold(self, data: bytes) -> bytes:
        """*data* less the blanks at its end of which it is not known yet whether they are a line of their own."""
        self._held = b""
        if data[-1:] not in (b" ", b"\t"):
            return data
        whole = data.rstrip(self._tokens.blanks)
        if whole.endswith((b"\n", b"\r")) or (not whole and self._state == _ROW):
            self._held = data[len(whole) :]
            return whole
        return data

    def _begin(self, data: bytes, at: int, starts: list[int]) -> int:
        """Where what is known from the data before ends, and plain text begins."""
        begin = 0
        if self._skipping:
            end = _LINE_END.search(data)
            if end is None:
                return len(data)
            self._skipping, begin = False, end.end()
        if self._state == _ROW:
            found = self._tokens.empty.match(data, begin)
            begin = found.end() if found else begin
            if begin == len(data):
                return begin
            starts.append(at + begin)
            self._state = _CELL
        if self._state in (_CELL, _HALF):
            is_quote = data[begin : begin + 1] == _QUOTE
            self._state = _QUOTED if is_quote else _PLAIN
            begin += is_quote
        if self._state == _QUOTED:
            begin = _closed(data, begin)
            if begin < 0:
                return len(data)
            self._state = _HALF if begin == len(data) else _PLAIN
        return begin

    def _outside(self, data: bytes, at: int, begin: int, starts: list[int]) -> None:
        """Take in what stands outside of quotation marks at *begin* and all behind it."""
        found, end = None, at + len(data)
        if _QUOTE in data:
            for found in self._tokens.outside.finditer(data, begin):
                start = max(found.end(2), found.end(4))
                if start >= 0:
                    starts.append(at + start)
        else:  # much faster
            is_plain = not any(mark in data for mark in (b"\r", b"\n ", b"\n\t"))
            ends = _LINES if is_plain else self._tokens.line_end
            starts += [at + match.end() for match in ends.finditer(data, begin)]
        if found is not None and found.lastindex in (1, 3, 5):
            self._state = _QUOTED
        elif starts and starts[-1] == end:
            starts.pop()
            self._state = _ROW
        elif found is not None and found.end() == len(data):
            self._state = _HALF
        else:
            self._state = _CELL if data.endswith(self._delimiter) else _PLAIN


def _closed(data: bytes, at: int) -> int:
    """Where quotation marks end that are open at *at*: with a run of an odd number. -1 where that is not in *data*."""
    return next((run.end() for run in _RUN.finditer(data, at) if len(run[0]) % 2), -1)


class Cell(NamedTuple):
    """Where a cell lies in a row; *quoted*: with its quotation marks, since what is between them is not all of it."""

    begin: int
    end: int
    quoted: bool


@lru_cache(maxsize=8)
def _bare(delimiter: bytes) -> re.Pattern[bytes]:
    """What stands outside of quotation marks in a cell, and what ends it."""
    d = re.escape(delimiter)
    return re.compile(rb"([^%b\r\n]*)(%b|\r\n?|\n|\Z)" % (d, d))


def cells(row: bytes, delimiter: bytes) -> Iterator[Cell]:
    """The cells of the first row in *row*. Raises Corrupt where quotation marks are not closed."""
    find, at, mark = _bare(delimiter).match, 0, delimiter
    while mark == delimiter:
        quoted = row.startswith(_QUOTE, at)
        closed = _closed(row, at + 1) if quoted else at
        found = find(row, closed) if closed >= 0 else None
        if found is None:
            raise Corrupt(f"quotation marks are opened at byte {at} of the row and not closed")
        end, mark = found.end(1), found[2]
        if not quoted:
            yield Cell(at, end, quoted=False)
        elif end == closed and row.find(_QUOTE, at + 1, end - 1) < 0:
            yield Cell(at + 1, end - 1, quoted=False)
        else:
            yield Cell(at, end, quoted=True)
        at = found.end()


def unquoted(cell: bytes) -> bytes:
    """What a cell that begins with quotation marks means; what stands behind them belongs to it."""
    end = _closed(cell, 1)
    return cell[1 : end - 1].replace(b'""', _QUOTE) + cell[end:]


def sniff(sample: str) -> str:
    """The delimiter of the text that begins with *sample*, a comma where nothing speaks for another one.

    It is the one by which the header has the most columns, of those by which rows have as many cells.
    """
    best, most = _DELIMITERS[0], 1
    for delimiter in _DELIMITERS:
        try:
            reader = csv.reader(StringIO(sample, newline=""), delimiter=delimiter)
            rows = [len(row) for row in reader if row]
        except csv.Error:
            continue
        if rows and rows[0] > most and rows.count(rows[0]) >= _REGULAR * len(rows):
            best, most = delimiter, rows[0]
    return best
