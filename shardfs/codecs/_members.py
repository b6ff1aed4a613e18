"""Compressed streams one after another in a file, read as one: what bzip2 and xz files may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from shardfs.codecs._source import Source
from shardfs.errors import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

_READ = 128 << 10
# Enough that a call's own cost does not count.
_STEP = 64 << 10
# The beginning of a stream that is looked at: what xz has before its first data, at most.
_HEAD = 12 + 1024


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

    def __init__(
        self,
        blob: Blob,
        begin: Callable[[bytes], tuple[Decompressor, bytes]],
        single_from: int | None = None,
    ) -> None:
        """*begin* has the first bytes of a stream, and gives those that its decompressor shall have instead."""
        self.step, self._begin = _STEP, begin
        self._source = Source(blob, single_from)
        self._stream: Decompressor | None = None
        self._input = b""

    @property
    def last(self) -> int:
        return self._source.last

    def readinto1(self, target: memoryview, /) -> int:
        while target:
            if self._stream is None or self._stream.eof:
                if not self._next(self._stream):
                    break
                continue
            if self._stream.needs_input and not self._input:
                self._input = self._source.read(_READ)
                if not self._input:
                    raise EOFError("the data ends inside a compressed stream")
            data, self._input = self._input, b""
            try:
                output = self._stream.decompress(data, min(len(target), self.step))
            except MemoryError as error:
                raise Unreadable("no memory for what the data look back over") from error
            if output:
                target[: len(output)] = output
                return len(output)
        return 0

    def _next(self, before: Decompressor | None) -> bool:
        """Go on to the stream behind the one *before*, if there is one."""
        head = b"" if before is None else before.unused_data.lstrip(b"\0")
        while len(head) < _HEAD and (data := self._source.read(_READ)):
            head += data
            head = head if before is None else head.lstrip(b"\0")
        if before is not None and not head:
            return False
        self._stream, self._input = self._begin(head)
        return True
