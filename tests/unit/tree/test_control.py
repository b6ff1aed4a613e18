from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotALink,
    NotFound,
    Unreadable,
    WouldBlock,
)
from shardfs.names import from_bytes, to_bytes
from shardfs.tree.inodes import ROOT
from shardfs.tree.nodes import Type
from tests.fakes import MemoryStore
from tests.toy import index, toy

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.tree.tree import Tree


def link(tree: Tree, number: int | str) -> str:
    return (tree.root / f".shardfs/by-index/{number}").readlink()


def text(tree: Tree, number: int) -> str:
    """What stands in the record that a link leads to."""
    return bytes((tree.root / f".shardfs/by-index/{number}/text.txt").read()).decode()


def shard(first: int, count: int) -> bytes:
    return toy(*({"text": str(first + number)} for number in range(count)))


THREE = {
    "toy.json": index(**{"b.toy": 2, "sub/e.toy": 0, "sub/a.toy": None, "c.toy": 1}),
    "b.toy": shard(0, 2),
    "sub/e.toy": b"{}",
    "c.toy": shard(2, 1),
    "sub/a.toy": shard(3, 3),
}


# --- by-index ---


def test_links_lead_to_records_over_several_shards_in_listing_order(
    open_tree: Callable[..., Tree],
) -> None:
    tree = open_tree(THREE)
    assert [text(tree, number) for number in (5, 0, 3, 2, 1, 4)] == ["5", "0", "3", "2", "1", "4"]
    assert link(tree, 1) == "../../b/000001"
    assert link(tree, 3) == "../../sub/a/000000"
    for number in (6, 10**30):
        with pytest.raises(NotFound):
            link(tree, number)


@pytest.mark.parametrize("name", ["-1", "x", "1.0", "", "١"])
def test_what_is_no_number_is_no_link(open_tree: Callable[..., Tree], name: str) -> None:
    by_index = (open_tree(THREE).root / ".shardfs/by-index").attr.ino
    with pytest.raises(NotFound):
        open_tree(THREE).lookup(by_index, name)


def test_zeros_in_front_of_a_number_mean_nothing(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE)
    assert link(tree, "0" * 40 + "3") == link(tree, 3)
    assert link(tree, "000") == link(tree, 0)


def test_shards_with_known_counts_are_not_opened_for_a_link(open_tree: Callable[..., Tree]) -> None:
    store = MemoryStore({**THREE, "toy.json": index(**{"b.toy": 2, "c.toy": 1})})
    tree = open_tree(store)
    store.opened.clear()
    assert link(tree, 2) == "../../c/000000"
    assert store.opened == ["c.toy"]


def test_links_behind_a_shard_that_can_not_be_counted_lead_nowhere(
    open_tree: Callable[..., Tree],
) -> None:
    files = {"a.toy": shard(0, 1), "b.toy": b"{", "c.toy": shard(1, 1)}
    tree = open_tree(files)
    for _ in range(2):
        assert text(tree, 0) == "0"
        for number in (1, 2):
            with pytest.raises(Corrupt, match=r"b\.toy"):
                link(tree, number)


def test_a_shard_that_could_not_be_counted_is_counted_later(
    open_tree: Callable[..., Tree],
) -> None:
    class Flaky(MemoryStore):
        broken = True

        def open(self, path: str, /) -> object:  # type: ignore[override]
            if path == "b.toy" and self.broken:
                raise Unreadable("no network")
            return super().open(path)

    store = Flaky({"a.toy": shard(0, 1), "b.toy": shard(1, 1), "c.toy": shard(2, 1)})
    tree = open_tree(store)
    with pytest.raises(Unreadable):
        link(tree, 2)
    store.broken = False
    assert [text(tree, number) for number in range(3)] == ["0", "1", "2"]


def test_a_folder_that_can_not_be_looked_into_has_no_records(
    open_tree: Callable[..., Tree],
) -> None:
    tree = open_tree({"a/x.toy": shard(0, 1), "bad/toy.json": b"{", "c/x.toy": shard(1, 1)})
    assert text(tree, 1) == "1"
    assert b"bad: toy.json" in bytes((tree.root / ".shardfs/errors.jsonl").read())


