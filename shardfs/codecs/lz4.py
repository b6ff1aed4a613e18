"""LZ4 frames, one or several, those of the legacy format (`lz4 -l`) as well.

https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_exactly
from shardfs.codecs._arrow import ArrowStream
from shardfs.codecs._careful import Careful
from shardfs.codecs._source import Ahead
from shardfs.errors import Corrupt, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.codecs import Stream

_WORD = struct.Struct("<I")
_FRAME, _LEGACY = 0x184D2204, 0x184C2102
_SKIPPABLE = 0x184D2A50  # to ...5F
# The flags of a frame.
_VERSION, _VERSION_1 = 0xC0, 0x40
_BLOCK_CHECKSUM, _SIZE, _CHECKSUM, _DICTIONARY = 0x10, 8, 4, 1
# Of a block's length: it is stored as it is.
_STORED = 1 << 31
_LEGACY_BLOCK = 8 << 20
# What a block of them may take (LZ4_COMPRESSBOUND).
_LARGEST_LEGACY = _LEGACY_BLOCK + _LEGACY_BLOCK // 255 + 16


class Lz4:
    """The codec `lz4`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        """Looks back over no more than a block, so *most* is no matter."""
        return Careful(lambda _: _Frames(blob), Lz4.damage)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: a frame may say it, but there may be more of them."""
        return None


class _Frames:
    """All frames of a blob."""

    last = 0  # no part crosses a border of blocks, so nothing is lost with the one behind it

    def __init__(self, blob: Blob) -> None:
        self._blob, self._at = Ahead(blob), 0
        self.step = _LEGACY_BLOCK
        self._frame: Stream | None = None

    def readinto1(self, target: memoryview, /) -> int:
        while self._frame is not None or self._at < self._blob.size():
            if self._frame is None:
                self._frame = self._next()
            count = self._frame.readinto1(target[: self.step])
            if count:
                return count
            self._frame = None
        return 0

    def _next(self) -> Stream:
        (magic,) = _WORD.unpack(self._take(_WORD.size))
        if magic & ~0xF == _SKIPPABLE:
            self._take(*_WORD.unpack(self._take(_WORD.size)))
            return _Blocks(iter(()))
        if magic == _LEGACY:
            return _Blocks(self._legacy_blocks())
        if magic == _FRAME:
            return ArrowStream(_Parts(self._parts()), "lz4")
        raise Corrupt(f"no LZ4 frame begins at offset {self._at - _WORD.size}")

    def _take(self, length: int) -> memoryview:
        data = read_exactly(self._blob, self._at, length, "an LZ4 frame")
        self._at += length
        return data

    def _parts(self) -> Iterator[bytes]:
        """The parts of a frame, whose magic number has been read: its header, its blocks, its end."""
        head = bytes(self._take(2))
        flags = head[0]
        if flags & _VERSION != _VERSION_1:
            raise Unsupported("an LZ4 frame of a later version of the format is not supported")
        if flags & _DICTIONARY:
            raise Unsupported("LZ4 data packed with a dictionary are not supported: pack them anew")
        rest = self._take(9 if flags & _SIZE else 1)
        yield _WORD.pack(_FRAME) + head + bytes(rest)
        check = 4 if flags & _BLOCK_CHECKSUM else 0
        while length := _WORD.unpack(self._take(_WORD.size))[0]:
            data = self._take((length & ~_STORED) + check)
            yield _WORD.pack(length) + bytes(data)
        yield _WORD.pack(0) + bytes(self._take(4 if flags & _CHECKSUM else 0))

    def _legacy_blocks(self) -> Iterator[bytes]:
        """The content of the blocks of a frame, whose magic number has been read. The next frame ends it."""
        while self._at < self._blob.size():
            (length,) = _WORD.unpack(self._take(_WORD.size))
            if length in (_FRAME, _LEGACY) or length & ~0xF == _SKIPPABLE:
                self._at -= _WORD.size
                return
            if length > _LARGEST_LEGACY:
                raise Corrupt(f"no LZ4 block begins at offset {self._at - _WORD.size}")
            yield _unpacked(bytes(self._take(length)))


class _Parts:
    """Parts one after another as a file object, which gives no bytes of two parts together."""

    closed = False  # pyarrow asks
    last = 0

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._part = parts, memoryview(b"")

    def read(self, length: int) -> bytes:
        part = self._part or memoryview(next(self._parts, b""))
        self._part = part[length:]
        return bytes(part[:length])

    def close(self) -> None:
        """Do nothing."""


class _Blocks:
    """Decompressed blocks as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block = blocks, memoryview(b"")

    def readinto1(self, target: memoryview, /) -> int:
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        count = min(len(target), len(self._block))
        target[:count], self._block = self._block[:count], self._block[count:]
        return count


def _unpacked(block: bytes) -> bytes:
    """The content of a block of a legacy frame, which does not say how much it is; all but the last are full.

    pyarrow's codec for bare blocks does not say either, but fails where there is less room than it takes.
    """
    import pyarrow as pa

    codec = pa.Codec("lz4_raw")

    def fits(size: int) -> bool:
        try:
            codec.decompress(block, size)
        except OSError:
            return False
        return True

    if not fits(_LEGACY_BLOCK):
        raise Corrupt("a damaged LZ4 block")
    size = _LEGACY_BLOCK
    if fits(size - 1):
        size = bisect_left(range(size), True, key=fits)
    return bytes(codec.decompress(block, size))
