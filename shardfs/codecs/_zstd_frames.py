"""Where the frames of zstd data lie, without decompressing them (RFC 8878, section 3.1)."""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt, TooLarge, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob

_MAGIC = 0xFD2FB528
# Of the formats before 1.0, which had version numbers of their own.
_LEGACY = {0xFD2FB522 + version: version + 2 for version in range(6)} | {0xFD2FB51E: 1}
_SKIPPABLE = 0x184D2A50  # to ...5F
_WORD = struct.Struct("<I")
# Magic, descriptor, window, dictionary, content size.
MAX_HEADER = 4 + 1 + 1 + 4 + 8
# Bits of the descriptor: a frame without a window of its own, a checksum at its end, one that means nothing yet.
_SINGLE, _CHECKSUM, _RESERVED_BIT = 0x20, 4, 8
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_FORMATS = (None, struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q"))
BLOCK_HEADER = 3
MAX_BLOCK = 128 << 10
_RLE, _RESERVED = 1, 3
# A guess: so many blocks, on an average, come to the bytes of a full one at least.
_BLOCKS = 4

# https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md
_SEEK_TABLE = 0x184D2A5E
_SEEK_FOOTER = struct.Struct("<IBI")
_SEEK_MAGIC = 0x8F92EAB1
# A guess: a table of more frames is not worth its memory.
_MAX_TABLE = 1 << 20


class Frame(NamedTuple):
    """A frame: its compressed bytes are [start, stop), *size* what it says it holds, None where it does not say."""

    start: int
    stop: int
    size: int | None


class Header(NamedTuple):
    """The beginning of a frame.

    Attributes:
        length: bytes of the header, or of a skippable frame as a whole.
        size: what the frame says it holds.
        tail: bytes behind the last block.
        window: how many bytes it may look back over.
    """

    length: int
    size: int | None
    tail: int
    window: int = 0
    is_skippable: bool = False


def parse_header(data: bytes | memoryview) -> Header:
    """The header at the beginning of *data*, which are 18 bytes or all there are. Raises Corrupt, Unsupported."""
    try:
        (magic,) = _WORD.unpack_from(data)
        if magic & ~0xF == _SKIPPABLE:
            return Header(8 + _WORD.unpack_from(data, 4)[0], 0, 0, is_skippable=True)
        if magic in _LEGACY:
            raise Unsupported(
                f"zstd data of the format v0.{_LEGACY[magic]} are not supported: pack them anew with zstd 1.0 or later"
            )
        if magic != _MAGIC:
            raise Corrupt("no zstd frame begins here")
        descriptor = data[4]
        is_single = bool(descriptor & _SINGLE)
        at = 5 + (not is_single)
        window = 0 if is_single else window_of(data[5])
        at = _behind_dictionary(data, at, _DICTIONARY_BYTES[descriptor & 3])
        form = _SIZE_FORMATS[descriptor >> 6]
        size = None
        if form is not None:
            size = form.unpack_from(data, at)[0] + (256 if form.size == 2 else 0)
            at += form.size
        elif is_single:
            size, at = data[at], at + 1
    except (struct.error, IndexError) as error:
        raise Corrupt("ends inside the header of a zstd frame") from error
    if descriptor & _RESERVED_BIT:
        raise Unsupported("a zstd frame of a later version of the format is not supported")
    return Header(at, size, 4 if descriptor & _CHECKSUM else 0, size or 0 if is_single else window)


def _behind_dictionary(data: bytes | memoryview, at: int, length: int) -> int:
    number = int.from_bytes(data[at : at + length], "little")
    if number:
        raise Unsupported(
            f"data packed with the zstd dictionary {number} are not supported: pack them anew without one"
        )
    return at + length


def window_of(code: int) -> int:
    """The bytes of a window by its code in a frame's header."""
    return (8 + (code & 7)) << (7 + (code >> 3))


_WINDOWS = [window_of(code) for code in range(256)]


def with_window(head: bytes, header: Header, most: int) -> bytes:
    """The *head* of a frame with a window that holds *most* bytes instead of its own."""
    descriptor, at = head[4], 5 if head[4] & _SINGLE else 6
    at += _DICTIONARY_BYTES[descriptor & 3]
    # Without those bits that say there is no window, but a dictionary.
    front = bytes([descriptor & ~(_SINGLE | 3), bisect_left(_WINDOWS, most)])
    return head[:4] + front + head[at : header.length]


def parse_block(data: bytes | memoryview) -> tuple[int, bool]:
    """(bytes of a block behind its header, whether it is the last of its frame). Raises Corrupt."""
    word = data[0] | data[1] << 8 | data[2] << 16
    kind, size = word >> 1 & 3, word >> 3
    if kind == _RESERVED or size > MAX_BLOCK:
        raise Corrupt("no zstd block begins where one should")
    return 1 if kind == _RLE else size, bool(word & 1)


def frames(blob: Blob, largest: int | None = None) -> Iterator[Frame]:
    """All frames of *blob* in order, skippable ones too.

    Raises:
        TooLarge: a frame may hold more than *largest* bytes.
        Corrupt: a frame is cut, or something else stands there.
    """
    at, size = 0, blob.size()
    while at < size:
        header = parse_header(blob.read(at, MAX_HEADER))
        stop = at + header.length
        if not header.is_skippable:
            stop = _blocks_stop(blob, stop, header.size, largest) + header.tail
        if stop > size:
            raise Corrupt(f"the zstd frame at offset {at} is cut")
        yield Frame(at, stop, header.size)
        at = stop


def _blocks_stop(blob: Blob, at: int, size: int | None, largest: int | None) -> int:
    """Where the blocks of a frame end that begin at *at*."""
    if largest is not None and size is not None and size > largest:
        raise TooLarge(f"a zstd frame of {size} bytes")
    most = None
    if largest is not None and size is None:  # then the number of blocks must tell
        most = _BLOCKS * (largest // MAX_BLOCK + 1)
    count, is_last = 0, False
    while not is_last:
        if count == most:
            raise TooLarge(f"a zstd frame of more than {count} blocks")
        length, is_last = parse_block(read_exactly(blob, at, BLOCK_HEADER, "a zstd block header"))
        at, count = at + BLOCK_HEADER + length, count + 1
    return at


def seek_table(blob: Blob) -> list[Frame] | None:
    """The frames by the seek table at the end of *blob*, None where there is none that fits the blob."""
    end = blob.size()
    if end < 8 + _SEEK_FOOTER.size:
        return None
    count, flags, magic = _SEEK_FOOTER.unpack(blob.read(end - _SEEK_FOOTER.size, _SEEK_FOOTER.size))
    row = struct.Struct("<III" if flags & 0x80 else "<II")
    length = count * row.size + _SEEK_FOOTER.size
    begin = end - 8 - length
    if magic != _SEEK_MAGIC or count > _MAX_TABLE or begin < 0:
        return None
    table = bytes(blob.read(begin, 8 + count * row.size))
    if struct.unpack_from("<II", table) != (_SEEK_TABLE, length):
        return None
    found, at = [], 0
    for stored, size, *_ in row.iter_unpack(table[8:]):
        found.append(Frame(at, at + stored, size))
        at += stored
    return found if at == begin else None
