from __future__ import annotations

import contextlib
import errno
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import Blob, no_wait
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotFound,
    Unreadable,
    UsageError,
    WouldBlock,
)
from shardfs.names import from_bytes
from shardfs.stores import Entry
from shardfs.tree.inodes import ROOT, Special, special_ino
from tests.fakes import MemoryStore
from tests.toy import index, toy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree

ONE = toy({"text": "1"})


def paths(node: Node) -> list[str]:
    """All folders (with a `/` at the end) and files below, in listing order."""
    found = []
    for child in node.children():
        found.append(child.path + "/" * child.is_dir)
        if child.is_dir:
            found += paths(child)
    return found


def names(node: Node) -> list[str]:
    return [child.name for child in node.children()]


# --- what stands where ---


def test_shards_first_then_folders_then_files(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"b.toy": ONE, "a.toy": ONE, "z/c.toy": ONE, "A.txt": b"", "y/notes": b""})
    assert paths(tree.root) == [
        "a/",
        "a/000000/",
        "a/000000/text.txt",
        "b/",
        "b/000000/",
        "b/000000/text.txt",
        "y/",
        "y/notes",
        "z/",
        "z/c/",
        "z/c/000000/",
        "z/c/000000/text.txt",
        "A.txt",
    ]


def test_an_index_gives_order_and_folders(open_tree: Callable[..., Tree]) -> None:
    listed = index("train/2.toy", "val/1.toy", "top.toy", "train/1.toy", "train/deep/x.toy")
    files = dict.fromkeys(
        ["train/2.toy", "val/1.toy", "top.toy", "train/1.toy", "train/deep/x.toy"], ONE
    )
    tree = open_tree({"toy.json": listed, **files, "train/README": b"read me"})
    assert names(tree.root) == ["top", "train", "val", "toy.json"]
    assert names(tree.root / "train") == ["2", "1", "deep", "README"]
    assert names(tree.root / "train/deep") == ["x"]
    assert bytes((tree.root / "train/deep/x/000000/text.txt").read()) == b"1"
    assert bytes((tree.root / "train/README").read()) == b"read me"


