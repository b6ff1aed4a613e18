"""CRC-32 of data that is read in another order than it lies."""

from __future__ import annotations

from functools import lru_cache

# The polynomial of CRC-32, its bits reversed, as all polynomials here: x^0 is the highest bit.
_POLYNOMIAL = 0xEDB88320
_ONE, _X = 1 << 31, 1 << 30


def joined(first: int, second: int, length: int) -> int:
    """The CRC-32 of what has the CRC-32 *first*, followed by *length* bytes that have *second*.

    As zlib's crc32_combine, which Python does not have: a CRC is a remainder, and bytes behind the first ones
    multiply theirs.
    """
    return _times(_power(length), first) ^ second


def _times(a: int, b: int) -> int:
    """The product of two polynomials, modulo that of CRC-32."""
    product, mask = 0, _ONE
    while mask:
        if a & mask:
            product ^= b
        mask >>= 1
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


@lru_cache(64)
def _power(length: int) -> int:
    """x^(8 * *length*), modulo the polynomial of CRC-32."""
    result, square, exponent = _ONE, _X, 8 * length
    while exponent:
        if exponent & 1:
            result = _times(square, result)
        square, exponent = _times(square, square), exponent >> 1
    return result
