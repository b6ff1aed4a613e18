"""The members of a gzip file (RFC 1952) one after another, from the beginning or from a place inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shardfs.codecs._zlib import Inflater

if TYPE_CHECKING:
    from shardfs.blob import Blob

_READ = 128 << 10
# CRC and length behind a member's deflate data.
_TRAILER = 8


class Place(NamedTuple):
    """A border between two deflate blocks, from which decompression can begin.

    Attributes:
        window: the decompressed bytes before it, as many as the data behind it may refer to.
        bits: how many bits of the byte before its offset belong to the data behind it.
    """

    window: bytes
    bits: int


class GzipMembers:
    """A stream over the members in a blob. Zeros between and behind them are padding.

    Attributes:
        at: the offset in the blob of what was not used yet.
        done: whether the blob's end was reached.
    """

    def __init__(self, blob: Blob, place: Place | None = None, *, is_part: bool = False) -> None:
        """Begin at the beginning of *blob*, with a member or at *place*; only *is_part* may end inside a member.

        With bits in *place*, the blob begins with the byte that they are in.
        """
        self._blob, self._is_part, self._is_raw = blob, is_part, place is not None
        self._input, self._used, self._next = b"", 0, 0
        self.done = False
        # None between two members: a part may begin with padding.
        self._inflater = None if is_part else Inflater(raw=False)
        if place is not None:
            value = 0
            if place.bits:
                value = blob.read(0, 1)[0] >> (8 - place.bits)
                self._next = 1
            self._inflater = Inflater(raw=True, window=place.window, bits=place.bits, value=value)

    @property
    def at(self) -> int:
        return self._next - len(self._input) + self._used

    @property
    def is_between(self) -> bool:
        """Whether a member has ended and the next has not begun."""
        return self._inflater is None or self._inflater.ended

    @property
    def border(self) -> int | None:
        """As in ``Inflater``."""
        return None if self._inflater is None else self._inflater.border

    def readinto1(self, target: memoryview, /) -> int:
        while not self.done:
            count = self.step(target)
            if count:
                return count
        return 0

    def step(self, target: memoryview, *, to_border: bool = False) -> int:
        """Decompress a little; how many bytes that made. Stops at the border behind a block if that is wanted."""
        inflater = self._inflater
        if inflater is None or inflater.ended:
            inflater = self._begin_member()
            if inflater is None:
                return 0
        has_input = self._fill()
        used, made = inflater.run(self._input, self._used, target, to_border=to_border)
        self._used += used
        if not (has_input or made):  # zlib has handed out all that it held back, too
            if not self._is_part:
                raise EOFError("the data ends inside a gzip member")
            self.done = True
        return made

    def _begin_member(self) -> Inflater | None:
        if self._is_raw:
            self._next, self._input, self._used = self.at + _TRAILER, b"", 0
            self._is_raw = False
        while self._fill():
            rest = self._input[self._used :].lstrip(b"\0")
            if rest:
                self._input, self._used = rest, 0
                self._inflater = Inflater(raw=False)
                return self._inflater
            self._used = len(self._input)
        self.done = True
        return None

    def _fill(self) -> bool:
        """Have input at hand; whether there is any."""
        if self._used == len(self._input):
            self._input, self._used = bytes(self._blob.read(self._next, _READ)), 0
            self._next += len(self._input)
        return bool(self._input)
