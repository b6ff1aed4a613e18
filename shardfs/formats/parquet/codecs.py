"""The compressions of Parquet pages, each the whole page at once.

https://github.com/apache/parquet-format/blob/master/Compression.md
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from shardfs.blob import Blob, Bytes, read_all
from shardfs.codecs import damage_of
from shardfs.errors import Corrupt, TooLarge, Unsupported

if TYPE_CHECKING:
    from shardfs.model import Services

_CODECS = {1: "snappy", 2: "gz", 4: "br", 6: "zstd"}
_LZO, _LZ4, _LZ4_RAW = 3, 5, 7
# What a byte of LZ4 can stand for at most.
_LZ4_RATIO = 255
_BLOCK = struct.Struct(">II")


def inflate(blob: Blob, codec: int, size: int, services: Services) -> Blob:
    """The *size* bytes that *blob* holds compressed. Raises Unsupported; reads raise Corrupt, TooLarge."""
    if not codec:
        return blob
    if not size:  # some writers leave out what is nothing, some compress it
        return Bytes(b"")
    if codec in _CODECS:
        return services.inflate(blob, _CODECS[codec], size)
    if codec not in (_LZ4, _LZ4_RAW):
        name = "LZO" if codec == _LZO else f"{codec}, which has no name,"
        raise Unsupported(
            f"a Parquet column whose compression {name} is not supported: write the file anew with another"
        )
    limit = services.options.max_chunk_size
    if size > limit:
        raise TooLarge(
            f"decompresses to {size} bytes, more than the {limit} allowed (--max-chunk-size)"
        )
    if codec == _LZ4_RAW:
        return services.derive(lambda: lz4_block(read_all(blob), size))
    return services.derive(lambda: lz4_hadoop(read_all(blob), size))


def lz4_block(data: memoryview, size: int) -> bytes:
    """The *size* bytes in a block of LZ4. Raises Corrupt."""
    import pyarrow as pa

    if size > _LZ4_RATIO * len(data):
        raise Corrupt(f"says it decompresses to {size} bytes, which no block of its size does")
    codec = pa.Codec("lz4_raw")
    try:
        content: bytes = codec.decompress(data, decompressed_size=size, asbytes=True)
    except OSError as error:
        raise Corrupt(damage_of(error)) from error
    # The codec does not say how many bytes it made. With room for one less it must fail.
    try:
        codec.decompress(data, decompressed_size=size - 1)
    except OSError:
        return content
    raise Corrupt(f"decompresses to less than the {size} bytes it should come to")


def lz4_hadoop(data: memoryview, size: int) -> bytes:
    """The *size* bytes in blocks of LZ4 with their two lengths before them, or without as some old writers have it."""
    parts: list[bytes] = []
    rest, left = data, size
    while len(rest) > _BLOCK.size:
        length, stored = _BLOCK.unpack_from(rest)
        if not 0 < length <= left or stored > len(rest) - _BLOCK.size:
            break
        try:
            parts.append(lz4_block(rest[_BLOCK.size :][:stored], length))
        except Corrupt:
            break
        rest, left = rest[_BLOCK.size + stored :], left - length
    return lz4_block(data, size) if left or len(rest) else b"".join(parts)
