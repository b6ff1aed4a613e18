"""Remote files as blobs: fetched as far as they are read.

What is missing is fetched with its neighbours, if that makes a request more worth while; long runs are divided among
several connections; where reading goes on one byte after another, so does fetching, ahead of it. One file never takes
all connections, so that a stalled one does not hold up the others.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from shardfs.blob import Stored, clip, may_wait
from shardfs.cache.blocks import Block, Claims, Counter, File, Keep, Table, runs, unexpected
from shardfs.cache.flow import Flow
from shardfs.cache.kept import BLOCK
from shardfs.errors import ShardfsError, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from shardfs.cache.readahead import Cursor, Shares
    from shardfs.cache.workers import Workers
    from shardfs.stores import RemoteBlob

# The fewest blocks that are worth a connection of their own, and the most that are on their way on all of them
# together: 1 and 32 MiB. Guesses: at 100 MB/s, 5 MB are on their way during a round trip of 50 ms.
_FEW, _MANY = 8, 256
# The parts that what is ahead is fetched in: each takes several round trips, and the others are on their way while one
# is read. Of 2 to 14 it was the fastest on 2 processors.
_PARTS = 4
# Bytes that are fetched ahead by the same request as what is read.
_ALONG = 512 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What all remote files of a mount share.

    Attributes:
        keep: where their blocks are kept.
        workers: fetch what need not be fetched by who reads.
        shares: how far ahead may be read.
        connections: how many requests go to one host at a time.
    """

    keep: Keep
    workers: Workers
    shares: Shares
    connections: int


