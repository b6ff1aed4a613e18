"""Snappy's raw block format: a length and one block, without framing, magic number or checksum.

https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_all
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from pyarrow import BufferReader

    from shardfs.blob import Blob
    from shardfs.codecs import Stream

# The length is a varint of at most 32 bits.
_LENGTH = 5
# The densest element, a copy with a two-byte offset, makes 64 bytes of 3.
_MAX_RATIO = 22


class Snappy:
    """The codec `snappy`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)  # pyarrow's

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        return _Block(blob)

    @staticmethod
    def content_size(blob: Blob) -> int:
        """What the block says it holds, so far as that many bytes can come out of it."""
        size = block_size(blob.read(0, _LENGTH))
        if size > _MAX_RATIO * blob.size():
            raise Corrupt(f"says it decompresses to {size} bytes, which no block of its size does")
        return size


class _Block:
    """A block, decompressed at once on the first read: parts of it may be copies from anywhere before them."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._content: BufferReader | None = None

    def readinto1(self, target: memoryview, /) -> int:
        if self._content is None:
            import pyarrow as pa

            size = Snappy.content_size(self._blob)
            content = pa.Codec("snappy").decompress(read_all(self._blob), decompressed_size=size)
            self._content = pa.BufferReader(content)
        return int(self._content.readinto(target))


def block_size(head: bytes | memoryview) -> int:
    """The uncompressed length at the beginning of a block."""
    size = 0
    for place, byte in enumerate(head[:_LENGTH]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80 and size < 1 << 32:
            return size
    raise Corrupt("is no snappy block: it does not begin with a length")
