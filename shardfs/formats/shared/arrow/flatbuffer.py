"""FlatBuffers messages read in place, every offset checked: https://flatbuffers.dev/internals/."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

_U32 = 4
# How often everything in a message may be told.
_MOST_TIMES = 16


class Budget:
    """How many bytes of texts and of vectors of tables may still be looked at in a message.

    Offsets may lead to one thing many times, so that a few bytes could tell without end. Writers hardly do that.
    """

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = _MOST_TIMES * length

    def spend(self, count: int) -> None:
        """Look at *count* bytes. Raises Corrupt."""
        self._left -= count
        if self._left < 0:
            raise Corrupt("a FlatBuffers message that tells the same over and over")


class Table:
    """A table of a message. Its fields are known by their positions in the schema."""

    __slots__ = ("_at", "_budget", "_data", "_slots", "_vtable")

    def __init__(self, data: memoryview, at: int, budget: Budget) -> None:
        self._data, self._at, self._budget = data, at, budget
        self._vtable = at - self._number("i", at)
        self._slots = self._number("H", self._vtable) // 2 - 2

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """The table that a message is."""
        if len(data) < _U32:
            raise Corrupt("a FlatBuffers message without a table")
        return cls(data, int.from_bytes(data[:_U32], "little"), Budget(len(data)))

    def place(self, field: int) -> int:
        """Where a field lies in the message; 0 where it has its default."""
        return self._find(field)

    def number(self, field: int, code: str, default: int = 0) -> int:
        """A number of the ``struct`` type *code*."""
        at = self._find(field)
        return self._number(code, at) if at else default

    def table(self, field: int) -> Table | None:
        at = self._find(field)
        return Table(self._data, self._follow(at), self._budget) if at else None

    def text(self, field: int) -> str:
        """A text; bytes in it that are no UTF-8 stand as surrogate escapes."""
        at = self._find(field)
        if not at:
            return ""
        begin, count = self._vector(at, 1)
        self._budget.spend(count)
        return str(self._data[begin : begin + count], "utf-8", "surrogateescape")

    def tables(self, field: int) -> list[Table]:
        at = self._find(field)
        if not at:
            return []
        begin, count = self._vector(at, _U32)
        self._budget.spend(count * _U32)
        places = range(begin, begin + count * _U32, _U32)
        return [Table(self._data, self._follow(place), self._budget) for place in places]

    def structs(self, field: int, form: struct.Struct) -> Sequence[tuple[Any, ...]]:
        """A vector of structs of *form*, read when they are looked at."""
        at = self._find(field)
        if not at:
            return ()
        begin, count = self._vector(at, form.size)
        return Structs(self._data[begin : begin + count * form.size], form)

    def numbers(self, field: int, code: str) -> tuple[int, ...]:
        """A vector of numbers of the ``struct`` type *code*."""
        return tuple(number for (number,) in self.structs(field, struct.Struct(f"<{code}")))

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


class Structs(Sequence[tuple[Any, ...]]):
    """A vector of structs of one form, read when they are looked at: an index may hold very many."""

    __slots__ = ("_data", "_form")

    def __init__(self, data: memoryview, form: struct.Struct) -> None:
        self._data, self._form = data, form

    def __len__(self) -> int:
        return len(self._data) // self._form.size

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Any, ...]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._form.unpack_from(self._data, index % len(self) * self._form.size)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._form.iter_unpack(self._data)
