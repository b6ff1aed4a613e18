"""A blob as the file object that decompressors of other packages read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardfs.blob import Blob


class Source:
    """The bytes of a blob in order."""

    closed = False  # pyarrow asks

    def __init__(self, blob: Blob) -> None:
        self._blob, self._at = blob, 0

    def read(self, length: int) -> bytes:
        data = self._blob.read(self._at, length)
        self._at += len(data)
        return bytes(data)

    def close(self) -> None:
        """Do nothing: a blob closes itself."""
