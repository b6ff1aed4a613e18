"""Compressed files and archives by what stands behind their short magic numbers, and what gzip is known to hold."""

from __future__ import annotations

import zlib

_NIFTI_HEAD = 544


def gzip(head: bytes, size: int) -> str:
    """RFC 1952, and a stream that decompresses as far as it is seen. Brain images are kept as `.nii.gz`."""
    # reserved flags, how hard was compressed, and on what system
    if head[3] & 0xE0 or head[8] not in (0, 2, 4) or (head[9] > 13 and head[9] != 255):
        return ""
    try:
        content = zlib.decompressobj(wbits=31).decompress(head, _NIFTI_HEAD)
    except zlib.error:
        return ""
    return ".nii.gz" if nifti(content) else ".gz"


def nifti(head: bytes) -> bool:
    """NIfTI-1 has its magic number behind the header that begins with its own size, NIfTI-2 before."""
    if head[:4] in (b"\x5c\1\0\0", b"\0\0\1\x5c"):
        return head[344:348] == b"n+1\0"
    return head[:4] in (b"\x1c\2\0\0", b"\0\0\2\x1c") and head[4:12] == b"n+2\0\r\n\x1a\n"


def zstd(head: bytes, size: int) -> str:
    """RFC 8878: the frame's header, and a first block that fits."""
    flags = head[4]
    if flags & 0x08:
        return ""
    single = flags >> 5 & 1
    at = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    block = int.from_bytes(head[at : at + 3], "little")
    kind, length = block >> 1 & 3, block >> 3
    end = at + 3 + (1 if kind == 1 else length)
    fits = end == size or (end < size if not block & 1 else end <= size)
    return ".zst" if kind != 3 and length <= 128 << 10 and fits else ""


def lz4(head: bytes, size: int) -> str:
    """LZ4 frames: version 1, nothing in reserved bits, a known size of blocks, and a first block that fits."""
    flags, blocks = head[4], head[5]
    if flags >> 6 != 1 or flags & 2 or blocks & 0x8F or blocks >> 4 < 4:
        return ""
    at = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    length = int.from_bytes(head[at : at + 4], "little") & 0x7FFFFFFF
    return ".lz4" if length <= 1 << 2 * (blocks >> 4) + 8 and at + 4 + length <= size else ""


def bzip2(head: bytes, size: int) -> str:
    known = head[4:10] in (b"1AY&SY", b"\x17rE8P\x90")  # a block, or the end
    return ".bz2" if head[3] in b"123456789" and known else ""


def xz(head: bytes, size: int) -> str:
    """The flags of a stream, and their checksum."""
    return ".xz" if zlib.crc32(head[6:8]).to_bytes(4, "little") == head[8:12] else ""


def rar(head: bytes, size: int) -> str:
    """Versions 4 and 5."""
    return ".rar" if head[6] == 0 or head[6:8] == b"\1\0" else ""


def empty_zip(head: bytes, size: int) -> str:
    """The end of a directory in which nothing is."""
    comment = int.from_bytes(head[20:22], "little")
    return ".zip" if not any(head[4:20]) and size == 22 + comment else ""