def test_what_passes_through_does_so_unchanged(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": ONE, "sub/data.bin": bytes(range(256)), ".hidden": b"x"})
    file = tree.root / "sub/data.bin"
    assert bytes(file.read(250, 99)) == bytes(range(250, 256))
    assert (file.size, file.mtime_ns, file.is_dir) == (256, 1, False)
    assert bytes((tree.root / ".hidden").read()) == b"x"
    assert tree.total_size() == len(ONE) + 1 + 256


def test_files_that_a_dataset_owns_are_not_shown(open_tree: Callable[..., Tree]) -> None:
    files = {"toy.json": index("s/a.toy"), "s/a.toy": ONE, "x.lock": b"", "s/y.lock": b""}
    tree = open_tree({**files, "s/kept": b""})
    assert names(tree.root) == ["s", "toy.json"]
    assert names(tree.root / "s") == ["a", "kept"]
    with pytest.raises(NotFound):
        tree.root / "x.lock"


def test_shards_that_want_one_name_keep_their_full_file_names(
    open_tree: Callable[..., Tree],
) -> None:
    listed = index("a.toy", "a.json", "b.toy")
    tree = open_tree({"toy.json": listed, "a.toy": ONE, "a.json": ONE, "b.toy": ONE})
    assert names(tree.root) == ["a.toy", "a.json", "b", "toy.json"]


def test_a_shard_and_a_folder_that_want_one_name(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": ONE, "a/file": b"in the folder"})
    assert names(tree.root) == ["a.toy", "a"]
    assert bytes((tree.root / "a/file").read()) == b"in the folder"
    assert bytes((tree.root / "a.toy/000000/text.txt").read()) == b"1"


def test_a_file_yields_its_name(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": ONE, "a": b"file", "b.txt": b"", "c.toy": ONE, "c": b""})
    assert names(tree.root) == ["a", "c", "a~1", "b.txt", "c~1"]
    assert bytes((tree.root / "a~1").read()) == b"file"
    assert (tree.root / "a").is_dir


def test_names_are_legal_whatever_the_index_says(open_tree: Callable[..., Tree]) -> None:
    odd = ["%.toy", "x" * 300 + ".toy", from_bytes(b"\xff.toy"), "new\nline.toy"]
    tree = open_tree({"toy.json": index(*odd), **dict.fromkeys(odd, ONE)})
    shown = names(tree.root)
    assert shown[0] == "%"
    assert len(shown[1]) == 255
    assert shown[2:4] == [from_bytes(b"\xff"), "new\nline"]
    for name in shown[:4]:
        assert bytes((tree.root / name / "000000/text.txt").read()) == b"1"


def test_what_the_user_named_is_all_that_is_shown(open_tree: Callable[..., Tree]) -> None:
    files = {"a.json": ONE, "b.json": ONE, "toy.txt": b"", "sub/x": b""}
    tree = open_tree(files, names=["a.json"])
    assert names(tree.root) == ["a"]
    with pytest.raises(UsageError, match="not a shard of a format"):
        open_tree(files, names=["toy.txt"])
    whole = open_tree(files)
    assert "a.json" in names(whole.root), "the suffix is too common to count unasked"


def test_an_empty_source_is_refused(open_tree: Callable[..., Tree]) -> None:
    with pytest.raises(UsageError, match="the folder is empty"):
        open_tree({".gitkeep": b""})


# --- looked at lazily ---


def test_only_the_top_is_looked_at_when_a_tree_is_opened(open_tree: Callable[..., Tree]) -> None:
    store = MemoryStore(
        {
            "sub/toy.json": index("a.toy"),
            "sub/a.toy": ONE,
            "sub/deep/toy.json": index("b.toy"),
            "sub/deep/b.toy": ONE,
            "top.toy": ONE,
        }
    )
    tree = open_tree(store)
    names(tree.root)
    assert store.opened == []
    assert names(tree.root / "sub") == ["a", "deep", "toy.json"]
    assert store.opened == ["sub/toy.json"]
    assert tree.info()["shards"] == 2
    assert names(tree.root / "sub/deep") == ["b", "toy.json"]
    assert store.opened == ["sub/toy.json", "sub/deep/toy.json"]
    assert bytes((tree.root / "sub/deep/b/000000/text.txt").read()) == b"1"
    assert store.opened[2:] == ["sub/deep/b.toy"]
    assert tree.info()["shards"] == 3


def test_an_index_below_a_dataset_that_has_taken_its_shards_in_is_a_file(
    open_tree: Callable[..., Tree],
) -> None:
    store = MemoryStore(
        {"toy.json": index("sub/a.toy"), "sub/a.toy": ONE, "sub/toy.json": index("a.toy")}
    )
    tree = open_tree(store)
    assert names(tree.root / "sub") == ["a", "toy.json"]
    assert store.opened == ["toy.json"]
    assert tree.info()["shards"] == 1


def test_a_bad_index_below_is_an_error_there_only(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree(
        {"bad/toy.json": b"{", "bad/x": b"", "good/toy.json": index("a.toy"), "good/a.toy": ONE}
    )
    assert names(tree.root) == ["bad", "good"]
    for use in (lambda: names(tree.root / "bad"), lambda: tree.root / "bad/x"):
        with pytest.raises(Corrupt, match=r"^bad: toy.json: "):
            use()
    assert bytes((tree.root / "good/a/000000/text.txt").read()) == b"1"
    assert tree.info()["shards"] == 1


def test_a_bad_index_at_the_top_refuses_the_tree(open_tree: Callable[..., Tree]) -> None:
    with pytest.raises(Corrupt, match=r"toy\.json"):
        open_tree({"toy.json": b"{"})


def test_looking_needs_waiting_once(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"sub/a.toy": ONE})
    folder = tree.lookup(ROOT, "sub").ino
    with no_wait(), pytest.raises(WouldBlock):
        tree.scan(folder)
    tree.scan(folder)
    with no_wait():
        assert [entry.name for entry in tree.scan(folder)] == ["a"]
        assert tree.lookup(folder, "a") == tree.scan(folder)[0].attr


def test_nobody_meets_a_folder_that_is_half_looked_into(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"sub/a.toy": ONE, "sub/b.toy": ONE})
    folder = tree.lookup(ROOT, "sub").ino
    met = []

    def meet(frame: FrameType, event: str, argument: object) -> Any:
        """Look at the folder without waiting, between all lines of the function that makes it."""
        if frame.f_code.co_name == "content":
            with contextlib.suppress(WouldBlock), no_wait():
                met.append([entry.name for entry in tree.scan(folder)])
        return meet

    before = sys.gettrace()
    sys.settrace(meet)
    try:
        tree.scan(folder)
    finally:
        sys.settrace(before)
    assert met
    assert all(names == ["a", "b"] for names in met)


def test_a_folder_is_looked_into_once_however_many_look(open_tree: Callable[..., Tree]) -> None:
    store = MemoryStore({"sub/toy.json": index("a.toy"), "sub/a.toy": ONE})
    tree = open_tree(store)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tree.scan, [tree.lookup(ROOT, "sub").ino] * 8))
    assert store.opened == ["sub/toy.json"]
    assert tree.info()["shards"] == 1


