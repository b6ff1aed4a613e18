"""Compressed files as different writers leave them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SKIPPABLE = struct.pack("<2L", 0x184D2A5B, 5) + b"extra"


def parts(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def zstd_unsized(data: bytes) -> bytes:
    """A frame that does not say how much it holds, as from a pipe."""
    stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return stream.compress(data) + stream.flush()


def zstd_frames(data: bytes, size: int, *, skippable: bool = False, sized: bool = True) -> bytes:
    write = zstandard.compress if sized else zstd_unsized
    return b"".join(SKIPPABLE * skippable + write(part) for part in parts(data, size))


def zstd_seekable(data: bytes, size: int, *, checksums: bool = False) -> bytes:
    frames = [(zstandard.compress(part), part) for part in parts(data, size)]
    rows = b"".join(
        struct.pack("<2L", len(stored), len(part)) + struct.pack("<L", 9) * checksums
        for stored, part in frames
    )
    footer = struct.pack("<LBL", len(frames), 0x80 * checksums, 0x8F92EAB1)
    table = struct.pack("<2L", 0x184D2A5E, len(rows) + len(footer)) + rows + footer
    return b"".join(stored for stored, _ in frames) + table


def gzip_members(data: bytes, size: int, padding: int = 0) -> bytes:
    return b"".join(gzip.compress(part) + bytes(padding) for part in parts(data, size))


def gzip_flushed(data: bytes, size: int) -> bytes:
    """One member with borders on bytes, as pigz makes them."""
    deflate, out = zlib.compressobj(wbits=31), bytearray()
    for part in parts(data, size):
        out += deflate.compress(part) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return bytes(out + deflate.flush())


def xz_blocks(data: bytes, size: int, check: int = lzma.CHECK_CRC64) -> bytes:
    """One stream of several blocks, as xz -T makes it: blocks taken from streams of one, an index over them."""
    head, blocks, records = b"", bytearray(), bytearray()
    for part in parts(data, size):
        stream = lzma.compress(part, check=check)
        index = 4 * (struct.unpack("<L", stream[-8:-4])[0] + 1)
        head, flags = stream[:12], stream[-4:-2]
        blocks += stream[12 : -12 - index]
        body = stream[-12 - index : -12]
        records += body[2:-4].rstrip(b"\0")
    count = -(-len(data) // size)
    return head + blocks + xz_index(count, bytes(records), flags)


def xz_index(count: int, records: bytes, flags: bytes) -> bytes:
    """The index and the footer of a stream."""
    index = b"\0" + bytes([count]) + records
    index += bytes(-len(index) % 4)
    index += struct.pack("<L", zlib.crc32(index))
    tail = struct.pack("<L", len(index) // 4 - 1) + flags
    return index + struct.pack("<L", zlib.crc32(tail)) + tail + b"YZ"


def lz4(data: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "lz4") as stream:
        stream.write(data)
    return bytes(target.getvalue())


# (codec, what writes it): all of them have places inside to start from.
INDEXED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gz", partial(gzip.compress, compresslevel=6)),
    "gzip-fast": ("gz", partial(gzip.compress, compresslevel=1)),
    "gzip-stored": ("gz", partial(gzip.compress, compresslevel=0)),
    "gzip-members": ("gz", partial(gzip_members, size=70_000)),
    "gzip-padded": ("gz", partial(gzip_members, size=300_000, padding=13)),
    "gzip-flushed": ("gz", partial(gzip_flushed, size=100_000)),
    "zstd": ("zstd", zstandard.compress),
    "zstd-unsized": ("zstd", zstd_unsized),
    "zstd-frames": ("zstd", partial(zstd_frames, size=100_000)),
    "zstd-skippable": ("zstd", partial(zstd_frames, size=100_000, skippable=True, sized=False)),
    "zstd-seekable": ("zstd", partial(zstd_seekable, size=100_000)),
    "zstd-seekable-checked": ("zstd", partial(zstd_seekable, size=100_000, checksums=True)),
    "xz": ("xz", lzma.compress),
    "xz-blocks": ("xz", partial(xz_blocks, size=200_000)),
    "xz-blocks-unchecked": ("xz", partial(xz_blocks, size=200_000, check=lzma.CHECK_NONE)),
    "xz-streams": (
        "xz",
        lambda data: b"".join(lzma.compress(p) + bytes(8) for p in parts(data, 200_000)),
    ),
}
# And these have none.
PLAIN: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "bzip2": ("bz2", bz2.compress),
    "bzip2-streams": ("bz2", lambda data: b"".join(map(bz2.compress, parts(data, 200_000)))),
    "lz4": ("lz4", lz4),
    "lzma": ("xz", partial(lzma.compress, format=lzma.FORMAT_ALONE)),
    "brotli": ("br", lambda data: bytes(pa.Codec("brotli").compress(data))),
}
