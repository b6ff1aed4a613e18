"""The ends of Parquet files: what they say of the whole, and what is wrong with them."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, NoKey, ShardfsError, TooLarge, Unsupported
from shardfs.formats.parquet.footer import (
    chunk_places,
    find_footer,
    from_blob,
    summarize,
    to_bytes,
)
from shardfs.formats.parquet.thrift import read_struct
from tests import thrift
from tests.fakes import FakeServices
from tests.parquet_files import (
    OPTIONAL,
    Made,
    contents,
    element,
    made,
    opened,
    page,
    root,
    texts,
    written,
)

FILE = written(pa.table({"v": [1, 2, 3, 4, 5], "w": list("abcde")}), row_group_size=2)


def footer_of(data: bytes) -> bytes:
    place = find_footer(Bytes(data))
    return data[place.start : place.start + place.length]


def test_row_groups_are_counted_and_found() -> None:
    footer = footer_of(FILE)
    summary = summarize(footer)
    assert list(summary.rows) == [2, 4, 5]
    for number, rows in enumerate((2, 2, 1)):
        group = footer[summary.places[number] : summary.places[number + 1]]
        assert read_struct(group)[0].number(3) == rows
        first, second = chunk_places(group, 2, len(FILE))
        assert (first.values, second.values) == (rows, rows)
        assert 4 <= first.start < first.end <= second.start < second.end < len(FILE)
        assert (first.problem, first.nulls) == (None, 0)


def test_the_head_is_the_footer_without_row_groups() -> None:
    head, whole = read_struct(summarize(footer_of(FILE)).head)[0], read_struct(footer_of(FILE))[0]
    assert len(whole.structs(4)) == 3
    assert head.structs(4) == []
    assert [pair.binary(1) for pair in head.structs(5)] == [b"ARROW:schema"]
    assert head.number(3) == whole.number(3) == 5


def test_a_summary_can_be_kept() -> None:
    summary = summarize(footer_of(FILE))
    assert from_blob(Bytes(to_bytes(summary))) == summary
    with pytest.raises(Corrupt):
        from_blob(Bytes(to_bytes(summary)[:-1]))


def test_a_long_footer_is_passed_over_once_and_remembered() -> None:
    class Remembering(FakeServices):
        kept: dict[str, bytes]

        def remember(self, store: Any, entry: Any, what: str, build: Any, /) -> Any:
            self.kept[what] = self.kept.get(what) or build()
            return Bytes(self.kept[what])

    metadata = {b"long": bytes(4 << 20)}
    table = pa.table({"v": ["a", "b"]}, schema=pa.schema([("v", pa.string())], metadata=metadata))
    services = Remembering()
    services.kept = {}
    data = written(table)
    assert len(opened(data, services)) == 2
    (what,) = services.kept
    assert "footer" in what
    services.kept[what] = to_bytes(summarize(footer_of(written(table[:1]))))
    assert len(opened(data, services)) == 1


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no Parquet file at all", FILE[:-1], FILE[:50]])
def test_what_is_no_parquet_file(data: bytes) -> None:
    with pytest.raises(Corrupt, match="Parquet file"):
        opened(data)


@pytest.mark.parametrize("length", [len(FILE) - 11, 1 << 31, (1 << 32) - 1])
def test_a_footer_that_is_longer_than_the_file(length: int) -> None:
    with pytest.raises(Corrupt, match="footer of"):
        opened(FILE[:-8] + struct.pack("<I", length) + b"PAR1")


def test_an_encrypted_footer_is_told_from_damage() -> None:
    with pytest.raises(NoKey, match="encrypted"):
        opened(FILE[:-4] + b"PARE")


@given(integers(0, len(FILE) - 1), integers(0, 255))
def test_a_footer_with_a_wrong_byte_is_one_or_damage(at: int, byte: int) -> None:
    footer = bytearray(footer_of(FILE))
    footer[at % len(footer)] = byte
    try:
        summary = summarize(bytes(footer))
    except ShardfsError:
        return
    assert len(summary.places) == len(summary.rows) + 1
    assert list(summary.rows) == sorted(summary.rows)


@given(binary(max_size=100))
def test_any_bytes_are_a_footer_or_damage(data: bytes) -> None:
    with contextlib.suppress(Corrupt):
        assert len(summarize(data).head) <= len(data) + 1


V = [root(1), element("v", OPTIONAL, type=6)]
LEVELS = struct.pack("<I", 2) + b"\x02\x01"
ONE = page(LEVELS + texts(b"x"), 1)


def one(**said: Any) -> bytes:
    return made(V, [(1, [Made(ONE, 1, **said)])])


def test_a_wrong_number_of_rows_is_reported_and_harms_nothing() -> None:
    services = FakeServices()
    shard = opened(made(V, [(1, [Made(ONE, 1)])], rows=1 << 60), services)
    assert len(shard) == 1
    assert "says it has" in str(services.reports[0])


@pytest.mark.parametrize("rows", [-1, 1 << 32, (1 << 63) - 1])
def test_row_groups_of_impossible_numbers_of_rows(rows: int) -> None:
    with pytest.raises(Corrupt, match="rows"):
        opened(made(V, [(rows, [Made(ONE, 1)])]))


def test_a_row_group_that_is_damaged_harms_its_own_rows_only() -> None:
    data = made(V, [(1, [Made(ONE, 1)]), (1, []), (1, [Made(ONE, 1)])])
    shard = opened(data)
    assert bytes(shard.fields(0)[0].data.read(0, 9)) == b"x"
    with pytest.raises(Corrupt, match="0 columns instead of 1"):
        shard.fields(1)
    assert bytes(shard.fields(2)[0].data.read(0, 9)) == b"x"


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ({"said": {9: 1 << 60}}, Corrupt, "of 1 values in"),
        ({"said": {9: 0}}, Corrupt, "of 1 values in"),
        ({"said": {7: -1}}, Corrupt, "bytes at 4"),
        ({"said": {7: 1 << 40}}, Corrupt, "bytes at 4"),
        ({"said": {5: -1}}, Corrupt, "of -1 values"),
        ({"said": {5: 2}}, Corrupt, "2 values for 1 rows"),
        ({"said": {4: thrift.I32(3)}}, Unsupported, "LZO is not supported"),
        ({"chunk": {1: b"elsewhere"}}, Unsupported, "another file"),
        ({"chunk": {3: None}}, Corrupt, "without metadata"),
        ({"chunk": {8: {1: {}}}}, NoKey, "encrypted"),
    ],
)
def test_a_column_that_cannot_be_read_says_why(
    said: dict[str, Any], kind: type[ShardfsError], message: str
) -> None:
    two = [root(2), element("v", OPTIONAL, type=6), element("w", OPTIONAL, type=6)]
    broken, good = opened(made(two, [(1, [Made(ONE, 1, **said), Made(ONE, 1)])])).fields(0)
    with pytest.raises(kind, match=message):
        broken.data.size()
    assert bytes(good.data.read(0, 9)) == b"x"


@pytest.mark.parametrize("nulls", [0, 1, 2, 9])
def test_levels_tell_what_is_null_whatever_statistics_say(nulls: int) -> None:
    pages = page(struct.pack("<I", 4) + b"\x02\x00\x02\x01" + texts(b"a"), 2)
    assert contents(made(V, [(2, [Made(pages, 2, said={12: {3: nulls}})])])) == [None, b"a"]


def test_statistics_that_deny_a_null_among_long_values_are_found_out() -> None:
    """These are believed, so that nobody looks through pictures only to learn that they are there."""
    null = page(struct.pack("<I", 2) + b"\x02\x00", 1)
    with pytest.raises(Corrupt, match="null, against"):
        contents(made(V, [(1, [Made(null, 1, said={12: {3: 0}, 6: 1 << 20})])]))


def test_too_many_row_groups() -> None:
    count = (1 << 22) + 1
    groups = b"\x49\xfc" + thrift.varint(count) + bytes(count)
    with pytest.raises(TooLarge, match="row groups"):
        summarize(groups + b"\0")
