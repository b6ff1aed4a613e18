from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import may_wait, no_wait
from shardfs.errors import WouldBlock
from shardfs.tree.inodes import INNER, SHARD_ROOT
from shardfs.tree.keys import AT_ONCE, GroupedKeys, NestedKeys, PlainKeys
from tests.fakes import FakeShard, KeyedShard

if TYPE_CHECKING:
    from types import FrameType

    from shardfs.tree.keys import Keys


def keyed(*keys: str, known: int | None = None, loose: tuple[str, ...] = ()) -> KeyedShard:
    shard = KeyedShard({key: {} for key in keys}, {key: {} for key in loose})
    shard.known = len(keys) if known is None else known
    return shard


def names(keys: Keys, folder: int = SHARD_ROOT) -> list[str]:
    return [item.name for item in keys.children(folder, 0)]


def tree(keys: Keys, folder: int = SHARD_ROOT, above: str = "") -> dict[str, int]:
    """Path to number of all records and folders below, each of which must be found as it is listed."""
    found = {}
    for item in keys.children(folder, 0):
        assert keys.find(folder, item.name) == item.record
        found[above + item.name] = item.record
        found |= tree(keys, item.record, f"{above}{item.name}/")
    return found


def test_plain_records_are_numbered() -> None:
    keys = PlainKeys(FakeShard([{}, {}, {}]))
    assert tree(keys) == {"000000": 0, "000001": 1, "000002": 2}
    assert [item.name for item in keys.children(SHARD_ROOT, 2)] == ["000002"]
    assert list(keys.children(SHARD_ROOT, 3)) == []
    assert keys.path(1) == "000001"


@pytest.mark.parametrize(
    "name", ["", "1", "0000001", "00000a", "000003", "-00001", "00000²", "٠٠٠٠٠١"]
)
def test_other_spellings_of_a_number_are_no_record(name: str) -> None:
    assert PlainKeys(FakeShard([{}, {}, {}])).find(SHARD_ROOT, name) is None


def test_nothing_but_its_files_stands_in_a_plain_record() -> None:
    keys = PlainKeys(FakeShard([{}, {}]))
    assert list(keys.children(1, 0)) == []
    assert keys.find(1, "000000") is None
    assert list(keys.own_records(1)) == [1]
    assert list(keys.own_records(SHARD_ROOT)) == []


def test_groups() -> None:
    keys = GroupedKeys(FakeShard([{}] * 5), 2)
    assert names(keys) == ["000000-000001", "000002-000003", "000004-000004"]
    assert tree(keys)["000002-000003/000003"] == 3
    assert len(tree(keys)) == 3 + 5
    assert keys.path(3) == "000002-000003/000003"
    assert keys.find(SHARD_ROOT, "000003") == 3, "a record is found without its group, too"
    assert keys.find(INNER + 1, "000001") is None, "but not in another group"
    assert list(keys.own_records(INNER + 1)) == []


@pytest.mark.parametrize(
    "name", ["000000-000002", "000001-000002", "000006-000007", "0-1", "-", "9" * 5000 + "-1"]
)
def test_other_ranges_are_no_group(name: str) -> None:
    assert GroupedKeys(FakeShard([{}] * 5), 2).find(SHARD_ROOT, name) is None


def test_nested_keys_make_folders_in_the_order_in_which_they_come() -> None:
    keys = NestedKeys(keyed("z/2", "a", "z/1", "b/c/d"), merged=True)
    assert names(keys) == ["z", "a", "b"]
    found = tree(keys)
    assert list(found) == ["z", "z/2", "z/1", "a", "b", "b/c", "b/c/d"]
    assert found["z/1"] == 2
    assert found["z"] >= INNER
    assert keys.path(3) == "b/c/d"


def test_a_listing_goes_on_from_every_cookie() -> None:
    keys = NestedKeys(keyed("b", "b/1", "a/1", "a", "c"), merged=True)
    items = list(keys.children(SHARD_ROOT, 0))
    for position, item in enumerate(items):
        assert list(keys.children(SHARD_ROOT, item.cookie)) == items[position + 1 :]


def test_a_record_that_is_a_folder_too_stands_where_it_came_first() -> None:
    keys = NestedKeys(keyed("b", "b/1", "c/1", "c", "b/2"), merged=True)
    found = tree(keys)
    assert list(found) == ["b", "b/1", "b/2", "c", "c/1"]
    assert found["b"] == 0
    assert found["c"] >= INNER
    assert list(keys.own_records(0)) == [0]
    assert list(keys.own_records(found["c"])) == [3]


