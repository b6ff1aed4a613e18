"""What the encodings of MDS columns store.

The encodings are those of ``streaming/base/format/mds/encodings.py`` of mosaicml-streaming 0.1.1 to 0.14.0.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt
from shardfs.formats.shared.offsets import item_spans, read_u32
from shardfs.model import Array, Encoded, Items, Kind, Pixels, Plain, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

    Reader = Callable[[Blob], Kind]
    """What a stored value is, by a look at its first bytes at most."""

OPAQUE = Plain(".bin")
"""Encodings that nobody knows, and values that contradict their encoding."""

_PLAIN: dict[str, Kind] = {
    "bytes": Encoded(),
    "str": Plain(".txt"),
    "str_int": Plain(".txt"),
    "str_float": Plain(".txt"),
    "str_decimal": Plain(".txt"),
    "pil": Pixels(),
    "jpeg": Encoded(".jpg"),
    "png": Encoded(".png"),
    "json": Plain(".json"),
    "pkl": Plain(".pkl"),
}

_WORD = 4

# kind of the items, and the offset of their number: version 0.12 put a zero word before the lists that it added
_LISTS: dict[str, tuple[Kind, int]] = {
    "jpeg_array": (Encoded(".jpg"), 0),
    "jpegarray": (Encoded(".jpg"), 0),
    "list[jpeg]": (Encoded(".jpg"), _WORD),
    "list[png]": (Encoded(".png"), _WORD),
    "list[pil]": (Pixels(), _WORD),
}


class _Number(NamedTuple):
    dtype: str
    width: int  # bytes


_NUMBERS = {
    "uint8": _Number("|u1", 1),
    "int8": _Number("|i1", 1),
    "uint16": _Number("<u2", 2),
    "int16": _Number("<i2", 2),
    "float16": _Number("<f2", 2),
    "uint32": _Number("<u4", 4),
    "int32": _Number("<i4", 4),
    "float32": _Number("<f4", 4),
    "uint64": _Number("<u8", 8),
    "int64": _Number("<i8", 8),
    "float64": _Number("<f8", 8),
}
_SCALARS = {**_NUMBERS, "int": _NUMBERS["int64"]}

# what an `ndarray` value without a declared dtype begins with
_DTYPE_CODES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    18: "float16",
    32: "uint32",
    33: "int32",
    34: "float32",
    64: "uint64",
    65: "int64",
    66: "float64",
}

# dtype code, shape info, and at most 63 dimensions of 8 bytes
_ARRAY_HEAD = 2 + 63 * 8
# More digits than any size that fits its value; int() of a text without a bound takes quadratic time.
_DIMENSION_DIGITS = 20


def reader(encoding: str) -> Reader:
    """How the values of a column with that encoding are to be understood."""
    if encoding in _PLAIN:
        return partial(_same, _PLAIN[encoding])
    if encoding in _SCALARS:
        return partial(_scalar, _SCALARS[encoding])
    if encoding in _LISTS:
        return partial(_items, *_LISTS[encoding])
    match encoding.split(":"):
        case ["ndarray"]:
            return partial(_array, None, None)
        case ["ndarray", name] if name in _NUMBERS:
            return partial(_array, _NUMBERS[name], None)
        case ["ndarray", name, dims] if name in _NUMBERS and (shape := _shape(dims)):
            return partial(_array, _NUMBERS[name], shape)
    return partial(_same, OPAQUE)


def array_kind(
    head: bytes | memoryview, size: int, number: _Number | None, shape: tuple[int, ...] | None
) -> Kind:
    """What an `ndarray` value of *size* bytes that begins with *head* is; ``OPAQUE`` where its header lies.

    The header is ``[u8 dtype] [u8 ndim << 2 | w] [dims of 1 << w bytes]``; it lacks the dtype where the column
    names it (*number*), and the rest where the column names the *shape*, too.
    """
    skip = 0
    if number is None:
        number = _NUMBERS.get(_DTYPE_CODES.get(head[0], "") if head else "")
        skip = 1
    if number is None:
        return OPAQUE
    if shape is None:
        if len(head) <= skip:
            return OPAQUE
        ndim, width = head[skip] >> 2, 1 << (head[skip] & 3)
        begin, skip = skip + 1, skip + 1 + ndim * width
        if len(head) < skip:
            return OPAQUE
        shape = tuple(
            int.from_bytes(head[at : at + width], "little") for at in range(begin, skip, width)
        )
    if skip + number.width * prod(shape) != size:
        return OPAQUE
    return Array(number.dtype, shape, skip)


def _same(kind: Kind, value: Blob) -> Kind:
    return kind


def _scalar(number: _Number, value: Blob) -> Kind:
    return Scalar(number.dtype) if value.size() == number.width else OPAQUE


def _items(kind: Kind, skip: int, value: Blob) -> Kind:
    try:
        if skip and read_u32(value, 0, "the beginning of a list"):
            return OPAQUE
        return Items(kind, item_spans(value, skip))
    except Corrupt:
        return OPAQUE


def _array(number: _Number | None, shape: tuple[int, ...] | None, value: Blob) -> Kind:
    return array_kind(value.read(0, _ARRAY_HEAD), value.size(), number, shape)


def _shape(text: str) -> tuple[int, ...] | None:
    """The shape in `ndarray:float32:2,3`, None where it is none."""
    sizes = text.split(",")
    if all(size.isascii() and size.isdigit() and len(size) <= _DIMENSION_DIGITS for size in sizes):
        return tuple(map(int, sizes))
    return None
