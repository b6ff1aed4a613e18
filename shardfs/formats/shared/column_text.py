"""Values of fixed width that are no plain numbers, as text: decimals, dates, times, durations, UUIDs.

Not by way of Python's types, which lack nanoseconds and the years beyond 1 to 9999.
"""

from __future__ import annotations

import re
import struct
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.formats.shared.arrow.types import ArrowField, DataType

    Reader = Callable[[memoryview], str]
    """From the stored bytes of a value to its text. Raises Corrupt."""

UUID_EXTENSION = "arrow.uuid"
PARQUET_INTERVAL = "month_day_milli"
"""The unit of Parquet's intervals: unsigned, unlike all of Arrow's."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
# The calendar repeats after 400 years, which are whole weeks.
_CYCLE_DAYS = 146_097
_CYCLE = _CYCLE_DAYS * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST, _LAST = (
    round((datetime(year, 1, 1, tzinfo=timezone.utc) - _EPOCH).total_seconds())
    for year in (2, 9998)
)
_FIXED_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)


def text_reader(field: ArrowField) -> Reader | None:
    """What reads the values of a column; None where they are numbers, bytes, or of no fixed width."""
    type_ = field.type
    if field.extension == UUID_EXTENSION and (type_.type, type_.size) == (Type.FIXED_BINARY, 16):
        return lambda data: str(UUID(bytes=bytes(data)))
    if type_.type is Type.INTERVAL:
        return _INTERVALS[type_.unit]
    if type_.type is Type.INT and not type_.dtype:
        return lambda data: str(wide_integer(type_, data))
    write = _writer(type_)
    return (
        None if write is None else lambda data: write(int.from_bytes(data, "little", signed=True))
    )


def wide_integer(type_: DataType, data: memoryview) -> int:
    """An integer that has no dtype."""
    return int.from_bytes(data, "little", signed=type_.unit == "i")


def _writer(type_: DataType) -> Callable[[int], str] | None:
    if type_.type is Type.DECIMAL:
        return partial(decimal_text, scale=type_.scale)
    if type_.type is Type.DATE:
        return date_text if type_.unit == "day" else _date_of_milliseconds
    if type_.type is Type.TIMESTAMP:
        return partial(timestamp_text, unit=type_.unit, zone=type_.zone)
    if type_.type is Type.TIME:
        return partial(time_text, unit=type_.unit)
    if type_.type is Type.DURATION:
        return partial(duration_text, unit=type_.unit)
    return None


def decimal_text(value: int, scale: int) -> str:
    """*value* / 10 ** *scale*, with all its digits."""
    if scale <= 0:
        return str(value * 10**-scale)
    digits = f"{abs(value):0{scale + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def date_text(days: int) -> str:
    """The date *days* after 1970-01-01, in the proleptic Gregorian calendar; years as long as they are."""
    cycles, ordinal = divmod(days + _EPOCH_ORDINAL - 1, _CYCLE_DAYS)
    found = date.fromordinal(ordinal + 1)
    year = found.year + 400 * cycles
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{found:%m-%d}"


def _date_of_milliseconds(value: int) -> str:
    """Whole days as a date, as they should be, all else with the time."""
    days, rest = divmod(value, _DAY * 1000)
    return timestamp_text(value, "ms", "") if rest else date_text(days)


def time_text(value: int, unit: str) -> str:
    """A time of the day, its end among them. Raises Corrupt where it is none."""
    if value == _DAY * _PER_SECOND[unit]:
        return "24:00:00"
    if not 0 <= value < _DAY * _PER_SECOND[unit]:
        raise Corrupt(f"{value} {unit} are no time of a day")
    return _clock(*divmod(value, _PER_SECOND[unit]), unit)


def _clock(seconds: int, fraction: int, unit: str) -> str:
    minutes, second = divmod(seconds, 60)
    whole = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{whole}{_fraction(fraction, unit)}"


def _fraction(value: int, unit: str) -> str:
    """A part of a second with its point, nothing for 0."""
    digits = len(str(_PER_SECOND[unit])) - 1
    return f".{value:0{digits}d}".rstrip("0") if value else ""


def timestamp_text(value: int, unit: str, zone: str) -> str:
    """A moment in a zone, with its offset from UTC there; in UTC where this machine does not know the zone."""
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    shift = _offset(zone, seconds) if zone else 0
    days, clock = divmod(seconds + shift, _DAY)
    tail = _offset_text(shift) if zone else ""
    return f"{date_text(days)}T{_clock(clock, fraction, unit)}{tail}"


def _offset(zone: str, seconds: int) -> int:
    """The seconds from UTC in *zone* at a moment of which datetime may know nothing."""
    known = _zone(zone)
    if isinstance(known, int):
        return known
    if seconds > _LAST:
        seconds = _LAST - _CYCLE + (seconds - _LAST) % _CYCLE
    moment = _EPOCH + timedelta(seconds=max(seconds, _FIRST))
    shift = moment.astimezone(known).utcoffset()
    return 0 if shift is None else round(shift.total_seconds())


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo | int:
    """A zone, or a fixed number of seconds from UTC."""
    fixed = _FIXED_ZONE.fullmatch(name)
    if fixed:
        return int(f"{fixed[1]}1") * (int(fixed[2]) * 60 + int(fixed[3])) * 60
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, a folder of zones
        return 0


def _offset_text(seconds: int) -> str:
    minutes, second = divmod(abs(seconds), 60)
    whole = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{whole}:{second:02d}" if second else whole


def duration_text(value: int, unit: str) -> str:
    """A duration in seconds, as ISO 8601 has it: `PT1.5S`, `-PT1.5S`."""
    return f"{'-' if value < 0 else ''}PT{_seconds(abs(value), unit)}S"


def _seconds(value: int, unit: str) -> str:
    seconds, fraction = divmod(value, _PER_SECOND[unit])
    return f"{seconds}{_fraction(fraction, unit)}"


def _interval(months: int, days: int, time: int, unit: str) -> str:
    """An interval of parts that have no common measure, each with its own sign."""
    parts = [f"{number}{letter}" for number, letter in ((months, "M"), (days, "D")) if number]
    if time or not parts:
        parts.append(f"T{'-' if time < 0 else ''}{_seconds(abs(time), unit)}S")
    return f"P{''.join(parts)}"


def _months(data: memoryview) -> str:
    return f"P{int.from_bytes(data, 'little', signed=True)}M"


def _days(data: memoryview) -> str:
    days, milliseconds = struct.unpack("<ii", data)
    return _interval(0, days, milliseconds, "ms")


def _months_days(data: memoryview) -> str:
    months, days, nanoseconds = struct.unpack("<iiq", data)
    return _interval(months, days, nanoseconds, "ns")


def _months_days_milliseconds(data: memoryview) -> str:
    months, days, milliseconds = struct.unpack("<III", data)
    return _interval(months, days, milliseconds, "ms")


_INTERVALS: dict[str, Reader] = {
    "month": _months,
    "day_time": _days,
    "month_day_nano": _months_days,
    PARQUET_INTERVAL: _months_days_milliseconds,
}