def test_where_records_are_no_folders_a_record_and_the_folder_of_its_name_are_apart() -> None:
    keys = NestedKeys(keyed("b", "b/1", "c/1", "c"), merged=False)
    items = [(item.name, item.record >= INNER) for item in keys.children(SHARD_ROOT, 0)]
    assert items == [("b", False), ("b", True), ("c", True), ("c", False)]
    assert (keys.record(SHARD_ROOT, "b"), keys.record(SHARD_ROOT, "c")) == (0, 3)
    inner = keys.inner(SHARD_ROOT, "b")
    assert inner is not None
    assert names(keys, inner) == ["1"]
    assert keys.inner(inner, "1") is None
    assert keys.record(inner, "1") == 1


def test_loose_files_stand_beside_what_else_is_in_their_folder() -> None:
    shard = keyed("b/1", "d", loose=("", "b", "new", "d"))
    keys = NestedKeys(shard, merged=True)
    found = tree(keys)
    assert list(found) == ["b", "b/1", "d", "new"]
    assert list(keys.own_records(SHARD_ROOT)) == [2]
    assert list(keys.own_records(found["b"])) == [3]
    assert list(keys.own_records(found["new"])) == [4]
    assert list(keys.own_records(found["d"])) == [1, 5], "those of the record come first"


def test_parts_that_are_no_file_names_are_escaped_and_found() -> None:
    found = tree(NestedKeys(keyed("../x", "..", "a/%2E%2E", "a/%", "a/\0"), merged=True))
    assert list(found) == ["%2E%2E", "%2E%2E/x", "a", "a/%2E%2E", "a/%", "a/%00"]


def test_a_name_with_an_escaped_slash_is_no_way_into_a_folder() -> None:
    keys = NestedKeys(keyed("a/b", "a%2Fc"), merged=True)
    assert keys.find(SHARD_ROOT, "a%2Fb") is None
    assert keys.find(SHARD_ROOT, "a%2Fc") == 1


@pytest.mark.parametrize("merged", [True, False])
def test_long_parts_are_shortened_and_found_in_full(merged: bool) -> None:
    long, other = "é" * 300, "é" * 299 + "f"
    keys = NestedKeys(keyed(f"{long}/{long}", f"{long}/{other}", long), merged=merged)
    folder = next(keys.children(SHARD_ROOT, 0))
    assert len(folder.name.encode()) <= 255
    assert keys.inner(SHARD_ROOT, folder.name) == folder.record
    inside = list(keys.children(folder.record, 0))
    assert [item.record for item in inside] == [0, 1]
    for item in inside:
        assert keys.find(folder.record, item.name) == item.record
        assert keys.record(folder.record, item.name) == item.record


def test_long_plain_keys_are_found_by_their_short_names() -> None:
    class Long(FakeShard):
        def key(self, index: int, /) -> str:
            return f"{'k' * 300}{index}"

        def find(self, key: str, /) -> int | None:
            return int(key[300:]) if key.startswith("k" * 300) else None

    assert list(tree(PlainKeys(Long([{}, {}]))).values()) == [0, 1]


# --- keys that are still being found ---


def test_what_was_found_so_far_is_listed_without_waiting() -> None:
    shard = keyed("a", "b/1", "c", known=2)
    keys = NestedKeys(shard, merged=True)
    items = keys.children(SHARD_ROOT, 0)
    with no_wait():
        assert [next(items).name, next(items).name] == ["a", "b"]
        with pytest.raises(WouldBlock):
            next(items)
    assert names(keys) == ["a", "b", "c"]


def test_a_folder_is_found_without_the_rest() -> None:
    shard = keyed("a/1", "b/1", "c", known=0)
    keys = NestedKeys(shard, merged=True)
    with no_wait(), pytest.raises(WouldBlock):
        keys.find(SHARD_ROOT, "b")
    place = keys.find(SHARD_ROOT, "b")
    assert place is not None
    assert place >= INNER
    assert shard.known == 2
    assert keys.inner(SHARD_ROOT, "a") == INNER + 1


