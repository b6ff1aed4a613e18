from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.errors import Corrupt, IsAFolder, NotAFolder, NotALink, NotFound
from tests.toy import toy

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree


@pytest.fixture
def root(open_tree: Callable[..., Tree]) -> Node:
    files = {"sub/a.toy": toy({"text": "hello", "empty": ""}, {"text": "two"}), "file": b"12345"}
    return open_tree({**files, "sub/bad.toy": b"{"}).root


@pytest.mark.parametrize(
    "path",
    [
        "sub/a/000000/text.txt",
        "/sub//a/./000000/text.txt",
        "sub/../sub/a/000001/../000000/text.txt",
        "../../sub/a/000000/text.txt",
        ".shardfs/by-index/0/text.txt",
        ".shardfs/by-index/1/../000000/text.txt",
        ".shardfs/by-index/../../sub/a/000000/text.txt",
    ],
)
def test_all_ways_lead_to_the_same_file(root: Node, path: str) -> None:
    node = root / path
    assert node.path == "sub/a/000000/text.txt"
    assert node.name == "text.txt"
    assert bytes(node.read()) == b"hello"


def test_paths_go_on_from_any_node(root: Node) -> None:
    record = root / "sub/a/000000"
    assert bytes((record / "text.txt").read()) == b"hello"
    assert bytes((record / "../000001/text.txt").read()) == b"two"
    assert (record / "").path == record.path
    assert (root / "").path == (root / "..").path == ""


def test_a_link_at_the_end_is_not_followed(root: Node) -> None:
    node = root / ".shardfs/by-index/1"
    assert node.is_link
    assert node.readlink() == "../../sub/a/000001"
    with pytest.raises(NotALink):
        root.readlink()


def test_children_have_paths_and_attributes(root: Node) -> None:
    assert [(child.path, child.is_dir, child.size) for child in root.children()] == [
        ("sub", True, 0),
        ("file", False, 5),
    ]
    record = root / "sub/a/000000"
    assert [child.path for child in record.children()] == [
        "sub/a/000000/text.txt",
        "sub/a/000000/empty.txt",
    ]
    assert repr(record) == "<folder sub/a/000000>"
    assert repr(root) == "<folder />"
    assert record.mtime_ns == 1


def test_parts_of_a_file(root: Node) -> None:
    node = root / "sub/a/000000/text.txt"
    assert bytes(node.read(1, 3)) == b"ell"
    assert bytes(node.read(3)) == b"lo"
    assert bytes(node.read(9)) == b""
    assert (root / "sub/a/000000/empty.txt").size == 0


@pytest.mark.parametrize("path", ["none", "sub/a/000002", "sub/a/000000/none"])
def test_what_is_not_there_is_named(root: Node, path: str) -> None:
    with pytest.raises(NotFound, match=f"^{path}: no such file"):
        root / path


def test_a_file_is_no_folder(root: Node) -> None:
    with pytest.raises(NotAFolder, match=r"^file$"):
        root / "file/x"
    with pytest.raises(NotAFolder):
        list((root / "file").children())
    with pytest.raises(IsAFolder):
        (root / "sub").read()


def test_what_is_wrong_shows_where_it_is_looked_at(root: Node) -> None:
    bad = root / "sub/bad"
    with pytest.raises(Corrupt):
        next(bad.children())
    with pytest.raises(Corrupt):
        bad / "000000"


def test_links_in_a_circle_end(root: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(root), "readlink", lambda node: f"./{node.name}")
    with pytest.raises(NotFound, match="too many links"):
        root / ".shardfs/by-index/0/x"
