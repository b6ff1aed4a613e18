from __future__ import annotations

import errno
import fcntl
import gc
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import no_wait, read_all
from shardfs.cache.disk import NoRoom, Room
from shardfs.cache.spill import Spills
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 100_000
# What a finished file has behind its content.
TAIL = 56


@pytest.fixture
def spills(tmp_path: Path) -> Spills:
    return Spills(Room(tmp_path, LIMIT))


def files(folder: Path) -> list[Path]:
    return sorted(place for place in folder.rglob("*") if place.is_file())


def keep(spills: Spills, key: str, content: bytes) -> None:
    spill = spills.create(key)
    spill.append(memoryview(content))
    spill.finish()


def kept(spills: Spills, key: str) -> bytes | None:
    blob = spills.get(key)
    return None if blob is None else bytes(read_all(blob))


def test_what_was_finished_is_found_by_others(spills: Spills, tmp_path: Path) -> None:
    keep(spills, "key", b"content")
    assert kept(spills, "key") == b"content"
    assert kept(Spills(Room(tmp_path, LIMIT)), "key") == b"content"
    assert kept(spills, "other key") is None


def test_what_was_written_is_read_at_once(spills: Spills) -> None:
    spill = spills.create("key")
    spill.append(memoryview(b"0123"))
    assert bytes(spill.read(1, 2)) == b"12"
    spill.append(memoryview(b"4567"))
    assert bytes(spill.read(2, 4)) == b"2345"
    assert spill.size == 8
    spill.finish()
    assert bytes(spill.read(0, 8)) == b"01234567"


def test_what_is_not_finished_is_not_found_and_leaves_nothing(
    spills: Spills, tmp_path: Path
) -> None:
    spill = spills.create("key")
    spill.append(memoryview(b"content"))
    assert kept(spills, "key") is None
    assert len(files(tmp_path)) == 1
    spill.discard()
    assert files(tmp_path) == []
    assert bytes(spill.read(0, 7)) == b"content"  # by whoever has it open


def test_what_nobody_holds_leaves_nothing(spills: Spills, tmp_path: Path) -> None:
    spills.create("key").append(memoryview(b"content"))
    gc.collect()
    assert files(tmp_path) == []


def test_closing_leaves_only_what_is_finished(spills: Spills, tmp_path: Path) -> None:
    keep(spills, "whole", b"content")
    spill = spills.create("half")
    spill.append(memoryview(b"content"))
    spills.close()
    assert [place.stat().st_size for place in files(tmp_path)] == [7 + TAIL]
    with pytest.raises(NoRoom, match="closed"):
        spill.append(memoryview(b"more"))


def test_nothing_is_left_when_the_process_ends(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from shardfs.cache.disk import Room; from shardfs.cache.spill import Spills\n"
        "s = Spills(Room(pathlib.Path(sys.argv[1]), 1000)).create('key')\n"
        "s.append(memoryview(b'content'))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert files(tmp_path) == []


def test_what_a_killed_process_left_goes_when_room_is_made(tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    left = tmp_path / "unpacked" / ".new-left"
    left.write_bytes(b"x" * 1000)
    spills = Spills(Room(tmp_path, LIMIT))
    mine = spills.create("mine")
    other = tmp_path / "unpacked" / ".new-other"
    other.write_bytes(b"x" * 1000)
    with other.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mine.append(memoryview(b"content"))
    assert not left.exists()
    assert other.exists()
    assert len(files(tmp_path)) == 2


def test_what_was_used_least_recently_gives_way(spills: Spills, tmp_path: Path) -> None:
    for number, key in enumerate("abc"):
        keep(spills, key, bytes(30_000))
        for place in files(tmp_path):
            stamp = number if place.stat().st_mtime > 1000 else place.stat().st_mtime
            os.utime(place, (stamp, stamp))
    spills.get("a")
    keep(Spills(Room(tmp_path, LIMIT)), "d", bytes(30_000))
    found = Spills(Room(tmp_path, LIMIT))
    assert [key for key in "abcd" if found.get(key) is not None] == ["a", "c", "d"]


def test_the_whole_cache_counts_but_not_what_is_none_of_it(spills: Spills, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    kept, other = tmp_path / "index" / ("0" * 64), tmp_path / "index" / "README"
    kept.write_bytes(bytes(LIMIT - 5000))
    other.write_bytes(bytes(LIMIT))
    spill = spills.create("key")
    spill.append(memoryview(bytes(900)))
    assert kept.exists()
    spill.append(memoryview(bytes(9_000)))
    assert not kept.exists()
    assert other.exists()


def test_a_file_larger_than_the_limit_has_no_room(spills: Spills, tmp_path: Path) -> None:
    keep(spills, "small", b"content")
    spill = spills.create("large")
    for _ in range(10):
        spill.append(memoryview(bytes(9_999)))
    with pytest.raises(NoRoom, match=f"{LIMIT} bytes"):
        spill.append(memoryview(bytes(9_999)))
    assert sum(place.stat().st_size for place in files(tmp_path)) <= LIMIT


def test_a_full_disk(spills: Spills, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill = spills.create("key")
    spill.append(memoryview(b"content"))
    write = os.pwrite

    def fill(descriptor: int, data: Any, at: int) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:100], at)

    monkeypatch.setattr(os, "pwrite", fill)
    with pytest.raises(NoRoom, match="No space left"):
        spill.append(memoryview(bytes(250)))
    assert files(tmp_path) == []


def test_a_disk_that_fills_at_the_very_end_costs_only_the_next_mount(
    spills: Spills, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = spills.create("key")
    spill.append(memoryview(b"content"))

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    spill.finish()
    assert files(tmp_path) == []
    assert bytes(spill.read(0, 7)) == b"content"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NoRoom):
        Spills(Room(tmp_path / "file" / "cache", LIMIT)).create("key")


@pytest.mark.parametrize("cut", [0, 1, 20, TAIL, TAIL + 3])
def test_a_file_that_is_not_whole_is_none(spills: Spills, tmp_path: Path, cut: int) -> None:
    keep(spills, "key", b"content")
    (place,) = files(tmp_path)
    place.write_bytes(place.read_bytes()[:cut])
    assert kept(spills, "key") is None


def test_a_file_under_another_name_is_none(spills: Spills, tmp_path: Path) -> None:
    keep(spills, "key", b"content")
    (place,) = files(tmp_path)
    keep(spills, "other", b"other content")
    os.replace(place, next(other for other in files(tmp_path) if other != place))
    assert kept(spills, "other") is None


def test_without_waiting_what_is_not_in_the_page_cache_would_block(
    spills: Spills, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = spills.create("key")
    spill.append(memoryview(b"content"))

    def elsewhere(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "not now")

    monkeypatch.setattr(os, "preadv", elsewhere)
    with no_wait(), pytest.raises(WouldBlock):
        spill.read(0, 3)


def test_a_forked_process_does_no_harm(spills: Spills) -> None:
    """Both go on with the same content, each for itself, in one file."""
    spill = spills.create("key")
    spill.append(memoryview(b"0123"))
    child = os.fork()
    if not child:
        spill.append(memoryview(b"4567"))
        os._exit(0)
    os.waitpid(child, 0)
    spill.append(memoryview(b"4567"))
    spill.append(memoryview(b"89"))
    assert bytes(spill.read(0, 10)) == b"0123456789"
    spill.finish()
    assert kept(spills, "key") == b"0123456789"
