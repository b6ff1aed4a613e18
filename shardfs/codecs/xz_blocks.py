"""Blocks of xz files as pieces, by the index at the end of each stream: https://tukaani.org/xz/xz-file-format.txt.

A block is decompressed as a stream of its own, with a header, an index and a footer made for it.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Bytes, Concat, read_exactly
from shardfs.codecs.pieces import Piece, Unsuited
from shardfs.codecs.xz import Xz
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.codecs import Codec

_MAGIC, _END_MAGIC = b"\xfd7zXZ\0", b"YZ"
# Header: magic, flags, CRC of the flags. Footer: CRC of what follows, size of the index, flags, magic.
_HEADER, _FOOTER = struct.Struct("<6s2sI"), struct.Struct("<II2s2s")
_WORD = struct.Struct("<I")
# A stream's flags; a block's size without its padding; its decompressed size.
_STATE = struct.Struct("<2sQQ")
# Guesses: no useful file has a larger index, or more streams or blocks.
_MAX_INDEX = 16 << 20
_MAX_PARTS = 1 << 18
# Numbers are coded in at most 9 bytes of 7 bits.
_MAX_BITS = 63
_PADDING_READ = 64 << 10


class Stream(NamedTuple):
    """One stream of a file: where it begins, its flags, and (size without padding, decompressed size) of its blocks."""

    start: int
    flags: bytes
    blocks: list[tuple[int, int]]


class XzBlocks:
    """Pieces of xz files."""

    def pieces(self, blob: Blob, largest: int, /) -> Iterator[Piece]:
        for start, flags, blocks in _streams(blob):
            at = start + _HEADER.size
            for length, size in blocks:
                if size > largest:
                    raise Unsuited(f"an xz block of {size} bytes")
                stop = at + _padded(length)
                if size:
                    yield Piece(at, stop, size, _STATE.pack(flags, length, size))
                at = stop

    def open(self, part: Blob, state: bytes, /) -> tuple[Blob, Codec]:
        header, tail = _frame(*_STATE.unpack(state))
        return Concat([Bytes(header), part, Bytes(tail)]), Xz


def _streams(blob: Blob) -> list[Stream]:
    """The streams of a file in order. Raises Corrupt, and Unsuited where there is too much of them."""
    found: list[Stream] = []
    parts, end = 0, _without_padding(blob, blob.size())
    while end:
        found.append(_stream_before(blob, end))
        parts += 1 + len(found[-1].blocks)
        if parts > _MAX_PARTS:
            raise Unsuited("an xz file of too many streams or blocks")
        end = _without_padding(blob, found[-1].start)
    return found[::-1]


def _without_padding(blob: Blob, end: int) -> int:
    """Where the stream ends behind which zeros reach to *end*."""
    while end:
        start = max(end - _PADDING_READ, 0)
        rest = bytes(read_exactly(blob, start, end - start, "stream padding")).rstrip(b"\0")
        end = start + len(rest)
        if rest:
            break
    return end


def _stream_before(blob: Blob, end: int) -> Stream:
    """The stream that ends at *end*."""
    footer = read_exactly(blob, end - _FOOTER.size, _FOOTER.size, "the footer of an xz stream")
    crc, backward, flags, magic = _FOOTER.unpack(footer)
    length = 4 * (backward + 1)
    if magic != _END_MAGIC or crc != zlib.crc32(footer[4:10]):
        raise Corrupt(f"no xz stream ends at offset {end}")
    if length > _MAX_INDEX:
        raise Unsuited(f"an index of {length} bytes")
    index_at = end - _FOOTER.size - length
    blocks = parse_index(read_exactly(blob, index_at, length, "the index of an xz stream"))
    start = index_at - sum(_padded(stored) for stored, _ in blocks) - _HEADER.size
    header = read_exactly(blob, start, _HEADER.size, "the header of an xz stream")
    if bytes(header) != _HEADER.pack(_MAGIC, flags, zlib.crc32(flags)):
        raise Corrupt(f"no xz stream begins at offset {start}, where its index says")
    return Stream(start, flags, blocks)


def parse_index(data: bytes | memoryview) -> list[tuple[int, int]]:
    """(size without padding, decompressed size) of the blocks by an index field. Raises Corrupt, Unsuited."""
    body = data[: -_WORD.size]
    if len(data) < 8 or data[0] or _WORD.unpack(data[-_WORD.size :])[0] != zlib.crc32(body):
        raise Corrupt("damaged index of an xz stream")
    count, at = _number(body, 1)
    if count > _MAX_PARTS:
        raise Unsuited(f"an xz stream of {count} blocks")
    blocks = []
    for _ in range(count):
        stored, at = _number(body, at)
        size, at = _number(body, at)
        blocks.append((stored, size))
    return blocks


def _number(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """(number, where it ends)."""
    value = shift = 0
    while at < len(data) and shift < _MAX_BITS:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise Corrupt("damaged index of an xz stream")


def _coded(value: int) -> bytes:
    coded = bytearray()
    while value >= 0x80:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*coded, value])


def _frame(flags: bytes, length: int, size: int) -> tuple[bytes, bytes]:
    """What makes a stream of a single block: the header before it, the index and the footer behind it."""
    body = b"\0\1" + _coded(length) + _coded(size)
    body += bytes(-len(body) % 4)
    index = body + _WORD.pack(zlib.crc32(body))
    rest = _WORD.pack(len(index) // 4 - 1) + flags
    footer = _WORD.pack(zlib.crc32(rest)) + rest + _END_MAGIC
    return _HEADER.pack(_MAGIC, flags, zlib.crc32(flags)), index + footer


def _padded(length: int) -> int:
    return length + -length % 4
