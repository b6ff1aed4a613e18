"""Numbers and truth values as files: their shortest text, and a newline."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, Lazy, read_all
from shardfs.model import Field, File, Scalar
from shardfs.numbers import scalar_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob

EXTENSION = ".txt"

# bytes of the widest number, complex128
_WIDEST = 16


def present(field: Field, /) -> Sequence[File] | None:
    """A `.txt` of one line; None where the type is unknown or the bytes are not one value of it."""
    kind, data = field.kind, field.data
    if not isinstance(kind, Scalar) or data.size() > _WIDEST:
        return None
    if _any_will_do(kind.dtype, data.size()):
        return (File(field.name, EXTENSION, Lazy(partial(_read_line, kind.dtype, data))),)
    text = scalar_text(kind.dtype, read_all(data))
    return None if text is None else (File(field.name, EXTENSION, _line(text)),)


@lru_cache(maxsize=64)
def _any_will_do(dtype: str, size: int) -> bool:
    """Whether whatever *size* bytes there are is a value of *dtype*; not so of truth values."""
    return dtype[1:2] != "b" and scalar_text(dtype, bytes(size)) is not None


def _read_line(dtype: str, data: Blob) -> Bytes:
    return _line(scalar_text(dtype, read_all(data)))


def _line(text: str | None) -> Bytes:
    return Bytes(f"{text}\n".encode())
