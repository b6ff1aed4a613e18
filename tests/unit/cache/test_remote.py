from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.cache.blocks import BLOCK
from shardfs.cache.disk import Room
from shardfs.cache.memory import Memory
from shardfs.cache.once import Once
from shardfs.cache.remote import CachedStore, cached
from shardfs.errors import IsAFolder, NotFound, Unreadable, WouldBlock
from shardfs.model import Entry
from shardfs.options import Options
from tests.remote_fakes import RemoteFiles

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"a/x": b"x" * 10, "a/y": b"", "b": b"b" * 3}


def store(source: RemoteFiles, folder: Path | None = None, *, offline: bool = False) -> CachedStore:
    room = Room(folder, 1 << 20) if folder else None
    return cached(source, Options(offline=offline), Memory(1 << 20), room)


def test_what_was_asked_is_not_asked_again() -> None:
    source = RemoteFiles(FILES)
    seen = store(source)
    for _ in range(2):
        assert [entry.path for entry in seen.list()] == ["a", "b"]
        assert [entry.path for entry in seen.list("a")] == ["a/x", "a/y"]
        assert seen.stat("a/x").size == 10
        assert seen.stat("a").is_dir
        assert bytes(seen.open("b").read(0, 9)) == b"bbb"
        with pytest.raises(NotFound):
            seen.stat("c")
        with pytest.raises(IsAFolder):
            seen.open("a")
    assert source.asked == ["list ", "list a", "stat c"]
    assert len(source.blobs) == 1


def test_a_listing_that_leaves_things_out_is_completed_file_by_file() -> None:
    source = RemoteFiles(FILES, terse=True)
    seen = store(source)
    assert [entry.version for entry in seen.list("a")] == ["", ""]
    assert seen.stat("a/x") == Entry("a/x", 10, 1, "v10")
    assert bytes(seen.open("a/x").read(0, 99)) == b"x" * 10
    assert source.asked == ["list a", "stat a/x"]


def test_the_first_look_decides(tmp_path: Path) -> None:
    source = RemoteFiles(FILES)
    seen = store(source, tmp_path)
    seen.list()
    source.files["b"] = b"another"
    assert seen.stat("b").size == 3
    assert store(source, tmp_path).stat("b").size == 7


def test_nothing_is_asked_without_waiting() -> None:
    source = RemoteFiles(FILES)
    seen = store(source)
    with no_wait():
        for use in (seen.list, lambda: seen.stat("b"), lambda: seen.open("b")):
            with pytest.raises(WouldBlock):
                use()
    assert not source.asked
    seen.list()
    with no_wait():
        assert seen.stat("b").size == 3
        assert seen.open("b").size() == 3


def test_after_a_failure_it_is_asked_again() -> None:
    source = RemoteFiles(FILES)
    seen = store(source)
    source.error = Unreadable("the host is away")
    for _ in range(2):
        with pytest.raises(Unreadable, match="the host is away"):
            seen.list()
    source.error = None
    assert len(seen.list()) == 2


def test_many_threads_ask_once() -> None:
    source = RemoteFiles(FILES)
    seen = store(source)
    ask = source._ask

    def slowly(what: str) -> None:
        time.sleep(0.05)
        ask(what)

    source._ask = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(8) as pool:
        assert len({len(entries) for entries in pool.map(seen.list, [""] * 8)}) == 1
    assert source.asked == ["list "]


def test_offline_shows_what_was_seen(tmp_path: Path) -> None:
    source = RemoteFiles({**FILES, "odd\udc80": b"1"})
    seen = store(source, tmp_path)
    for path in ("", "a"):
        seen.list(path)
    seen.open("b").read(0, 1)
    with pytest.raises(NotFound):
        seen.stat("c")
    seen.close()

    source.asked.clear()
    source.blobs.clear()
    later = store(source, tmp_path, offline=True)
    assert [entry.path for entry in later.list()] == ["a", "b", "odd\udc80"]
    assert later.list("a") == seen.list("a")
    assert bytes(later.open("b").read(0, 9)) == b"bbb"
    with pytest.raises(NotFound):
        later.stat("c")
    for use in (lambda: later.list("d"), lambda: later.stat("d")):
        with pytest.raises(Unreadable, match="remote://host/d: offline, and never seen before"):
            use()
    with pytest.raises(Unreadable, match="remote://host/a/x: offline"):
        later.open("a/x").read(0, 1)
    assert not source.asked
    assert not source.blobs


def test_garbage_in_the_cache_is_nothing_that_was_seen(tmp_path: Path) -> None:
    seen = store(RemoteFiles(FILES), tmp_path)
    seen.list()
    (file,) = (tmp_path / "index").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:48] + b"\0" * (len(content) - 48))
    with pytest.raises(Unreadable, match="never seen before"):
        store(RemoteFiles(FILES), tmp_path, offline=True).list()
    assert len(store(RemoteFiles(FILES), tmp_path).list()) == 2
    assert len(store(RemoteFiles(FILES), tmp_path, offline=True).list()) == 2


def test_files_are_apart_by_version_and_size(tmp_path: Path) -> None:
    for content in (b"1" * 10, b"2" * 11):
        seen = store(RemoteFiles({"f": content}), tmp_path)
        assert bytes(seen.open("f").read(0, 99)) == content
        seen.close()


def test_closing_closes_the_store() -> None:
    source = RemoteFiles({"f": bytes(3 * BLOCK)})
    seen = store(source)
    blob = seen.open("f")
    blob.read(0, 10)
    seen.close()
    assert source.closed
    assert len(blob.read(0, 10)) == 10
    assert seen.counts() == {
        "requests": 1,
        "blocks_from_memory": 1,
        "blocks_from_disk": 0,
        "blocks_fetched": 1,
    }


def test_once_gives_an_unforeseen_failure_to_all_and_forgets_it() -> None:
    once: Once[int] = Once()

    def fail() -> int:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            once.get("key", fail)
    assert once.known("key") is None
    assert once.get("key", lambda: 5) == 5
    assert once.known("key") == 5
    assert once.get("key", fail) == 5
