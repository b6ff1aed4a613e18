"""Brotli streams (RFC 7932), which have neither a magic number nor a checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._arrow import ArrowStream

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Brotli:
    """The codec `br`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return ArrowStream(blob, "brotli")

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: Brotli does not say."""
        return None
