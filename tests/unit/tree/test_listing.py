from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import (
    binary,
    booleans,
    characters,
    data,
    integers,
    lists,
    permutations,
    sampled_from,
    text,
    tuples,
)

from shardfs.blob import Blob, Broken, Bytes, no_wait
from shardfs.errors import Corrupt, Unreadable, WouldBlock
from shardfs.names import escape, shorten
from shardfs.tree.layouts import NamedFile
from shardfs.tree.listing import Listing, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DataObject

legal = text(characters(codec=None), max_size=9).map(lambda name: shorten(escape(name)))
files = lists(
    tuples(legal | sampled_from(["a.jpg", "b.txt"]), text(max_size=5), booleans(), integers(0, 99)),
    max_size=4,
    unique_by=lambda file: file[0],
)


def named(rows: Sequence[tuple[str, str, bool, int]]) -> list[NamedFile]:
    return [
        NamedFile(name, Bytes(bytes(size)), column, fixed) for name, column, fixed, size in rows
    ]


def recorded(records: Sequence[Sequence[NamedFile]], order: Sequence[int]) -> bytes:
    saved: list[bytes] = []
    recorder = Recorder(len(records), saved.append)
    for record in order:
        assert not saved, "saved before all records were seen"
        recorder.note(record, records[record])
        recorder.note(record, records[record])
    (content,) = saved
    return content


def nothing(file: int) -> Blob:
    raise AssertionError("nobody read it")


@given(lists(files, min_size=1, max_size=6), data())
def test_a_listing_says_what_was_recorded_in_any_order(
    rows: list[list[tuple[str, str, bool, int]]], drawn: DataObject
) -> None:
    records = [named(each) for each in rows]
    order = drawn.draw(permutations(range(len(records))))
    listing = Listing(Bytes(recorded(records, order)))
    assert listing.records == len(records)
    for number, record in enumerate(records):
        told = listing.files(number, nothing)
        assert [(f.name, f.column, f.fixed, f.blob.size()) for f in told] == [
            (f.name, f.column, f.fixed, f.blob.size()) for f in record
        ]


def test_the_last_record_needs_waiting_for_the_disk() -> None:
    saved: list[bytes] = []
    recorder = Recorder(2, saved.append)
    with no_wait():
        recorder.note(1, [])
        for _ in range(2):
            with pytest.raises(WouldBlock):
                recorder.note(0, [])
    assert not saved
    recorder.note(0, [])
    assert Listing(Bytes(saved[0])).records == 2


def test_a_record_with_a_fault_is_not_taken_down() -> None:
    saved: list[bytes] = []
    recorder = Recorder(1, saved.append)
    bad = NamedFile("a", Broken(Corrupt("bad")), "a", False)
    with pytest.raises(Corrupt):
        recorder.note(0, [bad])
    recorder.note(1, [])
    recorder.note(-1, [])
    assert not saved
    recorder.note(0, [])
    assert saved


def listed(content: bytes, find: Callable[[int], Blob]) -> Blob:
    (file,) = Listing(Bytes(content)).files(0, find)
    return file.blob


def test_content_is_looked_for_once_when_it_is_read() -> None:
    content = recorded([named([("a", "a", False, 3)])], [0])
    asked: list[int] = []

    def find(file: int) -> Blob:
        asked.append(file)
        return Bytes(b"abc")

    blob = listed(content, find)
    assert blob.size() == 3
    assert not asked
    assert bytes(blob.read(1, 9)) == b"bc"
    assert bytes(blob.read(0, 1)) == b"a"
    assert asked == [0]


def test_content_of_another_size_is_an_error_and_no_short_read() -> None:
    content = recorded([named([("a", "a", False, 3)])], [0])
    with pytest.raises(Unreadable, match="rebuild-index"):
        listed(content, lambda file: Bytes(b"abcd")).read(0, 3)


GOOD = recorded([named([("a.jpg", "a", False, 3), ("b", "b", True, 0)]), named([])], [1, 0])


def use(content: bytes) -> None:
    listing = Listing(Bytes(content))
    for record in range(min(listing.records, 3)):
        for file in listing.files(record, nothing):
            assert escape(file.name) == file.name
            assert file.blob.size() >= 0


@given(integers(0, len(GOOD) - 1), integers(0, 255))
def test_a_changed_byte_is_a_listing_or_corrupt(position: int, value: int) -> None:
    content = bytearray(GOOD)
    content[position] = value
    with contextlib.suppress(Corrupt):
        use(bytes(content))


@given(binary(max_size=60) | integers(0, len(GOOD) - 1).map(lambda stop: GOOD[:stop]))
def test_other_bytes_are_corrupt(content: bytes) -> None:
    with pytest.raises(Corrupt):
        use(content)


@pytest.mark.parametrize(
    "names",
    [
        b"5",
        b"{}",
        b'{"abc": 1}',
        b"[" * 100_000,
        b"[1]",
        b'[["a/b", "a", false]]',
        b'[["..", "a", false]]',
        b'[["", "a", false]]',
        b'[["a", 1, false]]',
        b'[["a", "a", 1]]',
        b'[["%s", "a", false]]' % (b"a" * 256),
    ],
)
def test_names_that_no_recorder_wrote_are_corrupt(names: bytes) -> None:
    tail = struct.pack("<IIIIIQ", 1, 1, 0, 1, 0, 3)
    with pytest.raises(Corrupt):
        use(struct.pack("<I", len(names)) + names + tail)


def test_the_same_tail_behind_good_names_is_a_listing() -> None:
    names = b'[["a", "a", false]]'
    use(struct.pack("<I", len(names)) + names + struct.pack("<IIIIIQ", 1, 1, 0, 1, 0, 3))
