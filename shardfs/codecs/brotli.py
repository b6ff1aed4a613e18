"""Brotli streams (RFC 7932), which have neither a magic number nor a checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from shardfs.codecs._source import Source

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Brotli:
    """The codec `br`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError,)  # pyarrow's

    @staticmethod
    def stream(blob: Blob) -> Stream:
        import pyarrow as pa

        source = pa.PythonFile(Source(blob), mode="r")
        return cast("Stream", pa.CompressedInputStream(source, "brotli"))

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: Brotli does not say."""
        return None
