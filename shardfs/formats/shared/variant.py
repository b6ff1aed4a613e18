"""Variants: values that bring their own types, as JSON.

A variant is the names of all members (its metadata) and a value in binary. Times, UUIDs and bytes become texts as they
do in other nested values, and decimals numbers where JSON's have as many digits.
https://github.com/apache/parquet-format/blob/master/VariantEncoding.md
"""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.column_text import date_text, decimal_text, time_text, timestamp_text
from shardfs.numbers import float_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.shared.columns import Budget

EXTENSION = "arrow.parquet.variant"
EXTENSIONS = (EXTENSION, "parquet.variant")
"""The names that Arrow has for it."""

_PRIMITIVE, _SHORT_TEXT, _OBJECT = 0, 1, 2
_VERSION = 1
_MAX_DEPTH = 100
# The types whose bytes stand behind their length.
_BINARY, _TEXT = 15, 16


def read_names(metadata: memoryview) -> Sequence[str]:
    """The names of members that values refer to by number. Raises Corrupt, Unsupported."""
    reader = _Reader(metadata)
    head = reader.number(1)
    if head & 15 != _VERSION:
        raise Unsupported(f"a variant of version {head & 15} is not supported")
    width = (head >> 6) + 1
    offsets = reader.numbers(reader.number(width) + 1, width)
    texts = [reader.part(a, b) for a, b in pairwise(offsets)]
    return [_text(text) for text in texts]


def read_value(data: memoryview, names: Sequence[str], budget: Budget) -> Any:
    """The value in *data* as ``jsontext.compact`` takes it. Raises Corrupt, Unsupported, TooLarge."""
    return _value(data, names, budget, 0)


class _Reader:
    """Numbers one behind the other, and what lies behind them."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def bytes(self, count: int) -> memoryview:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise Corrupt(f"a variant that ends within its {len(self._data)} bytes")
        return self._data[start : self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.bytes(width), "little")

    def numbers(self, count: int, width: int) -> Sequence[int]:
        data = self.bytes(count * width)
        places = range(0, count * width, width)
        return [int.from_bytes(data[at : at + width], "little") for at in places]

    def part(self, start: int, stop: int) -> memoryview:
        """The bytes from *start* to *stop* behind what was read."""
        begin, end = self._at + start, self._at + stop
        if not self._at <= begin <= end <= len(self._data):
            raise Corrupt("a part of a variant that lies outside of it")
        return self._data[begin:end]


def _value(data: memoryview, names: Sequence[str], budget: Budget, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise Corrupt("a variant that is nested too deeply")
    budget.spend(1)
    reader = _Reader(data)
    head = reader.number(1)
    kind, about = head & 3, head >> 2
    if kind == _PRIMITIVE:
        return _primitive(reader, about, budget)
    if kind == _SHORT_TEXT:
        budget.spend_bytes(about)
        return _text(reader.bytes(about))
    if kind == _OBJECT:
        return _object(reader, about, names, budget, depth)
    count = reader.number(4 if about & 4 else 1)
    offsets = reader.numbers(count + 1, (about & 3) + 1)
    parts = [reader.part(a, b) for a, b in pairwise(offsets)]
    return [_value(part, names, budget, depth + 1) for part in parts]


def _object(
    reader: _Reader, about: int, names: Sequence[str], budget: Budget, depth: int
) -> dict[str, Any]:
    count = reader.number(4 if about & 16 else 1)
    numbers = reader.numbers(count, (about >> 2 & 3) + 1)
    offsets = reader.numbers(count + 1, (about & 3) + 1)
    # Members lie in any order, but each by itself: or a few bytes could stand for very many values.
    ends = dict(pairwise(sorted(offsets)))
    if len(ends) != count:
        raise Corrupt("a variant of which two members lie in one place")
    members: dict[str, Any] = {}
    for number, start in zip(numbers, offsets, strict=False):
        if number >= len(names) or start not in ends:
            raise Corrupt("a variant with a member that has no name or no value")
        budget.spend_bytes(len(names[number]))
        part = reader.part(start, ends[start])
        members[names[number]] = _value(part, names, budget, depth + 1)
    return members


def _primitive(reader: _Reader, kind: int, budget: Budget) -> Any:
    if kind in (_BINARY, _TEXT):
        content = reader.bytes(reader.number(4))
        budget.spend_bytes(len(content))
        return _text(content) if kind == _TEXT else content
    if kind not in _FIXED:
        raise Unsupported(f"a variant of the type {kind} is not supported")
    size, read = _FIXED[kind]
    return read(reader.bytes(size))


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt("a text in a variant that is no UTF-8") from error


def _integer(data: memoryview) -> int:
    return int.from_bytes(data, "little", signed=True)


def _decimal(data: memoryview) -> float | str:
    return decimal_number(decimal_text(_integer(data[1:]), data[0]))


def decimal_number(text: str) -> float | str:
    """A decimal as a number where that shows all its digits, else its text."""
    number = float(text)
    return number if Decimal(repr(number)) == Decimal(text) else text


def _float(data: memoryview) -> float:
    return float(float_text(struct.unpack("<f", data)[0], "<f"))


_FIXED: dict[int, tuple[int, Callable[[memoryview], Any]]] = {
    0: (0, lambda _: None),
    1: (0, lambda _: True),
    2: (0, lambda _: False),
    3: (1, _integer),
    4: (2, _integer),
    5: (4, _integer),
    6: (8, _integer),
    7: (8, lambda data: struct.unpack("<d", data)[0]),
    8: (5, _decimal),
    9: (9, _decimal),
    10: (17, _decimal),
    11: (4, lambda data: date_text(_integer(data))),
    12: (8, lambda data: timestamp_text(_integer(data), "us", "UTC")),
    13: (8, lambda data: timestamp_text(_integer(data), "us", "")),
    14: (4, _float),
    17: (8, lambda data: time_text(_integer(data), "us")),
    18: (8, lambda data: timestamp_text(_integer(data), "ns", "UTC")),
    19: (8, lambda data: timestamp_text(_integer(data), "ns", "")),
    20: (16, lambda data: str(UUID(bytes=bytes(data)))),
}
"""How long values of each type are, and what reads them, by the numbers in VariantEncoding.md."""
