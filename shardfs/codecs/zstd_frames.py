"""Frames of zstd files as pieces: every frame stands for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zstandard

from shardfs.blob import Slice
from shardfs.codecs._zstd_frames import frames, seek_table
from shardfs.codecs.pieces import Piece, Unsuited
from shardfs.codecs.zstd import Zstd
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.codecs import Codec
    from shardfs.codecs._zstd_frames import Frame

# Small frames are taken together up to this many bytes, since every piece costs an object and a turn of a loop.
_GROUP = 1 << 20
_STEP = 256 << 10


class ZstdFrames:
    """Pieces of zstd files. They have no state."""

    def pieces(self, blob: Blob, largest: int, /) -> Iterator[Piece]:
        group: list[Piece] = []
        size = stored = 0
        for frame in seek_table(blob) or frames(blob, largest):
            piece = _piece(blob, frame, largest)
            if group and (size + piece.size > _GROUP or stored > _GROUP):
                if size:
                    yield _joined(group)
                group, size, stored = [], 0, 0
            group.append(piece)
            size, stored = size + piece.size, stored + piece.last - piece.first
        if size:
            yield _joined(group)

    def open(self, part: Blob, state: bytes, /) -> tuple[Blob, Codec]:
        return part, Zstd


def _piece(blob: Blob, frame: Frame, largest: int) -> Piece:
    content, size = None, frame.size
    if not size:  # unknown, or nothing
        content = b"" if size == 0 else _content(blob, frame, largest)
        size = len(content)
    if size > largest:
        raise Unsuited(f"a zstd frame of {size} bytes")
    return Piece(frame.start, frame.stop, size, b"", content)


def _content(blob: Blob, frame: Frame, largest: int) -> bytes:
    """What a frame holds that does not say how much it is."""
    stream = Zstd.stream(Slice(blob, frame.start, frame.stop - frame.start), largest)
    target, content = memoryview(bytearray(_STEP)), bytearray()
    try:
        while (count := stream.readinto1(target)) and len(content) <= largest:
            content += target[:count]
    except zstandard.ZstdError as error:
        raise Corrupt(
            f"damaged zstd frame at offset {frame.start}: fetch or write the file anew"
        ) from error
    return bytes(content)


def _joined(group: Sequence[Piece]) -> Piece:
    contents = [piece.content for piece in group if piece.content is not None]
    content = b"".join(contents) if len(contents) == len(group) else None
    size = sum(piece.size for piece in group)
    return Piece(group[0].first, group[-1].last, size, b"", content)
