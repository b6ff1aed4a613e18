"""Encodings, compressions and stored types of Parquet values."""

from __future__ import annotations

import contextlib
import datetime as dt
import struct
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, ShardfsError, TooLarge
from shardfs.formats.parquet.codecs import lz4_block, lz4_hadoop
from shardfs.formats.parquet.convert import Physical, converter
from shardfs.formats.parquet.delta import as_plain, delta_numbers
from shardfs.formats.parquet.schema import Leaf
from shardfs.formats.parquet.values import Starts, find_starts
from shardfs.formats.shared.arrow.types import DataType, Type
from tests import thrift
from tests.fakes import FakeServices
from tests.parquet_files import (
    CountingBlob,
    Made,
    contents,
    element,
    files,
    made,
    opened,
    page,
    root,
    texts,
    written,
)

LIMIT = 1 << 20


def leaf(physical: Physical, width: int = 0) -> Leaf:
    return Leaf(0, physical, width, width, None, 0, 0, counted=True)


# --- differences -------------------------------------------------------------------------------------------


def packed(values: list[int], width: int, size: int) -> bytes:
    bits = sum(value << place * width for place, value in enumerate(values))
    return bits.to_bytes(size * width // 8, "little")


def differences(values: list[int], size: int = 32, parts: int = 4) -> bytes:
    """DELTA_BINARY_PACKED in blocks of *parts* times *size*."""
    data = b"".join(map(thrift.varint, (size * parts, parts, len(values))))
    data += thrift.integer(values[0] if values else 0)
    deltas = [b - a for a, b in pairwise(values)]
    for start in range(0, len(deltas), size * parts):
        block = deltas[start : start + size * parts]
        least = min(block)
        some = [[d - least for d in block[at : at + size]] for at in range(0, len(block), size)]
        widths = [max(part).bit_length() for part in some]
        data += thrift.integer(least) + bytes([*widths, *[0] * (parts - len(widths))])
        data += b"".join(
            packed(part, width, size) for part, width in zip(some, widths, strict=True)
        )
    return data


SMALL = st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=300)


@given(SMALL, st.sampled_from([8, 32]), st.integers(1, 4))
def test_differences_add_up(values: list[int], size: int, parts: int) -> None:
    data = differences(values, size, parts)
    stored = as_plain(5, memoryview(data), leaf(Physical.INT32, 4), len(values), LIMIT)
    assert stored == struct.pack(f"<{len(values)}i", *values)
    if values:
        assert delta_numbers(memoryview(data + b"more"), 0, len(values)) == (values, len(data))


def test_differences_wrap_as_integers_do() -> None:
    data = differences([(1 << 31) - 1, 1 << 31])
    stored = as_plain(5, memoryview(data), leaf(Physical.INT32, 4), 2, LIMIT)
    assert struct.unpack("<2i", stored) == ((1 << 31) - 1, -(1 << 31))


@given(st.lists(st.binary(max_size=20), max_size=100))
def test_texts_behind_their_lengths(values: list[bytes]) -> None:
    data = differences([len(value) for value in values]) + b"".join(values)
    kind = leaf(Physical.BYTE_ARRAY)
    assert as_plain(6, memoryview(data), kind, len(values), LIMIT) == texts(*values)


@given(st.lists(st.text("ab", max_size=6).map(str.encode), max_size=100))
def test_texts_that_begin_like_those_before(values: list[bytes]) -> None:
    prefixes, rest, before = [], [], b""
    for value in values:
        length = next(
            (n for n in range(min(len(value), len(before)), -1, -1) if value[:n] == before[:n]), 0
        )
        prefixes.append(length)
        rest.append(value[length:])
        before = value
    data = differences(prefixes) + differences([len(part) for part in rest]) + b"".join(rest)
    kind = leaf(Physical.BYTE_ARRAY)
    assert as_plain(7, memoryview(data), kind, len(values), LIMIT) == texts(*values)


def test_a_few_bytes_that_stand_for_many() -> None:
    """Texts that each repeat the whole one before."""
    count = 1000
    data = differences([0, *[1000] * (count - 1)]) + differences([1000, *[0] * (count - 1)])
    kind = leaf(Physical.BYTE_ARRAY)
    with pytest.raises(TooLarge):
        as_plain(7, memoryview(data + bytes(1000)), kind, count, 900_000)
    with pytest.raises(TooLarge):
        as_plain(5, memoryview(b""), leaf(Physical.INT32, 4), 1 << 23, LIMIT)


