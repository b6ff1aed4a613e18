"""Compressed blobs as plain ones, decompressed as far as they are read.

A codec is one file here and one row in the registry: a ``Codec`` that opens streams. ``Inflated`` makes a blob of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shardfs.blob import Blob


class Stream(Protocol):
    """Decompressed bytes in order."""

    def readinto(self, target: memoryview, /) -> int:
        """Fill the beginning of *target*; 0 at the end."""
        ...


class Codec(Protocol):
    """A compression."""

    damage: tuple[type[Exception], ...]
    """What its streams raise on damaged data."""

    @staticmethod
    def stream(blob: Blob) -> Stream: ...

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """What the first part of the compressed data says it holds in bytes; None where it does not say."""
        ...
