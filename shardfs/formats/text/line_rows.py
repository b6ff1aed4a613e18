"""Rows that are lines, or all there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.text.rows import Finder

# White space of JSON (RFC 8259, 2).
_FILLED = re.compile(rb"[^ \t\r\n]")
_BREAK = re.compile(rb"\n[ \t\r\n]*")
_LF = re.compile(rb"\n")
_ANY_END = re.compile(rb"\r\n?|\n")


class FilledLines:
    """Lines that end in LF and are not blank, as in JSON Lines; white space before them is not theirs."""

    def __init__(self) -> None:
        self.between, self.fault = True, ""

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        begin = 0
        starts: list[int] = []
        if self.between:
            first = _FILLED.search(data)
            if first is None:
                return starts
            begin = first.start()
            starts.append(at + begin)
        starts += [at + match.end() for match in _BREAK.finditer(data, begin)]
        return _without_open(self, starts, at + len(data))

    def finish(self) -> tuple[int, Finder] | None:
        return None


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


def _without_open(finder: FilledLines | AllLines, starts: list[int], end: int) -> Sequence[int]:
    """*starts* less a row at the *end* of the data, of which it is not known yet whether it comes."""
    finder.between = bool(starts) and starts[-1] == end
    if finder.between:
        starts.pop()
    return starts
