"""Where reading goes on one byte after another, and how far ahead of it to fetch."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

# Steps of this many bytes forward still count as going on, so that a walk over the headers of an archive does.
_NEAR = 1 << 20
# The shortest way, in reads and bytes, that shows a direction: a small record is no more than that.
_READS, _RUN = 3, 256 << 10
# What is fetched ahead until that much was read; then half as much as was read, and behind that as much again.
_FIRST, _SHORT_RUN, _LONG_RUN = 384 << 10, 2 << 20, 8 << 20
_MOST = 64 << 20
# Places in one file that are read at a time: a table and the records that it tells of, several readers.
_CURSORS = 4
# Who has not read for so long (seconds) leaves its share to the others.
_IDLE = 10.0


@dataclass(slots=True, eq=False)
class Cursor:
    """A place where reading goes on.

    Attributes:
        at: the end of what was read last.
        run: bytes that were gone over one after another up to there.
        reads: how many reads that were.
        asked: the end of what was fetched ahead.
    """

    at: int
    run: int = 0
    reads: int = 0
    asked: int = 0

    def wanted(self) -> int:
        """How many bytes to have ahead of it."""
        if self.reads < _READS or self.run < _RUN:
            return 0
        if self.run < _SHORT_RUN:
            return _FIRST
        return min(self.run // 2 if self.run < _LONG_RUN else self.run, _MOST)


class Cursors:
    """The places in one file where reading goes on."""

    def __init__(self) -> None:
        self._cursors: list[Cursor] = []
        self._lock = threading.Lock()

    def move(self, start: int, stop: int) -> Cursor:
        """The cursor that has come to *stop* by a read from *start*; a new one where none was near."""
        with self._lock:
            for cursor in reversed(self._cursors):
                if start <= cursor.at + _NEAR and stop >= cursor.at - _NEAR:
                    self._cursors.remove(cursor)
                    break
            else:
                cursor = Cursor(start)
            self._cursors = [*self._cursors[1 - _CURSORS :], cursor]
            if stop > cursor.at:
                cursor.run += stop - cursor.at
                cursor.reads += 1
                cursor.at = stop
            return cursor


class Shares:
    """How far ahead all files together may be fetched."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._seen: dict[int, float] = {}
        self._lock = threading.Lock()

    def of(self, reader: object) -> int:
        """The bytes that *reader* may be ahead, as one of those that are reading now."""
        now = time.monotonic()
        with self._lock:
            self._seen[id(reader)] = now
            self._seen = {key: at for key, at in self._seen.items() if now - at < _IDLE}
            return self._total // len(self._seen)