class CachedBlob(Stored):
    """A remote file of which what was read is at hand."""

    is_far = True

    def __init__(self, table: Table, means: Means) -> None:
        self._table, self._means = table, means
        self._cursors = table.cursors

    def size(self) -> int:
        return self._table.file.size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._table.file.size)
        if start == stop:
            return memoryview(b"")
        first, end = start // BLOCK, -(-stop // BLOCK)
        blocks = {number: self._table.at_hand(number) for number in range(first, end)}
        missing = [number for number, block in blocks.items() if block is None]
        if missing and not may_wait():
            raise WouldBlock
        cursor = self._cursors.move(start, stop)
        ahead = self._wanted(cursor)
        if missing and cursor.flow is not None:
            cursor.flow.extend()
        coming = self._bring(missing, cursor, ahead) if missing else {}
        self._look_ahead(cursor, ahead)
        for number, future in coming.items():
            blocks[number] = _result(future)
        pieces = [block.data for block in blocks.values() if block is not None]
        pieces[-1] = pieces[-1][: stop - (end - 1) * BLOCK]
        pieces[0] = pieces[0][start - first * BLOCK :]
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))

    def expect(self, spans: Iterable[tuple[int, int]], /) -> None:
        """Have the parts (offset, length) come, and nothing beside them. Waits only where no worker is free."""
        table = self._table
        # Where requests are scarce, each read has to bring more than it knows of.
        if self._means.keep.offline or table.file.least > _ALONG or not may_wait():
            return
        wanted = (number for span in spans for number in self._missing(*span))
        _, mine = table.claim(set(islice(wanted, _MANY)))
        self._send_for(mine)

    def _missing(self, offset: int, length: int) -> Iterator[int]:
        """The missing blocks of a part; if there are any and reading goes on in order, also those that come along."""
        start, stop = clip(offset, length, self._table.file.size)
        numbers = range(start // BLOCK, -(-stop // BLOCK) if start < stop else 0)
        missing = [number for number in numbers[:_MANY] if not self._table.is_there(number)]
        yield from missing
        cursor = self._cursors.near(start, stop) if missing else None
        if cursor is not None:
            along = min(self._wanted(cursor), _ALONG) // BLOCK
            yield from self._neighbours(missing, len(missing) + along)

    def _wanted(self, cursor: Cursor) -> int:
        """How many bytes to have ahead of *cursor*."""
        wanted = cursor.wanted()
        if not wanted or self._means.keep.offline:
            return 0
        return min(wanted, self._means.shares.of(self._table))

    def _bring(self, numbers: Sequence[int], cursor: Cursor, ahead: int) -> Claims:
        """Have the blocks *numbers* come, and neighbours that make it worth a request or are to come anyway."""
        table = self._table
        coming, mine = table.claim(numbers)
        more: Claims = {}
        try:
            table.take_from_disk(mine)
            if mine and ahead and self._is_thrifty():
                is_flowing = self._flow(cursor, mine, max(mine) + 1)
                mine = {} if is_flowing else mine
            elif mine and not self._means.keep.offline:
                most = max(table.file.least, len(mine) * BLOCK + min(ahead, _ALONG))
                _, more = table.claim(self._neighbours(list(mine), -(-most // BLOCK)))
                cursor.asked = max(cursor.asked, (max((*mine, *more)) + 1) * BLOCK)
            self._send_for({**mine, **more})
        except BaseException as error:  # nobody must wait for what nobody brings
            table.give_up({**mine, **more}, unexpected(table.file.name, error))
            raise
        return coming

    def _is_thrifty(self) -> bool:
        """Whether reading in order is worth a request that goes on with it rather than several at a time."""
        return self._table.share == 1 or self._table.file.least > _ALONG

    def _flow(self, cursor: Cursor, claims: Claims, first: int) -> bool:
        """Have *claims* come, and the blocks from *first* on, by a request that goes on as long as reading does.

        Whether there was a worker for it, and none doing so already.
        """
        if cursor.flow is not None:
            return False
        wanted = partial(self._wanted, cursor)
        cursor.flow = flow = Flow(self._table, cursor, wanted, claims, first)
        if self._means.workers.offer(flow.run):
            return True
        cursor.flow = None
        return False

    def _send_for(self, claims: Claims) -> None:
        """Have claimed blocks come: by workers, as far as any are free."""
        table = self._table
        try:
            for piece in self._pieces(claims):
                if not self._hand_over(partial(table.fetch, piece)):
                    table.fetch_in_turn(piece)
        except BaseException as error:  # as in _bring
            table.give_up(claims, unexpected(table.file.name, error))
            raise

    def _neighbours(self, numbers: Sequence[int], most: int) -> list[int]:
        """Missing blocks behind the last of *numbers*, or before the first at the end of the file: *most* with them."""
        table, wanted = self._table, most - len(numbers)
        found: list[int] = []
        for way in (range(numbers[-1] + 1, table.count), range(numbers[0] - 1, -1, -1)):
            for number in way:
                if len(found) >= wanted or table.is_there(number):
                    break
                found.append(number)
            if numbers[-1] + 1 + len(found) < table.count:
                break
        return found

    def _pieces(self, claims: Claims) -> Iterator[Claims]:
        """Claimed blocks as they are fetched together: neighbours, long runs of them in several parts."""
        for run in runs(claims):
            each = self._piece(len(run))
            for at in range(0, len(run), each):
                yield {number: claims[number] for number in run[at : at + each]}

    def _piece(self, count: int) -> int:
        """How many of *count* blocks to fetch by one request."""
        share = self._table.share
        few = max(_FEW, -(-self._table.file.least // BLOCK))
        parts = min(max(count // few, 1), share)
        return min(max(-(-count // parts), 1), max(_MANY // share, few))

    def _hand_over(self, job: Callable[[], None]) -> bool:
        """Have a worker fetch blocks, if one is free and this file may have one more connection."""
        if not self._table.slots.acquire(blocking=False):
            return False

        def work() -> None:
            try:
                job()
            finally:
                self._table.slots.release()

        if self._means.workers.offer(work):
            return True
        self._table.slots.release()
        return False

    def _look_ahead(self, cursor: Cursor, wanted: int) -> None:
        """Have the blocks come that will be read next, if reading goes on as it did."""
        # A little is worth no request of its own: it comes along with what is read next.
        if wanted <= max(_ALONG, self._table.file.least):
            return
        stop = min(-(-(cursor.at + wanted) // BLOCK), self._table.count)
        start = min(-(-max(cursor.at, cursor.asked) // BLOCK), stop)
        if self._is_thrifty():
            if stop - start > wanted // BLOCK // 2:
                self._flow(cursor, {}, start)
            return
        each = max(wanted // BLOCK // _PARTS, _FEW)
        while stop - start >= each or (start < stop == self._table.count):
            end = min(start + each, stop)
            if not self._hand_over(partial(self._claim_and_fetch, range(start, end))):
                return
            cursor.asked = end * BLOCK
            start = end

    def _claim_and_fetch(self, numbers: Iterable[int]) -> None:
        # Claimed no sooner than there is a thread for it: others may wait for what is claimed.
        _, mine = self._table.claim(numbers)
        self._table.fetch(mine)


class Blobs:
    """All remote files of a mount, by key."""

    def __init__(self, means: Means) -> None:
        self._means = means
        # A table lives as long as a blob that uses it or a block that is in memory.
        self._tables: WeakValueDictionary[str, Table] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.counter = Counter()

    def open(
        self, key: str, size: int, source: Callable[[], RemoteBlob], *, name: str, least: int
    ) -> CachedBlob:
        """A file of *size* bytes.

        Args:
            key: names the content: the place and the version. "" for content that nothing names: it is not kept.
            source: where it comes from, asked only if it has to come.
            name: what messages call it.
            least: the fewest bytes that are worth a request.
        """
        with self._lock:
            table = self._tables.get(key) if key else None
            if table is None:
                file = File(key, size, source, name, least)
                share = max(1, self._means.connections - 1)
                table = Table(file, self._means.keep, self.counter, share)
                if key:
                    self._tables[key] = table
        return CachedBlob(table, self._means)

    def close(self) -> None:
        """Fetch nothing ahead any more."""
        self._means.workers.close()


def _result(future: Future[Block]) -> Block:
    try:
        return future.result()
    except ShardfsError as error:
        raise error.again() from None
