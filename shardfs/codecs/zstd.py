"""zstd streams (RFC 8878), of one or several frames."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, ClassVar, cast

import zstandard

from shardfs.codecs._source import Source
from shardfs.codecs._zstd_frames import frames
from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream

_READ = 256 << 10
# The largest frame header (RFC 8878, 3.1.1).
_HEADER = 18


class Zstd:
    """The codec `zstd`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (zstandard.ZstdError,)

    @staticmethod
    def stream(blob: Blob) -> Stream:
        return _Frames(blob)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """What the first frame says it holds, None where it does not say."""
        try:
            size = zstandard.frame_content_size(bytes(blob.read(0, _HEADER)))
        except zstandard.ZstdError as error:
            raise Corrupt(f"is no zstd data ({error})") from error
        return None if size < 0 else size


class _Frames:
    """All frames of a blob. The library's reader takes a cut frame for the end."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._reader = zstandard.ZstdDecompressor().stream_reader(
            cast("IO[bytes]", Source(blob)), read_size=_READ, read_across_frames=True
        )

    def readinto1(self, target: memoryview, /) -> int:
        count = self._reader.readinto1(target)
        if not count:
            for _ in frames(self._blob):
                pass  # raises where one is cut
        return count
