"""A decompressed blob that is made as far as it is read."""

from __future__ import annotations

import mmap
import threading
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Blob, clip, may_wait
from shardfs.errors import LASTING, Corrupt, ShardfsError, TooLarge, Unreadable, WouldBlock
from shardfs.turns import Turns

if TYPE_CHECKING:
    from shardfs.cache.memory import Memory
    from shardfs.codecs import Codec, Stream

# One step of decompression, between two looks at who else waits. A guess: about 1 ms, so that the first record of
# a chunk is served at once and the lock changes hands soon, yet the cost of a step (a few microseconds) is nothing.
STEP = 512 << 10


class Inflated:
    """The decompressed bytes of another blob, held under the memory budget.

    Only the part up to the last byte that was asked for is decompressed: a reader makes what it needs and all
    others find it made, so a chunk is decompressed once however many read it, and its first record is there when
    its bytes are. After an eviction the next reader starts again.
    """

    __slots__ = ("__weakref__", "_blob", "_codec", "_limit", "_lock", "_memory", "_size")

    def __init__(
        self, blob: Blob, codec: Codec, size: int | None, *, memory: Memory, limit: int
    ) -> None:
        """Take *size* as the exact length of the result, or learn it by decompressing where it is None."""
        self._blob, self._codec, self._size = blob, codec, size
        self._memory, self._limit, self._lock = memory, limit, threading.Lock()

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
        progress: _Progress | _Made | None = self._memory.get(self)
        if progress is None or progress.done < stop:
            if not may_wait():
                raise WouldBlock
            progress = progress or self._begin()
            self._advance(progress, stop)
        return progress.view[start:stop]

    def fill(self, content: bytes) -> None:
        """Take *content* for the whole result: it came about otherwise."""
        made = _Made(memoryview(content), len(content), Turns())
        self._memory.put(self, made, len(content))

    def _begin(self) -> _Progress | _Made:
        size = self.size()
        with self._lock:
            progress: _Progress | _Made | None = self._memory.get(self)
            if progress is None:
                if size > self._limit:
                    raise self._too_large(size)
                said = self._codec.content_size(self._blob)
                if said is not None and said > size:
                    raise Corrupt(
                        f"says it decompresses to {said} bytes, but should come to {size}"
                    )
                progress = _Progress(self._blob, self._codec, size)
                self._memory.put(self, progress, 0)
            return progress

    def _advance(self, progress: _Progress | _Made, stop: int) -> None:
        def step() -> None:
            try:
                progress.step()
            except LASTING:
                if progress.done < stop:  # what came before the damage can be read
                    raise
            except ShardfsError:  # another try may go better, but not in the middle of a stream
                self._memory.drop(self)
                raise
            self._memory.resize(self, progress.done)

        progress.turns.until(lambda: progress.done >= stop, step)

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
            raise Corrupt(f"damaged compressed data after {total} bytes ({error})") from error
        return total

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(
            f"decompresses to {size} bytes or more, not within the {self._limit} allowed (--max-chunk-size)"
        )


class _Made(NamedTuple):
    """A result that is complete."""

    view: memoryview
    done: int
    turns: Turns

    def step(self) -> None:
        """Do nothing."""


class _Progress:
    """How far one decompression has come, in turns."""

    __slots__ = ("_codec", "_failure", "_stream", "_target", "done", "turns", "view")

    def __init__(self, blob: Blob, codec: Codec, size: int) -> None:
        self._codec = codec
        self._stream: Stream | None = codec.stream(blob, size)
        try:
            # Anonymous memory takes no pages before they are written.
            self._target = memoryview(mmap.mmap(-1, size))
        except OSError as error:
            raise Unreadable(f"no memory for {size} decompressed bytes") from error
        self.view, self.done = self._target.toreadonly(), 0
        self.turns = Turns()
        self._failure: ShardfsError | None = None

    def step(self) -> None:
        """Decompress one step further. Not by two threads at a time."""
        if self._failure is not None:
            raise self._failure.again()
        if self._stream is None:
            return
        try:
            self._decompress(self._stream, min(self.done + STEP, len(self._target)))
        except ShardfsError as error:
            # Not the error itself: its traceback leads to whoever reads, and would keep all of it alive.
            self._failure = error.again()
            raise

    def _decompress(self, stream: Stream, stop: int) -> None:
        size, done = len(self._target), self.done
        try:
            while done < stop:
                count = stream.readinto1(self._target[done:stop])
                if not count:
                    raise Corrupt(f"ends after {done} of {size} decompressed bytes")
                done += count
                if done < size:  # the end waits for what is behind it, a checksum maybe
                    self.done = done
            if done == size and stream.readinto1(memoryview(bytearray(1))):
                raise Corrupt(f"decompresses to more than the {size} bytes it should come to")
        except self._codec.damage as error:
            raise Corrupt(f"damaged compressed data after {done} bytes ({error})") from error
        self.done = done
        if done == size:
            self._stream = None  # it takes memory, too
