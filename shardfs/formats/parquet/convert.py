"""What Parquet's stored values are in Arrow's form, where the two differ.

https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.types import BINARIES, TEXTS, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.formats.shared.arrow.types import DataType

    Converter: TypeAlias = Callable[[memoryview], bytes]
    """From a stored value to Arrow's bytes. Raises Corrupt."""

_EPOCH_JULIAN = 2_440_588
_DAY = 86_400
_INT96 = struct.Struct("<qi")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Physical(IntEnum):
    """How values are stored, by the numbers in parquet.thrift."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED = 7
    UNKNOWN = -1


_INTEGERS = (Physical.INT32, Physical.INT64)


def converter(physical: Physical, width: int, type_: DataType) -> Converter | None:
    """What makes values of *type_* of stored ones; None where they are the same, or the lower bytes of them."""
    kind, size = type_.type, type_.size
    if physical is Physical.INT96 and kind is Type.TIMESTAMP:
        return partial(_from_int96, unit=type_.unit)
    if kind is Type.DECIMAL and physical in (Physical.BYTE_ARRAY, Physical.FIXED):
        return partial(_resized, order="big", size=size)
    if kind is Type.DECIMAL and physical in _INTEGERS and size > width:
        return partial(_resized, order="little", size=size)
    if kind is Type.DATE and type_.unit == "ms" and physical is Physical.INT32:
        return _from_days
    return None


def fits(physical: Physical, width: int, type_: DataType) -> bool:
    """Whether stored values begin with the bytes of values of *type_*."""
    kind = type_.type
    if kind is Type.NULL or physical is Physical.UNKNOWN:
        return kind is Type.NULL
    if physical is Physical.BYTE_ARRAY:
        return kind in TEXTS or (kind in BINARIES and kind is not Type.FIXED_BINARY)
    if physical is Physical.BOOLEAN:
        return kind is Type.BOOL
    if physical in _INTEGERS:
        return 0 < type_.size <= width and kind is not Type.FLOAT
    return 0 < type_.size == width


def _from_int96(data: memoryview, unit: str) -> bytes:
    """Nanoseconds of the day and the Julian day, as Impala and old Sparks have it; 128 bits where 64 are too few.

    Spark counts microseconds in 64 bits, which wrap on the way to far days and back.
    """
    clock, day = _INT96.unpack(data)
    microseconds, rest = divmod(clock, 1000)
    microseconds += (day - _EPOCH_JULIAN) * _DAY * 10**6
    microseconds = (microseconds + (1 << 63)) % (1 << 64) - (1 << 63)
    moment: int = (microseconds * 1000 + rest) * _PER_SECOND[unit] // 10**9
    return moment.to_bytes(8 if -(1 << 63) <= moment < 1 << 63 else 16, "little", signed=True)


def _from_days(data: memoryview) -> bytes:
    days = int.from_bytes(data, "little", signed=True)
    return (days * _DAY * 1000).to_bytes(8, "little", signed=True)


def _resized(data: memoryview, order: Literal["big", "little"], size: int) -> bytes:
    value = int.from_bytes(data, order, signed=True)
    try:
        return value.to_bytes(size, "little", signed=True)
    except OverflowError:
        raise Corrupt(f"a decimal of {len(data)} bytes in a Parquet column of {size}") from None
