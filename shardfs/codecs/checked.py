"""A blob with a checksum over all of it."""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING

from shardfs.blob import may_wait, read_exactly
from shardfs.codecs._crc import joined
from shardfs.errors import Corrupt, WouldBlock, located

if TYPE_CHECKING:
    from shardfs.blob import Blob

# How much is read once more, or at once, to complete a check: a whole small file. A guess, a few ms of work.
_GAP = 4 << 20
# How many requests may run ahead of another: more than the kernel's are under way at a time.
_AHEAD = 64
_STEP = 1 << 20


class Checked:
    """Another blob, with the CRC-32 that its bytes must have.

    It is checked where the blob was read from the beginning to the end, and where that costs little more: then the
    end is handed out only if it is right.
    """

    __slots__ = ("_ahead", "_blob", "_crc", "_done", "_expected", "_lock", "_place")

    def __init__(self, blob: Blob, crc: int, place: str) -> None:
        """*place* is put in front of what is wrong."""
        self._blob, self._expected, self._place = blob, crc, place
        self._done, self._crc = 0, 0
        self._ahead: dict[int, tuple[int, int]] = {}
        """Length and CRC of what was read behind a gap, by its offset: the bytes themselves would take memory."""
        self._lock = threading.Lock()

    def size(self) -> int:
        return self._blob.size()

    def read(self, offset: int, length: int, /) -> memoryview:
        with located(self._place):
            data = self._blob.read(offset, length)
            start = max(offset, 0)
            stop = start + len(data)
            if not self._lock.acquire(blocking=may_wait()):
                raise WouldBlock  # somebody reads what is missing
            try:
                self._note(start, data)
                if data and stop == self._blob.size():
                    self._check(stop)
            finally:
                self._lock.release()
        return data

    def _note(self, start: int, data: memoryview) -> None:
        """Take data into account, now or when what lies before them was read, too."""
        if start > self._done:
            self._ahead[start] = len(data), zlib.crc32(data)
            if len(self._ahead) > _AHEAD:
                del self._ahead[max(self._ahead)]
            return
        self._take(start, data)
        while self._ahead and (first := min(self._ahead)) <= self._done:
            length, crc = self._ahead.pop(first)
            if first == self._done:
                self._crc, self._done = joined(self._crc, crc, length), self._done + length

    def _take(self, start: int, data: memoryview) -> None:
        new = data[self._done - start :]
        self._crc, self._done = zlib.crc32(new, self._crc), self._done + len(new)

    def _check(self, size: int) -> None:
        if size - self._done > _GAP:
            return
        while self._done < size:
            length = min(_STEP, size - self._done)
            self._take(self._done, read_exactly(self._blob, self._done, length, "content"))
        if self._crc != self._expected:
            raise Corrupt(f"has a CRC-32 of {self._crc:08x}, but should have {self._expected:08x}")
