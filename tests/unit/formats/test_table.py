from __future__ import annotations

import struct

import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.shared.offsets import MAX_ITEMS, OffsetTable, item_spans


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


TABLE = Bytes(words(2, 16, 20, 21) + b"abcde")


def test_an_item_lies_between_two_offsets() -> None:
    table = OffsetTable.of(TABLE, 2)
    assert (table.count, table.end, table.first()) == (2, 16, 16)
    assert [table.span(index, 16, 21) for index in range(2)] == [(16, 20), (20, 21)]


@pytest.mark.parametrize("index", [-1, 2])
def test_there_are_no_other_items(index: int) -> None:
    with pytest.raises(IndexError):
        OffsetTable.of(TABLE, 2).span(index, 16, 21)


@pytest.mark.parametrize(("low", "high"), [(17, 21), (16, 19), (16, 15)])
def test_an_item_outside_of_where_items_lie_is_damage(low: int, high: int) -> None:
    with pytest.raises(Corrupt, match="record 0"):
        OffsetTable.of(TABLE, None).span(0, low, high)


def test_an_item_that_ends_before_it_begins_is_damage() -> None:
    table = OffsetTable.of(Bytes(words(2, 16, 30, 20) + bytes(14)), 2)
    with pytest.raises(Corrupt, match="record 1"):
        table.span(1, 16, 30)


def test_fewer_items_than_expected_are_those_that_there_are() -> None:
    assert OffsetTable.of(TABLE, 7).count == 2


def test_more_items_than_expected_are_damage() -> None:
    with pytest.raises(Corrupt, match="holds 2 records, but the index says 1"):
        OffsetTable.of(TABLE, 1)


@pytest.mark.parametrize("data", [b"", b"\1\0\0", words(1, 12), words(0xFFFFFFFF, 12, 12)])
def test_a_table_longer_than_its_blob_is_damage(data: bytes) -> None:
    with pytest.raises(Corrupt):
        OffsetTable.of(Bytes(data), None)


def test_no_items_need_one_offset() -> None:
    table = OffsetTable.of(Bytes(words(0, 8)), 0)
    assert (table.count, table.end) == (0, 8)


@pytest.mark.parametrize("start", [0, 3])
def test_items_follow_their_sizes(start: int) -> None:
    data = Bytes(bytes(start) + words(3, 2, 0, 1) + b"abc")
    begin = start + 16
    assert item_spans(data, start) == ((begin, 2), (begin + 2, 0), (begin + 2, 1))


@pytest.mark.parametrize("end", [b"ab", b"abcd"])
def test_sizes_that_do_not_come_to_what_is_there_are_damage(end: bytes) -> None:
    with pytest.raises(Corrupt):
        item_spans(Bytes(words(3, 2, 0, 1) + end))


@pytest.mark.parametrize("data", [b"", b"\1", words(1), words(0x40000000, 1)])
def test_a_list_longer_than_its_blob_is_damage(data: bytes) -> None:
    with pytest.raises(Corrupt):
        item_spans(Bytes(data))


def test_a_list_of_very_many_items_is_none_to_look_through() -> None:
    assert len(item_spans(Bytes(words(MAX_ITEMS, *[0] * MAX_ITEMS)))) == MAX_ITEMS
    with pytest.raises(TooLarge):
        item_spans(Bytes(words(MAX_ITEMS + 1, *[0] * (MAX_ITEMS + 1))))
