"""Rows that are the JSON values of a text: most often one a line, but over several lines or several on one as well.

Between two tokens inside of a value there is one of `{ [ , :` in front or one of `} ] , :` behind. So the end of a line
with none of these around it ends a value, however it is printed; that is by far the most of them. Only where there is
one, the value has to be walked through. A line that is no JSON harms itself alone.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.text.rows import Finder

# A value over several lines that is longer, or nested deeper, is not put together. Guesses; what is held while it is
# looked for, and how often a text without any end is looked through, grows with them.
_MAX_VALUE, _MAX_DEPTH = 16 << 20, 64
# A row of more bytes that is open is looked at again when twice as much of it is there.
_FEW = 64 << 10

# White space of JSON (RFC 8259, 2).
_FILLED = re.compile(rb"[^ \t\r\n]")
_BREAK = re.compile(rb"\n[ \t\r\n]*")
_LINE_END = re.compile(rb"\n")
_SPACE = re.compile(rb"[ \t\r]*")
_WORD_END = re.compile(rb"[ \t\r\n,:\[\]{}\"]")
# Two objects on one line, unless they stand in a string.
_SIDE_BY_SIDE = re.compile(rb"\}[ \t\r]*\{")
_TOKENS = re.compile(rb'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|["\[\]{}\n]')

# Numbers are left as text: Python refuses long ones.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
# A text of more bytes is not parsed as a whole, since lists take twenty times the room of their text.
_MAX_PARSED = 1 << 20

_OPENING, _CLOSING = b"{[,:", b"}],:"
_PARTNER = {b"}": b"{", b"]": b"["}
_CLOSED = {b"{": b"}", b"[": b"]"}
# What values begin with.
_VALUES = b'{["-0123456789tfnNI'


class _Outcome(Enum):
    """Why a value has no end."""

    INVALID = auto()
    UNKNOWN = auto()


class JsonLines:
    """Finds JSON values, and lines that are none."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""
        # The row that is open, as far as it has come. Nothing of a line that is too long to be held.
        self._open: list[bytes] = []
        self._size, self._wanted, self._is_long = 0, 0, False

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        if data and self._size + len(data) < self._wanted:  # more is needed to see more
            self._open.append(data)
            self._size += len(data)
            return []
        text, begin = b"".join([*self._open, data]), at - self._size
        self._open, self._size, self._wanted = [], 0, 0
        row = self._first(text)
        if row is None:
            return []
        starts = [] if row == 0 and not self.between else [row]
        self.between = False
        if not self._take_lines(text, row, starts):
            values = _Values(text)
            following = values.following(row)
            while following is not None:
                starts.append(following)
                row, following = following, values.following(following)
            self._keep(text[row:])
            if not data and values.are_whole(row):  # what comes next is another one
                self._open, self._size, self.between = [], 0, True
        return [begin + start for start in starts]

    def finish(self) -> tuple[int, Finder] | None:
        return None

    def _first(self, text: bytes) -> int | None:
        """The first row in *text* that is open or begins. None where there is none."""
        place = 0
        if self._is_long:
            end = text.find(b"\n")
            if end < 0:
                return None
            self._is_long, self.between, place = False, True, end
        if not self.between:
            return 0
        first = _FILLED.search(text, place)
        return first.start() if first else None

    def _take_lines(self, text: bytes, row: int, starts: list[int]) -> bool:
        """Take all of *text* from *row* on if each line of it is an object for certain, as most texts are."""
        count, end = text.count(b"\n", row), b"}\n"
        sure = text.count(b"}\n{", row)
        if count and not sure:
            end, sure = b"}\r\n", text.count(b"}\r\n{", row)
        if sure < count - text.endswith(end) or not count or _SIDE_BY_SIDE.search(text, row):
            return False
        ends = [match.end() for match in _LINE_END.finditer(text, row)]
        if ends[-1] == len(text):  # what comes next may belong to it
            ends.pop()
        starts += ends
        self._keep(text[ends[-1] if ends else row :])
        return True

    def _keep(self, row: bytes) -> None:
        self._size = len(row)
        self._open = [row]
        if self._size > _FEW:
            self._wanted = 2 * self._size
        if self._size > _MAX_VALUE and b"\n" not in row:
            self._open, self._size, self._wanted, self._is_long = [], 0, 0, True