def test_a_folder_that_could_not_be_listed_is_tried_again(open_tree: Callable[..., Tree]) -> None:
    class Flaky(MemoryStore):
        broken = True

        def list(self, prefix: str = "", /) -> Sequence[Entry]:
            if prefix and self.broken:
                raise Unreadable("no network")
            return super().list(prefix)

    store = Flaky({"sub/a.toy": ONE})
    tree = open_tree(store)
    with pytest.raises(Unreadable, match=r"^sub: no network"):
        names(tree.root / "sub")
    store.broken = False
    assert names(tree.root / "sub") == ["a"]


# --- nodes ---


class Linked(MemoryStore):
    """Has a link that leads outside, and a file that changes its size behind our back."""

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        link = Entry("link.toy", 0, 0, "", problem="leads outside of the source")
        return [*super().list(prefix), link]

    def open(self, path: str, /) -> Blob:
        assert path != "link.toy"
        return super().open(path)


def test_what_can_not_be_opened_is_listed_and_says_why(open_tree: Callable[..., Tree]) -> None:
    store = Linked({"a.toy": ONE, "grows": b"1"})
    tree = open_tree(store)
    assert names(tree.root) == ["a", "grows", "link.toy"]
    with pytest.raises(Unreadable, match=r"^link.toy: leads outside"):
        (tree.root / "link.toy").read()
    store.files["grows"] = b"12"
    with pytest.raises(Unreadable, match=r"^grows: has changed since"):
        (tree.root / "grows").read()


@pytest.mark.parametrize("name", ["b.jpg", "sub/B.WAV", "sub/x.y.mp4", "paper.pdf"])
def test_a_pointer_is_no_media_file(open_tree: Callable[..., Tree], name: str) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
    leaf = name.rpartition("/")[2]
    tree = open_tree({"a.toy": ONE, name: pointer, "notes": pointer, "c.jpg": b"\xff\xd8"})
    with pytest.raises(Corrupt, match=rf"\b{leaf}: is a Git LFS pointer.*git lfs pull") as caught:
        (tree.root / name).read()
    assert caught.value.errno == errno.EIO
    assert bytes((tree.root / "notes").read()) == pointer
    assert bytes((tree.root / "c.jpg").read()) == b"\xff\xd8"


def test_files_are_no_folders_and_folders_no_files(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"sub/a.toy": ONE, "file": b""})
    file, folder = tree.lookup(ROOT, "file").ino, tree.lookup(ROOT, "sub").ino
    for use in (lambda: tree.scan(file), lambda: tree.lookup(file, "x")):
        with pytest.raises(NotAFolder):
            use()
    with pytest.raises(IsAFolder):
        tree.open(folder)
    assert tree.attr(file) == tree.lookup(ROOT, "file")
    assert tree.attr(folder) == tree.lookup(ROOT, "sub")


def test_numbers_that_are_nothing_are_not_found(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": ONE, "file": b""})
    for number in (99 << 32, 5, 1):  # no such folder; no such file in it
        for use in (tree.open, tree.attr):
            with pytest.raises(NotFound):
                use(special_ino(Special.FILE, number))


def test_a_listing_goes_on_from_every_cookie(open_tree: Callable[..., Tree]) -> None:
    tree = open_tree({"a.toy": ONE, "b.toy": ONE, "c/x": b"", "d": b"", "e": b""})
    whole = tree.scan(ROOT)
    for position, listed in enumerate(whole):
        assert tree.scan(ROOT, listed.cookie) == whole[position + 1 :]
