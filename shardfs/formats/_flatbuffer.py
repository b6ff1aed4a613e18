"""FlatBuffers messages read in place, every offset checked: https://flatbuffers.dev/internals/."""

from __future__ import annotations

import struct
from typing import Any

from shardfs.errors import Corrupt

_U32 = 4


class Table:
    """A table of a message. Its fields are known by their positions in the schema."""

    __slots__ = ("_at", "_data", "_slots", "_vtable")

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._number("i", at)
        self._slots = self._number("H", self._vtable) // 2 - 2

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """The table that a message is."""
        if len(data) < _U32:
            raise Corrupt("a FlatBuffers message without a table")
        return cls(data, int.from_bytes(data[:_U32], "little"))

    def number(self, field: int, code: str, default: int = 0) -> int:
        """A number of the ``struct`` type *code*."""
        at = self._find(field)
        return self._number(code, at) if at else default

    def table(self, field: int) -> Table | None:
        at = self._find(field)
        return Table(self._data, self._follow(at)) if at else None

    def text(self, field: int) -> str:
        at = self._find(field)
        if not at:
            return ""
        begin, count = self._vector(at, 1)
        try:
            return str(self._data[begin : begin + count], "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt(f"a FlatBuffers text that is no UTF-8 ({error})") from error

    def tables(self, field: int) -> list[Table]:
        at = self._find(field)
        if not at:
            return []
        begin, count = self._vector(at, _U32)
        places = range(begin, begin + count * _U32, _U32)
        return [Table(self._data, self._follow(place)) for place in places]

    def structs(self, field: int, form: struct.Struct) -> list[tuple[Any, ...]]:
        """A vector of structs of *form*."""
        at = self._find(field)
        if not at:
            return []
        begin, count = self._vector(at, form.size)
        return list(form.iter_unpack(self._data[begin : begin + count * form.size]))

    def _find(self, field: int) -> int:
        """Where a field lies; 0 where it has its default."""
        if field >= self._slots:
            return 0
        offset = self._number("H", self._vtable + 4 + 2 * field)
        return self._at + offset if offset else 0

    def _follow(self, at: int) -> int:
        return at + self._number("I", at)

    def _vector(self, at: int, width: int) -> tuple[int, int]:
        """(where the elements begin, their number)."""
        begin = self._follow(at) + _U32
        count = self._number("I", begin - _U32)
        if begin + count * width > len(self._data):
            raise Corrupt(f"a FlatBuffers vector of {count} elements ends outside of its message")
        return begin, count

    def _number(self, code: str, at: int) -> int:
        if not 0 <= at <= len(self._data):
            raise Corrupt("a FlatBuffers offset that leads outside of its message")
        try:
            return int(struct.unpack_from(f"<{code}", self._data, at)[0])
        except struct.error as error:
            raise Corrupt("a FlatBuffers message that ends too early") from error
