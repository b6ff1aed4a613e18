"""Compressed blobs as plain ones, decompressed as far as they are read.

A codec is one file here and one row in the registry: a ``Codec`` that opens streams. ``Inflated`` makes a blob of one
in memory, ``Unpacked`` one of any length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shardfs.blob import Blob


def damage_of(error: Exception, done: int | None = None) -> str:
    """What a user reads of compressed data that raised *error* after *done* bytes: not the library's own words."""
    place = "" if done is None else f" after {done} bytes"
    if isinstance(error, EOFError):
        return f"ends too early, inside compressed data{place}: fetch or write the file anew"
    return f"damaged compressed data{place}: fetch or write the file anew"


class Stream(Protocol):
    """Decompressed bytes in order. After an error it is of no use any more."""

    def readinto1(self, target: memoryview, /) -> int:
        """Fill the beginning of *target*, as far as one step of decompression goes; 0 at the end.

        Whatever the size of *target*, what damage leaves readable is handed out before the damage is raised.
        """
        ...


class Codec(Protocol):
    """A compression."""

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        """What its streams raise on damaged data, beside Corrupt."""
        ...

    def stream(self, blob: Blob, most: int, /) -> Stream:
        """The content of *blob*.

        *most* is how many bytes it may look back over and hold in memory for that. It is no more than the content
        needs, whatever the data declare; where more than that would be needed, TooLarge is raised.
        """
        ...

    def content_size(self, blob: Blob, /) -> int | None:
        """What the first part of the compressed data says it holds in bytes; None where it does not say."""
        ...
