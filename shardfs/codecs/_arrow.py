"""The streams of those codecs that pyarrow brings."""

from __future__ import annotations

from typing import Protocol

# Small, but enough that a call's own cost (2 us) does not count.
_STEP = 16 << 10


class File(Protocol):
    """What it reads from, beside that pyarrow closes it.

    Attributes:
        last: as in ``Steps``.
    """

    closed: bool
    last: int

    def read(self, length: int, /) -> bytes: ...
    def close(self) -> None: ...


class ArrowStream:
    """One or several streams of a codec by pyarrow's name for it. Raises OSError on damage, a missing end included."""

    def __init__(self, source: File, name: str) -> None:
        import pyarrow as pa

        self.step, self._source = _STEP, source
        self._stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), name)

    @property
    def last(self) -> int:
        return self._source.last

    def readinto1(self, target: memoryview, /) -> int:
        return int(self._stream.readinto(target[: self.step]))
