"""What a mount shows is what the tree has, in every layout; and the truth about datasets of real libraries."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, cast

import pytest

import shardfs as shardfs_package
from shardfs.errors import NotFound, ShardfsError
from shardfs.localfile import named_error
from tests import DATA
from tests.corpus.truth import Case, problems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.tree.paths import Node
    from tests.mount.conftest import Runner

SOURCE = DATA / "litdata" / "all_serializers_v0273"
CASES = (
    "litdata/zstd_batch",
    "litdata/encrypted_fernet_sample",
    "litdata/damaged/zstd_flipped",
    "mds/subdirs_merged",
    "mds/damaged/truncated_shard",
    "webdataset/nested-dir-keys",
)


# --- layouts ---


def in_tree(node: Node) -> dict[str, str]:
    """The hash of each file below a node, by path."""
    found: dict[str, str] = {}
    for child in node.children():
        if child.is_dir:
            found |= in_tree(child)
        else:
            found[child.path] = hashlib.sha256(child.read()).hexdigest()
    return found


def in_folder(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--layout", "flat"], {"layout": "flat"}),
        (["--layout", "field"], {"layout": "field"}),
        (["--fanout", "3"], {"fanout": 3}),
        (["--raw"], {"raw": True}),
        (["-o", "layout=flat,fanout=4,raw"], {"layout": "flat", "fanout": 4, "raw": True}),
    ],
)
def test_a_mount_shows_the_tree(shardfs: Runner, words: list[str], options: dict[str, Any]) -> None:
    shardfs.place_source(SOURCE)
    shardfs.mount(*words)
    dataset = shardfs_package.open(SOURCE, disk_cache=False, **options)
    expected = in_tree(dataset.tree.root)
    assert len(expected) > 60
    assert in_folder(shardfs.place) == expected


# --- the truth ---


class MountedNode:
    """A file or folder of a mount, with the face of a node of a tree."""

    def __init__(self, place: Path) -> None:
        self._place, self.path, self.name = place, str(place), place.name

    @property
    def is_dir(self) -> bool:
        return self._place.is_dir()

    @property
    def size(self) -> int:
        return self._place.stat().st_size

    def children(self) -> Iterator[MountedNode]:
        try:
            names = os.listdir(self._place)
        except OSError as error:
            raise named_error(error, self.path) from error
        return (MountedNode(self._place / name) for name in names)

    def read(self) -> bytes:
        try:
            return self._place.read_bytes()
        except OSError as error:
            raise named_error(error, self.path) from error

    def __truediv__(self, path: str) -> MountedNode:
        node = MountedNode(self._place / path)
        try:
            node._place.lstat()
        except OSError as error:
            raise named_error(error, node.path) from error
        return node


@pytest.mark.parametrize("name", CASES)
def test_datasets_of_real_libraries(shardfs: Runner, name: str) -> None:
    case = Case(DATA / f"{name}.truth.json")

    def mounted(part: str) -> Node:
        shardfs.place_source(case.source / part)
        options: list[object] = []
        if "key_file" in case.truth:
            options = ["--key-file", case.path.with_name(case.truth["key_file"])]
            shardfs.env["SHARDFS_PASSWORD"] = case.truth["password"]
        shardfs.mount(*options)
        return cast("Node", MountedNode(shardfs.place))

    assert problems(case, root=mounted) == []


# --- .shardfs ---


def test_what_is_known_of_a_mount_can_be_read_and_is_not_listed(shardfs: Runner) -> None:
    shardfs.place_source(DATA / "litdata" / "damaged" / "zstd_flipped")
    shardfs.mount()
    control = shardfs.place / ".shardfs"
    assert ".shardfs" not in os.listdir(shardfs.place)
    assert os.listdir(control) == os.listdir(control / "by-index") == []
    found = subprocess.run(["find", shardfs.place, "-name", ".shardfs*"], capture_output=True)
    assert found.stdout == b""

    info = json.loads((control / "info.json").read_text())
    assert (info["shards"], info["records"]) == (3, 12)
    assert info["source"].startswith("file://")

    assert os.readlink(control / "by-index/4") == "../../chunk-0-0/000004"
    assert (control / "by-index/11").resolve() == shardfs.place / "chunk-0-2/000001"
    assert (control / "by-index/11").lstat().st_size == len("../../chunk-0-2/000001")
    assert not os.path.lexists(control / "by-index/12")
    assert (control / "by-index/0/caption.txt").read_bytes()

    record = json.loads((shardfs.place / "chunk-0-0/000001/.shardfs.json").read_text())
    assert record["index"] == 1
    assert "caption.txt" in [name for field in record["fields"] for name in field["files"]]


def test_errors_and_statistics_are_told_as_they_happen(shardfs: Runner) -> None:
    shardfs.place_source(DATA / "litdata" / "damaged" / "zstd_flipped")
    shardfs.mount()
    errors, stats = shardfs.place / ".shardfs/errors.jsonl", shardfs.place / ".shardfs/stats.json"
    assert errors.read_bytes() == b""
    assert json.loads(stats.read_text())["errors"] == 0
    with pytest.raises(OSError, match="Input/output error"):
        os.listdir(shardfs.place / "chunk-0-1/000000")
    (row,) = map(json.loads, errors.read_text().splitlines())
    assert "chunk-0-1" in row["message"]
    assert json.loads(stats.read_text())["errors"] >= 1
    assert errors.stat().st_size == len(errors.read_bytes()) > 0


def test_a_node_of_the_mount_is_not_found_as_one_of_the_tree_is(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        MountedNode(tmp_path) / "none"
    with pytest.raises(ShardfsError):
        MountedNode(tmp_path).read()


@pytest.mark.parametrize("layout", ["record", "flat", "field"])
def test_the_lines_of_a_shard_lead_to_its_files_on_the_mount(shardfs: Runner, layout: str) -> None:
    shardfs.mount("--layout", layout)
    place = shardfs.place / "chunk-0-0" / ".shardfs" / "records.jsonl"
    lines = place.read_text().splitlines()
    assert place.stat().st_size == sum(len(line.encode()) + 1 for line in lines)
    assert len(lines) == 9
    for row in map(json.loads, lines):
        image = row["fields"]["image"]
        assert (shardfs.place / image["file"]).stat().st_size == image["bytes"]
    assert ".shardfs" not in [entry.name for entry in place.parents[1].iterdir()]
