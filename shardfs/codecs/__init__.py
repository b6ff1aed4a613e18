"""Compressed blobs as plain ones, decompressed as far as they are read.

A codec is one file here and one row in the registry: a ``Codec`` that opens streams. ``Inflated`` makes a blob of one
in memory, ``Unpacked`` one of any length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shardfs.blob import Blob


class Stream(Protocol):
    """Decompressed bytes in order."""

    def readinto1(self, target: memoryview, /) -> int:
        """Fill the beginning of *target*, as far as one step of decompression goes; 0 at the end.

        What damage leaves readable is handed out before the damage is raised.
        """
        ...


class Codec(Protocol):
    """A compression."""

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        """What its streams raise on damaged data, beside Corrupt."""
        ...

    def stream(self, blob: Blob, /) -> Stream: ...

    def content_size(self, blob: Blob, /) -> int | None:
        """What the first part of the compressed data says it holds in bytes; None where it does not say."""
        ...
