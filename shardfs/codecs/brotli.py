"""Brotli streams (RFC 7932), which have neither a magic number nor a checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._arrow import ArrowStream
from shardfs.codecs._careful import Careful
from shardfs.codecs._source import Source

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Brotli:
    """The codec `br`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        """Looks back over no more than 16 MB, so *most* is no matter."""
        return Careful(lambda single: ArrowStream(Source(blob, single), "brotli"), Brotli.damage)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: Brotli does not say."""
        return None
