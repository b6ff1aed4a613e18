"""Whether bytes are a JPEG XL codestream (ISO/IEC 18181-1): two bytes of magic number, so the headers must make sense.

Token arrays begin like it often enough. What is read: size, metadata of the image, and the beginning of the first
frame's header.
"""

from __future__ import annotations

_MOST_GROUP = 1 << 20
# What the high bytes of tokens stay below, in vocabularies of up to 51,200 words.
_LOW = 200
# So many high bytes below so much are small numbers.
_FEW = 4
_FLAGS = 1 | 2 | 16 | 32 | 128
_MAX_ENUM = 63
_GREY, _XYB = 1, 2
_ALPHA, _SPOT, _CFA = 0, 2, 5


class _NoneError(Exception):
    """It is no codestream."""


class _Bits:
    """Fields of a codestream, least significant bit first."""

    def __init__(self, data: bytes) -> None:
        self._number, self._size, self.at = int.from_bytes(data, "little"), 8 * len(data), 0

    def u(self, count: int) -> int:
        if self.at + count > self._size:
            raise _NoneError
        value = self._number >> self.at & ((1 << count) - 1)
        self.at += count
        return value

    def u32(self, *ways: tuple[int, int]) -> int:
        """One of four ways: a number, plus so many bits."""
        base, bits = ways[self.u(2)]
        return base + self.u(bits)

    def u64(self) -> int:
        way = self.u(2)
        if way < 3:
            return (0, 1 + self.u(4), 17 + self.u(8))[way] if way else 0
        value, shift = self.u(12), 12
        while self.u(1):
            if shift == 60:
                return value | self.u(4) << shift
            value |= self.u(8) << shift
            shift += 8
        return value

    def enum(self) -> int:
        value = self.u32((0, 0), (1, 0), (2, 4), (18, 6))
        return self.need(value, value <= _MAX_ENUM)

    def half(self) -> int:
        value = self.u(16)
        return self.need(value, value >> 10 & 31 != 31)  # neither infinite nor no number

    @staticmethod
    def need(value: int, right: object) -> int:
        if not right:
            raise _NoneError
        return value


def is_codestream(head: bytes, size: int) -> bool:
    """Whether a file of *size* bytes that begins with *head*, FF 0A first, is one."""
    bits = _Bits(head[2:514])
    if _are_numbers(head[4:]):
        return False
    try:
        _check(bits, size)
    except _NoneError:
        return False
    return True


def _are_numbers(data: bytes) -> bool:
    """Whether bytes are rather an array of numbers of 2 or more bytes: their highest bytes stay low.

    In a picture they do by a chance of less than one in ten thousand.
    """
    columns = ((width, data[first::width]) for width in (2, 4, 8) for first in range(width))
    if any(
        len(column) >= (40 if width == 2 else 64) and max(column) < _LOW
        for width, column in columns
    ):
        return True
    few = [data[1::2], data[3::4]]  # small numbers show sooner
    return any(len(column) >= _FEW and max(column) < _FEW for column in few)


def _check(bits: _Bits, size: int) -> None:
    width, height = _size(bits)
    # Each group of at most 1024 x 1024 pixels takes more than a byte in the table of contents.
    bits.need(width, width * height <= size * _MOST_GROUP)
    xyb, channels, icc = True, 0, False
    if not bits.u(1):
        xyb, channels, icc = _metadata(bits)
    bits.need(0, bits.u(1))  # no encoder writes matrices and weights of its own
    if icc:
        length = bits.u64()
        bits.need(length, 0 < length < 4 * size)
        return
    bits.need(0, not bits.u(-bits.at % 8))
    _frame(bits, xyb=xyb, channels=channels)


def _size(bits: _Bits) -> tuple[int, int]:
    small = bits.u(1)

    def side() -> int:
        if small:
            return 8 * (1 + bits.u(5))
        return bits.u32((1, 9), (1, 13), (1, 18), (1, 30))

    height, ratio = side(), bits.u(3)
    if not ratio:
        return side(), height
    up, down = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))[ratio - 1]
    return height * up // down, height


