"""A decompressed blob that is made as far as it is read."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from shardfs.blob import Blob, clip, may_wait
from shardfs.cache.disk import NoRoom
from shardfs.codecs import damage_of
from shardfs.codecs._pass import Limits
from shardfs.codecs.progress import LOOK_BACK, STEP, Given, InFile, InMemory
from shardfs.codecs.replayed import Replayed
from shardfs.errors import LASTING, Corrupt, ShardfsError, TooLarge, Unreadable, WouldBlock
from shardfs.turns import Turns

if TYPE_CHECKING:
    from shardfs.cache.memory import Memory
    from shardfs.codecs import Codec
    from shardfs.codecs.progress import Made

# Seconds to wait for memory that others work on, where there is no disk cache.
_PATIENCE = 10.0
# The smallest chunk that goes to a file when it comes back. A guess: 4 ms of zstd against 1 ms to make a file.
_WORTH_A_FILE = 4 << 20


class Inflated:
    """The decompressed bytes of another blob, held under the memory budget.

    Only the part up to the last byte that was asked for is decompressed: a reader makes what it needs and all
    others find it made, so a chunk is decompressed once however many read it, and its first record is there when
    its bytes are. After an eviction the next reader starts again.

    What is too large for the budget is made in a file of the disk cache, and so is what comes back after an eviction,
    which shows that memory can't hold all that is in use. Without a disk cache it waits for memory, and what is too
    large is decompressed from the beginning for every step back.
    """

    __slots__ = (
        "__weakref__",
        "_blob",
        "_codec",
        "_has_room",
        "_is_back",
        "_limit",
        "_lock",
        "_memory",
        "_replayed",
        "_size",
    )

    def __init__(
        self, blob: Blob, codec: Codec, size: int | None, *, memory: Memory, limit: int
    ) -> None:
        """Take *size* as the exact length of the result, or learn it by decompressing where it is None."""
        self._blob, self._codec, self._size = blob, codec, size
        self._memory, self._limit, self._lock = memory, limit, threading.Lock()
        self._is_back, self._has_room = False, True
        """Whether it was begun before, and whether there was room for it on disk when it was last tried."""
        self._replayed: Replayed | None = None

    def size(self) -> int:
        if self._size is None:
            if not may_wait():
                raise WouldBlock
            with self._lock:
                if self._size is None:
                    self._size = self._measure()
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self.size())
        if start == stop:
            return memoryview(b"")
        made = self._made()
        if made is not None and made.done >= stop:
            return made.read(start, stop)
        if not may_wait():
            raise WouldBlock
        return self._make(start, stop)

    def fill(self, content: bytes) -> None:
        """Take *content* for the whole result: it came about otherwise."""
        made = Given(memoryview(content), len(content), Turns())
        self._memory.put(self, made, len(content))

    def _made(self) -> Made | None:
        """What is made of it."""
        made: Made | None = self._memory.get(self)
        if made is None and self._memory.files is not None:
            made = self._memory.files.held.get(self)
        return made

    def _make(self, start: int, stop: int) -> memoryview:
        """Bytes of which some may have to be made first."""
        while self._replayed is None:
            begun = self._begin()
            if begun is None:
                self._replay_from_now_on()
                break
            budget, made = begun
            try:
                self._advance(budget, made, stop)
                data = made.read(start, stop)
                if isinstance(made, InFile) and self.size() <= self._memory.largest:
                    # It was begun twice already: now all of it is made, so that nobody has to begin again.
                    with suppress(ShardfsError):
                        self._advance(budget, made, self.size())
            except NoRoom:
                budget.drop(self)
                self._has_room = False
                continue
            finally:
                budget.leave(self, made, made.footprint)
            return data
        return self._replay(start, stop)

    def _begin(self) -> tuple[Memory, Made] | None:
        """What is made of it, or a new beginning, and the budget that it is used in from now on; None without any."""
        memory, files, size = self._memory, self._memory.files, self.size()
        most = size + min(LOOK_BACK, size)
        with self._lock:
            made: Made | None = memory.get(self)
            if made is not None:
                if memory.use(self, most):
                    return memory, made
                memory.drop(self)  # what it needs to go on has gone to others
            made = None if files is None else files.held.get(self)
            if files is not None and made is not None and files.held.use(self, size):
                return files.held, made
            self._check(size)
            return self._begin_anew(size, most)

    def _begin_anew(self, size: int, most: int) -> tuple[Memory, Made] | None:
        memory, files = self._memory, self._memory.files if self._has_room else None
        in_memory = partial(InMemory, self._blob, self._codec, size)
        fits = size <= memory.largest
        made: Made | None = None
        if fits and not (self._is_back and files is not None and size >= _WORTH_A_FILE):
            made = memory.enter(self, in_memory, most, _PATIENCE if files is None else 0)
            self._is_back = True
        if made is not None:
            return memory, made
        if files is not None:
            with suppress(NoRoom):
                in_file = partial(InFile, self._blob, self._codec, size, files.create(), memory)
                made = files.held.enter(self, in_file, size)
                if made is not None:
                    return files.held, made
            if fits and (made := memory.enter(self, in_memory, most, _PATIENCE)) is not None:
                return memory, made
        return None

    def _advance(self, budget: Memory, made: Made, stop: int) -> None:
        def step() -> None:
            try:
                made.step()
            except LASTING:
                if made.done < stop:  # what came before the damage can be read
                    raise
            except ShardfsError:  # another try may go better, but not in the middle of a stream
                budget.drop(self)
                raise

        made.turns.until(lambda: made.done >= stop, step)

    def _replay_from_now_on(self) -> None:
        size = self.size()
        self._memory.tell(
            f"slow: a chunk of {size} bytes needs more than --memory-limit has for it, and there is no "
            "room for it in a disk cache: every step back in it decompresses from the beginning"
        )
        limits = Limits(size, size)
        self._replayed = Replayed(self._blob, self._codec, memory=self._memory, limits=limits)

    def _replay(self, start: int, stop: int) -> memoryview:
        if self._replayed is None:
            raise Unreadable("is not begun")
        data, size = self._replayed.read(start, stop - start), self.size()
        if len(data) < stop - start:
            raise Corrupt(f"ends after {start + len(data)} of {size} decompressed bytes")
        try:
            if stop == size:  # the end waits for what is behind it
                self._replayed.size()
        except TooLarge as error:
            message = f"decompresses to more than the {size} bytes it should come to"
            raise Corrupt(message) from error
        return data

    def _check(self, size: int) -> None:
        """Raise what the data themselves say against that size."""
        if size > self._limit:
            raise self._too_large(size)
        said = self._codec.content_size(self._blob)
        if said is not None and said > size:
            raise Corrupt(f"says it decompresses to {said} bytes, but should come to {size}")

    def _measure(self) -> int:
        """The length, found by decompressing all of it: what the first part says leaves out those behind it."""
        said = self._codec.content_size(self._blob)
        if said is not None and said > self._limit:
            raise self._too_large(said)
        stream = self._codec.stream(self._blob, self._limit)
        target, total = memoryview(bytearray(STEP)), 0
        try:
            while count := stream.readinto1(target):
                total += count
                if total > self._limit:
                    raise self._too_large(total)
        except self._codec.damage as error:
            raise Corrupt(damage_of(error, total)) from error
        return total

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(
            f"decompresses to {size} bytes or more, not within the {self._limit} allowed (--max-chunk-size)"
        )