def test_a_record_is_found_without_the_rest() -> None:
    shard = keyed("a", "b", "c", known=0)
    keys = NestedKeys(shard, merged=True)
    assert keys.find(SHARD_ROOT, "b") == 1
    assert shard.known == 2


def test_what_is_not_there_is_missing_only_once_all_was_found() -> None:
    shard = keyed("a", "b/1", known=1)
    keys = NestedKeys(shard, merged=True)
    with no_wait(), pytest.raises(WouldBlock):
        keys.find(SHARD_ROOT, "x")
    assert keys.find(SHARD_ROOT, "x") is None
    with no_wait():
        assert keys.find(SHARD_ROOT, "x") is None
        assert keys.find(SHARD_ROOT, "b") == INNER + 1


def test_nobody_meets_a_folder_that_is_half_made() -> None:
    keys = NestedKeys(keyed("a/b/1", "c"), merged=True)
    met = []

    def meet(frame: FrameType, event: str, argument: object) -> Any:
        """Look at what there is without waiting, between all lines that take keys in."""
        if frame.f_code.co_name in ("_make", "_made", "_place", "add"):
            with contextlib.suppress(WouldBlock), no_wait():
                met.append([item.name for item in keys.children(SHARD_ROOT, 0)])
            with contextlib.suppress(WouldBlock), no_wait():
                inner = keys.find(SHARD_ROOT, "a")
                assert inner is not None
                met.append([item.name for item in keys.children(inner, 0)])
        return meet

    before = sys.gettrace()
    sys.settrace(meet)
    try:
        assert list(tree(keys)) == ["a", "a/b", "a/b/1", "c"]
    finally:
        sys.settrace(before)
    assert all(names in ([], ["a"], ["a", "c"], ["b"]) for names in met)


def test_very_many_keys_are_not_taken_in_without_waiting() -> None:
    shard = keyed(*map(str, range(3 * AT_ONCE)))
    keys = NestedKeys(shard, merged=True)
    with no_wait(), pytest.raises(WouldBlock):
        keys.inner(SHARD_ROOT, "none")
    with no_wait(), pytest.raises(WouldBlock):
        names(keys)
    assert len(names(keys)) == 3 * AT_ONCE
    with no_wait():
        assert len(names(keys)) == 3 * AT_ONCE


def test_a_record_found_before_its_folder_shows_what_is_in_it() -> None:
    shard = keyed("c/1", "c", known=0)
    keys = NestedKeys(shard, merged=True)
    shard.known = 2
    record = keys.find(SHARD_ROOT, "c")
    assert record is not None
    assert names(keys, record) == ["1"]
    assert list(keys.own_records(record)) == [1]


class ColdShard(KeyedShard):
    """All keys are known, but on a disk that is slow."""

    def find(self, key: str, /) -> int | None:
        if not may_wait():
            raise WouldBlock
        return super().find(key)


def test_keys_on_a_slow_disk_are_waited_for() -> None:
    shard = ColdShard({"b": {}, "b/1": {}, "c": {}})
    keys = NestedKeys(shard, merged=True)
    with no_wait(), pytest.raises(WouldBlock):
        keys.find(SHARD_ROOT, "b")
    assert list(tree(keys)) == ["b", "b/1", "c"], "the folder is that of the record"


def test_without_waiting_nobody_waits_for_one_who_takes_keys_in() -> None:
    inside, leave = threading.Event(), threading.Event()

    class SlowShard(KeyedShard):
        def has(self, index: int, /) -> bool:
            if index and may_wait():
                inside.set()
                assert leave.wait(30)
            return super().has(index)

    keys = NestedKeys(SlowShard({"a": {}, "b": {}}), merged=True)
    other = threading.Thread(target=names, args=(keys,))
    other.start()
    assert inside.wait(30)
    with no_wait():
        items = keys.children(SHARD_ROOT, 0)
        assert next(items).name == "a"
        with pytest.raises(WouldBlock):
            next(items)
    leave.set()
    other.join(30)
    assert names(keys) == ["a", "b"]


def test_very_deep_folders() -> None:
    key = "d/" * 2000 + "x"
    keys = NestedKeys(keyed(key), merged=True)
    folder, depth = SHARD_ROOT, 0
    while depth < 2000:
        (item,) = keys.children(folder, 0)
        folder, depth = item.record, depth + 1
    assert names(keys, folder) == ["x"]
    assert keys.path(0) == key
