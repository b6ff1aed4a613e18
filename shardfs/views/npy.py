"""Arrays as `.npy`: a header before the stored elements, which are served as they lie.

What `.npy` has no name for (bfloat16, float8) is a `.safetensors`, by the same means.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, Concat, Slice
from shardfs.model import Array, Field, File

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTENSION = ".npy"

# numpy.dtype.str of all types whose elements are plain bytes: no objects (`O`), which would be pickles
_DTYPE = re.compile(r"(?:([<>|][biufcmMSV])|([<>]U))([1-9][0-9]{0,9})(?:\[\w+\])?")

# names as ml_dtypes and torch spell them: safetensors' name and the bytes of an element
_UNNAMED = {
    "bfloat16": ("BF16", 2),
    "float8_e4m3fn": ("F8_E4M3", 1),
    "float8_e5m2": ("F8_E5M2", 1),
    "float8_e8m0fnu": ("F8_E8M0", 1),
}


# as many as NumPy opens, and few enough for a header of version 1.0
_MOST_DIMENSIONS = 64


def present(field: Field, /) -> Sequence[File] | None:
    """A `.npy` or `.safetensors`; None where the bytes are not as many as type and shape ask for."""
    kind = field.kind
    if not isinstance(kind, Array):
        return None
    width, stored = _itemsize(kind.dtype), field.data.size() - kind.skip
    if not width or len(kind.shape) > _MOST_DIMENSIONS or any(size < 0 for size in kind.shape):
        return None
    if prod(kind.shape) * width != stored:
        return None
    if kind.dtype in _UNNAMED:
        extension, head = ".safetensors", safetensors_header(field.name, kind.dtype, kind.shape)
    else:
        extension, head = EXTENSION, npy_header(kind.dtype, kind.shape)
    blob = Concat([Bytes(head), Slice(field.data, kind.skip, stored)])
    return (File(field.name, extension, blob),)


def _itemsize(dtype: str) -> int:
    """Bytes of an element, 0 for an unknown type."""
    if dtype in _UNNAMED:
        return _UNNAMED[dtype][1]
    match = _DTYPE.fullmatch(dtype)
    return int(match[3]) * (4 if match[2] else 1) if match else 0


@lru_cache(maxsize=256)
def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of a .npy of version 1.0 (numpy.lib.format), a multiple of 64 bytes, for elements in C order."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(text) + 11) % 64
    length = len(text) + padding + 1
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{text}{' ' * padding}\n".encode()


@lru_cache(maxsize=256)
def safetensors_header(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of a .safetensors with one tensor, padded to a multiple of 8 bytes as the format advises."""
    known, width = _UNNAMED[dtype]
    tensor = {"dtype": known, "shape": shape, "data_offsets": (0, prod(shape) * width)}
    # the format has a meaning of its own for `__metadata__`
    text = json.dumps(
        {"data" if name in ("", "__metadata__") else name: tensor}, separators=(",", ":")
    )
    text += " " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text.encode()