def _metadata(bits: _Bits) -> tuple[bool, int, bool]:
    """(whether its colours are XYB, extra channels, whether an ICC profile follows)."""
    extra = bits.u(1)
    if extra:
        bits.u(3)
        if bits.u(1):
            _size(bits)
        if bits.u(1):
            _preview(bits)
        if bits.u(1):
            bits.u32((100, 0), (1000, 0), (1, 10), (1, 30))
            bits.u32((1, 0), (1001, 0), (1, 8), (1, 10))
            bits.u32((0, 0), (0, 3), (0, 16), (0, 32))
            bits.u(1)
    _depth(bits)
    bits.u(1)
    channels = bits.u32((0, 0), (1, 0), (2, 4), (1, 12))
    bits.need(channels, channels <= 256)
    for _ in range(channels):
        _channel(bits)
    xyb, icc = bool(bits.u(1)), False
    if not bits.u(1):
        icc = _colours(bits)
    if extra and not bits.u(1):
        bits.half(), bits.half(), bits.u(1), bits.half()
    bits.need(0, not bits.u64())  # extensions: none are defined
    return xyb, channels, icc


def _preview(bits: _Bits) -> None:
    whole = bits.u(1)
    ways = (
        ((16, 0), (32, 0), (1, 5), (33, 9)) if whole else ((1, 6), (65, 8), (321, 10), (1345, 12))
    )
    bits.u32(*ways)
    if not bits.u(3):
        bits.u32(*ways)


def _depth(bits: _Bits) -> None:
    if not bits.u(1):
        depth = bits.u32((8, 0), (10, 0), (12, 0), (1, 6))
        bits.need(depth, depth <= 31)
    else:
        depth, exponent = bits.u32((32, 0), (16, 0), (24, 0), (1, 6)), 1 + bits.u(4)
        bits.need(depth, 2 <= exponent <= 8 and 2 <= depth - exponent - 1 <= 23)


def _channel(bits: _Bits) -> None:
    if bits.u(1):
        return
    kind = bits.enum()
    _depth(bits)
    bits.u32((0, 0), (3, 0), (4, 0), (1, 3))
    for _ in range(bits.u32((0, 0), (0, 4), (16, 5), (48, 10))):
        bits.u(8)
    if kind == _ALPHA:
        bits.u(1)
    for _ in range(4 if kind == _SPOT else 0):
        bits.half()
    if kind == _CFA:
        bits.u32((1, 0), (0, 2), (3, 4), (19, 8))


def _colours(bits: _Bits) -> bool:
    """Whether an ICC profile tells the colours."""
    icc, space = bool(bits.u(1)), bits.enum()
    bits.need(space, space <= 3)
    if icc:
        return True
    if space != _XYB:
        white = bits.enum()
        bits.need(white, white in (1, 2, 10, 11))
        if white == 2:
            _point(bits)
        if space != _GREY:
            primaries = bits.enum()
            bits.need(primaries, primaries in (1, 2, 9, 11))
            for _ in range(3 if primaries == 2 else 0):
                _point(bits)
    if bits.u(1):
        gamma = bits.u(24)
        bits.need(gamma, 0 < gamma <= 10_000_000)
    else:
        transfer = bits.enum()
        bits.need(transfer, transfer in (1, 2, 8, 13, 16, 17, 18))
    intent = bits.enum()
    bits.need(intent, intent <= 3)
    return False


def _point(bits: _Bits) -> None:
    for _ in range(2):
        bits.u32((0, 19), (524288, 19), (1048576, 20), (2097152, 21))


def _frame(bits: _Bits, *, xyb: bool, channels: int) -> None:
    if bits.u(1):
        return
    kind, modular, flags = bits.u(2), bits.u(1), bits.u64()
    bits.need(flags, not flags & ~_FLAGS)
    bits.need(kind, xyb or not modular or not flags & 128 or kind != 1)
    if not xyb and bits.u(1) and not flags & 32:
        bits.u(6)
    if not flags & 32:
        for _ in range(1 + channels):
            bits.u(2)
    if modular:
        bits.u(2)
    elif xyb:
        bits.u(6)
    if kind != 2:
        passes = bits.u32((1, 0), (2, 0), (3, 0), (4, 3))
        bits.need(passes, passes <= 11)
