"""Every member of the archives in tests/data/webdataset, which many programs wrote, against what is known of them."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

import tests
from shardfs.blob import read_all
from shardfs.cache.memory import Memory
from shardfs.errors import ShardfsError
from shardfs.formats.webdataset.dataset import WebDataset
from shardfs.journal import Journal
from shardfs.mounting import Workshop, open_tree
from shardfs.names import from_bytes
from shardfs.options import Options
from shardfs.sources.local import LocalStore

if TYPE_CHECKING:
    from shardfs.model import Field, Shard
    from shardfs.tree.paths import Node

DATA = tests.DATA / "webdataset"
TRUTHS = {
    path.name.removesuffix(".truth.json"): json.loads(path.read_text())
    for path in sorted(DATA.glob("*.truth.json"))
}
SHARDS = [(case, shard["name"]) for case, truth in TRUTHS.items() for shard in truth["shards"]]


def raw(entry: dict[str, Any], key: str) -> str:
    encoded = entry.get(f"{key}_b64")
    return from_bytes(b64decode(encoded)) if encoded else str(entry[key])


def normal(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def opened(case: str, file: str) -> tuple[Shard, Journal]:
    folder, _, name = file.rpartition("/")
    store, journal = LocalStore(str(DATA / case / folder)), Journal()
    services = Workshop(Options(disk_cache=False), Memory(64 << 20), None, journal)
    names = [entry.name for entry in store.list() if not entry.is_dir]
    dataset = WebDataset.open(store, names, services)
    return dataset.open_shard([ref.file for ref in dataset.shards].index(name)), journal


def check_fields(fields: list[Field], record: dict[str, Any]) -> None:
    """Fields against the truth, in the order of the archive."""
    left = list(fields)
    for known in record["fields"]:
        name = normal(raw(known, "member")).rpartition("/")[2]
        found = next((field for field in left if field.filename == name), None)
        if found is None:
            assert known.get("optional"), name
            continue
        left.remove(found)
        if known.get("damaged"):
            with pytest.raises(ShardfsError):
                read_all(found.data)
        else:
            content = read_all(found.data)
            assert len(content) == known["stored_size"]
            assert hashlib.sha256(content).hexdigest() == known["stored_sha256"]
    assert left == []


@pytest.mark.parametrize(("case", "file"), SHARDS)
def test_every_member_is_shown_as_it_is(case: str, file: str) -> None:
    (truth,) = [shard for shard in TRUTHS[case]["shards"] if shard["name"] == file]
    shard, journal = opened(case, file)
    optional = [all(f.get("optional") for f in record["fields"]) for record in truth["records"]]
    assert len(optional) - sum(optional) <= len(shard) <= len(optional)
    numbers = []
    for record, is_optional in zip(truth["records"], optional, strict=True):
        number = shard.find(normal(raw(record, "key")))
        assert number is not None or is_optional
        if number is not None:
            numbers.append(number)
            check_fields(list(shard.fields(number)), record)
    assert numbers == list(range(len(shard))), "in the order of first appearance"
    assert bool(journal.count) == case.startswith("damaged")


@pytest.mark.parametrize("case", TRUTHS)
def test_members_without_a_key_stand_at_their_paths(case: str) -> None:
    for truth in TRUTHS[case]["shards"]:
        shard, _ = opened(case, truth["name"])
        found = {
            normal(f"{shard.key(index)}/{field.filename}"): field.data
            for index in range(len(shard), len(shard) + shard.loose)
            for field in shard.fields(index)
        }
        files = {file["path"]: file["sha256"] for file in TRUTHS[case].get("files", ())}
        assert sorted(found) == sorted(truth.get("loose", []))
        for path, data in found.items():
            known = files[f"{truth['at']}/{path}"]
            assert hashlib.sha256(read_all(data)).hexdigest() == known


def test_the_corpus_is_there() -> None:
    assert len(TRUTHS) == 25
    assert len(SHARDS) == 50


def files_below(node: Node, found: list[str]) -> list[str]:
    """Digests of all files below, each of which must be found by the name under which it is listed, and by no other."""
    children = list(node.children())
    assert len({child.name for child in children}) == len(children)
    for child in children:
        assert (node / child.name).attr.ino == child.attr.ino
        if child.is_dir:
            files_below(child, found)
        else:
            try:
                found.append(hashlib.sha256(child.read()).hexdigest())
            except ShardfsError:
                found.append("damaged")
    return found


@pytest.mark.parametrize("case", TRUTHS)
def test_every_layout_shows_the_same_files(case: str) -> None:
    seen = []
    layouts: list[dict[str, Any]] = [{"layout": name} for name in ("record", "flat", "field")]
    for layout in [*layouts, {"fanout": 3}]:
        tree = open_tree(str(DATA / case), Options(disk_cache=False, **layout))
        seen.append(sorted(files_below(tree.root, [])))
        tree.close()
    assert seen[0] == seen[1] == seen[2] == seen[3]
