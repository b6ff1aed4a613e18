from __future__ import annotations

import struct

import pytest

from shardfs.blob import Bytes
from shardfs.formats.mds.encodings import OPAQUE, reader
from shardfs.model import Array, Encoded, Items, Kind, Pixels, Plain, Scalar


def kind(encoding: str, value: bytes) -> Kind:
    return reader(encoding)(Bytes(value))


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("bytes", Encoded()),
        ("str", Plain(".txt")),
        ("str_int", Plain(".txt")),
        ("str_float", Plain(".txt")),
        ("str_decimal", Plain(".txt")),
        ("pil", Pixels()),
        ("jpeg", Encoded(".jpg")),
        ("png", Encoded(".png")),
        ("json", Plain(".json")),
        ("pkl", Plain(".pkl")),
        ("zstd_of_something", Plain(".bin")),
        ("", Plain(".bin")),
        ("list[str]", Plain(".bin")),
        ("ndarray_", Plain(".bin")),
    ],
)
def test_what_is_not_looked_into(encoding: str, expected: Kind) -> None:
    assert kind(encoding, b"") == expected


@pytest.mark.parametrize(
    ("encoding", "dtype"),
    [
        ("int", "<i8"),
        ("int8", "|i1"),
        ("uint8", "|u1"),
        ("int16", "<i2"),
        ("uint16", "<u2"),
        ("float16", "<f2"),
        ("int32", "<i4"),
        ("uint32", "<u4"),
        ("float32", "<f4"),
        ("int64", "<i8"),
        ("uint64", "<u8"),
        ("float64", "<f8"),
    ],
)
def test_numbers_of_the_right_width(encoding: str, dtype: str) -> None:
    width = int(dtype[2:])
    assert kind(encoding, bytes(width)) == Scalar(dtype)
    assert kind(encoding, bytes(width + 1)) == OPAQUE
    assert kind(encoding, bytes(width - 1)) == OPAQUE


@pytest.mark.parametrize(
    ("encoding", "zero", "item"),
    [
        ("jpeg_array", b"", Encoded(".jpg")),
        ("jpegarray", b"", Encoded(".jpg")),
        ("list[jpeg]", bytes(4), Encoded(".jpg")),
        ("list[png]", bytes(4), Encoded(".png")),
        ("list[pil]", bytes(4), Pixels()),
    ],
)
def test_lists_of_images(encoding: str, zero: bytes, item: Kind) -> None:
    begin = len(zero) + 12
    value = zero + struct.pack("<3I", 2, 3, 1) + b"abcd"
    assert kind(encoding, value) == Items(item, ((begin, 3), (begin + 3, 1)))
    assert kind(encoding, zero + bytes(4)) == Items(item, ())
    assert kind(encoding, value[:-1]) == OPAQUE
    assert kind(encoding, b"") == OPAQUE


def test_a_list_begins_with_a_zero() -> None:
    assert kind("list[png]", b"\1\0\0\0" + bytes(4)) == OPAQUE


@pytest.mark.parametrize(
    ("encoding", "head", "shape", "dtype", "size"),
    [
        ("ndarray", b"\x08\x04\x03", (3,), "|u1", 3),
        ("ndarray", b"\x22\x08\x02\x03", (2, 3), "<f4", 24),
        ("ndarray", b"\x42\x05\x00\x01", (256,), "<f8", 2048),
        ("ndarray", b"\x11\x06\x01\x00\x01\x00", (65537,), "<i2", 131074),
        ("ndarray", b"\x09\x07\x02\x00\x00\x00\x00\x00\x00\x00", (2,), "|i1", 2),
        ("ndarray:float16", b"\x04\x02", (2,), "<f2", 4),
        ("ndarray:int32:2,3", b"", (2, 3), "<i4", 24),
        ("ndarray:uint64:1", b"", (1,), "<u8", 8),
        ("ndarray:uint8:1,1,1", b"", (1, 1, 1), "|u1", 1),
    ],
)
def test_arrays(encoding: str, head: bytes, shape: tuple[int, ...], dtype: str, size: int) -> None:
    value = head + bytes(size)
    assert kind(encoding, value) == Array(dtype, shape, len(head))
    assert kind(encoding, value + b"\0") == OPAQUE
    assert kind(encoding, value[:-1]) == OPAQUE


def test_an_array_of_very_many_dimensions() -> None:
    head = bytes([8, 63 << 2 | 3]) + struct.pack("<63Q", *[1] * 63)
    assert kind("ndarray", head + b"x") == Array("|u1", (1,) * 63, len(head))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x08",
        b"\x08\x04",
        b"\x00\x04\x01x",
        b"\xff\x04\x01x",
        b"\x0a\x04\x01x",
        b"\x08\xff" + b"\xff" * 504,
    ],
)
def test_an_array_head_that_lies(value: bytes) -> None:
    assert kind("ndarray", value) == OPAQUE


@pytest.mark.parametrize(
    "encoding",
    [
        "ndarray:float128",
        "ndarray::2,3",
        "ndarray:int8:",
        "ndarray:int8:2,",
        "ndarray:int8:-2",
        "ndarray:int8:2,x",
        "ndarray:int8:\u00b2",
        "ndarray:int8:" + "9" * 5000,
        "ndarray:int8:1:1",
    ],
)
def test_an_array_encoding_that_is_none(encoding: str) -> None:
    assert kind(encoding, b"\x04\x01x") == OPAQUE
