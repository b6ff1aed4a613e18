"""Thrift's compact protocol, as much of it as the metadata of Parquet files needs.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")

I64, LIST, STRUCT = 6, 9, 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _SET, _MAP, _UUID = 1, 2, 3, 7, 8, 10, 11, 13
_INTEGERS = (4, 5, I64)
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
# How deep structs and lists may stand in one another; Parquet's own stand 7 deep.
_MAX_DEPTH = 24
# Items of lists in all, which take memory beyond their bytes: a thousand columns have some thirty thousand. A guess.
_MAX_ITEMS = 1 << 20
# Seven bits a byte: what 64 bits take.
_MAX_VARINT = 10


class Struct:
    """A struct: its fields by their numbers. Fields of types that Parquet does not use are left out."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[int, object]) -> None:
        self._fields = fields

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def numbers(self) -> Iterator[int]:
        """Which fields there are."""
        return iter(self._fields)

    def number(self, number: int, default: int | None = None) -> int:
        """An integer or truth value. Raises Corrupt where it is missing and has no *default*."""
        return self._get(number, int, default)

    def binary(self, number: int, default: bytes | None = None) -> bytes:
        return self._get(number, bytes, default)

    def struct(self, number: int) -> Struct | None:
        return self._get(number, Struct, None) if number in self._fields else None

    def structs(self, number: int) -> list[Struct]:
        """A list of structs, empty where it is missing."""
        return self._items(number, Struct)

    def binaries(self, number: int) -> list[bytes]:
        """A list of byte strings, empty where it is missing."""
        return self._items(number, bytes)

    def _get(self, number: int, kind: type[_T], default: _T | None) -> _T:
        value = self._fields.get(number, default)
        if not isinstance(value, kind):
            raise Corrupt(f"Parquet metadata in which field {number} is missing or of a wrong type")
        return value

    def _items(self, number: int, kind: type[_T]) -> list[_T]:
        items = self._get(number, list, [])
        if not all(isinstance(item, kind) for item in items):
            raise Corrupt(f"Parquet metadata in which field {number} is a list of a wrong type")
        return items


def read_struct(data: bytes, at: int = 0) -> tuple[Struct, int]:
    """The struct that begins at *at*, and where it ends. Raises Corrupt."""
    try:
        reader = _Reader(data, at)
        return reader.struct(0), reader.at
    except IndexError:
        raise Corrupt(f"Parquet metadata ends within its {len(data)} bytes") from None


def skip(data: bytes, at: int, kind: int) -> int:
    """Where the value of type *kind* ends that begins at *at*. Raises Corrupt, IndexError."""
    return _skip(data, at, kind, 0)


def list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """(count, type of the items, where the first begins) of the list at *at*. Raises Corrupt, IndexError."""
    head = data[at]
    count, kind, at = head >> 4, head & 15, at + 1
    if count == 15:
        count, at = varint(data, at)
    if count > len(data) - at:  # an item takes a byte at least
        raise Corrupt(f"Parquet metadata with a list of {count} items in {len(data) - at} bytes")
    return count, kind, at


def field_head(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """(number, type, where the value begins) of the field at *at*, which follows field number *before*.

    The type is 0 at the end of the struct. Raises Corrupt, IndexError.
    """
    head = data[at]
    number, at = before + (head >> 4), at + 1
    if 0 < head < 16:
        number, at = varint(data, at)
        number = zigzag(number)
    return number, head & 15, at


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The unsigned number at *at*, and where it ends. Raises Corrupt, IndexError."""
    value = data[at]
    if value < 128:
        return value, at + 1
    value &= 127
    for place in range(1, _MAX_VARINT):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise Corrupt("a number of more than 64 bits in Parquet metadata")


def zigzag(value: int) -> int:
    """The signed number that *value* stands for."""
    return value >> 1 ^ -(value & 1)


class _Reader:
    """Values one behind the other."""

    __slots__ = ("_data", "_items", "at")

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at, self._items = data, at, _MAX_ITEMS

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise Corrupt("Parquet metadata that is nested too deeply")
        fields: dict[int, object] = {}
        number = 0
        while True:
            number, kind, self.at = field_head(self._data, self.at, number)
            if not kind:
                return Struct(fields)
            fields[number] = kind == _TRUE if kind <= _FALSE else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> object:
        if kind in _INTEGERS:
            return zigzag(self._varint())
        if kind == _BINARY:
            length = self._varint()
            start, self.at = self.at, self.at + length
            if self.at > len(self._data):
                raise IndexError
            return self._data[start : self.at]
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, _SET):
            return self._list(depth + 1)
        self.at = skip(self._data, self.at, _BYTE if kind in (_TRUE, _FALSE) else kind)
        return None

    def _list(self, depth: int) -> list[object]:
        count, kind, self.at = list_head(self._data, self.at)
        self._items -= count
        if depth > _MAX_DEPTH or self._items < 0:
            raise Corrupt("Parquet metadata that are nested too deeply or have too many parts")
        return [self._value(kind, depth) for _ in range(count)]

    def _varint(self) -> int:
        value, self.at = varint(self._data, self.at)
        return value


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where the value ends that begins at *at*."""
    if depth > _MAX_DEPTH:
        raise Corrupt("Parquet metadata that are nested too deeply")
    if kind == STRUCT:
        return _skip_fields(data, at, depth)
    if kind in (LIST, _SET):
        return _skip_list(data, at, depth)
    if kind == _BINARY:
        length, at = varint(data, at)
        return at + length
    if kind in _INTEGERS:
        return varint(data, at)[1]
    if kind == _MAP:
        return _skip_map(data, at, depth)
    if kind not in _SIZES:
        raise Corrupt(f"a value of the unknown type {kind} in Parquet metadata")
    return at + _SIZES[kind]


def _skip_fields(data: bytes, at: int, depth: int) -> int:
    """Where the struct ends that begins at *at*. Written out, since it passes some hundred fields a row group."""
    while True:
        head = data[at]
        kind, at = head & 15, at + 1
        if not kind:
            return at
        if head < 16:
            at = varint(data, at)[1]
        if kind in _INTEGERS:
            while data[at] > 127:
                at += 1
            at += 1
        else:
            at = _skip(data, at, kind, depth + 1)


def _skip_list(data: bytes, at: int, depth: int) -> int:
    count, kind, at = list_head(data, at)
    kind = _BYTE if kind in (_TRUE, _FALSE) else kind
    for _ in range(count):
        at = _skip(data, at, kind, depth + 1)
    return at


def _skip_map(data: bytes, at: int, depth: int) -> int:
    count, at = varint(data, at)
    if not count:
        return at
    if count > len(data) - at:
        raise Corrupt(f"Parquet metadata with a map of {count} items in {len(data) - at} bytes")
    kinds, at = data[at], at + 1
    for _ in range(count):
        for kind in (kinds >> 4, kinds & 15):
            at = _skip(data, at, _BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)
    return at
