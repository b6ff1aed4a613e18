"""Places in gzip files from which decompression can begin: borders of members, and of deflate blocks.

A block border needs the 32 KiB before it to go on from, which are kept with it, compressed (zlib's examples/zran.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import zstandard

from shardfs.codecs import damage_of
from shardfs.codecs._gzip_members import GzipMembers, Place
from shardfs.codecs._zlib import WINDOW, library
from shardfs.codecs.pieces import Piece, Unsuited
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.codecs import Codec, Stream

# Decompressed bytes between two places: 15 ms of work, and about 4 MB of windows a GB. In large files the distance
# grows with what lies before, so that the windows of a file of 100 GB still fit in memory while it is looked through.
_SPACING = 4 << 20
_SPREAD = 1024
# A member's border costs no window.
_MEMBER_SPACING = 1 << 20
_STEP = 256 << 10


class GzipPoints:
    """Pieces of gzip files. Their state is nothing at a member's border, else the bits and the window of a place."""

    def pieces(self, blob: Blob, largest: int, /) -> Iterator[Piece]:
        if library() is None:
            raise Unsuited("there is no zlib")
        members, target = GzipMembers(blob), memoryview(bytearray(_STEP))
        content, total = bytearray(), 0
        first, state = 0, b""
        try:
            while not members.done:
                due = len(content) >= min(max(_SPACING, total // _SPREAD), largest // 2)
                content += target[: members.step(target, to_border=due)]
                if len(content) > largest:
                    raise Unsuited("a gzip file without places to start from")
                next_first, next_state = _place(members, content, due=due)
                if next_first is None:
                    continue
                yield Piece(first, members.at, len(content), state, bytes(content))
                total, content = total + len(content), bytearray()
                first, state = next_first, next_state
        except EOFError as error:
            raise Corrupt(damage_of(error)) from error
        if content:
            yield Piece(first, members.at, len(content), state, bytes(content))

    def open(self, part: Blob, state: bytes, /) -> tuple[Blob, Codec]:
        return part, _From(state)


def _place(members: GzipMembers, content: bytearray, *, due: bool) -> tuple[int | None, bytes]:
    """(offset, state) of the place that *members* stand at, if one should be there."""
    if members.is_between:
        return (members.at if len(content) >= _MEMBER_SPACING else None), b""
    bits = members.border
    if not due or bits is None:
        return None, b""
    window = zstandard.compress(bytes(content[-WINDOW:]), 1)
    return members.at - (bits > 0), bytes([bits]) + window


class _From:
    """The codec of a piece that begins with *state*."""

    damage: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, state: bytes) -> None:
        self._state = state

    def stream(self, blob: Blob, most: int, /) -> Stream:
        place = None
        if self._state:
            try:
                window = zstandard.decompress(self._state[1:], max_output_size=WINDOW)
            except zstandard.ZstdError as error:
                raise Corrupt("damaged index of a gzip file: use --rebuild-index") from error
            place = Place(window, self._state[0] & 7)
        return GzipMembers(blob, place, is_part=True)

    def content_size(self, blob: Blob, /) -> int | None:
        return None
