"""bzip2 streams, one or several."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._members import Members

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream

# What the program bzip2 makes in a call, and loses where it meets damage. What is behind the last of these in a block
# whose checksum is wrong can't be told from damage anyway.
_CALL = 5000


class Bzip2:
    """The codec `bz2`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (OSError, EOFError)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        """Looks back over no more than a block of 900 KB, so *most* is no matter."""
        return Members(blob, _begin, step=_CALL)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: bzip2 does not say."""
        return None


def _begin(head: bytes) -> tuple[bz2.BZ2Decompressor, bytes]:
    return bz2.BZ2Decompressor(), head
