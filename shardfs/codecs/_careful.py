"""What libraries lose in a call that meets damage, made after all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from shardfs.errors import LASTING, Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

_SKIP = 256 << 10


class Steps(Protocol):
    """A stream whose steps may be of any size.

    Attributes:
        step: the most bytes that a call makes.
    """

    step: int

    @property
    def last(self) -> int:
        """Where the part of the compressed data begins that was read last."""
        ...

    def readinto1(self, target: memoryview, /) -> int: ...


class Careful:
    """A stream that goes to damage a second time, byte by byte.

    Libraries raise on damage without a word about the bytes before it that the same call has brought about. So what
    comes before the damage would depend on where the calls begin.
    """

    def __init__(
        self, begin: Callable[[int | None], Steps], damage: tuple[type[Exception], ...]
    ) -> None:
        """*begin* a stream, which reads single bytes from an offset on; it raises *damage*."""
        self._begin = begin
        self._damage: tuple[type[Exception], ...] = (*damage, *LASTING)
        self._stream, self._done = begin(None), 0
        self._is_second = False

    def readinto1(self, target: memoryview, /) -> int:
        try:
            count = self._stream.readinto1(target)
        except self._damage:
            if self._is_second:
                raise
            self._go_back()
            count = self._stream.readinto1(target)
        self._done += count
        return count

    def _go_back(self) -> None:
        self._is_second = True
        stream, left = self._begin(self._stream.last), self._done
        target = memoryview(bytearray(min(left, _SKIP)))
        while left:
            count = stream.readinto1(target[:left])
            if not count:
                raise Corrupt("decompresses to fewer bytes than before")
            left -= count
        stream.step = 1
        self._stream = stream
