from __future__ import annotations

import struct
from datetime import date, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.errors import Corrupt
from shardfs.formats.shared.column_text import (
    date_text,
    decimal_text,
    duration_text,
    time_text,
    timestamp_text,
)
from tests.arrow_files import shown


@given(st.dates())
def test_dates_are_those_of_python(day: date) -> None:
    assert date_text((day - date(1970, 1, 1)) // timedelta(1)) == day.isoformat()


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "10000-01-01"),
        (-719_162, "0001-01-01"),
        (-719_163, "0000-12-31"),
        (-719_529, "-0001-12-31"),
        (2**31 - 1, "5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_dates_of_all_years(days: int, text: str) -> None:
    assert date_text(days) == text


@pytest.mark.parametrize(
    ("value", "unit", "zone", "text"),
    [
        (0, "s", "", "1970-01-01T00:00:00"),
        (1_500, "ms", "", "1970-01-01T00:00:01.5"),
        (-1, "us", "", "1969-12-31T23:59:59.999999"),
        (1, "ns", "", "1970-01-01T00:00:00.000000001"),
        (-(1 << 63), "ns", "", "1677-09-21T00:12:43.145224192"),
        (946_684_800_000, "ms", "Europe/Paris", "2000-01-01T01:00:00+01:00"),
        (962_409_600, "s", "Europe/Paris", "2000-07-01T02:00:00+02:00"),
        (0, "us", "UTC", "1970-01-01T00:00:00+00:00"),
        (0, "s", "+05:30", "1970-01-01T05:30:00+05:30"),
        (0, "s", "-0330", "1969-12-31T20:30:00-03:30"),
        (-4_000_000_000, "s", "Europe/Paris", "1843-03-31T17:02:41+00:09:21"),
        # years that datetime has not: the clock goes on as 400 years before
        (253_402_300_799, "s", "America/New_York", "9999-12-31T18:59:59-05:00"),
        (253_417_852_800, "s", "America/New_York", "10000-06-28T20:00:00-04:00"),
        (1 << 62, "us", "Europe/Paris", "148108-07-06T16:00:27.387904+02:00"),
        (-(1 << 62), "us", "UTC", "-144169-06-28T09:59:32.612096+00:00"),
        # zones that are none
        (0, "s", "Nowhere/Atall", "1970-01-01T00:00:00+00:00"),
        (0, "s", "America", "1970-01-01T00:00:00+00:00"),
        (0, "s", "../../etc/passwd", "1970-01-01T00:00:00+00:00"),
        (0, "s", "\0", "1970-01-01T00:00:00+00:00"),
    ],
)
def test_timestamps(value: int, unit: str, zone: str, text: str) -> None:
    assert timestamp_text(value, unit, zone) == text


def test_times() -> None:
    assert time_text(0, "s") == "00:00:00"
    assert time_text(86_399_999, "ms") == "23:59:59.999"
    assert time_text(43_200_000_000_010, "ns") == "12:00:00.00000001"
    assert time_text(86_400_000, "ms") == "24:00:00"
    for value in (-1, 86_401):
        with pytest.raises(Corrupt, match="no time of a day"):
            time_text(value, "s")


def test_durations() -> None:
    assert duration_text(0, "s") == "PT0S"
    assert duration_text(1_500, "ms") == "PT1.5S"
    assert duration_text(-1, "ns") == "-PT0.000000001S"
    assert duration_text(90_061, "s") == "PT90061S"


def test_decimals() -> None:
    assert decimal_text(0, 2) == "0.00"
    assert decimal_text(-5, 3) == "-0.005"
    assert decimal_text(12345, 2) == "123.45"
    assert decimal_text(10**75 + 7, 5) == f"1{'0' * 70}.00007"
    assert decimal_text(7, -2) == "700"
    assert decimal_text(-7, 0) == "-7"


UUID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([86_400_000], pa.date64()), "1970-01-02"),
        (pa.array([86_400_001], pa.int64()).view(pa.date64()), "1970-01-02T00:00:00.001"),
        (pa.array([bytes.fromhex(UUID.replace("-", ""))], pa.uuid()), UUID),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "P1M2DT0.000000003S"),
        (pa.array([(0, 0, -1_500_000_000)], pa.month_day_nano_interval()), "PT-1.5S"),
        (pa.array([(0, 0, 0)], pa.month_day_nano_interval()), "PT0S"),
        (pa.array([(-14, 0, 0)], pa.month_day_nano_interval()), "P-14M"),
    ],
)
def test_columns(array: pa.Array, text: str) -> None:
    assert shown(array) == {".txt": f"{text}\n".encode()}


@pytest.mark.parametrize(
    ("unit", "data", "text"),
    [
        (0, struct.pack("<i", -3), "P-3M"),
        (1, struct.pack("<ii", 1, 500), "P1DT0.5S"),
        (1, struct.pack("<ii", 0, 0), "PT0S"),
    ],
)
def test_intervals_that_pyarrow_does_not_write(unit: int, data: bytes, text: str) -> None:
    from shardfs.formats.shared.arrow.types import ArrowField, DataType, Type
    from shardfs.formats.shared.column_text import text_reader

    names = ("month", "day_time")
    reader = text_reader(ArrowField("v", DataType(Type.INTERVAL, size=len(data), unit=names[unit])))
    assert reader is not None
    assert reader(memoryview(data)) == text
