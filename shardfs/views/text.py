"""Numbers and truth values as files: their shortest text, and a newline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import Bytes, read_all
from shardfs.model import Field, File, Scalar
from shardfs.numbers import scalar_text

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTENSION = ".txt"

# bytes of the widest number, complex128
_WIDEST = 16


def present(field: Field, /) -> Sequence[File] | None:
    """A `.txt` of one line; None where the type is unknown or the bytes are not one value of it."""
    if not isinstance(field.kind, Scalar) or field.data.size() > _WIDEST:
        return None
    text = scalar_text(field.kind.dtype, read_all(field.data))
    return None if text is None else (File(field.name, EXTENSION, Bytes(f"{text}\n".encode())),)
