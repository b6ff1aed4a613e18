"""The streams of those codecs that pyarrow brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.codecs._source import Source

if TYPE_CHECKING:
    from shardfs.blob import Blob

# What a call decodes before damage in it is lost: small, but enough that a call's own cost (2 us) does not count.
_STEP = 16 << 10


class ArrowStream:
    """One or several streams of a codec by pyarrow's name for it. Raises OSError on damage, a missing end included."""

    def __init__(self, blob: Blob, name: str) -> None:
        import pyarrow as pa

        source = pa.PythonFile(Source(blob), mode="r")
        self._stream = pa.CompressedInputStream(source, name)

    def readinto1(self, target: memoryview, /) -> int:
        return int(self._stream.readinto(target[:_STEP]))
