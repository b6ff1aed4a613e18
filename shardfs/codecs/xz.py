"""xz streams, one or several, and the older .lzma format: https://tukaani.org/xz/xz-file-format.txt."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._members import Members

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream

# xz -9 needs 65 MiB. Data may ask for 4 GiB.
_MEMORY = 256 << 20


class Xz:
    """The codec `xz`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (lzma.LZMAError, EOFError)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return Members(blob, _begin)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: only the index at the end of a stream says."""
        return None


def _begin() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=_MEMORY)
