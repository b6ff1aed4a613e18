from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import Bytes, Slice, Stored, no_wait
from shardfs.cache.disk import DiskCache, Room
from shardfs.errors import (
    Corrupt,
    NotFound,
    ShardfsError,
    WouldBlock,
)
from shardfs.model import Array, Field, Plain, ShardRef
from shardfs.tree.inodes import shard_ino
from shardfs.tree.records import KnownRecords
from tests.fakes import FakeDataset, FakeShard, KeyedShard, MemoryStore, SlowBlob
from tests.unit.tree.spaces import Space, Versioned, space

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


# --- records that were looked at ---


def test_a_record_is_parsed_once_for_a_lookup_a_stat_and_an_open() -> None:
    for record in ({"a": b"1"}, {}):
        shard = FakeShard([record])
        shards = Space(FakeDataset({"one": shard}))
        folder = shards.at("000000").ino
        for _ in range(2):
            shards.names(folder)
            for name in record:
                shards.content(f"000000/{name}.txt")
        assert shard.asked == 1


def test_known_records_forget_the_oldest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardfs.tree.records._KNOWN_FILES", 10)
    known = KnownRecords()
    for number in range(100):
        known.put((0, number), ())
    kept = [number for number in range(100) if known.get((0, number)) is not None]
    assert len(kept) <= 20
    assert kept[-10:] == list(range(90, 100))


def test_shards_do_not_answer_for_each_other() -> None:
    shards = Space(FakeDataset({n: FakeShard([{"a": n.encode()}]) for n in ("one", "two")}))
    assert [shards.content("000000/a.txt", number) for number in (0, 1)] == [b"one", b"two"]


def test_a_read_that_needs_waiting_blocks_in_no_lookup() -> None:
    class Slow(FakeShard):
        def fields(self, index: int, /) -> Sequence[Field]:
            data = SlowBlob(b"slow")
            data.read(0, 1)
            return [Field("a", Plain(".txt"), data)]

    shards = Space(FakeDataset({"one": Slow([{}])}))
    record = shards.at("000000").ino
    with no_wait(), pytest.raises(WouldBlock):
        shards.lookup(record, "a.txt")
    shards.lookup(record, "a.txt")
    with no_wait():
        file = shards.lookup(record, "a.txt")
        blob = shards.open(file.ino)
        with pytest.raises(WouldBlock):
            blob.read(0, 1)


# --- what is known of a record ---


class Described(FakeShard):
    def fields(self, index: int, /) -> Sequence[Field]:
        file = StoredBytes(b"0123456789")
        return [
            Field("x", Plain(".txt"), Slice(file, 2, 3)),
            Field("x.txt", Plain(".txt"), Bytes(b"12")),
            Field("n", Array("<i2", (2,)), Slice(file, 4, 4)),
            *super().fields(index),
        ]


class StoredBytes(Bytes, Stored):
    """A whole file, as far as anybody can tell."""

    __slots__ = ()


def test_what_is_known_of_a_record() -> None:
    shards = Space(FakeDataset({"one": Described([{"bad": Corrupt("cut")}])}))
    assert ".shardfs.json" not in shards.names(shards.at("000000").ino)
    told = json.loads(shards.content("000000/.shardfs.json"))
    fields = told.pop("fields")
    assert told == {"shard": "one", "index": 0, "key": "000000"}
    assert [field["files"] for field in fields] == [["x.txt"], ["x~1.txt"], ["n.npy"], ["bad.txt"]]
    assert fields[2] == {
        "name": "n",
        "kind": "array",
        "dtype": "<i2",
        "shape": [2],
        "skip": 0,
        "bytes": 4,
        "offset": 4,
        "files": ["n.npy"],
    }
    assert fields[3]["error"] == "cut"
    assert shards.at("000000/.shardfs.json").size == len(shards.content("000000/.shardfs.json"))


def test_a_record_that_is_a_folder_too_is_described_once_in_whatever_order() -> None:
    for keys in (["b", "b/c"], ["b/c", "b"]):
        shards = Space(FakeDataset({"one": KeyedShard({key: {"x": b""} for key in keys})}))
        assert json.loads(shards.content("b/.shardfs.json"))["key"] == "b"
        assert json.loads(shards.content("b/c/.shardfs.json"))["key"] == "b/c"


def test_what_is_no_record_is_not_described() -> None:
    shards = Space(FakeDataset({"one": KeyedShard({"a/b": {"x": b""}})}))
    for folder in (shard_ino(0), shards.at("a").ino):
        with pytest.raises(NotFound):
            shards.lookup(folder, ".shardfs.json")
    flat = space({"x": b""}, layout="flat")
    with pytest.raises(NotFound):
        flat.lookup(shard_ino(0), ".shardfs.json")


# --- the index cache ---


class Costly(Versioned):
    def __init__(self, *records: Mapping[str, bytes | ShardfsError]) -> None:
        self.shard = FakeShard(records, costly=True)
        super().__init__({"one": self.shard})

    @property
    def shards(self) -> Sequence[ShardRef]:
        return [ShardRef("one", "one.bin", len(self.shard), 1, "v3")]


def costly(folder: Path, *records: Mapping[str, bytes | ShardfsError], **options: Any) -> Space:
    return Space(
        Costly(*records),
        MemoryStore({"one.bin": b"123"}),
        DiskCache(Room(folder, 1 << 20), "index"),
        **options,
    )


def look(shards: Space) -> list[tuple[str, int]]:
    return [
        (entry.name, entry.attr.size)
        for record in shards.scan(shard_ino(0), 0)
        for entry in shards.scan(record.attr.ino, 0)
    ]


def test_names_and_sizes_of_a_costly_shard_are_remembered(tmp_path: Path) -> None:
    records = {"a": b"12", "b": b""}, {"a": b"1"}
    first = look(costly(tmp_path, *records))
    again = costly(tmp_path, *records)
    assert look(again) == first == [("a.txt", 2), ("b.txt", 0), ("a.txt", 1)]
    shard = again.shard(0).shard
    assert isinstance(shard, FakeShard)
    assert shard.asked == 0
    assert again.content("000000/a.txt") == b"12"
    assert shard.asked == 1


def test_a_spoiled_listing_costs_time_and_no_answers(tmp_path: Path) -> None:
    records = {"a": b"12"}, {"a": b"1"}
    expected = look(costly(tmp_path, *records))
    (file,) = (tmp_path / "index").iterdir()
    good = file.read_bytes()
    for position in range(48, len(good)):  # the bytes behind the header
        file.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        assert len(look(costly(tmp_path, *records))) == 2
    file.write_bytes(good)
    assert look(costly(tmp_path, *records)) == expected


def test_a_listing_of_another_look_is_not_taken(tmp_path: Path) -> None:
    records = ({"a": b"12", "b": b"1"},)
    look(costly(tmp_path, *records))
    assert look(costly(tmp_path, *records, columns=("a",))) == [("a.txt", 2)]
    rebuilt = costly(tmp_path, *records, rebuild_index=True)
    look(rebuilt)
    shard = rebuilt.shard(0).shard
    assert isinstance(shard, FakeShard)
    assert shard.asked == 1


def test_a_shard_with_a_fault_is_looked_at_anew(tmp_path: Path) -> None:
    records = {"a": Corrupt("cut")}, {"a": b"1"}
    for _ in range(2):
        shards = costly(tmp_path, *records)
        assert look(shards) == [("a.txt", 0), ("a.txt", 1)]
        with pytest.raises(Corrupt, match="cut"):
            shards.content("000000/a.txt")
