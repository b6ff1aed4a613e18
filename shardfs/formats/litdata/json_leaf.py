"""LitData's ``json`` leaves: a list or a mapping in a tagged binary form, or as JSON text before that.

Source: ``_nested_dumps`` in ``litdata/streaming/serializers.py`` 0.2.76. All integers are little-endian.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, utf8_fault
from shardfs.formats.shared.jsontext import compact, parse

if TYPE_CHECKING:
    from collections.abc import Callable

# A byte above is the beginning of JSON text.
_LAST_TAG = 0x20
# The writer is recursive too, so deeper values don't come from it.
_MAX_DEPTH = 200


def render(leaf: memoryview) -> bytes:
    """The leaf as JSON: text as it is stored, the binary form as compact JSON and a newline. Raises Corrupt."""
    if not leaf or leaf[0] > _LAST_TAG:
        return bytes(leaf)
    return compact(decode(leaf))


def decode(leaf: memoryview) -> Any:
    """The value of a leaf in the binary form. Raises Corrupt."""
    cursor = _Cursor(leaf)
    value = cursor.value(0)
    if cursor.left:
        raise Corrupt(f"a json leaf with {cursor.left} bytes behind its value")
    return value


class _Cursor:
    """Reads a leaf from its beginning to its end."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, length: int) -> memoryview:
        begin, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise Corrupt(f"a json leaf ends at byte {len(self._data)}, inside a value")
        return self._data[begin : self._at]

    def number(self, code: str) -> Any:
        form = f"<{code}"
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def numbers(self, code: str) -> list[Any]:
        count, width = self.number("I"), struct.calcsize(f"<{code}")
        return list(struct.unpack(f"<{count}{code}", self.take(count * width)))

    def text(self) -> str:
        try:
            return str(self.take(self.number("I")), "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt(f"a text of a json leaf {utf8_fault(error)}") from error

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.number("I"))]

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise Corrupt("a json leaf that is nested too deeply")
        tag = self.number("B")
        if tag == _MAPPING:
            return {self.text(): self.value(depth + 1) for _ in range(self.number("I"))}
        read = _VALUES.get(tag)
        if read is None:
            raise Corrupt(f"a json leaf with the unknown tag {tag}")
        return read(self)

    def rows(self) -> list[dict[str, Any]]:
        """A list of mappings that all have the same keys."""
        count, keys = self.number("I"), self.texts()
        # Every cell has a byte at least; a list of empty mappings is not stored like this.
        if count * max(len(keys), 1) > self.left:
            raise Corrupt(
                f"a json leaf with {count} rows of {len(keys)} cells in {self.left} bytes"
            )
        return [{key: self.cell() for key in keys} for _ in range(count)]

    def cell(self) -> Any:
        tag = self.number("B")
        read = _CELLS.get(tag)
        if read is None:
            raise Corrupt(f"a json leaf with the unknown cell tag {tag}")
        return read(self)


def _null(cursor: _Cursor) -> None:
    """Nothing is stored."""


def _bool(cursor: _Cursor) -> bool:
    return bool(cursor.number("B"))


def _integer(cursor: _Cursor) -> int:
    return int(cursor.number("q"))


def _float(cursor: _Cursor) -> float:
    return float(cursor.number("d"))


_MAPPING = 5
_VALUES: dict[int, Callable[[_Cursor], Any]] = {
    0: lambda cursor: parse(cursor.text()),
    1: _Cursor.texts,
    2: lambda cursor: cursor.numbers("q"),
    3: lambda cursor: cursor.numbers("d"),
    4: lambda cursor: cursor.numbers("?"),
    6: _Cursor.rows,
    7: _Cursor.text,
    8: _integer,
    9: _float,
    10: _bool,
    11: _null,
}
_CELLS: dict[int, Callable[[_Cursor], Any]] = {
    0x10: _null,
    0x11: _Cursor.text,
    0x12: _integer,
    0x13: _float,
    0x14: _bool,
}