@pytest.mark.parametrize(
    ("layout", "target"),
    [("flat", "../../a"), ("field", "../../a"), ("record", "../../a/000000")],
)
def test_links_lead_to_something_in_every_layout(
    open_tree: Callable[..., Tree], layout: str, target: str
) -> None:
    tree = open_tree({"a.toy": shard(0, 1)}, layout=layout)
    assert link(tree, 0) == target
    assert (tree.root / ".shardfs/by-index" / target).is_dir


def test_links_find_their_way_through_groups_and_nested_keys(
    open_tree: Callable[..., Tree],
) -> None:
    nested = toy(**{"x/y/1": {"text": "1"}})
    tree = open_tree({"a.toy": shard(0, 5), "b.toy": nested}, fanout=2)
    assert link(tree, 3) == "../../a/000002-000003/000003"
    assert link(tree, 5) == "../../b/x/y/1"
    assert text(tree, 5) == "1"


def test_the_size_of_a_link_is_that_of_its_target(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({from_bytes(b"\xff\xc3\xa9.toy"): shard(0, 1)})
    node = tree.root / ".shardfs/by-index/0"
    assert node.is_link
    assert node.size == len(to_bytes(node.readlink())) == len("../../") + 3 + len("/000000")


# --- files ---


def test_info_says_what_is_mounted(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE, layout="flat")
    info = json.loads(bytes((tree.root / ".shardfs/info.json").read()))
    assert (info["source"], info["layout"], info["shards"]) == ("memory://", "flat", 4)
    (dataset,) = info["datasets"]
    assert dataset == {
        **{"format": "toy", "url": "memory://", "writer": "a test"},
        **{"shards": 4, "records": None, "fields": []},
    }
    assert info["records"] is None, "one shard does not say"


def test_stats_count(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": shard(0, 1), "b.toy": b"{"})

    def stats() -> dict[str, int]:
        told: dict[str, int] = json.loads(bytes((tree.root / ".shardfs/stats.json").read()))
        return told

    assert (stats()["shards_open"], stats()["errors"]) == (0, 0)
    list((tree.root / "a").children())
    with pytest.raises(Corrupt):
        list((tree.root / "b").children())
    assert stats()["errors"] == 1
    assert stats()["shards_open"] >= 1


def test_errors_are_kept_once_each(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": shard(0, 1), "b.toy": b"{"})
    errors = tree.root / ".shardfs/errors.jsonl"
    assert (errors.size, bytes(errors.read())) == (0, b"")
    for _ in range(2):
        with pytest.raises(Corrupt):
            list((tree.root / "b").children())
    (row,) = bytes((tree.root / ".shardfs/errors.jsonl").read()).splitlines()
    assert json.loads(row)["error"] == "Corrupt"
    assert json.loads(row)["message"].startswith("b.toy: ")


def test_files_whose_content_changes_say_so(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE)
    for name in ("info.json", "stats.json", "errors.jsonl"):
        attr = (tree.root / ".shardfs" / name).attr
        assert (attr.type, attr.volatile) == (Type.FILE, True)
        assert tree.is_volatile(attr.ino)
    assert not tree.is_volatile((tree.root / "toy.json").attr.ino)
    assert not tree.is_volatile((tree.root / "b").attr.ino)


# --- the folders ---


def test_nothing_of_it_is_listed(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE)
    assert ".shardfs" not in [entry.name for entry in tree.scan(ROOT)]
    for path in (".shardfs", ".shardfs/by-index"):
        node = tree.root / path
        assert node.is_dir
        assert list(node.children()) == []
    with pytest.raises(NotFound):
        tree.root / "sub/.shardfs"
    with pytest.raises(NotFound):
        tree.root / ".shardfs/other"


def test_each_is_what_it_is(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE)
    top, file = (tree.root / ".shardfs").attr.ino, (tree.root / ".shardfs/info.json").attr.ino
    with pytest.raises(IsAFolder):
        tree.open(top)
    with pytest.raises(NotAFolder):
        tree.scan(file)
    for ino in (top, file):
        with pytest.raises(NotALink):
            tree.readlink(ino)


def test_a_link_may_need_waiting(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(THREE)
    by_index = (tree.root / ".shardfs/by-index").attr.ino
    with no_wait(), pytest.raises(WouldBlock):
        tree.lookup(by_index, "0")
    assert tree.lookup(by_index, "0").type is Type.LINK
