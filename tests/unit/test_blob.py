from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists, tuples

from shardfs.blob import (
    Blob,
    Broken,
    Bytes,
    Concat,
    Lazy,
    Slice,
    Stored,
    clip,
    expect,
    may_wait,
    no_wait,
    read_all,
    read_exactly,
    read_into,
    stored_at,
)
from shardfs.errors import Corrupt, WouldBlock
from tests.fakes import FailingBlob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class StoredBytes(Bytes, Stored):
    """A whole file, as far as anybody can tell."""

    __slots__ = ()


@given(parts=lists(binary()), offset=integers(0, 50), length=integers(0, 50))
def test_concat_reads_like_bytes(parts: list[bytes], offset: int, length: int) -> None:
    whole = b"".join(parts)
    got = Concat([Bytes(part) for part in parts]).read(offset, length)
    assert bytes(got) == whole[offset : offset + length]


@given(data=binary(), start=integers(0, 20), count=integers(0, 20), offset=integers(0, 30))
def test_slice_reads_like_bytes_or_fails_where_the_parent_ends(
    data: bytes, start: int, count: int, offset: int
) -> None:
    part = Slice(Bytes(data), start, count)
    wanted = data[start : start + count][offset : offset + 7]
    if start + min(offset + 7, count) <= len(data) or offset >= count:
        assert bytes(part.read(offset, 7)) == wanted
    else:
        with pytest.raises(Corrupt):
            part.read(offset, 7)


@given(data=binary(), starts=tuples(integers(0, 9), integers(0, 9)), count=integers(0, 20))
def test_a_slice_of_a_slice_ends_where_that_does(
    data: bytes, starts: tuple[int, int], count: int
) -> None:
    outer = data[starts[0] :]
    part = Slice(Slice(Bytes(data), min(starts[0], len(data)), len(outer)), starts[1], count)
    if starts[1] + count <= len(outer):
        assert bytes(part.read(0, 100)) == outer[starts[1] :][:count]
    elif count:
        with pytest.raises(Corrupt):
            part.read(0, 100)


@pytest.mark.parametrize(("start", "length"), [(-1, 5), (0, -1)])
def test_slice_refuses_a_negative_range(start: int, length: int) -> None:
    with pytest.raises(Corrupt):
        Slice(Bytes(b"abc"), start, length)


def test_clip_stays_inside() -> None:
    assert clip(5, 10, 8) == (5, 8)
    assert clip(9, 10, 8) == (8, 8)
    assert clip(-3, 2, 8) == (0, 2)
    assert clip(2, -4, 8) == (2, 2)


def test_read_exactly_says_what_is_missing() -> None:
    with pytest.raises(Corrupt, match="header needs 4 bytes at offset 1, but only 2"):
        read_exactly(Bytes(b"abc"), 1, 4, "header")
    with pytest.raises(Corrupt):
        read_exactly(Bytes(b"abc"), -1, 2, "header")


def test_broken_raises_a_new_error_each_time() -> None:
    broken = Broken(Corrupt("bad"))
    errors = []
    for use in (broken.size, lambda: broken.read(0, 1)):
        with pytest.raises(Corrupt, match="bad") as caught:
            use()
        errors.append(caught.value)
    assert errors[0] is not errors[1]


def test_no_wait_holds_for_its_thread_and_its_block_only() -> None:
    seen: list[bool] = []
    with no_wait():
        thread = threading.Thread(target=lambda: seen.append(may_wait()))
        thread.start()
        thread.join()
        with no_wait():
            assert not may_wait()
        assert not may_wait()
    assert may_wait()
    assert seen == [True]


def test_stored_at_follows_slices_of_a_file_only() -> None:
    file = StoredBytes(b"0123456789")
    assert stored_at(Slice(Slice(file, 2, 6), 3, 2)) == 5
    assert stored_at(Slice(Bytes(b"0123"), 1, 2)) is None
    assert stored_at(Concat([file])) is None


def test_concat_passes_a_failure_of_a_part_on() -> None:
    with pytest.raises(Corrupt, match="injected"):
        Concat([Bytes(b"ab"), FailingBlob(b"cdef", 2)]).read(0, 6)


def test_a_lazy_blob_is_looked_for_once_and_when_it_is_used() -> None:
    looks: list[Blob] = []

    def find() -> Blob:
        if not may_wait():
            raise WouldBlock
        looks.append(Slice(StoredBytes(b"0123456789"), 2, 5))
        return looks[-1]

    blob = Lazy(find)
    with no_wait(), pytest.raises(WouldBlock):
        blob.size()
    assert looks == []
    assert (blob.size(), bytes(blob.read(1, 2)), bytes(read_all(blob))) == (5, b"34", b"23456")
    assert stored_at(Slice(blob, 1, 2)) == 3
    assert len(looks) == 1


class FillingBytes(StoredBytes):
    """A file whose bytes are at hand."""

    __slots__ = ()

    def fill(self, offset: int, target: memoryview, /) -> bool:
        target[:] = self._data[offset : offset + len(target)]
        return True


@given(
    data=binary(max_size=30), start=integers(0, 30), count=integers(0, 30), offset=integers(0, 40)
)
def test_read_into_gives_what_read_gives(data: bytes, start: int, count: int, offset: int) -> None:
    whole = FillingBytes(data)
    start = min(start, len(data))
    part = Slice(whole, start, min(count, len(data) - start))
    for blob in (whole, part, Slice(part, 0, part.size()), Bytes(data), Concat([part, whole])):
        target = memoryview(bytearray(7))
        assert bytes(read_into(blob, offset, target)) == bytes(blob.read(offset, 7))


def test_read_into_puts_the_bytes_of_a_file_where_they_are_wanted() -> None:
    target = memoryview(bytearray(3))
    read_into(Slice(FillingBytes(b"0123456789"), 2, 6), 1, target)
    assert bytes(target) == b"345"


# --- what is read next ---


class FarBytes(StoredBytes):
    """A file that notes what is expected of it."""

    __slots__ = ("expected",)

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.expected: list[tuple[int, int]] = []

    def expect(self, spans: Iterable[tuple[int, int]], /) -> None:
        self.expected += spans


def test_what_is_expected_of_a_part_is_expected_of_the_file() -> None:
    file = FarBytes(bytes(100))
    expect(file, [(3, 4)])
    expect(Slice(Lazy(lambda: file), 0, 10), [(1, 1)])  # not looked for
    part = Slice(Slice(file, 10, 50), 20, 90)  # which reaches too far, and stays one of another
    expect(part, [(0, 5), (25, 1000), (-1, 5), (90, 1)])
    assert file.expected == [(3, 4), (30, 5), (55, 5)]


def test_what_is_at_hand_need_not_be_expected() -> None:
    def fail() -> int:
        raise AssertionError("looked at")

    def spans() -> Iterator[tuple[int, int]]:
        yield fail(), 1

    for blob in (StoredBytes(b"abc"), Slice(StoredBytes(b"abc"), 1, 1), Bytes(b"abc")):
        expect(blob, spans())
