"""How far .xz and .lzma data say that they look back: the size of the dictionary of LZMA, in their headers."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left

_MAGIC = b"\xfd7zXZ\0"
_START = 12
"""Bytes of a stream's header, behind which its first block begins."""

_LZMA2 = 0x21
# The flags of a block header: how many filters, and which sizes follow.
_FILTERS, _SIZES = 3, (0x40, 0x80)
# By the code that xz has for them; .lzma files of common writers have no others.
_SIZES_BY_CODE = (*((2 | code & 1) << (code // 2 + 11) for code in range(40)), (1 << 32) - 1)
# In .lzma files: the size in bytes behind one byte of properties.
_ALONE = struct.Struct("<I")
_CRC = struct.Struct("<I")


def is_xz(head: bytes) -> bool:
    """Whether *head* is, or may become, the beginning of an .xz file."""
    return head[: len(_MAGIC)] == _MAGIC[: len(head)]


def limited(head: bytes, most: int) -> tuple[bytes, int | None]:
    """*head*, the beginning of a stream, with a dictionary that holds *most* bytes, if it says a larger one.

    The size that it says comes with it, None where nothing was changed. liblzma takes room for all of it, however
    short the data are.
    """
    code = bisect_left(_SIZES_BY_CODE, min(most, _SIZES_BY_CODE[-1]))
    if not is_xz(head):
        return _limited_alone(head, code)
    length = 4 * (head[_START] + 1) if len(head) > _START and head[_START] else 0
    block = bytearray(head[_START : _START + length])
    at = _dictionary_at(block) if len(block) == length else None
    if at is None or not code < block[at] < len(_SIZES_BY_CODE):
        return head, None
    said, block[at] = _SIZES_BY_CODE[block[at]], code
    block[-_CRC.size :] = _CRC.pack(zlib.crc32(block[: -_CRC.size]))
    return head[:_START] + block + head[_START + length :], said


def _limited_alone(head: bytes, code: int) -> tuple[bytes, int | None]:
    if len(head) < 1 + _ALONE.size:
        return head, None
    (said,) = _ALONE.unpack_from(head, 1)
    if said <= _SIZES_BY_CODE[code]:
        return head, None
    return head[:1] + _ALONE.pack(_SIZES_BY_CODE[code]) + head[1 + _ALONE.size :], said


def _dictionary_at(block: bytearray) -> int | None:
    """Where the header of a block has the size of LZMA2's dictionary, None where it has none or is damaged."""
    if (
        len(block) <= 2 * _CRC.size
        or zlib.crc32(block[: -_CRC.size]) != _CRC.unpack_from(block, len(block) - _CRC.size)[0]
    ):
        return None
    flags, at = block[1], 2
    try:
        for has_size in _SIZES:
            if flags & has_size:
                at = _behind_number(block, at)
        for _ in range((flags & _FILTERS) + 1):
            at, is_lzma2 = _behind_number(block, at), block[at] == _LZMA2
            length, at = block[at], _behind_number(block, at)
            if is_lzma2:
                return at if length == 1 else None
            at += length
    except IndexError:
        return None
    return None


def _behind_number(data: bytearray, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1
