from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from shardfs.cache.disk import BLOCKS, DiskCache, Room
from shardfs.cache.kept import BLOCK, Kept

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 20 * BLOCK + 100
COUNT = 21
DATA = os.urandom(BLOCK) * 21


def block(number: int) -> bytes:
    """One that is like no other."""
    length = min(BLOCK, SIZE - number * BLOCK)
    return number.to_bytes(4, "little") + DATA[: length - 4]


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(Room(tmp_path, 100 * BLOCK), BLOCKS)


@pytest.fixture
def kept(disk: DiskCache) -> Kept:
    return Kept(disk, "file", SIZE)


def get(kept: Kept, number: int) -> bytes | None:
    found = kept.get(number)
    return None if found is None else bytes(found)


def write(kept: Kept, first: int, stop: int) -> None:
    with kept.writer() as writer:
        for number in range(first, stop):
            writer.add(number, bytearray(block(number)))


def files(folder: Path) -> list[int]:
    """The sizes of all files, in blocks."""
    return sorted(file.stat().st_size // BLOCK for file in (folder / BLOCKS).iterdir())


@pytest.mark.parametrize(
    ("first", "stop", "sizes"),
    [
        (0, 21, [4, 8, 8]),
        (0, 16, [8, 8]),
        (8, 16, [8]),
        (0, 7, [1] * 7),
        (3, 9, [1] * 6),
        (5, 17, [1, 1, 1, 1, 8]),
        (16, 21, [4]),
        (17, 21, [0, 1, 1, 1]),
        (20, 21, [0]),
    ],
)
def test_what_is_written_is_there_in_few_files(
    kept: Kept, tmp_path: Path, first: int, stop: int, sizes: list[int]
) -> None:
    write(kept, first, stop)
    for number in range(COUNT):
        found = get(kept, number)
        is_there = first <= number < stop
        assert (found is not None) == is_there == kept.has(number)
        assert found is None or found == block(number)
    assert files(tmp_path) == sizes


def test_files_are_apart_by_key(kept: Kept, disk: DiskCache) -> None:
    write(kept, 0, COUNT)
    other = Kept(disk, "other", SIZE)
    assert not any(other.has(number) or other.get(number) for number in range(COUNT))


def test_what_came_before_a_failure_is_kept(kept: Kept) -> None:
    with pytest.raises(OSError, match="cut"), kept.writer() as writer:  # noqa: PT012
        writer.add(2, bytearray(block(2)))
        writer.add(3, bytearray(block(3)))
        raise OSError("cut")
    assert get(kept, 2) == block(2)
    assert get(kept, 3) == block(3)


def test_damage_costs_one_block_and_can_be_mended(kept: Kept, tmp_path: Path) -> None:
    write(kept, 0, 8)
    (file,) = (tmp_path / BLOCKS).iterdir()
    with file.open("r+b") as opened:
        opened.seek(-4 * BLOCK, os.SEEK_END)
        opened.write(b"\xff" * 16)
    assert kept.get(4) is None
    assert [get(kept, n) == block(n) for n in (3, 5)] == [True, True]
    write(kept, 4, 5)
    assert get(kept, 4) == block(4)


def test_a_file_that_was_cut_is_nothing(kept: Kept, tmp_path: Path) -> None:
    write(kept, 0, 8)
    (file,) = (tmp_path / BLOCKS).iterdir()
    os.truncate(file, 3 * BLOCK)
    assert [kept.get(number) for number in range(8)] == [None] * 8


def test_where_nothing_fits_nothing_is_kept(tmp_path: Path) -> None:
    kept = Kept(DiskCache(Room(tmp_path, 4 * BLOCK), BLOCKS), "file", SIZE)
    write(kept, 0, 8)
    assert not any(kept.has(number) for number in range(8))
