from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import read_all
from shardfs.cache.disk import BLOCKS, INDEX, DiskCache, Room, default_folder
from shardfs.names import from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 10_000
# In a file of no content: magic, hash, length.
HEAD = 48


def kept_in(folder: Path) -> DiskCache:
    return DiskCache(Room(folder, LIMIT), INDEX)


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return kept_in(tmp_path)


def kept(cache: DiskCache, key: str) -> bytes | None:
    blob = cache.get(key)
    return None if blob is None else bytes(read_all(blob))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "index").iterdir())


def used(folder: Path) -> int:
    return sum(file.stat().st_size for file in files(folder))


def test_what_was_put_is_there_also_for_the_next_mount(cache: DiskCache, tmp_path: Path) -> None:
    assert kept(cache, "key") is None
    cache.put("key", b"content")
    cache.put("empty", b"")
    for each in (cache, kept_in(tmp_path)):
        assert kept(each, "key") == b"content"
        assert kept(each, "empty") == b""
        assert kept(each, "other") is None


def test_what_is_put_again_is_replaced(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"old")
    before = cache.get("key")
    cache.put("key", b"newer")
    assert kept(cache, "key") == b"newer"
    assert before is not None
    assert bytes(read_all(before)) == b"old", "whoever reads goes on reading what it opened"
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("key", [from_bytes(b"\xff"), "\ud800", "a/../b", "x" * 10_000, ""])
def test_any_text_is_a_key(cache: DiskCache, key: str) -> None:
    cache.put(key, b"content")
    assert kept(cache, key) == b"content"


def test_others_can_not_read_it(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"content")
    assert (tmp_path / "index").stat().st_mode & 0o077 == 0
    assert files(tmp_path)[0].stat().st_mode & 0o077 == 0


# --- bounds ---


def test_it_never_takes_more_than_its_limit(cache: DiskCache, tmp_path: Path) -> None:
    for number in range(60):
        cache.put(f"key {number}", bytes(900 + number))
        assert used(tmp_path) <= LIMIT
    assert kept(cache, "key 59") is not None
    assert kept(cache, "key 0") is None


def test_the_least_recently_used_goes_first(cache: DiskCache, tmp_path: Path) -> None:
    for number in range(8):
        cache.put(f"key {number}", bytes(1000))
        (newest,) = (file for file in files(tmp_path) if file.stat().st_mtime > 1000)
        # Times of use a second apart; the very first one was used again.
        os.utime(newest, (number + 1 if number else 100, 1))
    for number in range(8, 11):
        cache.put(f"key {number}", bytes(1000))
    assert kept(cache, "key 0") is not None
    assert kept(cache, "key 1") is None
    assert kept(cache, "key 10") is not None


def test_what_is_larger_than_the_limit_is_not_kept_and_harms_nothing(
    cache: DiskCache, tmp_path: Path
) -> None:
    cache.put("small", b"content")
    cache.put("large", bytes(LIMIT))
    assert kept(cache, "large") is None
    assert kept(cache, "small") == b"content"


def test_what_another_mount_left_counts(cache: DiskCache, tmp_path: Path) -> None:
    for number in range(8):
        kept_in(tmp_path).put(f"key {number}", bytes(1000))
    for number in range(8, 16):
        cache.put(f"key {number}", bytes(1000))
    assert used(tmp_path) <= LIMIT


def test_several_mounts_and_threads_share_a_folder(tmp_path: Path) -> None:
    caches = [kept_in(tmp_path) for _ in range(4)]

    def work(number: int) -> None:
        cache = caches[number % 4]
        for step in range(40):
            name = f"key {(number + step) % 10}"
            found = kept(cache, name)
            assert found in (None, name.encode() * 100)
            cache.put(name, name.encode() * 100)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    # Each counts for itself, so that together they may go over the limit until the next clean-up.
    assert used(tmp_path) <= 2 * LIMIT
    assert not [file for file in files(tmp_path) if file.name.startswith(".new-")]


# --- what goes wrong ---


def test_a_folder_that_was_emptied_is_filled_again(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"content")
    for file in files(tmp_path):
        file.unlink()
    assert kept(cache, "key") is None
    (tmp_path / "index").rmdir()
    cache.put("key", b"content")
    assert kept(cache, "key") == b"content"


@pytest.mark.parametrize(
    "change",
    [
        lambda good: b"",
        lambda good: good[:10],
        lambda good: good[:HEAD],
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: b"X" + good[1:],
        lambda good: good[:20] + b"X" + good[21:],
    ],
)
def test_garbage_is_not_taken_for_content(cache: DiskCache, tmp_path: Path, change: Any) -> None:
    cache.put("key", b"content")
    (file,) = files(tmp_path)
    file.write_bytes(change(file.read_bytes()))
    assert kept(cache, "key") is None
    cache.put("key", b"content")
    assert kept(cache, "key") == b"content"


def test_a_file_of_another_key_is_not_taken(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"content")
    (file,) = files(tmp_path)
    cache.put("other", b"other")
    (other,) = (each for each in files(tmp_path) if each != file)
    other.replace(file)
    assert kept(cache, "key") is None


