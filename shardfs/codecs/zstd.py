"""zstd streams (RFC 8878), of one or several frames."""

from __future__ import annotations

import contextlib
from typing import IO, TYPE_CHECKING, ClassVar, cast

import zstandard

from shardfs.codecs._source import Ahead
from shardfs.codecs._zstd_frames import (
    BLOCK_HEADER,
    MAX_BLOCK,
    MAX_HEADER,
    parse_block,
    parse_header,
    with_window,
)
from shardfs.errors import LASTING, Corrupt, ShardfsError, TooLarge, Unreadable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from shardfs.blob import Blob
    from shardfs.codecs import Stream
    from shardfs.codecs._zstd_frames import Header

# What the program reads together (ZSTD_DStreamInSize); it makes a block at a time.
_READ = BLOCK_HEADER + MAX_BLOCK
# The most that libzstd looks back over. It takes room for a window at once, but touches only what is decompressed.
_LARGEST_WINDOW = 1 << 31
# A block of 4 bytes comes to MAX_BLOCK at best.
_MAX_RATIO = MAX_BLOCK // (BLOCK_HEADER + 1)
_NO_ROOM = "Allocation error"


class Zstd:
    """The codec `zstd`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (zstandard.ZstdError,)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        return _Frames(blob, most)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """What the first frame says it holds, None where it does not say."""
        return parse_header(blob.read(0, MAX_HEADER)).size


class _Frames:
    """All frames of a blob.

    The library is called as the program zstd calls it, whatever the size of targets: where it meets damage, what it
    has made in the same call is lost.
    """

    def __init__(self, blob: Blob, most: int) -> None:
        self._feed = _Feed(blob, most)
        self._reader = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(
            cast("IO[bytes]", self._feed), read_size=_READ, read_across_frames=True
        )
        self._rest = memoryview(b"")

    def readinto1(self, target: memoryview, /) -> int:
        if not self._rest:
            if len(target) >= MAX_BLOCK:
                return self._decompress(target[:MAX_BLOCK])
            block = memoryview(bytearray(MAX_BLOCK))
            self._rest = block[: self._decompress(block)]
        count = min(len(target), len(self._rest))
        target[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def _decompress(self, target: memoryview) -> int:
        self._feed.check()
        try:
            count = self._reader.readinto1(target)
        except zstandard.ZstdError as error:
            if _NO_ROOM in str(error):
                raise Unreadable("no memory for a zstd window") from error
            raise
        self._feed.made += count
        return count


class _Feed:
    """The frames of a blob as a file object, with windows of no more bytes than can come of them and are allowed.

    Attributes:
        made: bytes that have come of what was read.
    """

    def __init__(self, blob: Blob, most: int) -> None:
        self._blob, self._most = Ahead(blob), min(max(most, MAX_BLOCK), _LARGEST_WINDOW)
        self._parts, self._rest = self._all(), memoryview(b"")
        self._problem: ShardfsError | None = None
        self.made = 0
        # Of a frame that looks back further than is allowed: the window that it wants, and how far it may be read.
        self._wanted = 0
        self._stop: int | None = None

    def check(self) -> None:
        if self._stop is not None and self.made > self._stop:
            raise TooLarge(
                f"a zstd window of {self._wanted} bytes, more than the {self._most} that can be had (--max-chunk-size)"
            )

    def read(self, length: int) -> bytes:
        """The next *length* bytes. Fewer where something ends, before what is wrong there is raised."""
        taken: list[memoryview] = []
        while length:
            part = self._rest or self._next()
            if part is None or (taken and not part):
                break
            taken.append(part[:length])
            self._rest, length = part[length:], length - len(taken[-1])
        if self._problem is not None and not taken:
            raise self._problem.again()
        return b"".join(taken)

    def _next(self) -> memoryview | None:
        try:
            return next(self._parts, None)
        except LASTING as error:
            self._problem = error.again()  # without what led to it
            return None

    def _all(self) -> Iterator[memoryview]:
        """All parts; an empty one where what comes of those before it must be out."""
        at, size = 0, self._blob.size()
        while at < size:
            head = bytes(self._blob.read(at, MAX_HEADER))
            header, start = parse_header(head), at
            at += header.length
            if not header.is_skippable:
                yield from self._head(head, header, size - start)
                at = yield from self._blocks(at)
                yield self._blob.read(at, header.tail)
                at += header.tail
            if at > size:
                raise Corrupt(f"the zstd frame at offset {start} is cut")

    def _head(self, head: bytes, header: Header, stored: int) -> Iterator[memoryview]:
        """The header of a frame, which has at most *stored* bytes."""
        needed = max(min(header.window, stored * _MAX_RATIO), MAX_BLOCK)
        window = min(needed, self._most)
        if window < needed or self._stop is not None:
            yield memoryview(b"")
            self._wanted = header.window
            self._stop = self.made + window if window < needed else None
        is_other = window < header.window
        yield memoryview(with_window(head, header, window) if is_other else head[: header.length])

    def _blocks(self, at: int) -> Generator[memoryview, None, int]:
        """The blocks of a frame from *at* on; where they end. Damage among them is left to the library."""
        blob, is_last = self._blob, False
        while not is_last and at < blob.size():
            head = blob.read(at, BLOCK_HEADER)
            length = MAX_BLOCK
            if len(head) == BLOCK_HEADER:
                with contextlib.suppress(Corrupt):
                    length, is_last = parse_block(head)
            yield blob.read(at, BLOCK_HEADER + length)
            at += BLOCK_HEADER + length
        return at if is_last else blob.size() + 1
