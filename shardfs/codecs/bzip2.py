"""bzip2 streams, one or several."""

from __future__ import annotations

import bz2
from typing import IO, TYPE_CHECKING, ClassVar, cast

from shardfs.codecs._source import Source

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Bzip2:
    """The codec `bz2`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError, EOFError)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return cast("Stream", bz2.BZ2File(cast("IO[bytes]", Source(blob))))

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: bzip2 does not say."""
        return None
