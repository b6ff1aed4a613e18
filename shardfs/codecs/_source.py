"""A blob as what decompressors of other packages read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import clip

if TYPE_CHECKING:
    from shardfs.blob import Blob

_AHEAD = 256 << 10


class Source:
    """The bytes of a blob in order, as a file object.

    Attributes:
        last: where the last part begins that was read.
    """

    closed = False  # pyarrow asks

    def __init__(self, blob: Blob, single_from: int | None = None) -> None:
        """From the offset *single_from* on, every byte is a part of its own."""
        self._blob, self._at, self._single_from = blob, 0, single_from
        self.last = 0

    def read(self, length: int) -> bytes:
        if self._single_from is not None:
            length = min(length, max(self._single_from - self._at, 1))
        data = self._blob.read(self._at, length)
        if data:
            self.last, self._at = self._at, self._at + len(data)
        return bytes(data)

    def close(self) -> None:
        """Do nothing: a blob closes itself."""


class Ahead:
    """Another blob for who reads small parts of it in order: they come from large ones. Not for two threads."""

    __slots__ = ("_blob", "_data", "_size", "_start")

    def __init__(self, blob: Blob) -> None:
        self._blob, self._size = blob, blob.size()
        self._start, self._data = 0, memoryview(b"")

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        if start < self._start or stop > self._start + len(self._data):
            self._data = self._blob.read(start, max(stop - start, _AHEAD))
            self._start = start
        return self._data[start - self._start : stop - self._start]
