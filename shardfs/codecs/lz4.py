"""LZ4 frames, one or several: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._arrow import ArrowStream

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Lz4:
    """The codec `lz4`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return ArrowStream(blob, "lz4")

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: a frame may say it, but there may be more of them."""
        return None
