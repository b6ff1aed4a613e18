"""Separated values in other ways than the usual one, as the C parser of pandas reads them (its tokenizer.c).

Escapes, comments, quotation marks that are not doubled, spaces behind separators. It is slower than csv_rows.py, which
has the usual way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt
from shardfs.formats.text.csv_rows import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.formats.text.rows import Finder

# Where a finder stands: before a row, at the beginning of a cell, in a cell, in quotation marks.
_ROW, _CELL, _PLAIN, _QUOTED = range(4)
# A line of more bytes is taken for the end of what can be read: it is held together.
_MAX_LINE = 128 << 20


@dataclass(frozen=True, slots=True)
class Dialect:
    """How cells are separated and quoted. Marks are in UTF-8, and empty where there is none.

    Attributes:
        doubled: whether two quotation marks inside of such stand for one.
        spaces: whether spaces behind a separator are left out.
        blank: whether empty lines are rows.
        feeds: whether rows end in LF only.
        runs: whether any run of spaces and tabs separates cells; those at the ends of a row are left out.
    """

    delimiter: bytes
    quote: bytes = b'"'
    escape: bytes = b""
    comment: bytes = b""
    doubled: bool = True
    spaces: bool = False
    blank: bool = False
    feeds: bool = False
    runs: bool = False

    @property
    def is_usual(self) -> bool:
        """Whether rows are as csv_rows.py has them."""
        return self == Dialect(self.delimiter) and len(self.delimiter) == 1


@dataclass(frozen=True, slots=True)
class _Patterns:
    """What matters inside of quotation marks, outside, and behind closing ones, and what a line is."""

    inside: re.Pattern[bytes]
    outside: re.Pattern[bytes]
    ending: re.Pattern[bytes]
    line: re.Pattern[bytes]
    blanks: bytes


@lru_cache(maxsize=32)
def _patterns(dialect: Dialect) -> _Patterns:
    d, q, e, c = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape, dialect.comment))
    end = rb"\n" if dialect.feeds else rb"\r\n?|\n"
    if dialect.runs:
        d, end = rb"[ \t]+", rb"[ \t]*(?:%b)|[ \t]+\Z" % end
    escaped = rb"(?P<escaped>%b(?s:.))|" % e if e else b""
    doubled = rb"(?P<doubled>%b%b)|" % (q, q) if dialect.doubled else b""
    comment = rb"|(?P<comment>%b)" % c if c else b""
    return _Patterns(
        inside=re.compile(escaped + doubled + rb"(?P<quote>%b)" % (q or rb"(?!)")),
        outside=re.compile(escaped + rb"(?P<end>%b)|(?P<cell>%b)" % (end, d) + comment),
        ending=re.compile(rb"%b|%b|\Z" % (d, end)),
        line=re.compile(rb"[^\n]*\n" if dialect.feeds else rb"[^\r\n]*(?:\r\n?|\n)"),
        blanks=_blanks(dialect),
    )


def _blanks(dialect: Dialect) -> bytes:
    """What makes no row of a line."""
    if dialect.blank:
        return b""
    blanks = b" \t\n" if dialect.feeds else b" \t\r\n"
    return blanks if dialect.runs else blanks.replace(dialect.delimiter, b"")


class DialectRows:
    """Finds rows. *skipping*: all up to the first end of a line is passed over, whatever it is."""

    def __init__(self, dialect: Dialect, *, skipping: bool = False) -> None:
        self.fault = ""
        self._dialect, self._patterns = dialect, _patterns(dialect)
        self._state, self._skipping = _ROW, skipping
        self._row = -1
        # The beginning of a line that has not ended.
        self._open: list[bytes] = []
        self._open_size = 0

    @property
    def between(self) -> bool:
        return self._state == _ROW and self._row < 0

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        begin, starts = at - self._open_size, list[int]()
        text = data
        if self._open and (b"\n" in data or b"\r" in data or self._open[-1].endswith(b"\r")):
            text = b"".join([*self._open, data])
            self._open, self._open_size = [], 0
        place = 0
        if not self._open:
            for line in self._patterns.line.finditer(text):
                # A CR at the end may be the first half of CR LF.
                if line.end() == len(text) and not text.endswith(b"\n"):
                    break
                self._take(line[0], begin + line.start(), starts)
                place = line.end()
        self._hold(text[place:], at + len(data), starts)
        return starts

    def finish(self) -> tuple[int, Finder] | None:
        """Where quotation marks are not closed, the row that they are in is broken; the next line begins another."""
        if self._open and self._row >= 0:
            self._state = self._after(b"".join(self._open), self._state)
        if self._state != _QUOTED:
            return None
        return self._row, DialectRows(self._dialect, skipping=True)

    def _hold(self, data: bytes, end: int, starts: list[int]) -> None:
        """Keep the beginning of a line, with which a row may begin."""
        if not data:
            return
        self._open.append(data)
        self._open_size += len(data)
        if self._open_size > _MAX_LINE:
            self.fault = f"a line of more than {_MAX_LINE} bytes"
        if self._row < 0 and self._state == _ROW and not self._skipping:
            self._begin(b"".join(self._open), end - self._open_size, starts)

    def _begin(self, line: bytes, at: int, starts: list[int]) -> None:
        """Take note of a row, if one begins with *line*."""
        comment = self._dialect.comment
        blanks = self._patterns.blanks
        if not (comment and line.startswith(comment)) and (not blanks or line.strip(blanks)):
            starts.append(at)
            self._row = at

    def _take(self, line: bytes, at: int, starts: list[int]) -> None:
        """Take in a whole line."""
        if self._skipping:
            self._skipping = False
            return
        if self._state == _ROW and self._row < 0:
            self._begin(line, at, starts)
            if self._row < 0:
                return
        quote, escape = self._dialect.quote, self._dialect.escape
        if self._state == _ROW and not ((quote and quote in line) or (escape and escape in line)):
            self._row = -1  # by far the most lines
            return
        self._state = self._after(line, self._state)
        if self._state == _ROW:
            self._row = -1

    def _after(self, line: bytes, state: int) -> int:
        """Where a finder stands behind *line*, in which it has to look for quotation marks and escapes."""
        at, dialect = 0, self._dialect
        while True:
            if state in (_ROW, _CELL):
                at = spaces_end(line, at, dialect)
                is_quoted = dialect.quote and line.startswith(dialect.quote, at)
                state = _QUOTED if is_quoted else _PLAIN
                at += len(dialect.quote) if is_quoted else 0
            if state == _QUOTED:
                at = quoted_end(line, at, dialect)
                if at < 0:
                    return _QUOTED
                state = _PLAIN
            found = plain_end(line, at, dialect)
            if found is None:
                return _PLAIN
            if found.lastgroup != "cell":
                return _ROW
            at, state = found.end(), _CELL


def spaces_end(row: bytes, at: int, dialect: Dialect) -> int:
    """Where the cell at *at* begins, behind the spaces that are left out."""
    left_out = (b" ", b"\t") if dialect.runs else (b" ",) if dialect.spaces else ()
    while left_out and row.startswith(left_out, at):
        at += 1
    return at


def quoted_end(row: bytes, at: int, dialect: Dialect) -> int:
    """Where plain text may begin behind the quotation marks that are open at *at*; -1 where they are not closed."""
    patterns = _patterns(dialect)
    for found in patterns.inside.finditer(row, at):
        if found.lastgroup == "quote":
            at = found.end()
            # What stands right behind is text, whatever it is.
            return at if not dialect.doubled or patterns.ending.match(row, at) else at + 1
    return -1


def plain_end(row: bytes, at: int, dialect: Dialect) -> re.Match[bytes] | None:
    """What ends the plain text at *at*: its group is `cell`, `end` or `comment`. None where nothing does."""
    for found in _patterns(dialect).outside.finditer(row, at):
        if found.lastgroup != "escaped":
            return found
    return None


def cells(row: bytes, dialect: Dialect) -> Iterator[Cell]:
    """The cells of the first row in *row*. Raises Corrupt where quotation marks are not closed."""
    at, more = 0, True
    while more:
        begin = spaces_end(row, at, dialect)
        is_quoted = bool(dialect.quote) and row.startswith(dialect.quote, begin)
        behind = begin
        if is_quoted:
            behind = quoted_end(row, begin + len(dialect.quote), dialect)
            if behind < 0:
                raise Corrupt(
                    f"quotation marks are opened at byte {begin} of the row and not closed"
                )
        found = plain_end(row, behind, dialect)
        end = found.start() if found else len(row)
        yield _cell(row, begin, end, dialect, is_quoted=is_quoted)
        more = found is not None and found.lastgroup == "cell"
        at = found.end() if found else end


def _cell(row: bytes, begin: int, end: int, dialect: Dialect, *, is_quoted: bool) -> Cell:
    mark = len(dialect.quote) if is_quoted else 0
    inner = row[begin + mark : end - mark] if end - begin >= 2 * mark else b""
    has_escape = bool(dialect.escape) and dialect.escape in row[begin:end]
    if has_escape or (
        is_quoted and (dialect.quote in inner or not row.endswith(dialect.quote, begin + mark, end))
    ):
        return Cell(begin, end, quoted=True)
    return Cell(begin + mark, end - mark, quoted=False)


def content(cell: bytes, dialect: Dialect) -> bytes:
    """What a cell means that has marks in it."""
    patterns, parts, at = _patterns(dialect), list[bytes](), 0
    if dialect.quote and cell.startswith(dialect.quote):
        at = len(dialect.quote)
        for found in patterns.inside.finditer(cell, at):
            parts.append(cell[at : found.start()])
            at = found.end()
            if found.lastgroup == "quote":
                break
            kept = dialect.escape if found.lastgroup == "escaped" else dialect.quote
            parts.append(found[0][len(kept) :])
        if dialect.doubled:
            parts.append(cell[at : at + 1])
            at += 1
    if dialect.escape:
        for found in patterns.outside.finditer(cell, at):
            if found.lastgroup == "escaped":
                parts += [cell[at : found.start()], found[0][len(dialect.escape) :]]
                at = found.end()
    return b"".join([*parts, cell[at:]])