@given(
    st.sampled_from([5, 6, 7, 9]),
    st.sampled_from(list(Physical)),
    st.integers(0, 300),
    st.binary(max_size=60) | SMALL.map(differences),
)
def test_any_bytes_are_values_or_damage(
    encoding: int, physical: Physical, count: int, data: bytes
) -> None:
    width = {Physical.INT32: 4, Physical.INT64: 8, Physical.FIXED: 3}.get(physical, 0)
    with contextlib.suppress(ShardfsError):
        stored = as_plain(encoding, memoryview(data), leaf(physical, width), count, LIMIT)
        assert not width or len(stored) == count * width


ENCODINGS = {
    "DELTA_BINARY_PACKED": pa.array([5, -3, 1 << 40, None, 7] * 100),
    "DELTA_LENGTH_BYTE_ARRAY": pa.array([b"abc", b"", None, b"x" * 300] * 100),
    "DELTA_BYTE_ARRAY": pa.array(["abc", "abd", None, "", "abde"] * 100),
    "BYTE_STREAM_SPLIT": pa.array([1.5, None, -0.0, float("inf")] * 100),
    "RLE": pa.array([True, None, False, False] * 100),
}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_encodings_that_pyarrow_writes(name: str, version: str) -> None:
    table = pa.table({"v": ENCODINGS[name]})
    options: dict[str, Any] = {"use_dictionary": False, "data_page_version": version}
    encoded = written(table, column_encoding={"v": name}, compression="zstd", **options)
    assert contents(encoded) == contents(written(table, **options))


# --- lengths -----------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0, 1, 10, 3000, 9000]), max_size=60))
def test_values_begin_behind_their_lengths(lengths: list[int]) -> None:
    data = texts(*(bytes(length) for length in lengths))
    starts = memoryview(find_starts(Bytes(data), 0, len(lengths))).cast("q")
    assert len(starts) == len(lengths) + 1
    for number, length in enumerate(lengths):
        assert (starts[number], starts[number + 1] - 4 - starts[number]) == (
            4 + sum(lengths[:number]) + 4 * number,
            length,
        )
    with pytest.raises(Corrupt):
        find_starts(Bytes(data), 0, len(lengths) + 1)


def test_of_long_values_only_the_lengths_are_read() -> None:
    file = CountingBlob(texts(*[bytes(20_000)] * 50))
    find_starts(file, 0, 50)
    assert file.total() < 1000
    file = CountingBlob(texts(*[bytes(20)] * 50_000))
    find_starts(file, 0, 50_000)
    assert len(file.reads) < 50


