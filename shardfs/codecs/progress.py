"""How far one decompression has come, in turns; what came of it is in memory or in a file."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.codecs import damage_of
from shardfs.errors import Corrupt, ShardfsError, Unreadable
from shardfs.turns import Turns

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.cache.memory import Memory
    from shardfs.cache.spill import Spill
    from shardfs.codecs import Codec, Stream

# One step of decompression, between two looks at who else waits. A guess: about 1 ms, so that the first record of
# a chunk is served at once and the lock changes hands soon, yet the cost of a step (a few microseconds) is nothing.
STEP = 512 << 10

LOOK_BACK = 2 << 20
"""What a stream takes in memory beside what comes of it. A guess: the window of zstd's usual levels."""

# Fewer bytes than this are handed out as a copy, since they may be kept for long, and would keep all others, too.
_WORTH_NO_COPY = 64 << 10


class Made(Protocol):
    """Decompressed bytes, as far as they are made."""

    turns: Turns

    @property
    def done(self) -> int:
        """How many of them."""
        ...

    @property
    def footprint(self) -> int:
        """Bytes of its budget that it takes while nobody works on it."""
        ...

    def step(self) -> None:
        """Make some more. Not by two threads at a time."""
        ...

    def read(self, start: int, stop: int) -> memoryview:
        """Bytes that are made."""
        ...


class Given(NamedTuple):
    """A result that came about otherwise."""

    view: memoryview
    done: int
    turns: Turns

    @property
    def footprint(self) -> int:
        return self.done

    def step(self) -> None:
        """Do nothing."""

    def read(self, start: int, stop: int) -> memoryview:
        return _handed_out(self.view[start:stop])


class _Progress:
    """What the two kinds have in common."""

    def __init__(self, blob: Blob, codec: Codec, size: int) -> None:
        self._blob, self._codec, self._size = blob, codec, size
        self.done, self.turns = 0, Turns()
        self._failure: ShardfsError | None = None

    def step(self) -> None:
        if self._failure is not None:
            raise self._failure.again()
        if self.done == self._size:
            return
        try:
            self._decompress(self._stream(), min(self.done + STEP, self._size))
        except ShardfsError as error:
            # Not the error itself: its traceback leads to whoever reads, and would keep all of it alive.
            self._failure = error.again()
            raise

    def _decompress(self, stream: Stream, stop: int) -> None:
        size, done = self._size, self.done
        try:
            while done < stop:
                target = self._space(done, stop)
                count = stream.readinto1(target)
                if not count:
                    raise Corrupt(f"ends after {done} of {size} decompressed bytes")
                self._take(target[:count])
                done += count
                if done < size:  # the end waits for what is behind it, a checksum maybe
                    self.done = done
            if done == size and stream.readinto1(memoryview(bytearray(1))):
                raise Corrupt(f"decompresses to more than the {size} bytes it should come to")
        except self._codec.damage as error:
            raise Corrupt(damage_of(error, done)) from error
        self.done = done
        if done == size:
            self._end()

    def _stream(self) -> Stream:
        """The stream, where it was left."""
        raise NotImplementedError

    def _space(self, done: int, stop: int) -> memoryview:
        """Where to put the bytes from *done* to *stop*."""
        raise NotImplementedError

    def _take(self, data: memoryview) -> None:
        """Keep what was put there."""

    def _end(self) -> None:
        """Let go of the stream, which takes memory, too."""
        raise NotImplementedError


class InMemory(_Progress):
    """Bytes in memory."""

    def __init__(self, blob: Blob, codec: Codec, size: int) -> None:
        super().__init__(blob, codec, size)
        self._open: Stream | None = codec.stream(blob, size)
        try:
            # Anonymous memory takes no pages before they are written.
            self.anchor = mmap.mmap(-1, size)
        except OSError as error:
            raise Unreadable(f"no memory for {size} decompressed bytes") from error
        self._target = memoryview(self.anchor)
        self._view = self._target.toreadonly()

    @property
    def footprint(self) -> int:
        return self.done + (0 if self._open is None else min(LOOK_BACK, self._size))

    def read(self, start: int, stop: int) -> memoryview:
        return _handed_out(self._view[start:stop])

    def _stream(self) -> Stream:
        if self._open is None:
            raise Corrupt("is read on behind its end")
        return self._open

    def _space(self, done: int, stop: int) -> memoryview:
        return self._target[done:stop]

    def _end(self) -> None:
        self._open = None


class InFile(_Progress):
    """Bytes in a file. The stream is held by the memory budget, and opened again where that let it go."""

    def __init__(self, blob: Blob, codec: Codec, size: int, spill: Spill, memory: Memory) -> None:
        super().__init__(blob, codec, size)
        self.anchor = self._spill = spill
        self._memory = memory

    @property
    def footprint(self) -> int:
        return self._spill.size

    def read(self, start: int, stop: int) -> memoryview:
        return self._spill.read(start, stop - start)

    def _stream(self) -> Stream:
        stream: Stream | None = self._memory.get(self)
        if stream is None:
            stream = self._codec.stream(self._blob, self._size)
            target, left = memoryview(bytearray(STEP)), self._spill.size
            while left:
                count = stream.readinto1(target[:left])
                if not count:
                    raise Corrupt("decompresses to fewer bytes than before")
                left -= count
        self._memory.put(self, stream, min(LOOK_BACK, self._size))
        return stream

    def _space(self, done: int, stop: int) -> memoryview:
        return memoryview(bytearray(stop - done))

    def _take(self, data: memoryview) -> None:
        self._spill.append(data)

    def _end(self) -> None:
        self._memory.drop(self)


def _handed_out(view: memoryview) -> memoryview:
    return memoryview(bytes(view)) if len(view) <= _WORTH_NO_COPY else view
