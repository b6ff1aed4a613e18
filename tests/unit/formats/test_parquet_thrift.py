"""Thrift's compact protocol: what the test's own writer wrote, and damage."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis.strategies import binary, booleans, dictionaries, integers, lists, recursive

from shardfs.errors import Corrupt
from shardfs.formats.parquet.thrift import STRUCT, Struct, read_struct, skip
from tests import thrift
from tests.thrift import I32

NUMBERS = integers(1, 40)
VALUES = recursive(
    integers(-(1 << 63), (1 << 63) - 1) | booleans() | binary(max_size=200),
    lambda inner: dictionaries(NUMBERS, inner, max_size=5),
    max_leaves=20,
)


def same(read: Struct, wanted: dict[int, object]) -> bool:
    for number, value in wanted.items():
        if isinstance(value, dict):
            inner = read.struct(number)
            if inner is None or not same(inner, value):
                return False
        elif isinstance(value, bytes):
            if read.binary(number) != value:
                return False
        elif isinstance(value, int) and read.number(number) != value:
            return False
    return True


@given(dictionaries(NUMBERS, VALUES, max_size=8), binary(max_size=5))
def test_what_was_written_is_read_and_skipped(fields: dict[int, object], rest: bytes) -> None:
    data = thrift.struct(fields)
    read, end = read_struct(rest + data + rest, len(rest))
    assert same(read, fields)
    assert end == len(rest) + len(data) == skip(rest + data + rest, len(rest), STRUCT)


@given(lists(binary(max_size=3), max_size=20), lists(integers(0, 9), max_size=20))
def test_lists(texts: list[bytes], numbers: list[int]) -> None:
    data = thrift.struct({1: texts, 2: [{1: number} for number in numbers]})
    read, _ = read_struct(data)
    assert read.binaries(1) == texts
    assert [item.number(1) for item in read.structs(2)] == numbers
    assert skip(data, 0, STRUCT) == len(data)


@given(binary(max_size=60))
def test_any_bytes_are_a_struct_or_damage_and_skipped_alike(data: bytes) -> None:
    end = None
    with contextlib.suppress(Corrupt):
        end = read_struct(data)[1]
    if end is not None:
        assert skip(data, 0, STRUCT) == end


def test_what_parquet_has_no_fields_of_is_passed_over() -> None:
    double, uuid = b"\x17" + bytes(8), b"\x1d" + bytes(16)
    a_map = b"\x1b\x02\x58" + b"\x02\x01a\x04\x01b"
    no_map, a_set = b"\x1b\0", b"\x1a\x23\x01\x02"
    data = double + uuid + a_map + no_map + a_set + b"\x16\x0e\0"
    read, end = read_struct(data)
    assert read.number(6) == 7
    assert end == len(data) == skip(data, 0, STRUCT)


def test_a_missing_field_has_its_default_or_is_damage() -> None:
    read, _ = read_struct(thrift.struct({1: I32(3)}))
    assert read.number(2, 9) == 9
    assert read.struct(2) is None
    assert (1 in read, 2 in read) == (True, False)
    for get in (lambda: read.number(2), lambda: read.binary(1), lambda: read.structs(1)):
        with pytest.raises(Corrupt):
            get()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x16",
        b"\x18\x05abc",
        b"\x16" + b"\xff" * 11 + b"\0",
        b"\x19\xfc\xff\xff\xff\xff\x0f" + bytes(9),
        b"\x1f\0",
        b"\x1c" * 5000,
        b"\x19\x19" * 5000,
    ],
)
def test_damage(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_struct(data)
    with pytest.raises((Corrupt, IndexError)):
        skip(data, 0, STRUCT)


def test_more_items_than_metadata_can_need_are_damage() -> None:
    count = (1 << 20) + 1
    data = b"\x19\xfc" + thrift.varint(count) + bytes(count) + b"\0"
    with pytest.raises(Corrupt, match="too many"):
        read_struct(data)
