"""Whole files that may be compressed: by which codec, their first bytes tell, since their names may be wrong."""

from __future__ import annotations

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
)
_HEAD = 16
# Frames to be skipped, in zstd (RFC 8878, 3.1.2) and LZ4 alike: pzstd puts one first.
_SKIPPABLE = b"\x2a\x4d\x18"
_MAX_SKIPPED = 16


def codec_of(blob: Blob) -> str | None:
    """The codec of a compressed file, None for any other."""
    at = 0
    for _ in range(_MAX_SKIPPED):
        head = bytes(blob.read(at, _HEAD))
        if head[1:4] != _SKIPPABLE or head[0] & 0xF0 != 0x50:
            break
        at += 8 + int.from_bytes(head[4:8], "little")
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


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
    stored, codec = blob.size(), codec_of(blob)
    if codec is None:
        return Content(blob, stored, stored)
    return Content(services.unpack(store, entry, codec), None, stored)
