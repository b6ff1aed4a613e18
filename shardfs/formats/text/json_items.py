"""Rows that are the items of one JSON array, as a file of a single document holds them."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from shardfs.formats.shared.json_values import space_end, value_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.text.rows import Finder

_IN_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
# Looking at what is no JSON takes time that grows with all the text around it: after so many, it is no longer done.
_MAX_BAD = 1000
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}


class _State(Enum):
    BEFORE = auto()
    INSIDE = auto()
    BEHIND = auto()
    ENDED = auto()


class Items:
    """Finds the items of an array, from behind its opening bracket or from an item on.

    Items that are no JSON harm themselves only, as long as their brackets and strings are closed.
    """

    def __init__(self) -> None:
        self.fault = ""
        self.end = -1
        """Where the array ended, -1 while it goes on."""
        self._state = _State.BEFORE
        self._item = _Item()
        self._bad = 0

    @property
    def between(self) -> bool:
        return self._state is not _State.INSIDE

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        text, place = data.decode("latin-1"), 0
        starts: list[int] = []
        if self._state is _State.INSIDE:
            place = self._skip(text, 0)
        while not self.fault and (place := space_end(text, place)) < len(text):
            mark = text[place]
            if self._state is _State.ENDED:
                starts.append(at + place)
                self._state = _State.INSIDE
                self.fault = f"more behind the array at byte {at + place}"
            elif self._state is _State.BEHIND:
                place = self._separate(text, place)
            elif mark == "]":
                self._state, place = _State.ENDED, place + 1
            else:
                starts.append(at + place)
                place = self._pass(text, place)
            if self._state is _State.ENDED and self.end < 0:
                self.end = at + place
        return starts

    def finish(self) -> tuple[int, Finder] | None:
        if self._state is not _State.ENDED:
            self.fault = self.fault or "the array does not end"
        return None

    def _separate(self, text: str, place: int) -> int:
        """Take in what stands behind an item; anything but a comma or the end belongs to it and spoils it."""
        if text[place] == ",":
            self._state = _State.BEFORE
        elif text[place] == "]":
            self._state = _State.ENDED
        else:
            return self._skip_new(text, place)
        return place + 1

    def _pass(self, text: str, place: int) -> int:
        """Where the item at *place* ends, the end of *text* where that is not in there."""
        end = len(text)
        if self._bad < _MAX_BAD:
            try:
                end = value_end(text, place)
            except (ValueError, RecursionError):
                self._bad += 1
        if end == len(text):  # a number may go on
            return self._skip_new(text, place)
        self._state = _State.BEHIND
        return end

    def _skip_new(self, text: str, place: int) -> int:
        self._item = _Item()
        return self._skip(text, place)

    def _skip(self, text: str, place: int) -> int:
        end = self._item.end(text, place)
        self._state = _State.INSIDE if end is None else _State.BEHIND
        return len(text) if end is None else end


class _Item:
    """An item that is looked through for its end only, in one piece of text after another."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = self._escaped = False

    def end(self, text: str, place: int) -> int | None:
        """Where it ends: before a comma or a bracket that is not its own. None where that is not in *text*."""
        if self._in_string:
            place = self._string_end(text, place)
        for mark in _MARKS.finditer(text, place):
            what = mark[0]
            if what == '"':
                self._in_string = True
                self._string_end(text, mark.end())
                return None
            if not self._depth and what in (",", "]"):
                return mark.start()
            self._depth = max(self._depth + _DEPTH.get(what, 0), 0)
        return None

    def _string_end(self, text: str, place: int) -> int:
        """Where the string ends that is open at *place*, the end of *text* where that is not in there."""
        inside = _IN_STRING.match(text, place + self._escaped)
        place = inside.end() if inside else len(text)
        self._escaped = text[place : place + 1] == "\\"
        self._in_string = place == len(text) or self._escaped
        return len(text) if self._in_string else place + 1
