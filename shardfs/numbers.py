"""Numbers and truth values as text: the shortest that reads back as the same value in its own width."""

from __future__ import annotations

import math
import struct
from functools import lru_cache, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[memoryview], str | None]
    """From the bytes of a value to its text, None where they are none."""

# struct's code for a float of that many bytes
_CODES = {2: "e", 4: "f", 8: "d"}
# bits of the significand, decimal digits that always survive (FLT_DIG in C), the smallest normal number (FLT_MIN)
_LIMITS = {"e": (11, 3, 2.0**-14), "f": (24, 6, 2.0**-126)}


def scalar_text(dtype: str, data: bytes | memoryview) -> str | None:
    """The value in *data* as text; None where the type is unknown or *data* is not one value of it.

    Floats look as Python and NumPy show them (`1.0`, `1e-07`, `nan`, `-inf`), complex numbers as Python
    reads them (`1+2j`), truth values as in JSON. *dtype* is as in ``numpy.dtype.str``.
    """
    known = _reader(dtype)
    return known[1](memoryview(data)) if known and len(data) == known[0] else None


@lru_cache(maxsize=64)
def _reader(dtype: str) -> tuple[int, Reader] | None:
    """How many bytes a value takes, and what reads it."""
    order, kind, digits = dtype[:1], dtype[1:2], dtype[2:]
    if order not in ("<", ">", "|") or not (digits.isascii() and digits.isdigit()):
        return None
    width, is_big = int(digits), order == ">"
    if kind == "b" and width == 1:
        return width, _truth
    if kind in ("i", "u") and width in (1, 2, 4, 8, 16):
        return width, partial(_integer, is_big=is_big, is_signed=kind == "i")
    if kind == "f" and width in _CODES:
        return width, partial(_float, code=(">" if is_big else "<") + _CODES[width])
    if kind == "c" and width in (8, 16):
        return width, partial(_complex, code=(">" if is_big else "<") + _CODES[width // 2])
    return None


def _truth(data: memoryview) -> str | None:
    return {0: "false", 1: "true"}.get(data[0])


def _integer(data: memoryview, *, is_big: bool, is_signed: bool) -> str:
    return str(int.from_bytes(data, "big" if is_big else "little", signed=is_signed))


def _float(data: memoryview, *, code: str) -> str:
    (value,) = struct.unpack(code, data)
    return float_text(value, code)


def _complex(data: memoryview, *, code: str) -> str:
    half = len(data) // 2
    real, imaginary = (
        _float(data[at : at + half], code=code).removesuffix(".0") for at in (0, half)
    )
    if real == "0":
        return f"{imaginary}j"
    sign = "" if imaginary.startswith("-") else "+"
    return f"{real}{sign}{imaginary}j"


def float_text(value: float, code: str) -> str:
    """The shortest text for a float of the width that struct's *code* (`<e`, `<f`, `<d`) stands for.

    Python's form with as few digits as tell the value from its neighbours in that width; where all digits
    take no more room (`16777217.0` and not `16777220.0`), all of them.
    """
    exact = repr(value)
    if code[-1] == "d" or not math.isfinite(value):
        return exact
    packed = struct.pack(code, value)
    bits, sure, least = _LIMITS[code[-1]]
    # Below a power of two the floats lie twice as close, so that the shortest may lie above, further off than
    # the nearest of as many digits: look from the upper end of the values that round to it, too.
    is_power = abs(math.frexp(value)[0]) == 0.5
    seen = (value, value * (1 + 2.0**-bits)) if is_power else (value,)
    for digits in range(sure if abs(value) >= least else 1, 10):
        for near in seen:
            candidate = float(f"{near:.{digits}g}")
            if _packs_to(candidate, code, packed):
                return min(exact, repr(candidate), key=len)
    return exact


def _packs_to(value: float, code: str, packed: bytes) -> bool:
    try:
        return struct.pack(code, value) == packed
    except OverflowError:  # rounded up beyond the largest of its width
        return False
