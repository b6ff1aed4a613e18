"""Every field of the Arrow data in tests/data/huggingface, which `datasets` and pyarrow wrote, as the tree shows it."""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tests
from shardfs.blob import read_all
from shardfs.errors import Corrupt, NotFound
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.tree.inodes import ROOT

if TYPE_CHECKING:
    from shardfs.tree.inodes import Ino
    from shardfs.tree.tree import Tree

DATA = tests.DATA / "huggingface"
CASES = (
    "disk_dataset",
    "disk_datasetdict",
    "disk_shuffle_select",
    "cache_dir",
    "ipc_feather",
    "bad_arrow_truncated",
)


def truth_of(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{case}.truth.json").read_text())
    return found


def tree_of(case: str) -> Tree:
    return open_tree(str(DATA / case), Options(disk_cache=False))


def find(tree: Tree, path: str) -> Ino:
    ino = ROOT
    for part in path.split("/"):
        ino = tree.lookup(ino, part).ino
    return ino


def listed(tree: Tree, folder: Ino) -> list[str]:
    names: list[str] = []
    cookie = 0
    while found := tree.scan(folder, cookie):
        names += [entry.name for entry in found]
        cookie = found[-1].cookie
    return names


def content(tree: Tree, path: str) -> bytes:
    ino = find(tree, path)
    data = bytes(read_all(tree.open(ino)))
    assert tree.attr(ino).size == len(data)
    return data


def check_field(field: dict[str, Any], extension: str, data: bytes) -> None:
    assert extension == field["ext"]
    if field.get("array_sha256"):
        array = np.load(io.BytesIO(data))
        assert list(array.shape) == field["shape"]
        assert hashlib.sha256(array.tobytes()).hexdigest() == field["array_sha256"]
    elif field["stored_sha256"]:
        assert hashlib.sha256(data).hexdigest() == field["stored_sha256"]
    elif "label_name" in field:
        assert data.decode() == f"{field['value']}\t{field['label_name']}\n"
    elif isinstance(field["value"], float):
        assert math.isclose(float(data), field["value"], rel_tol=1e-6)
    else:
        assert data == f"{field['value']}\n".encode()


@pytest.mark.parametrize("case", CASES)
def test_every_field_is_what_was_written(case: str) -> None:
    truth, tree, checked = truth_of(case), tree_of(case), 0
    for shard in truth["shards"]:
        if shard.get("optional"):
            with pytest.raises(NotFound):
                find(tree, shard["at"])
            continue
        records = listed(tree, find(tree, shard["at"]))
        assert len(records) == shard["num_records"] + (100 if shard.get("damaged_after") else 0)
        for record in shard["records"]:
            folder = f"{shard['at']}/{int(record['key']):06d}"
            names = listed(tree, find(tree, folder))
            assert len(names) == len(record["fields"])
            for name, field in zip(names, record["fields"], strict=True):
                stem, dot, extension = name.rpartition(".")
                assert stem == field["name"]
                check_field(field, dot + extension, content(tree, f"{folder}/{name}"))
                checked += 1
    assert checked
    for file in truth.get("files", ()):
        data = content(tree, file["path"])
        assert hashlib.sha256(data).hexdigest() == file["sha256"]


def test_records_behind_a_cut_are_errors() -> None:
    tree = tree_of("bad_arrow_truncated")
    folder = "data-00000-of-00001"
    for number in (100, 199):
        with pytest.raises(Corrupt, match="inside a batch"):
            listed(tree, find(tree, f"{folder}/{number:06d}"))


def test_unfinished_files_of_the_cache_are_not_shown() -> None:
    tree = tree_of("cache_dir")
    path = "org___my-data/default/0.0.0/0000000000000000000000000000000000000000.incomplete"
    assert (DATA / "cache_dir" / path).is_dir()
    assert listed(tree, find(tree, path)) == []


def test_pyarrow_is_not_needed_for_plain_data() -> None:
    # in a process of its own, since other tests import it
    import subprocess

    code = (
        "import sys; from shardfs.options import Options; from shardfs.mounting import open_tree;"
        "from shardfs.tree.inodes import ROOT;"
        "tree = open_tree(sys.argv[1], Options(disk_cache=False));"
        "shard = tree.lookup(ROOT, 'data-00000-of-00001').ino;"
        "record = tree.lookup(shard, '000007').ino;"
        "data = [tree.open(entry.attr.ino).read(0, 99) for entry in tree.scan(record)];"
        "print(len(data), 'pyarrow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(DATA / "disk_dataset")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "False"]