def test_other_things_in_the_folder_do_not_disturb(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"content")
    (file,) = files(tmp_path)
    file.unlink()
    file.mkdir()
    (tmp_path / "index" / "dangling").symlink_to("nowhere")
    assert kept(cache, "key") is None
    for number in range(30):
        cache.put(f"key {number}", bytes(900))
    assert kept(cache, "key 29") is not None


def test_a_folder_that_can_not_be_made_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = kept_in(tmp_path / "file")
    for _ in range(3):
        cache.put("key", b"content")
        assert kept(cache, "key") is None
    (message,) = caplog.messages
    assert "going on without" in message


def test_a_folder_that_can_not_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept_in(tmp_path).put("key", b"content")
    monkeypatch.setattr(tempfile, "mkstemp", failing(errno.EROFS))
    cache = kept_in(tmp_path)
    for _ in range(2):
        cache.put("other", b"other")
    assert kept(cache, "key") == b"content"
    assert kept(cache, "other") is None
    (message,) = caplog.messages
    assert "Read-only file system" in message


def failing(number: int) -> Callable[..., None]:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("call", ["write", "replace"])
def test_a_full_disk_leaves_nothing_behind(
    cache: DiskCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
) -> None:
    cache.put("key", b"content")
    full = failing(errno.ENOSPC)

    class Full:
        """A file that takes nothing."""

        def __init__(self, descriptor: int, mode: str) -> None:
            self._descriptor = descriptor

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *exc: object) -> None:
            os.close(self._descriptor)

        def writelines(self, parts: object) -> None:
            full()

    if call == "write":
        monkeypatch.setattr(os, "fdopen", Full)
    else:
        monkeypatch.setattr(os, "replace", full)
    cache.put("other", b"other")
    monkeypatch.undo()
    assert kept(cache, "other") is None
    assert kept(cache, "key") == b"content"
    assert len(files(tmp_path)) == 1
    assert "No space left" in caplog.text
    cache.put("other", b"other")
    assert kept(cache, "other") == b"other"


def test_a_file_that_can_not_be_read_is_nothing(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("key", b"content")
    monkeypatch.setattr(os, "pread", failing(errno.EIO))
    assert cache.get("key") is None


def test_files_that_vanish_while_room_is_made_do_no_harm(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(8):
        cache.put(f"key {number}", bytes(1000))
    unlink = os.unlink

    def twice(path: Path) -> None:
        """Another mount was quicker."""
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", twice)
    for number in range(8, 12):
        cache.put(f"key {number}", bytes(1000))
    assert kept(cache, "key 11") is not None
    assert not caplog.messages


@pytest.mark.parametrize(
    ("value", "folder"), [("/somewhere", "/somewhere/shardfs"), ("relative", None), ("", None)]
)
def test_the_default_is_the_cache_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, value: str, folder: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_folder() == Path(folder or "/home/somebody/.cache/shardfs")


# --- one budget for all ---


def test_all_folders_share_the_limit_and_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    room = Room(tmp_path, LIMIT)
    index, blocks = DiskCache(room, INDEX), DiskCache(room, BLOCKS)
    index.put("old", bytes(3000))
    for number in range(3):
        blocks.put(f"block {number}", bytes(1500))
    for age, folder in ((10, INDEX), (5, BLOCKS)):
        for file in (tmp_path / folder).iterdir():
            os.utime(file, (1000 - age, 1000 - age))
    blocks.put("newest", bytes(3000))
    assert kept(index, "old") is None
    assert all(kept(blocks, f"block {number}") is not None for number in range(3))
    # All of that was within one tick of the clock, perhaps.
    for file in (tmp_path / BLOCKS).iterdir():
        os.utime(file, (2000, 2000) if file.stat().st_size < 3000 else None)
    index.put("another", bytes(6000))
    assert kept(index, "another") is not None
    assert kept(blocks, "block 0") is None
    assert sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()) <= LIMIT


def test_files_of_others_are_neither_counted_nor_removed(tmp_path: Path) -> None:
    (tmp_path / INDEX).mkdir()
    others = [tmp_path / "thesis", tmp_path / INDEX / "notes.txt", tmp_path / ("a" * 64)]
    for other in others:
        other.write_bytes(bytes(LIMIT))
    cache = kept_in(tmp_path)
    for number in range(20):
        cache.put(f"key {number}", bytes(1000))
    assert kept(cache, "key 19") is not None
    assert all(other.stat().st_size == LIMIT for other in others)


def test_what_is_used_stays(tmp_path: Path) -> None:
    cache = kept_in(tmp_path)
    for number in range(9):
        cache.put(f"key {number}", bytes(1000))
        for file in files(tmp_path):
            if file.stat().st_mtime > 1000:
                os.utime(file, (number + 1, number + 1))
    assert kept(cache, "key 0") is not None
    cache.put("another", bytes(1000))
    assert kept(cache, "key 0") is not None
    assert kept(cache, "key 1") is None


def test_many_threads_at_once_stay_below_the_limit(tmp_path: Path) -> None:
    cache = kept_in(tmp_path)
    most = 0

    def work(number: int) -> None:
        nonlocal most
        for step in range(30):
            cache.put(f"key {number} {step}", bytes(900))
            with contextlib.suppress(FileNotFoundError):  # it is renamed while we look
                most = max(most, used(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert 0 < most <= LIMIT
