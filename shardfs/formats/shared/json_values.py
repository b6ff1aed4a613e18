"""JSON text as it stands: where values begin and end, and how they are shown, without making more of them than that.

Text is handled with one character a byte (latin-1), so that places in it are places in the file; all marks of JSON are
ASCII. As for Python's json module, ``NaN``, ``Infinity`` and ``-Infinity`` are numbers.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import NamedTuple

from shardfs.errors import Corrupt, TooLarge, utf8_fault
from shardfs.formats.shared.jsontext import compact, parse
from shardfs.formats.shared.offsets import MAX_ITEMS
from shardfs.model import Kind, Rendered

MAX_PARSED = 4 << 20
"""Values of more bytes are never made: lists of nothing take twenty times the room of their text."""
# Numbers with more digits than anything needs are left as they stand.
_LONG_NUMBER = 400

# Numbers are left as text: Python refuses long ones.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BRACKETS = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_SPACES = re.compile(rf"({_STRING})|[ \t\n\r]+".encode(), re.DOTALL)
_WORDS = {b"NaN": b"nan", b"Infinity": b"inf", b"-Infinity": b"-inf", b"-0": b"0"}


class Member(NamedTuple):
    """A member of an object: its name, and where its value lies in the text."""

    name: str
    begin: int
    end: int


def members(text: str, at: int = 0, *, limit: int = MAX_ITEMS) -> tuple[list[Member], int]:
    """The members of the object at *at*, and where it ends.

    Raises:
        ValueError, RecursionError: it is no JSON object, or nested too deeply.
        TooLarge: it has more than *limit* members.
    """
    found: list[Member] = []
    at = _after("{", text, at)
    more = text[at : at + 1] != "}"
    while more:
        if text[at : at + 1] != '"':
            raise ValueError(f"no name of a member at byte {at}")
        end = value_end(text, at)
        begin = _after(":", text, end)
        stop = value_end(text, begin)
        if len(found) == limit:
            raise TooLarge(f"more than {limit} members")
        found.append(Member(_name(text[at:end]), begin, stop))
        at = space_end(text, stop)
        more = text[at : at + 1] == ","
        at = space_end(text, at + 1) if more else at
    if text[at : at + 1] != "}":
        raise ValueError(f"no end of the object at byte {at}")
    return found, at + 1


def value_end(text: str, at: int) -> int:
    """Where the value that begins at *at* ends; what is inside of large ones is not checked.

    Raises:
        ValueError, RecursionError: there is none, or it is nested too deeply.
    """
    if len(text) - at <= MAX_PARSED or text[at : at + 1] not in ("{", "["):
        _, end = _DECODER.raw_decode(text, at)
        return end
    depth = 0
    for mark in _BRACKETS.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
        if not depth:
            return mark.end()
    raise ValueError(f"the end of what begins at byte {at} is missing")


def space_end(text: str, at: int) -> int:
    """Where the white space at *at* ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _after(mark: str, text: str, at: int) -> int:
    """What follows *mark* and the white space around it. Raises ValueError where it is not there."""
    at = space_end(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} at byte {at}")
    return space_end(text, at + 1)


@lru_cache(maxsize=4096)
def _name(token: str) -> str:
    """The name that a string in the text stands for. Raises ValueError."""
    return loaded(token.encode("latin-1"))


def loaded(token: bytes | memoryview) -> str:
    """The text that a JSON string stands for. Raises ValueError."""
    return str(json.loads(str(token, "utf-8")))


# --- values as files ---------------------------------------------------------------------------------------


def _text(token: memoryview) -> bytes:
    try:
        # Half a surrogate pair, which JSON can hold and UTF-8 can't, becomes the escape that it was.
        return loaded(token).encode("utf-8", "backslashreplace")
    except ValueError as error:
        if isinstance(error, UnicodeError):
            raise Corrupt(utf8_fault(error)) from error
        raise Corrupt("is no JSON string") from error


def _number(token: memoryview) -> bytes:
    """A number or truth value: as it stands, or the shorter text that reads back as the same float."""
    word = bytes(token)
    if len(word) <= _LONG_NUMBER and not word.lstrip(b"-").isdigit() and word[:1] not in b"tf":
        value = float(_WORDS.get(word, word))
        shortest = repr(value).encode()
        if len(shortest) < len(word) and math.isfinite(value):
            word = shortest
    return _WORDS.get(word, word) + b"\n"


def _nested(token: memoryview) -> bytes:
    """An object or array in compact form; a large one loses its white space and nothing else."""
    if len(token) > MAX_PARSED:
        return _SPACES.sub(rb"\1", bytes(token)) + b"\n"
    try:
        return compact(parse(str(token, "utf-8")))
    except UnicodeDecodeError as error:
        raise Corrupt(utf8_fault(error)) from error


STRING = Rendered(".txt", _text, "str")
NUMBER = Rendered(".txt", _number, "number")
NESTED = Rendered(".json", _nested, "json")


def kind_of(first: str) -> Kind | None:
    """What a value is that begins with that character, None for null."""
    if first == '"':
        return STRING
    if first in "{[":
        return NESTED
    return None if first == "n" else NUMBER
