"""What the leaf types of LitData store.

The names are those in ``data_format`` of an index; the types are the serializers of
``litdata/streaming/serializers.py``, the numbers of dtypes those of ``litdata/constants.py``, 0.2.0 to 0.2.76.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt
from shardfs.formats.litdata.json_leaf import render
from shardfs.formats.shared.offsets import item_spans
from shardfs.model import Array, Encoded, Items, Kind, Pixels, Plain, Rendered, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shardfs.blob import Blob

OPAQUE = Plain(".bin")
"""Types that nobody knows (users may register their own), and leaves that contradict their type."""


@dataclass(frozen=True, slots=True)
class LeafType:
    """What a leaf is: *declared* without a look at it, *read* from its size and first bytes where these decide."""

    declared: Kind
    read: Callable[[Blob], Kind] | None = None

    def kind(self, leaf: Blob) -> Kind:
        return self.declared if self.read is None else self.read(leaf)


# --- arrays ------------------------------------------------------------------------------------------------

_NUMPY = {
    **{0: "|i1", 1: "<i2", 2: "<i4", 3: "<i8", 4: "|u1", 5: "<u2", 6: "<u4", 7: "<u8"},
    **{8: "<f2", 9: "<f4", 10: "<f8", 11: "<c8", 12: "<c16", 13: "|b1"},  # then objects and text
}
# Until about 0.2.17 the list came from numpy 1, which has a long double at 11.
_OLD_NUMPY = {11: "<f16", 12: "<c8", 13: "<c16"}
_TORCH = {
    **{0: "<f4", 1: "<f4", 2: "<f8", 3: "<f8", 4: "<c8", 5: "<c8", 6: "<c16", 7: "<c16"},
    **{8: "<f2", 9: "<f2", 10: "bfloat16", 11: "|u1", 12: "|i1", 13: "<i2", 14: "<i2"},
    **{15: "<i4", 16: "<i4", 17: "<i8", 18: "<i8", 19: "|b1", 20: "<u2"},
}
# What numpy and torch allow.
_MAX_RANK = 64
_HEAD = 8


def width(dtype: str) -> int:
    """Bytes of an element."""
    return int(dtype[2:]) if dtype[2:].isdecimal() else 2  # bfloat16


def _array(leaf: Blob, *, orders: str, tables: tuple[Mapping[int, str], ...]) -> Kind:
    """An array behind a header ``u32 code | u32 rank | u32 shape[rank]``.

    Neither the byte order of the header (tensors: big-endian since 0.2.57) nor the age of the codes is
    stored; what comes to exactly the size of the leaf is right.
    """
    size = leaf.size()
    for order in orders:
        head = leaf.read(0, _HEAD)
        if len(head) < _HEAD:
            break
        code, rank = struct.unpack(f"{order}II", head)
        skip = _HEAD + 4 * rank
        if rank > _MAX_RANK or skip > size:
            continue
        shape = struct.unpack(f"{order}{rank}I", leaf.read(_HEAD, 4 * rank))
        for table in tables:
            dtype = table.get(code)
            if dtype is not None and skip + width(dtype) * prod(shape) == size:
                return Array(dtype, shape, skip)
    return OPAQUE


def _vector(leaf: Blob, *, dtype: str) -> Kind:
    """An array of one dimension, of which only the elements are stored."""
    count, rest = divmod(leaf.size(), width(dtype))
    return OPAQUE if rest else Array(dtype, (count,))


def _jpegs(leaf: Blob) -> Kind:
    try:
        return Items(Encoded(".jpg"), item_spans(leaf))
    except Corrupt:
        return OPAQUE


# --- the table of types ------------------------------------------------------------------------------------

_PICKLE = Plain(".pkl")
_TIFF = Encoded(".tif")
_NPY = Plain(".npy")
"""Arrays before a look at them."""

_TYPES: dict[str, LeafType] = {
    "str": LeafType(Plain(".txt")),
    "text": LeafType(Plain(".txt")),
    "bool": LeafType(Scalar("|b1")),
    "int": LeafType(Scalar("<i8")),
    "float": LeafType(Scalar("<f8")),
    "bytes": LeafType(Encoded()),
    "jpeg": LeafType(Encoded(".jpg")),
    "jpeg_array": LeafType(Encoded(".jpg"), _jpegs),
    "pil": LeafType(Pixels()),
    "tif": LeafType(_TIFF),
    "tiff": LeafType(_TIFF),
    "tifffile": LeafType(_TIFF),
    "pdf": LeafType(Encoded(".pdf")),
    "numpy": LeafType(_NPY, partial(_array, orders="<", tables=(_NUMPY, _OLD_NUMPY))),
    "tensor": LeafType(_NPY, partial(_array, orders="<>", tables=(_TORCH,))),
    "json": LeafType(Rendered(".json", render, "json")),
    "graph": LeafType(OPAQUE),
    "graph:pickle": LeafType(_PICKLE),
    "pickle": LeafType(_PICKLE),
}
_MEDIA = ("image", "audio", "video", "file", "mesh", "nifti")
_VECTORS = {"no_header_numpy": _NUMPY, "no_header_tensor": _TORCH}
# A suffix becomes a part of file names, so it is only believed where it looks like one.
_SUFFIX = re.compile(r"[A-Za-z0-9]{1,16}(\.[A-Za-z0-9]{1,16})?")


def leaf_type(name: str) -> LeafType:
    """What the type *name* of a ``data_format`` stands for."""
    known = _TYPES.get(name)
    if known is not None:
        return known
    base, _, suffix = name.partition(":")
    if base in _MEDIA:
        return LeafType(Encoded(_extension(base, suffix)))
    dtype = _VECTORS.get(base, {}).get(int(suffix) if suffix.isdecimal() else -1)
    if dtype is not None:
        return LeafType(_NPY, partial(_vector, dtype=dtype))
    return LeafType(OPAQUE)


def _extension(base: str, suffix: str) -> str:
    if (base, suffix) == ("nifti", "gz"):
        return ".nii.gz"
    return f".{suffix.lower()}" if _SUFFIX.fullmatch(suffix) else ""
