"""Repositories of which the names of the files say what is in which split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shardfs import mounting
from shardfs.errors import UsageError
from shardfs.options import Options
from shardfs.tree.folders import Folder, Owner, Owners
from tests.fakes import FakeDataset, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree

README = b"---\nconfigs:\n- config_name: %b\n---\n"


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tree]:
    """Opens the tree of a repository that has these files."""

    def opened(files: Mapping[str, bytes], **options: Any) -> Tree:
        store = MemoryStore(files)

        def folder(*args: Any, **more: Any) -> Folder:
            return Folder(*args, **{**more, "files": list(files)})

        monkeypatch.setattr(mounting, "Folder", folder)
        monkeypatch.setattr(mounting, "open_source", lambda source, options: (store, []))
        return mounting.open_tree("memory", Options(disk_cache=False, **options))

    return opened


def table(*values: str) -> bytes:
    return "\n".join(["a", *values]).encode()


def shown(node: Node) -> list[str]:
    """All shards (with a `/` at the end) and files below, in listing order."""
    found = []
    for child in node.children():
        is_shard = child.is_dir and any(c.name.startswith("00000") for c in child.children())
        if child.is_dir and not is_shard:
            found += shown(child)
        else:
            found.append(child.path + "/" * is_shard)
    return found


def test_splits_are_folders_of_shards(mounted: Callable[..., Tree]) -> None:
    files = {
        "data/test-00000-of-00001.csv": table("1"),
        "data/train-00001-of-00002.csv": table("2"),
        "data/train-00000-of-00002.csv": table("3"),
        "data/notes.txt": b"text",
        "data/more/x.csv": table("4"),
        "other.csv": table("5"),
        "README.md": b"# read me",
    }
    root = mounted(files).root
    assert shown(root) == [
        "other/",
        "train/train-00000-of-00002/",
        "train/train-00001-of-00002/",
        "test/test-00000-of-00001/",
        "data/more/x/",
        "data/notes.txt",
        "README.md",
    ]
    assert bytes((root / "train/train-00001-of-00002/000000/a.txt").read()) == b"2"


def test_nothing_is_left_of_folders_that_splits_take_all_from(
    mounted: Callable[..., Tree],
) -> None:
    files = {"x/dev/a.csv": table("1"), "x/dev/deep/b.csv": table("2"), "train/c.csv": table("3")}
    assert shown(mounted(files).root) == ["train/c/", "validation/a/", "validation/b/"]


def test_shards_of_one_name_from_several_folders(mounted: Callable[..., Tree]) -> None:
    files = {f"train/{folder}/x.csv": table(folder) for folder in ("a", "b", "c")}
    root = mounted(files | {"train/b/y.csv": table("y"), "train/x.csv": table("own")}).root
    assert shown(root) == [f"train/{n}/" for n in ("x.csv", "x~1.csv", "y", "x~2.csv", "x~3.csv")]
    for name, text in (("x", "a"), ("x~1", "b"), ("x~2", "c"), ("x~3", "own")):
        assert bytes((root / f"train/{name}.csv/000000/a.txt").read()) == text.encode()


def test_a_file_may_be_in_two_splits(mounted: Callable[..., Tree]) -> None:
    root = mounted({"train_test.csv": table("1"), "test.csv": table("2")}).root
    assert shown(root) == ["train/train_test/", "test/test/", "test/train_test/"]


def test_rare_types_of_files_are_no_shards_of_a_split(mounted: Callable[..., Tree]) -> None:
    files = {"a.json": b'[{"a": 1}]', "b.json": b'[{"a": 2}]', "c.csv": table("3"), "d.txt": b"4"}
    assert shown(mounted(files).root) == ["c/", "train/a/", "train/b/", "d.txt"]
    assert shown(mounted({"a.txt": b"1", "b.txt": b"2", "c.json": b"3"}).root) == [
        "train/a/",
        "train/b/",
        "c.json",
    ]


def test_media_stand_beside_the_table_that_tells_of_them(mounted: Callable[..., Tree]) -> None:
    jpeg = b"\xff\xd8\xff\xe0\x00\x10JFIF"
    files = {
        "train/metadata.csv": b"file_name,text\n0.jpg,one",
        "train/0.jpg": jpeg,
        "test/1.jpg": jpeg,
    }
    root = mounted(files).root
    assert shown(root) == ["train/metadata/", "train/0.jpg", "test/1.jpg"]
    assert bytes((root / "train/metadata/000000/image.jpg").read()) == jpeg
    assert shown(mounted({"train/0.jpg": jpeg, "test/1.jpg": jpeg}).root) == [
        "test/1.jpg",
        "train/0.jpg",
    ]


def test_an_index_makes_its_folder_a_dataset(mounted: Callable[..., Tree]) -> None:
    index = b'{"version": 2, "shards": []}'
    root = mounted({"train/index.json": index, "train/x.csv": table("1")}).root
    assert shown(root) == ["train/x/", "train/index.json"]
    files = {"sub/train/index.json": index, "sub/train/x/y.csv": table("1"), "test.csv": table("2")}
    assert shown(mounted(files).root) == ["test/test/", "sub/train/x/y/", "sub/train/index.json"]


def test_the_top_folder_may_hold_such_a_file(mounted: Callable[..., Tree]) -> None:
    root = mounted({"index.json": b'{"a": 1}', "train.csv": table("1")}).root
    assert shown(root) == ["train/train/", "index.json"]


def test_options_choose_among_them(mounted: Callable[..., Tree]) -> None:
    files = {"train.csv": table("1"), "test.csv": table("2")}
    assert shown(mounted(files, split="test").root) == ["test/test/"]
    assert shown(mounted(files, config="default", split="train").root) == ["train/train/"]
    more = files | {"notes.md": b"", "sub/train-2.csv": table("3"), "sub/notes.md": b""}
    assert shown(mounted(more, split="test").root) == ["test/test/", "sub/notes.md", "notes.md"]
    assert shown(mounted(files, splits=False).root) == ["test/", "train/"]
    with pytest.raises(UsageError, match="--split dev: no such split; there are train, test"):
        mounted(files, split="dev")


def test_what_a_readme_declares_goes_first(mounted: Callable[..., Tree]) -> None:
    files = {"train.csv": table("1"), "test.csv": table("2")}
    declared = README % b"c\n  data_files: {mine: train.csv}"
    assert shown(mounted({**files, "README.md": declared}).root) == [
        "test/",
        "mine/train/",
        "README.md",
    ]


def test_a_config_without_files_has_all_of_them(mounted: Callable[..., Tree]) -> None:
    files = {"train.csv": table("1"), "x/b.csv": table("2")}
    declared = README % b"c\n  sep: ;\n- config_name: d\n  data_dir: x"
    assert shown(mounted({**files, "README.md": declared}).root) == [
        "c/train/train/",
        "d/train/b/",
        "README.md",
    ]


def test_only_the_top_folder_is_divided(mounted: Callable[..., Tree]) -> None:
    files = {"train.h5": b"", "train2.h5": b"", "x/train.csv": table("1"), "x/test.csv": table("2")}
    assert shown(mounted(files).root) == ["x/test/", "x/train/", "train.h5", "train2.h5"]


def test_only_those_are_asked_for_a_file_that_may_own_it() -> None:
    datasets = [Asked() for _ in range(5)]
    owners = Owners(Owner(one, ("x", str(at)), "") for at, one in enumerate(datasets))
    assert not owners.own("a")
    below = Owners(owners.below("x"))
    assert owners.below("y") == []
    assert not below.own("a")
    assert [owner.dataset for owner in below.inside("3")] == [datasets[3]]
    assert Owners(below.below("3")).own("a")
    assert Owners(Owners(below.below("3")).below("deep")).own("a")
    assert [one.paths for one in datasets] == [[], [], [], ["a", "deep/a"], []]


class Asked(FakeDataset):
    """Owns everything, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__({})
        self.paths: list[str] = []

    def owns(self, path: str, /) -> bool:
        self.paths.append(path)
        return True
