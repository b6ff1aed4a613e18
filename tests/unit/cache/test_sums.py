from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists, sampled_from, tuples

from shardfs.blob import no_wait, read_all
from shardfs.cache.disk import INDEX, DiskCache, Room, digest_of
from shardfs.cache.sums import BLOCK, CHECKED_AT_ONCE, Sums, open_sealed, seal_size
from shardfs.errors import Spoilt, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DIGEST = digest_of("key")
CONTENT = random.Random(1).randbytes(3 * BLOCK + 100)


def sealed(content: bytes, digest: bytes = DIGEST) -> bytes:
    sums = Sums()
    sums.add(content)
    return content + sums.seal(digest)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_bytes(sealed(CONTENT))
    return file


def flip(place: Path, at: int) -> None:
    data = bytearray(place.read_bytes())
    data[at] ^= 4
    place.write_bytes(data)


@given(lists(binary(max_size=50)), lists(integers(0, 100)))
def test_sums_do_not_depend_on_the_parts(parts: Sequence[bytes], cuts: Sequence[int]) -> None:
    once, apart = Sums(), Sums()
    once.add(b"".join(parts) * 3000)
    whole, at = b"".join(parts) * 3000, 0
    for cut in cuts:
        apart.add(whole[at : at + cut])
        at = min(at + cut, len(whole))
    apart.add(memoryview(whole)[at:])
    assert once.seal(DIGEST) == apart.seal(DIGEST)
    assert len(once.seal(DIGEST)) == seal_size(len(whole))


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_what_was_written_is_read_wherever(tmp_path: Path, length: int) -> None:
    place = tmp_path / "file"
    place.write_bytes(sealed(CONTENT[:length]))
    for offset, count in [(0, length), (length - 1, 5), (BLOCK - 1, 2), (0, 0), (length, 9)]:
        content = open_sealed(str(place), DIGEST)
        assert content is not None
        assert content.size() == length
        start = max(offset, 0)
        assert bytes(content.read(offset, count)) == CONTENT[:length][start : offset + count]


def test_a_damaged_block_is_never_read_and_the_file_is_gone(place: Path) -> None:
    flip(place, 2 * BLOCK + 7)
    content = open_sealed(str(place), DIGEST)
    assert content is not None
    assert bytes(content.read(0, 2 * BLOCK)) == CONTENT[: 2 * BLOCK]
    assert place.exists()
    for _ in range(2):
        with pytest.raises(Spoilt):
            content.read(2 * BLOCK - 1, 2)
    assert not place.exists()


def test_parts_that_are_of_use_alone_stay(place: Path) -> None:
    flip(place, 7)
    content = open_sealed(str(place), DIGEST, in_parts=True)
    assert content is not None
    with pytest.raises(Spoilt):
        content.read(0, 1)
    assert bytes(content.read(BLOCK, 10)) == CONTENT[BLOCK : BLOCK + 10]
    assert place.exists()


def test_a_file_that_is_cut_while_it_is_read_is_damaged(place: Path) -> None:
    content = open_sealed(str(place), DIGEST)
    assert content is not None
    os.truncate(place, 10)
    with pytest.raises(Spoilt):
        content.read(BLOCK, 10)


@given(
    tuples(sampled_from(["flip", "cut", "zero", "more", "swap", "old"]), integers(0, 1 << 30)),
)
def test_whatever_became_of_a_file_its_content_is_right_or_none(change: tuple[str, int]) -> None:
    import tempfile

    how, number = change
    data = bytearray(sealed(CONTENT))
    at = number % len(data)
    if how == "flip":
        data[at] ^= 1 << (number % 7)
    elif how == "cut":
        del data[at:]
    elif how == "zero":
        data[at : at + 600] = bytes(len(data[at : at + 600]))
    elif how == "more":
        data[at:at] = b"more"
    elif how == "swap":
        data = bytearray(sealed(b"other", digest_of("other")))
    else:
        data = bytearray(b"shardfs1" + DIGEST + len(CONTENT).to_bytes(8, "little") + CONTENT)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        content = open_sealed(file.name, DIGEST, in_parts=True)
        if content is None:
            file_there = os.path.exists(file.name)
            assert not file_there, "what can't be believed is removed"
            open(file.name, "wb").close()
        elif data == sealed(CONTENT):
            assert read_all(content) == CONTENT
        else:
            with pytest.raises(Spoilt):
                read_all(content)


def test_much_is_not_checked_where_nothing_may_wait(place: Path) -> None:
    place.write_bytes(sealed(bytes(1 << 20)))
    content = open_sealed(str(place), DIGEST)
    assert content is not None
    with no_wait(), pytest.raises(WouldBlock):
        content.check()
    content.check()


def test_a_cache_says_at_once_that_something_else_is_there(tmp_path: Path) -> None:
    cache = DiskCache(Room(tmp_path, 1 << 30), INDEX)
    cache.put("key", CONTENT)
    (file,) = (tmp_path / INDEX).iterdir()
    flip(file, 2 * BLOCK)
    assert cache.get("key") is None
    assert not file.exists()


def test_what_is_very_long_opens_at_once(tmp_path: Path) -> None:
    cache = DiskCache(Room(tmp_path, 1 << 30), INDEX)
    cache.put("key", bytes(CHECKED_AT_ONCE + 1))
    (file,) = (tmp_path / INDEX).iterdir()
    flip(file, 2 * BLOCK)
    content = cache.get("key")
    assert content is not None
    assert not any(content.read(0, 10))
    with pytest.raises(Spoilt):
        content.read(2 * BLOCK, 10)
