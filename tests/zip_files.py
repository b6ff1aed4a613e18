"""Zip files with whatever writers put into them, right or wrong."""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Sequence

STORED, DEFLATED, BZIP2, LZMA, ZSTD, XZ = 0, 8, 12, 14, 93, 95
METHODS = (STORED, DEFLATED, BZIP2, LZMA, ZSTD, XZ)
UTF8, ENCRYPTED, END_MARK = 0x800, 0x1, 0x2
DOS, UNIX = 0, 3
LINK_MODE = 0o120777
# 2021-05-06 07:08:10
CLOCK = ((2021 - 1980) << 9 | 5 << 5 | 6) << 16 | 7 << 11 | 8 << 5 | 5


@dataclass(frozen=True, kw_only=True)
class Item:
    """A member; what is None is as it should be."""

    name: bytes
    data: bytes = b""
    method: int = STORED
    flags: int = 0
    system: int = UNIX
    mode: int = 0o100644
    clock: int = CLOCK
    extra: bytes = b""
    local_extra: bytes = b""
    comment: bytes = b""
    crc: int | None = None
    size: int | None = None
    packed: bytes | None = None
    packed_size: int | None = None
    offset: int | None = None


def make_zip(
    items: Sequence[Item],
    *,
    prefix: bytes = b"",
    comment: bytes = b"",
    tail: bytes = b"",
    zip64: bool = False,
    adjusted: bool = False,
    gap: bytes = b"",
) -> bytes:
    """A zip of *items*.

    Args:
        prefix: bytes before it; with *adjusted*, its offsets count them.
        tail: bytes behind it.
        zip64: let all numbers stand in the zip64 records.
        gap: bytes between the central directory and its end.
    """
    body, directory = bytearray(), bytearray()
    base = len(prefix) if adjusted else 0
    for item in items:
        packed = pack(item) if item.packed is None else item.packed
        crc = zlib.crc32(item.data) if item.crc is None else item.crc
        size = len(item.data) if item.size is None else item.size
        stored = len(packed) if item.packed_size is None else item.packed_size
        offset = base + len(body) if item.offset is None else item.offset
        numbers, extra = (stored, size, offset), item.extra
        if zip64:
            extra = struct.pack("<2H3Q", 1, 24, size, stored, offset) + extra
            numbers = (0xFFFFFFFF,) * 3
        # Readers take sizes and checksum from the directory: here they are wrong, as behind streamed data.
        body += struct.pack(
            "<4s3H4L2H",
            *(b"PK\3\4", 45, item.flags, item.method, item.clock, 0, 0, 0),
            *(len(item.name), len(item.local_extra)),
        )
        body += item.name + item.local_extra + packed
        directory += struct.pack(
            "<4s4H4L5H2L",
            *(b"PK\1\2", item.system << 8 | 45, 45, item.flags, item.method, item.clock, crc),
            *(numbers[0], numbers[1], len(item.name), len(extra), len(item.comment)),
            *(0, 0, item.mode << 16, numbers[2]),
        )
        directory += item.name + extra + item.comment
    return (
        prefix
        + body
        + directory
        + gap
        + _end(len(items), len(directory), base + len(body), len(gap), comment, zip64=zip64)
        + tail
    )


def _end(count: int, size: int, offset: int, gap: int, comment: bytes, *, zip64: bool) -> bytes:
    records = b""
    if zip64:
        records = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, offset)
        records += struct.pack("<4sLQL", b"PK\6\7", 0, offset + size + gap, 1)
        count, size, offset = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, offset, len(comment))
    return records + end + comment


def pack(item: Item) -> bytes:
    """A member's content as its method stores it."""
    data = item.data
    if item.method == DEFLATED:
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(data) + deflate.flush()
    if item.method == BZIP2:
        return bz2.compress(data)
    if item.method == LZMA:
        # As the writers do: version, length of the properties, properties; what .lzma has before them goes.
        alone = lzma.compress(data, lzma.FORMAT_ALONE)
        return struct.pack("<HH", 0x0409, 5) + alone[:5] + alone[13:]
    if item.method == ZSTD:
        return zstandard.compress(data)
    if item.method == XZ:
        return lzma.compress(data)
    return data
