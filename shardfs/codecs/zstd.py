"""zstd streams (RFC 8878), of one or several frames."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, cast

import zstandard

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream

_READ = 256 << 10
# The largest frame header (RFC 8878, 3.1.1).
_HEADER = 18


class Zstd:
    """The codec `zstd`."""

    damage = (zstandard.ZstdError,)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        source = cast("IO[bytes]", _Source(blob))
        reader = zstandard.ZstdDecompressor().stream_reader(
            source, read_size=_READ, read_across_frames=True
        )
        return cast("Stream", reader)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """What the first frame says it holds, None where it does not say."""
        try:
            size = zstandard.frame_content_size(bytes(blob.read(0, _HEADER)))
        except zstandard.ZstdError as error:
            raise Corrupt(f"is no zstd data ({error})") from error
        return None if size < 0 else size


class _Source:
    """A blob as the file object that stream_reader wants."""

    def __init__(self, blob: Blob) -> None:
        self._blob, self._at = blob, 0

    def read(self, length: int) -> bytes:
        data = self._blob.read(self._at, length)
        self._at += len(data)
        return bytes(data)
