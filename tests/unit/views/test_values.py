from __future__ import annotations

import math
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import binary, floats, integers, text

from shardfs.blob import Broken, Bytes
from shardfs.errors import Corrupt
from shardfs.model import Array, Encoded, Field, Items, Kind, Pixels, Plain, Rendered, Scalar
from shardfs.views.values import json_value, python_value

NOON, NANOSECONDS = "2024-07-01T12:00:00", "2024-07-01T12:00:00.000000001"
SOME = UUID(int=0x12345678123456781234567812345678)
BOTH = [json_value, python_value]


def refer(number: int) -> str:
    return f"file {number}"


def field(kind: Kind, data: bytes, filename: str | None = None) -> Field:
    return Field("x", kind, Bytes(data), filename)


def shown_as(content: str, logical: str) -> Field:
    """A value of which a format makes the text *content*."""
    return field(Rendered(".txt", lambda _: content.encode() + b"\n", logical), b"")


@pytest.mark.parametrize("value", BOTH)
@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (Plain(".txt"), "schön".encode(), "schön"),
        (Plain(".txt"), b"", ""),
        (Plain(".txt"), b"\xff", "file 0"),
        (Plain(".json"), b'{"a":[1,null]}', {"a": [1, None]}),
        (Plain(".json"), b"{", "{"),
        (Plain(".pkl"), b"\x80\x04.", "file 0"),
        (Plain(".bin"), b"text", "file 0"),
        (Encoded(), b"", "file 0"),
        (Encoded(), b"\xff\xd8\xff\xe0" + bytes(20), "file 0"),
        (Encoded(".jpg"), b"no picture", "file 0"),
        (Pixels(), bytes(20), "file 0"),
        (Scalar("<i8"), struct.pack("<q", -3), -3),
        (Scalar(">u2"), b"\x01\x00", 256),
        (Scalar("|b1"), b"\x01", True),
        (Scalar("|b1"), b"\x07", "file 0"),
        (Scalar("<f8"), struct.pack("<d", 0.1), 0.1),
        (Scalar("<i8"), b"short", "file 0"),
        (Items(Encoded(), ((0, 1), None, (1, 2))), b"abc", ["file 0", None, "file 1"]),
        (Items(Encoded(), ()), b"", []),
        (Rendered(".json", bytes, "json"), b"[1]\n", [1]),
    ],
)
def test_values_that_are_the_same_for_python_and_json(
    value: Any, kind: Kind, data: bytes, expected: object
) -> None:
    found = value(field(kind, data), refer)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("content", "logical", "in_json", "in_python"),
    [
        ("12.50", "decimal", "12.50", Decimal("12.50")),
        ("2024-07-01", "date", "2024-07-01", date(2024, 7, 1)),
        ("12024-07-01", "date", "12024-07-01", "12024-07-01"),
        ("12:00:01.5", "time", "12:00:01.5", time(12, 0, 1, 500_000)),
        ("2024-07-01T12:00:00.5", "timestamp", "2024-07-01T12:00:00.5", datetime(2024, 7, 1, 12, 0, 0, 500_000)),
        (NANOSECONDS, "timestamp", NANOSECONDS, NANOSECONDS),
        (f"{NOON}+00:00", "timestamp", f"{NOON}+00:00", datetime(2024, 7, 1, 12, tzinfo=timezone.utc)),
        ("-PT1.5S", "duration", "-PT1.5S", timedelta(seconds=-1.5)),
        ("PT0.000000001S", "duration", "PT0.000000001S", "PT0.000000001S"),
        (str(SOME), "arrow.uuid", str(SOME), SOME),
        ("281\ttabby", "class label", 281, 281),
        ("-1", "class label", -1, -1),
        ("7", "number", 7, 7),
        ("1e5", "number", 100_000.0, 100_000.0),
        ("true", "number", True, True),
        ("P1M", "interval", "P1M", "P1M"),
    ],
)  # fmt: skip
def test_typed_text(content: str, logical: str, in_json: object, in_python: object) -> None:
    found = json_value(shown_as(content, logical), refer)
    assert (found, type(found)) == (in_json, type(in_json))
    typed = python_value(shown_as(content, logical), refer)
    assert (typed, type(typed)) == (in_python, type(in_python))


def test_bytes_that_are_text_are_text_in_json_and_of_one_type_in_python() -> None:
    for stored, expected in ((b"text", "text"), (b'{"a":1}', {"a": 1})):
        assert json_value(field(Encoded(), stored), refer) == expected
        assert python_value(field(Encoded(), stored), refer) == "file 0"


def test_a_newline_at_the_end_of_text_is_part_of_it() -> None:
    assert json_value(shown_as("two\n", "str"), refer) == "two\n\n"


@pytest.mark.parametrize(
    ("filename", "data", "expected"),
    [
        ("a.txt", b'{"a": 1}', '{"a": 1}'),
        ("a.json", b'{"a": 1}', {"a": 1}),
        ("a.json", b"3", 3),
        ("a.cls", b"5\n", 5),
        ("a.cls", b"tabby", "tabby"),
        ("a.txt", b"", ""),
        ("a.jpg", b"", "file 0"),
        ("a.jpg", b"\xff\xd8\xff\xe0" + bytes(20), "file 0"),
        ("a.html", b"<!DOCTYPE html><html>", "file 0"),
        ("a.caption", b"a dog", "a dog"),
        ("a.npy", b"\x93NUMPY\x01\x00" + bytes(20), "file 0"),
    ],
)
def test_members_of_archives_are_what_their_names_say(
    filename: str, data: bytes, expected: object
) -> None:
    found = json_value(field(Encoded(), data, filename), refer)
    assert (found, type(found)) == (expected, type(expected))


def test_arrays_are_arrays_in_python_and_files_in_json() -> None:
    stored = np.arange(6, dtype="<f4").reshape(2, 3)
    array = field(Array("<f4", (2, 3), skip=4), b"head" + stored.tobytes())
    assert json_value(array, refer) == "file 0"
    assert np.array_equal(python_value(array, refer), stored)
    for dtype, shape in (("bfloat16", (1,)), ("<f4", (5,)), ("|O8", (1,))):
        assert python_value(field(Array(dtype, shape), bytes(8)), refer) == "file 0"


@pytest.mark.parametrize("value", BOTH)
def test_what_cannot_be_read_is_raised(value: Any) -> None:
    broken = Field("x", Plain(".txt"), Broken(Corrupt("is damaged")))
    with pytest.raises(Corrupt, match="is damaged"):
        value(broken, refer)


@given(floats(width=32))
def test_floats_of_four_bytes_survive_in_json_and_are_exact_in_python(number: float) -> None:
    stored = field(Scalar("<f4"), struct.pack("<f", number))
    assert python_value(stored, refer) == number or math.isnan(number)
    shown = json_value(stored, refer)
    assert struct.pack("<f", shown) == struct.pack("<f", number) or math.isnan(number)


@given(text())
def test_text_is_itself(value: str) -> None:
    try:
        stored = value.encode()
    except UnicodeEncodeError:
        return
    assert json_value(field(Plain(".txt"), stored), refer) == value


@given(binary(max_size=40), integers(0, 2**8))
def test_no_bytes_are_too_odd(data: bytes, which: int) -> None:
    names = (None, "a.txt", "a.json", "a.cls", "a.jpg", "a")
    json_value(field(Encoded(), data, names[which % len(names)]), refer)
    python_value(field(Encoded(), data, names[which % len(names)]), refer)
