from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes, no_wait
from shardfs.cache.disk import Room
from shardfs.cache.kept import BLOCK
from shardfs.cache.memory import Memory
from shardfs.cache.once import Once
from shardfs.cache.remote import CachedStore, cached
from shardfs.errors import IsAFolder, NotFound, Unreadable, WouldBlock
from shardfs.options import Options
from shardfs.stores import Entry
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
    assert source.asked == ["stat ", "whole", "list ", "list a", "stat c"]
    assert len(source.blobs) == 1


def test_a_listing_that_leaves_things_out_is_completed_file_by_file() -> None:
    source = RemoteFiles(FILES, terse=True)
    seen = store(source)
    assert [entry.version for entry in seen.list("a")] == ["", ""]
    assert seen.stat("a/x") == Entry("a/x", 10, 1, "v10")
    assert bytes(seen.open("a/x").read(0, 99)) == b"x" * 10
    assert source.asked == ["stat ", "whole", "list a", "stat a/x"]


def test_a_store_learns_what_a_mount_before_has_asked_for(tmp_path: Path) -> None:
    for recalled in ([], ["", "b", "a/x"]):
        source = RemoteFiles(FILES, terse=True)
        seen = store(source, tmp_path)
        seen.stat("b")
        seen.stat("a/x")
        assert source.recalled == recalled


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
    assert source.asked == ["stat ", "whole", "list "]


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
    assert source.asked == ["whole"]  # which makes no request then
    assert not source.blobs


def test_garbage_in_the_cache_is_nothing_that_was_seen(tmp_path: Path) -> None:
    seen = store(RemoteFiles(FILES), tmp_path)
    seen.list()
    for file in (tmp_path / "index").iterdir():
        content = file.read_bytes()
        file.write_bytes(content[:48] + b"\0" * (len(content) - 48))
    with pytest.raises(Unreadable, match="never seen before"):
        store(RemoteFiles(FILES), tmp_path, offline=True).list()
    assert len(store(RemoteFiles(FILES), tmp_path).list()) == 2
    assert len(store(RemoteFiles(FILES), tmp_path, offline=True).list()) == 2


def test_what_was_said_of_a_version_holds_for_later_mounts(tmp_path: Path) -> None:
    source = RemoteFiles(FILES)
    source.version = "commit 1"
    for asked in (["stat ", "whole", "list ", "list a", "stat c"], ["stat "]):
        seen = store(source, tmp_path)
        assert [entry.path for entry in seen.list()] == ["a", "b"]
        assert [entry.path for entry in seen.list("a")] == ["a/x", "a/y"]
        with pytest.raises(NotFound):
            seen.stat("c")
        assert source.asked == asked
        source.asked.clear()
    source.version = "commit 2"
    assert [entry.path for entry in store(source, tmp_path).list()] == ["a", "b"]
    assert source.asked == ["stat ", "whole", "list "]


def test_nobody_lists_everything_for_a_few_files() -> None:
    source = RemoteFiles(FILES)
    source.everything = everything()
    seen = cached(source, Options(), Memory(1 << 20), None, named=True)
    assert [entry.path for entry in seen.list()] == ["a", "b"]
    assert source.asked == ["stat ", "list "]


def test_what_is_not_in_a_complete_listing_is_not_asked_for() -> None:
    source = RemoteFiles(FILES)
    source.complete = True
    seen = store(source)
    seen.list("a")
    source.asked.clear()
    for path in ("a/none", "a/x/none"):
        with pytest.raises(NotFound):
            seen.stat(path)
    assert source.asked == ["stat a/x/none"]  # nobody has looked into that folder


def everything() -> list[Entry]:
    return [
        Entry("", 0, 7, "v7", is_dir=True),
        Entry("b", 3, 7, "vb"),
        Entry("a/deep/x", 10, 7, "vx"),
        Entry("a.x", 1, 7, "va"),
        Entry("none", 0, 7, "", is_dir=True),
    ]


def test_one_listing_of_everything_answers_all(tmp_path: Path) -> None:
    source = RemoteFiles({"b": b"bbb"})
    source.everything, source.complete = everything(), True
    for offline, asked in ((False, ["stat ", "whole"]), (True, [])):
        seen = store(source, tmp_path, offline=offline)
        assert [entry.path for entry in seen.list()] == ["a", "a.x", "b", "none"]
        assert [entry.path for entry in seen.list("a")] == ["a/deep"]
        assert seen.list("a/deep") == [Entry("a/deep/x", 10, 7, "vx")]
        assert seen.list("none") == []
        assert seen.stat("a").is_dir
        assert seen.stat("a/deep").is_dir
        assert seen.stat("b").size == 3
        for missing in ("c", "a/x", "b/x"):
            with pytest.raises(NotFound):
                seen.stat(missing)
        with pytest.raises(NotFound):
            seen.list("b")
        assert seen.files() is None
        assert source.asked == asked
        source.asked.clear()


def test_the_files_of_a_repository_are_those_of_its_splits() -> None:
    source = RemoteFiles({})
    source.everything, source.hub_rules = everything(), True
    assert store(source).files() == ["a.x", "b", "a/deep/x"]
    source.everything = None
    assert store(source).files() is None


def test_a_copy_on_this_machine_is_not_fetched() -> None:
    source = RemoteFiles(FILES)
    source.copies["b"] = Bytes(b"copy")
    assert store(source).open("b") is source.copies["b"]
    assert not source.blobs


def test_offline_what_other_programs_left_is_shown_and_not_kept(tmp_path: Path) -> None:
    source = RemoteFiles({})
    source.everything = everything()
    source.copies["b"] = Bytes(b"bbb")
    seen = store(source, tmp_path, offline=True)
    assert seen.stat("") == source.everything[0]
    assert bytes(seen.open("b").read(0, 9)) == b"bbb"
    with pytest.raises(Unreadable, match="offline"):
        seen.open("a.x").read(0, 1)
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("is_whole", [True, False])
def test_garbage_is_nothing_to_go_by_either(tmp_path: Path, is_whole: bool) -> None:
    source = RemoteFiles(FILES)
    source.version = "commit 1"
    source.everything = everything() if is_whole else None
    shown = [entry.path for entry in store(source, tmp_path).list()]
    for file in (tmp_path / "index").iterdir():
        content = file.read_bytes()
        file.write_bytes(content[:48] + b"[" * (len(content) - 48))
    source.asked.clear()
    assert [entry.path for entry in store(source, tmp_path).list()] == shown
    assert source.asked[:2] == ["stat ", "whole"]


def test_it_can_be_asked_anew(tmp_path: Path) -> None:
    source = RemoteFiles(FILES)
    source.version = "commit 1"
    store(source, tmp_path).list()
    source.asked.clear()
    options = Options(rebuild_index=True)
    cached(source, options, Memory(1 << 20), Room(tmp_path, 1 << 20)).list()
    assert source.asked == ["stat ", "whole", "list "]


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
        "requests": 2,
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
