"""Where reading goes on one byte after another, and how far ahead of it to fetch."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardfs.cache.flow import Flow

# Steps of this many bytes forward still count as going on, so that a walk over the headers of an archive does: with the
# bytes that lie between, once there were so many reads.
_NEAR, _STEPS = 1 << 20, 6
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
        run: bytes that were gone over up to there.
        last: how many of them the last read went over.
        reads: how many reads that were.
        asked: the end of what was fetched ahead.
        flow: the request that goes on as long as reading does, if there is one.
    """

    at: int
    run: int = 0
    last: int = 0
    reads: int = 0
    asked: int = 0
    flow: Flow | None = None

    def wanted(self) -> int:
        """How many bytes to have ahead of it."""
        # However much the last read was: that reading goes on is known by what was before.
        run = self.run - self.last
        if self.reads < _READS or run < _RUN:
            return 0
        if run < _SHORT_RUN:
            return _FIRST
        return min(run // 2 if run < _LONG_RUN else run, _MOST)


class Cursors:
    """The places in one file where reading goes on."""

    def __init__(self) -> None:
        self._cursors: list[Cursor] = []
        self._lock = threading.Lock()

    def near(self, start: int, stop: int) -> Cursor | None:
        """The cursor that a read from *start* to *stop* would move."""
        return next(
            (
                cursor
                for cursor in reversed(self._cursors)
                if start <= cursor.at + _NEAR and stop >= cursor.at - _NEAR
            ),
            None,
        )

    def move(self, start: int, stop: int) -> Cursor:
        """The cursor that has come to *stop* by a read from *start*; a new one where none was near."""
        with self._lock:
            cursor = self.near(start, stop) or Cursor(start)
            others = [other for other in self._cursors if other is not cursor]
            self._cursors = [*others[1 - _CURSORS :], cursor]
            if stop > cursor.at:
                is_walk = cursor.reads >= _STEPS
                cursor.last = stop - (cursor.at if is_walk else max(cursor.at, start))
                cursor.run += cursor.last
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
