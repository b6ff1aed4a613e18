"""Compressed streams one after another in a file, read as one: what bzip2 and xz files may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from shardfs.codecs._source import Source
from shardfs.errors import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

_READ = 128 << 10
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
        *,
        step: int,
    ) -> None:
        """*begin* has the first bytes of a stream, and gives those that its decompressor shall have instead.

        Always *step* bytes are made together, whatever the size of targets: so many are lost where damage is met.
        """
        self.step, self._begin = step, begin
        self._source = Source(blob)
        self._stream: Decompressor | None = None
        self._input, self._output = b"", memoryview(b"")

    @property
    def last(self) -> int:
        return 0  # the library makes no more than it is asked for, so that the size of parts is no matter

    def readinto1(self, target: memoryview, /) -> int:
        while not self._output:
            if (self._stream is None or self._stream.eof) and not self._next(self._stream):
                return 0
            self._output = self._make()
        count = min(len(target), len(self._output))
        target[:count], self._output = self._output[:count], self._output[count:]
        return count

    def _make(self) -> memoryview:
        """The next *step* bytes of a stream, fewer at its end."""
        stream, made = self._stream, bytearray()
        while stream is not None and len(made) < self.step and not stream.eof:
            if stream.needs_input and not self._input:
                self._input = self._source.read(_READ)
                if not self._input:
                    raise EOFError("the data ends inside a compressed stream")
            data, self._input = self._input, b""
            try:
                made += stream.decompress(data, self.step - len(made))
            except MemoryError as error:
                raise Unreadable("no memory for what the data look back over") from error
        return memoryview(made)

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
