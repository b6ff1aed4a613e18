"""A blob with a checksum over all of it."""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from shardfs.blob import Blob

# How much is read once more, or at once, to complete a check: what readers that go forward leave out when requests
# overtake each other; a whole small file. A guess, a few milliseconds of work.
_GAP = 4 << 20
_STEP = 1 << 20


class Checked:
    """Another blob, with the CRC-32 that its bytes must have.

    It is checked where the blob was read from the beginning to the end, and where that costs little more: then the
    end is handed out only if it is right.
    """

    __slots__ = ("_blob", "_crc", "_done", "_expected", "_lock")

    def __init__(self, blob: Blob, crc: int) -> None:
        self._blob, self._expected = blob, crc
        self._done, self._crc = 0, 0
        self._lock = threading.Lock()

    def size(self) -> int:
        return self._blob.size()

    def read(self, offset: int, length: int, /) -> memoryview:
        data = self._blob.read(offset, length)
        stop = offset + len(data)
        with self._lock:
            if offset <= self._done < stop:
                self._take(data[self._done - offset :])
            if data and stop == self._blob.size():
                self._check(stop)
        return data

    def _take(self, data: memoryview) -> None:
        self._crc, self._done = zlib.crc32(data, self._crc), self._done + len(data)

    def _check(self, size: int) -> None:
        if size - self._done > _GAP:
            return
        while self._done < size:
            self._take(self._blob.read(self._done, _STEP))
        if self._crc != self._expected:
            raise Corrupt(f"has a CRC-32 of {self._crc:08x}, but should have {self._expected:08x}")
