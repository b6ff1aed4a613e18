"""gzip streams (RFC 1952), of one or several members."""

from __future__ import annotations

import gzip
import zlib
from typing import IO, TYPE_CHECKING, ClassVar, cast

from shardfs.codecs._gzip_members import GzipMembers
from shardfs.codecs._source import Source
from shardfs.codecs._zlib import library

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Gzip:
    """The codec `gz`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (gzip.BadGzipFile, zlib.error, EOFError)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        if library() is not None:
            return GzipMembers(blob)
        return cast("Stream", gzip.GzipFile(fileobj=cast("IO[bytes]", Source(blob)), mode="rb"))

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: what a member says at its end is modulo 2^32 and counts that member only."""
        return None
