"""A compressed file without places to start from, and no disk to keep its content on."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from cachetools import LRUCache

from shardfs.blob import Bytes, may_wait, read_all
from shardfs.cache.memory import Derived
from shardfs.codecs._pass import Limits, Pass
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.cache.memory import Memory
    from shardfs.codecs import Codec

_CHUNK = 1 << 20
# Chunks are small objects; what they hold is bounded by the memory budget.
_KNOWN_CHUNKS = 1 << 12


class Replayed:
    """The decompressed bytes of a blob, held as long as the memory budget allows.

    What has gone from there comes back by decompression from the beginning: right, but slow.
    """

    def __init__(self, blob: Blob, codec: Codec, *, memory: Memory, limits: Limits) -> None:
        self._blob, self._codec, self._memory, self._limits = blob, codec, memory, limits
        self._pass = Pass(blob, codec, limits)
        self._chunks: LRUCache[int, Derived] = LRUCache(_KNOWN_CHUNKS)
        self._chunks_lock, self._lock = threading.Lock(), threading.Lock()
        self._end: Pass | None = None
        """The pass that came to the end first."""

    def size(self) -> int:
        if self._end is None:
            if not may_wait():
                raise WouldBlock
            with self._lock:
                self._go_on(None)
        return self._check_end()

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop, parts = max(offset, 0), max(offset, 0) + max(length, 0), []
        while start < stop:
            if self._end is not None and start >= self._end.done:
                self._check_end()
                break
            number, inside = divmod(start, _CHUNK)
            part = self._chunk(number).read(inside, stop - start)
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _check_end(self) -> int:
        """The number of bytes, if it is not damage that ends them."""
        end = self._end
        if end is None or end.failure is None:
            return 0 if end is None else end.done
        raise end.failure.again()

    def _chunk(self, number: int) -> Derived:
        with self._chunks_lock:
            chunk = self._chunks.get(number)
            if chunk is None:
                chunk = Derived(partial(self._replay, number), self._memory)
                self._chunks[number] = chunk
            return chunk

    def _replay(self, number: int) -> bytes:
        """Make chunk *number*."""
        with self._lock:
            kept: Bytes | None = self._memory.get(self._chunk(number))
            if kept is not None:  # by the thread that went on before
                return bytes(read_all(kept))
            if self._pass.done > number * _CHUNK:
                self._pass = Pass(self._blob, self._codec, self._limits)
            return self._go_on(number)

    def _go_on(self, number: int | None) -> bytes:
        """Make chunk *number*, or all; those before it are kept, too, since others may want them soon."""
        while not self._pass.ended:
            at = self._pass.done // _CHUNK
            content = self._next()
            if at == number:
                return content
            self._memory.put(self._chunk(at), Bytes(content), len(content))
        return b""

    def _next(self) -> bytes:
        target = memoryview(bytearray(_CHUNK))
        content = bytes(target[: self._pass.turn(target)])
        if self._pass.ended and self._end is None:
            self._end = self._pass
        return content
