"""Rows that are lines, or all there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.text.rows import Finder

# White space of JSON (RFC 8259, 2).
_FILLED = re.compile(rb"[^ \t\r\n]")
_LF = re.compile(rb"\n")
_ANY_END = re.compile(rb"\r\n?|\n")
# An empty line, with the end of the one before it.
_EMPTY_LINE = re.compile(rb"(?:\r\n|\r(?!\n)|\n){2}")
_LAST_END = re.compile(rb"(?:\r\n|\r|\n)\Z")


class AllLines:
    """Lines that end in LF, CR or CR LF, and in nothing else; empty ones, too."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""
        self._after_cr = False

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        begin = 1 if self._after_cr and data[:1] == b"\n" else 0
        if begin == len(data):
            self._after_cr = False if begin else self._after_cr
            return []
        self._after_cr = data.endswith(b"\r")
        starts = [at + begin] if self.between else []
        ends = _ANY_END if b"\r" in data else _LF  # much faster
        starts += [at + match.end() for match in ends.finditer(data, begin)]
        return _without_open(self, starts, at + len(data))

    def finish(self) -> tuple[int, Finder] | None:
        return None


class WholeText:
    """One row, which begins where white space ends."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        first = _FILLED.search(data) if self.between else None
        if first is None:
            return []
        self.between = False
        return [at + first.start()]

    def finish(self) -> tuple[int, Finder] | None:
        return None


class AllText:
    """One row, which is all there is, be it nothing."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        if not self.between:
            return []
        self.between = False
        return [at]

    def finish(self) -> tuple[int, Finder] | None:
        return None


class Paragraphs:
    """What stands between empty lines, if it is anything; a third end of a line belongs to what follows."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""
        self._open, self._open_at = b"", 0

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        text, begin = self._open + data, at - len(self._open)
        # A CR at the end may be the first half of CR LF.
        known = text[:-1] if text.endswith(b"\r") else text
        starts: list[int] = []
        place = 0
        for mark in _EMPTY_LINE.finditer(known):
            if self.between and mark.start() > place:
                starts.append(begin + place)
            place, self.between = mark.end(), True
        # What may be the first half of an empty line.
        last = _LAST_END.search(known, place)
        left = last.start() if last else len(known)
        if self.between and left > place:
            starts.append(begin + place)
            self.between = False
        self._open, self._open_at = text[left:], begin + left
        return starts

    def finish(self) -> tuple[int, Finder] | None:
        """An end of a line that is left over is text."""
        return (self._open_at, AllText()) if self.between and self._open else None


def paragraph_size(text: bytes) -> int:
    """How long the paragraph is that *text* begins with."""
    end = _EMPTY_LINE.search(text)
    return end.start() if end else len(text)


def _without_open(finder: AllLines, starts: list[int], end: int) -> Sequence[int]:
    """*starts* less a row at the *end* of the data, of which it is not known yet whether it comes."""
    finder.between = bool(starts) and starts[-1] == end
    if finder.between:
        starts.pop()
    return starts
