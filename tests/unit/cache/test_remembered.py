from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait, read_all
from shardfs.cache.disk import INDEX, DiskCache, Room
from shardfs.cache.remembered import remembered
from shardfs.cache.sums import CHECKED_AT_ONCE
from shardfs.errors import Spoilt, WouldBlock

if TYPE_CHECKING:
    from pathlib import Path

LONG = b"content!" * (CHECKED_AT_ONCE // 8 + 1)


class Builder:
    def __init__(self, content: bytes) -> None:
        self.content, self.built = content, 0

    def __call__(self) -> bytes:
        self.built += 1
        return self.content


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(Room(tmp_path, 1 << 30), INDEX)


def damage(folder: Path) -> None:
    (file,) = (folder / INDEX).iterdir()
    data = bytearray(file.read_bytes())
    data[5] ^= 1
    file.write_bytes(data)


def no_build() -> bytes:
    raise Spoilt("nothing is kept")


@pytest.mark.parametrize("content", [b"content", LONG])
def test_what_is_damaged_is_computed_anew_and_kept(
    disk: DiskCache, tmp_path: Path, content: bytes
) -> None:
    build = Builder(content)
    remembered(disk, "key", build, is_fresh=False)
    assert bytes(read_all(remembered(disk, "key", build, is_fresh=False))) == content
    assert build.built == 1
    damage(tmp_path)
    found = remembered(disk, "key", build, is_fresh=False)
    assert found.size() == len(content)
    assert bytes(read_all(found)) == content
    assert build.built == 2
    assert bytes(read_all(remembered(disk, "key", no_build, is_fresh=False))) == content


def test_what_is_damaged_is_not_computed_where_nothing_may_wait(
    disk: DiskCache, tmp_path: Path
) -> None:
    remembered(disk, "key", Builder(LONG), is_fresh=False)
    damage(tmp_path)
    found = remembered(disk, "key", Builder(LONG), is_fresh=False)
    with no_wait(), pytest.raises(WouldBlock):
        found.read(0, 8)
    assert bytes(found.read(0, 8)) == b"content!"


def test_what_can_not_be_computed_is_said_to_be_damaged(disk: DiskCache, tmp_path: Path) -> None:
    remembered(disk, "key", Builder(LONG), is_fresh=False)
    damage(tmp_path)
    found = remembered(disk, "key", no_build, is_fresh=False)
    with pytest.raises(Spoilt):
        found.read(0, 8)


def test_what_was_kept_is_not_looked_at_where_it_is_to_be_fresh(disk: DiskCache) -> None:
    remembered(disk, "key", Builder(b"old"), is_fresh=False)
    assert bytes(read_all(remembered(disk, "key", Builder(b"new"), is_fresh=True))) == b"new"
    assert bytes(read_all(remembered(disk, "key", no_build, is_fresh=False))) == b"new"
