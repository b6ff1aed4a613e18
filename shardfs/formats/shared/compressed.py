"""Whole files that may be compressed: by which codec, their first bytes tell, since their names may be wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.model import Services
    from shardfs.stores import Entry, Store

_MAGIC = (
    (b"\x1f\x8b\x08", "gz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    # Text may begin with BZh: behind the level stands the magic number of a block, or of the end of nothing.
    *(
        (b"BZh%d%b" % (n, block), "bz2")
        for n in range(1, 10)
        for block in (b"1AY&SY", b"\x17rE8P\x90")
    ),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x02\x21\x4c\x18", "lz4"),  # lz4 -l
    # Before zstd 1.0: they can't be read, and the codec says so.
    *((bytes([first]) + b"\xb5\x2f\xfd", "zstd") for first in (0x1E, *range(0x22, 0x28))),
)
_HEAD = 16
# Frames to be skipped, in zstd (RFC 8878, 3.1.2) and LZ4 alike: pzstd puts one first.
_SKIPPABLE = b"\x2a\x4d\x18"
_MAX_SKIPPED = 16


# What .lzma files begin with: properties, size of the dictionary, size of the content (all bits for unknown), and a
# byte of the coder that is always 0. The format has no magic number; these are the limits of XZ Utils.
_LZMA = struct.Struct("<BIQB")
_LZMA_PROPERTIES, _LZMA_LARGEST, _UNKNOWN = 9 * 5 * 5, 1 << 38, (1 << 64) - 1
# Brotli has nothing to tell it by: the name must.
_BROTLI = ".br"


def codec_of(blob: Blob, name: str = "") -> str | None:
    """The codec of a compressed file, None for any other; *name* counts where the content can't tell."""
    at = 0
    for _ in range(_MAX_SKIPPED):
        head = bytes(blob.read(at, _HEAD))
        if head[1:4] != _SKIPPABLE or head[0] & 0xF0 != 0x50:
            break
        at += 8 + int.from_bytes(head[4:8], "little")
    found = next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)
    if found is None and _is_lzma(head):
        return "xz"
    return "br" if found is None and name.lower().endswith(_BROTLI) else found


def _is_lzma(head: bytes) -> bool:
    """Whether a file of the format before xz begins so."""
    if len(head) < _LZMA.size:
        return False
    properties, dictionary, size, first = _LZMA.unpack_from(head)
    step = dictionary & -dictionary  # a power of two, or that and its half
    is_usual = dictionary == 0xFFFFFFFF or (step and dictionary in (step, 3 * step))
    is_size = size == _UNKNOWN or size < _LZMA_LARGEST
    return bool(properties < _LZMA_PROPERTIES and is_usual and is_size and not first)


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds.

    Attributes:
        blob: its bytes, decompressed.
        size: how many they are, None where only decompression tells.
        stored: bytes of the file as it is.
    """

    blob: Blob
    size: int | None
    stored: int


def open_content(store: Store, entry: Entry, services: Services) -> Content:
    """The content of the file *entry*, decompressed if it is compressed."""
    blob = store.open(entry.path)
    stored, codec = blob.size(), codec_of(blob, entry.name)
    if codec is None:
        return Content(blob, stored, stored)
    return Content(services.unpack(store, entry, codec), None, stored)