@pytest.mark.parametrize(("size", "count"), [(300_000, 30), (20_000, 400), (20, 200_000), (0, 9)])
def test_far_away_values_are_looked_for_no_further_than_the_wanted_one(
    size: int, count: int
) -> None:
    file = CountingBlob(texts(*[bytes(size)] * count), is_far=True)
    starts = Starts(file, count, FakeServices())
    for number in (count // 2, 0, count // 2):
        assert starts.find(number) == ((size + 4) * number + 4, size)
    # Of small values many are found at once.
    assert file.total((size + 4) * (count // 2) + (140 << 10)) == 0
    before = len(file.reads)
    assert starts.find(count - 1) == ((size + 4) * (count - 1) + 4, size)
    assert not any(at < (size + 4) * (count // 2) for at, _ in file.reads[before:])


def test_near_by_all_are_found_at_once() -> None:
    file = CountingBlob(texts(*[bytes(20_000)] * 400))
    starts = Starts(file, 400, FakeServices())
    assert starts.find(7) == (7 * 20_004 + 4, 20_000)
    before = len(file.reads)
    assert starts.find(399) == (399 * 20_004 + 4, 20_000)
    assert len(file.reads) == before


@pytest.mark.parametrize("is_far", [False, True])
def test_damage_behind_a_value_does_not_matter_to_it(is_far: bool) -> None:
    data = texts(*[b"x" * 100_000] * 10)
    starts = Starts(CountingBlob(data[:-1], is_far=is_far), 10, FakeServices())
    assert starts.find(8) == (8 * 100_004 + 4, 100_000)
    for _ in range(2):
        with pytest.raises(Corrupt, match="lead to 1000040"):
            starts.find(9)
    with pytest.raises(Corrupt, match="11 texts in a Parquet page of 40 bytes"):
        Starts(Bytes(bytes(40)), 11, FakeServices()).find(0)


def test_threads_find_the_same_values() -> None:
    lengths = [n * 7919 % 100_000 for n in range(200)]
    data = texts(*map(bytes, lengths))
    ends = list(accumulate(length + 4 for length in lengths))
    for is_far in (False, True, True, True):
        starts = Starts(CountingBlob(data, is_far=is_far), 200, FakeServices())
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(starts.find, range(200)))
        assert found == [(end - n, n) for end, n in zip(ends, lengths, strict=True)]


# --- compressions ------------------------------------------------------------------------------------------

TEXT = b"a text that says the same, a text that says the same " * 20


def test_lz4_blocks_have_exactly_the_length_that_they_should() -> None:
    block = memoryview(pa.Codec("lz4_raw").compress(TEXT, asbytes=True))
    assert lz4_block(block, len(TEXT)) == TEXT
    for size in (len(TEXT) - 1, len(TEXT) + 1, 1, 1 << 40):
        with pytest.raises(Corrupt):
            lz4_block(block, size)
    with pytest.raises(Corrupt):
        lz4_block(block[:-1], len(TEXT))


def test_lz4_with_lengths_and_without() -> None:
    block = pa.Codec("lz4_raw").compress(TEXT, asbytes=True)
    framed = struct.pack(">II", len(TEXT), len(block)) + block
    assert lz4_hadoop(memoryview(framed), len(TEXT)) == TEXT
    assert lz4_hadoop(memoryview(framed * 2), 2 * len(TEXT)) == TEXT * 2
    assert lz4_hadoop(memoryview(block), len(TEXT)) == TEXT
    with pytest.raises(Corrupt):
        lz4_hadoop(memoryview(framed), 2 * len(TEXT))


@pytest.mark.parametrize("codec", ["snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_compressions_that_pyarrow_writes(codec: str, version: str) -> None:
    values = [TEXT, b"", None, b"b"] * 5
    data = written(pa.table({"v": values}), compression=codec, data_page_version=version)
    assert contents(data) == values


# --- types -------------------------------------------------------------------------------------------------


def shown(array: pa.Array, **options: Any) -> list[bytes]:
    """The only file of each record."""
    shard = opened(written(pa.table({"v": array}), **options))
    return [files(shard, row)[0][1].rstrip() for row in range(len(shard))]


@pytest.mark.parametrize("digits", [5, 12, 25, 60])
@pytest.mark.parametrize("as_integer", [False, True])
def test_decimals(digits: int, as_integer: bool) -> None:
    kind = pa.decimal128(digits, 2) if digits < 39 else pa.decimal256(digits, 2)
    values = [Decimal(f"{'9' * (digits - 2)}.99"), Decimal("-0.01"), Decimal("0.00")]
    options = {"store_decimal_as_integer": as_integer}
    assert shown(pa.array(values, kind), **options) == [str(value).encode() for value in values]


def test_decimals_of_any_length() -> None:
    parts = element("v", type=6, converted=5) | {7: thrift.I32(1), 8: thrift.I32(9)}
    values = texts(b"\x04\xd2", b"\xff", b"")
    data = made([root(1), parts], [(3, [Made(page(values, 3), 3)])])
    assert [files(opened(data), row)[0][1] for row in range(3)] == [b"123.4\n", b"-0.1\n", b"0.0\n"]
    convert = converter(Physical.BYTE_ARRAY, 0, DataType(Type.DECIMAL, size=16))
    assert convert is not None
    with pytest.raises(Corrupt, match="decimal of 17 bytes"):
        convert(memoryview(b"\x01" + bytes(16)))


def test_moments_in_the_old_form() -> None:
    moments = [dt.datetime(1999, 12, 31, 23, 59, 59, 123456), dt.datetime(1677, 10, 1)]
    array = pa.array(moments, pa.timestamp("ns"))
    options = {"use_deprecated_int96_timestamps": True}
    assert shown(array, **options) == [b"1999-12-31T23:59:59.123456", b"1677-10-01T00:00:00"]


def test_a_moment_in_the_old_form_that_64_bits_cannot_hold() -> None:
    days = 2_440_588 + 365 * 3000
    stored = struct.pack("<qi", 1, days)
    data = made([root(1), element("v", type=3)], [(1, [Made(page(stored, 1), 1, 3)])])
    assert files(opened(data), 0) == [("v.txt", b"4968-01-04T00:00:00.000000001\n")]


def test_dates() -> None:
    day = dt.date(1969, 12, 31)
    assert (
        shown(pa.array([day], pa.date64()))
        == shown(pa.array([day], pa.date32()))
        == [b"1969-12-31"]
    )


def test_integers_of_all_widths() -> None:
    for bits in (8, 16, 32, 64):
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        assert shown(pa.array([low, high], f"int{bits}")) == [b"%d" % low, b"%d" % high]
        top = (1 << bits) - 1
        for version in ("1.0", "2.6"):
            assert shown(pa.array([0, top], f"uint{bits}"), version=version) == [b"0", b"%d" % top]