class _Values:
    """The values in *text*."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._chars = text.decode("latin-1") if len(text) <= _MAX_PARSED else None

    def following(self, row: int) -> int | None:
        """Where the row behind the one at *row* begins; None where the text doesn't tell."""
        text = self._text
        line = _BREAK.search(text, row)
        end = line.start() if line else len(text)
        if _SIDE_BY_SIDE.search(text, row, end):
            behind = self._end(row)
            if behind is _Outcome.UNKNOWN and line is None:
                return None
            beside = _beside(text, behind)
            if beside is not None and beside < end:
                return beside
        if line is None or line.end() == len(text):
            return None
        if _last(text, end) not in _OPENING and text[line.end()] not in _CLOSING:
            return line.end()
        behind = self._end(row)
        if behind is _Outcome.UNKNOWN and len(text) - row <= _MAX_VALUE:
            return None
        if isinstance(behind, _Outcome):
            return line.end()
        beside = _beside(text, behind)
        if beside is not None:
            return beside
        # What else stands there belongs to it.
        line = _BREAK.search(text, behind)
        return None if line is None or line.end() == len(text) else line.end()

    def are_whole(self, row: int) -> bool:
        """Whether the row, which is the last one, ends with its line."""
        text = self._text
        return text.rstrip(b" \t\r").endswith(b"\n") and self._end(row) is not _Outcome.UNKNOWN

    def _end(self, row: int) -> int | _Outcome:
        end: int | _Outcome = _Outcome.UNKNOWN
        if self._chars is not None and self._chars[row] in '{["':
            with suppress(ValueError, RecursionError):
                _, end = _DECODER.raw_decode(self._chars, row)  # much faster
        if not isinstance(end, int):
            end = value_end(self._text, row)
        # However much of it is there.
        return _Outcome.INVALID if isinstance(end, int) and end - row > _MAX_VALUE else end


def _beside(text: bytes, behind: int | _Outcome) -> int | None:
    """Where another object begins on the line on which a value ends at *behind*."""
    if isinstance(behind, _Outcome):
        return None
    space = _SPACE.match(text, behind)
    place = space.end() if space else behind
    return place if text.startswith(b"{", place) else None


def _last(text: bytes, end: int) -> int:
    """The last byte before *end* that is no white space."""
    while text[end - 1] in b" \t\r":
        end -= 1
    return text[end - 1]


def value_end(text: bytes, at: int) -> int | _Outcome:
    """Where the value at *at* ends, which may be over lines. Only what is needed to tell is looked at."""
    stack: list[bytes] = []
    if text[at : at + 1] not in (b"{", b"[", b'"'):
        end = _WORD_END.search(text, at + 1)
        return end.start() if end else _Outcome.UNKNOWN
    for token in _TOKENS.finditer(text, at):
        mark = token[0]
        if mark == b"\n":
            if not (following := _FILLED.search(text, token.end())):
                return _Outcome.UNKNOWN
            if not _goes_on(stack[-1], _last(text, token.start()), following[0]):
                return _Outcome.INVALID
        elif mark == b'"':  # it is not closed on its line
            is_known = text.find(b"\n", token.end()) >= 0
            return _Outcome.INVALID if is_known else _Outcome.UNKNOWN
        elif mark in (b"{", b"["):
            stack.append(mark)
            if len(stack) > _MAX_DEPTH:
                return _Outcome.INVALID
        elif mark in (b"}", b"]") and stack.pop() != _PARTNER[mark]:
            return _Outcome.INVALID
        if not stack:
            return token.end()
    return _Outcome.UNKNOWN


def _goes_on(inside: bytes, last: int, following: bytes) -> bool:
    """Whether a line of a value may end in *last*, so that the next one begins with *following*."""
    name = b'"' if inside == b"{" else _VALUES
    if last in b"{[":
        return last == inside[0] and (following in name or following == _CLOSED[inside])
    if last in b",":
        return following in name
    if last in b":":
        return following in _VALUES
    return (
        following == b"," or following == _CLOSED[inside] or (inside == b"{" and following == b":")
    )
