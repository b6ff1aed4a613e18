"""A request that goes on as long as reading does: for where requests, or connections, are few."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from shardfs.cache.kept import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.cache.blocks import Claims, Table
    from shardfs.cache.readahead import Cursor

# How much one request asks for at most: so many times what was read before, and so many bytes, since others may be
# waiting for the connection. At 100 MB/s these take 1.3 seconds.
_TIMES, _MOST = 8, 128 << 20
# Seconds that a connection is held for a reader who is slower than it, as dropping it costs what is on its way; and
# those after which it is seen that others wait for it.
_PATIENCE, _GLANCE = 0.5, 0.02


class Flow:
    """Brings the blocks that *cursor* comes to, as many as are *wanted* ahead of it, in bytes.

    Readers claim blocks for it, on which they then wait; a thread that does ``run`` brings them.
    """

    def __init__(
        self, table: Table, cursor: Cursor, wanted: Callable[[], int], claims: Claims, first: int
    ) -> None:
        """Begin with *claims*, and go on with the block *first*."""
        self._table, self._cursor, self._wanted = table, cursor, wanted
        self._claims, self._next = claims, first
        self._is_under_way = self._is_over = False
        self._more = threading.Condition()

    def run(self) -> None:
        """Bring blocks as long as there are any to bring, as soon as there is a slot."""
        with self._table.slots:
            self._run()

    def _run(self) -> None:
        try:
            self._is_under_way = True
            self.extend()
            while self._claims or not self._end():
                self._table.fetch(self._claims, self)
        finally:
            self._is_over, self._cursor.flow = True, None

    def extend(self) -> None:
        """Claim what is to be ahead of the reader now; not while others wait for their turn after this."""
        table, cursor = self._table, self._cursor
        stop = min((cursor.at + self._wanted()) // BLOCK, table.count)
        with self._more:
            while self._next < stop and not (self._is_over or self._must_end()):
                if table.is_there(self._next):
                    if self._claims:  # a request can't leave it out
                        break
                    self._next += 1
                    continue
                _, mine = table.claim([self._next])
                self._claims |= mine
                self._next += len(mine)
            cursor.asked = max(cursor.asked, self._next * BLOCK)
            self._more.notify_all()

    def reach(self, first: int) -> int:
        """The block behind the last that a request from *first* on asks for."""
        return first + max(min(_TIMES * self._cursor.run, _MOST) // BLOCK, 1)

    def go_on(self, number: int) -> bool:
        """Whether *number*, behind the last block that was claimed, is claimed after all, or soon."""
        for _ in range(int(_PATIENCE / _GLANCE)):
            if number in self._claims:
                return True
            if number >= self._table.count or self._must_end():
                return False
            self.extend()
            with self._more:
                if self._table.is_there(number) or self._more.wait_for(
                    lambda: number in self._claims, _GLANCE
                ):
                    break
        return number in self._claims

    def _must_end(self) -> bool:
        return self._is_under_way and self._table.waiting > 0

    def _end(self) -> bool:
        """Claim nothing any more, if nothing is claimed."""
        with self._more:
            self._is_over = not self._claims
            return self._is_over
