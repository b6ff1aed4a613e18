"""bzip2 streams, one or several."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._members import Members

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream


class Bzip2:
    """The codec `bz2`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError, EOFError)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return Members(blob, bz2.BZ2Decompressor)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: bzip2 does not say."""
        return None
