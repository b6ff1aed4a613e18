from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import Corrupt, NoKey, UsageError, WouldBlock
from shardfs.tree.archives import WithArchives
from tests.fakes import FakeServices, MemoryStore
from tests.toy import toy
from tests.unit.tree.test_folders import names, paths
from tests.zip_files import DEFLATED, ENCRYPTED, Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.tree.tree import Tree

ONE = toy({"text": "1"})


def zipped(**files: bytes) -> bytes:
    return make_zip(
        [
            Item(name=name.replace("__", "/").encode(), data=data, method=DEFLATED)
            for name, data in files.items()
        ]
    )


def item(name: bytes, data: bytes) -> bytes:
    return make_zip([Item(name=name, data=data)])


# --- in the tree ---


def test_members_stand_under_their_own_paths_and_shards_are_shards(
    open_tree: Callable[..., Tree],
) -> None:
    content = make_zip(
        [Item(name=b"d/a.toy", data=ONE), Item(name=b"d/note.txt", data=b"hello", method=DEFLATED)]
    )
    tree = open_tree({"x.zip": content, "b.toy": ONE})
    assert paths(tree.root) == [
        "b/",
        "b/000000/",
        "b/000000/text.txt",
        "x/",
        "x/d/",
        "x/d/a/",
        "x/d/a/000000/",
        "x/d/a/000000/text.txt",
        "x/d/note.txt",
    ]
    assert bytes((tree.root / "x/d/a/000000/text.txt").read()) == b"1"
    assert bytes((tree.root / "x/d/note.txt").read()) == b"hello"
    links = tree.root / ".shardfs/by-index"
    assert (links / "1").readlink() == "../../x/d/a/000000"


def test_the_source_may_be_a_zip(open_tree: Callable[..., Tree]) -> None:
    content = make_zip([Item(name=b"d/a.toy", data=ONE), Item(name=b"b.toy", data=ONE)])
    tree = open_tree({"x.zip": content, "beside": b""}, ["x.zip"])
    assert names(tree.root) == ["b", "d"]
    assert bytes((tree.root / "d/a/000000/text.txt").read()) == b"1"


def test_the_source_may_be_several_zips(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(
        {"x.zip": item(b"a", b"1"), "y.zip": item(b"b", b"2"), "z.zip": b""}, ["x.zip", "y.zip"]
    )
    assert paths(tree.root) == ["x/", "x/a", "y/", "y/b"]


def test_a_zip_with_nothing_in_it_is_no_source(open_tree: Callable[..., Tree]) -> None:
    with pytest.raises(UsageError, match="empty"):
        open_tree({"x.zip": make_zip([])}, ["x.zip"])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"d.zip": item(b"a", b""), "d": b"file"}, ["d", "d~1"]),
        ({"d.zip": item(b"a", b""), "d/b": b"file"}, ["d", "d.zip"]),
        ({"d.zip": item(b"a", b""), "d.toy": ONE}, ["d.toy", "d.zip"]),
        ({"d.zip": item(b"a", b""), "d.ZIP": item(b"a", b"")}, ["d.ZIP", "d.zip"]),
        ({"d.ZIP": item(b"a", b"")}, ["d"]),
        ({"d.zip/x": b"a folder of that name"}, ["d.zip"]),
        ({".zip": b"hidden", ".d.zip": b"hidden", "a": b""}, [".d.zip", ".zip", "a"]),
    ],
)
def test_names(
    open_tree: Callable[..., Tree], files: dict[str, bytes], expected: list[str]
) -> None:
    tree = open_tree(files)
    assert names(tree.root) == expected
    for name in expected:
        node = tree.root / name
        if node.is_dir:
            assert names(node)


def test_a_broken_zip_harms_only_itself(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"bad.zip": b"PK\3\4 and no more", "b.toy": ONE})
    assert names(tree.root) == ["b", "bad"]
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"bad: bad\.zip: no zip file"):
            names(tree.root / "bad")
    assert names(tree.root / "b") == ["000000"]


def test_a_fault_in_a_zip_says_where_it_is(open_tree: Callable[..., Tree]) -> None:
    content = make_zip(
        [Item(name=b"d/a", data=b"x", crc=1), Item(name=b"d/b", data=b"x", flags=ENCRYPTED)]
    )
    tree = open_tree({"x.zip": content})
    with pytest.raises(Corrupt, match=r"x\.zip: d/a: has a CRC"):
        (tree.root / "x/d/a").read()
    with pytest.raises(NoKey, match=r"x/d: x\.zip: d/b: is encrypted"):
        (tree.root / "x/d/b").read()


def test_nothing_is_opened_that_is_not_looked_into(open_tree: Callable[..., Tree]) -> None:
    store = MemoryStore({"x.zip": item(b"a", b"1"), "y.zip": item(b"b", b"2")})
    tree = open_tree(store)
    assert names(tree.root) == ["x", "y"]
    assert store.opened == []
    assert names(tree.root / "x") == ["a"]
    assert store.opened == ["x.zip"]


def test_an_archive_that_holds_itself_has_an_end(open_tree: Callable[..., Tree]) -> None:
    content = b"the core"
    for _ in range(7):
        content = item(b"x.zip", content)
    tree = open_tree({"x.zip": content})
    assert paths(tree.root) == ["x/", "x/x/", "x/x/x/", "x/x/x/x/", "x/x/x/x/x.zip"]


# --- as a store ---


def test_without_waiting_an_archive_is_opened_only_if_it_is_open() -> None:
    store = WithArchives(MemoryStore({"x.zip": item(b"a", b"1")}), FakeServices())
    with no_wait():
        assert store.stat("x.zip").is_archive
        with pytest.raises(WouldBlock):
            store.list("x.zip")
    store.list("x.zip")
    with no_wait():
        assert [entry.path for entry in store.list("x.zip")] == ["x.zip/a"]


def test_an_archive_can_be_read_as_a_file_all_the_same() -> None:
    content = item(b"a", b"1")
    store = WithArchives(MemoryStore({"d/x.zip": content}), FakeServices())
    assert bytes(store.open("d/x.zip").read(0, 999)) == content
