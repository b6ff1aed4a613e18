"""Compressed streams one after another in a file, read as one: what bzip2 and xz files may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from shardfs.codecs._source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

_READ = 128 << 10
# What a call decodes before damage in it is lost: not much, but enough that a call's own cost does not count.
_STEP = 64 << 10


class Decompressor(Protocol):
    """What the standard library's decompressors are."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Members:
    """All streams in a blob. The library's file objects take a damaged stream behind a whole one for the end.

    Raises EOFError where the blob ends inside a stream. Zeros between and behind streams are padding.
    """

    def __init__(self, blob: Blob, begin: Callable[[], Decompressor]) -> None:
        self._source, self._begin = Source(blob), begin
        self._stream, self._input = begin(), b""

    def readinto1(self, target: memoryview, /) -> int:
        while target:
            if self._stream.eof and not self._next():
                break
            if self._stream.needs_input and not self._input:
                self._input = self._source.read(_READ)
                if not self._input:
                    raise EOFError("the data ends inside a compressed stream")
            data, self._input = self._input, b""
            output = self._stream.decompress(data, min(len(target), _STEP))
            if output:
                target[: len(output)] = output
                return len(output)
        return 0

    def _next(self) -> bool:
        """Go on to the next stream, if there is one."""
        rest = self._stream.unused_data
        while not (rest := rest.lstrip(b"\0")):
            rest = self._source.read(_READ)
            if not rest:
                return False
        self._stream, self._input = self._begin(), rest
        return True
