from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotALink,
    NotFound,
    TooLarge,
    Unreadable,
    Unsupported,
    WouldBlock,
)
from shardfs.model import ShardRef
from shardfs.tree import shards as shards_module
from shardfs.tree.inodes import MAX_SHARDS, shard_ino
from shardfs.tree.nodes import Type
from tests.fakes import FakeDataset, FakeShard, MemoryStore
from tests.unit.tree.spaces import Space, Versioned, space

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# --- opening ---


def test_a_shard_is_opened_once_however_many_ask() -> None:
    class Slow(FakeDataset):
        def open_shard(self, index: int, /) -> FakeShard:
            time.sleep(0.05)
            return super().open_shard(index)

    dataset = Slow({"one": FakeShard([{"a": b"1"}])})
    shards = Space(dataset)
    with ThreadPoolExecutor(16) as pool:
        opened = list(pool.map(lambda _: shards.shard(0), range(16)))
    assert dataset.opened == ["one"]
    assert len(set(map(id, opened))) == 1
    assert shards.opened == 1


def test_a_shard_that_is_not_open_needs_waiting_and_an_open_one_does_not() -> None:
    dataset = FakeDataset({"one": FakeShard([{"a": b"1"}])})
    shards = Space(dataset)
    with no_wait():
        assert shards.folder_attr(0).type is Type.FOLDER
        with pytest.raises(WouldBlock):
            shards.names(shard_ino(0))
    assert not dataset.opened
    shards.shard(0)
    with no_wait():
        assert shards.names(shard_ino(0)) == ["000000"]


def test_a_damaged_shard_is_opened_once_and_told_once() -> None:
    dataset = FakeDataset({"one": Corrupt("no magic"), "two": FakeShard([{"a": b"1"}])})
    shards = Space(dataset)
    errors = []
    for _ in range(3):
        with pytest.raises(Corrupt, match=r"^one: no magic$") as caught:
            shards.names(shard_ino(0))
        errors.append(caught.value)
    assert dataset.opened == ["one"]
    assert len(set(map(id, errors))) == 3
    assert shards.journal.count == 1
    assert shards.content("000000/a.txt", shard=1) == b"1"


def test_a_shard_that_could_not_be_read_is_tried_again() -> None:
    dataset = FakeDataset({"one": Unreadable("no network")})
    shards = Space(dataset)
    for _ in range(2):
        with pytest.raises(Unreadable, match="no network"):
            shards.shard(0)
    assert dataset.opened == ["one", "one"]
    dataset.by_name["one"] = FakeShard([{}])
    assert shards.names(shard_ino(0)) == ["000000"]


def test_not_all_shards_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "_OPEN_SHARDS", 2)
    made = {name: FakeShard([{"a": name.encode()}]) for name in "abc"}
    dataset = FakeDataset(made)
    shards = Space(dataset)
    blob = shards.open(shards.at("000000/a.txt", 0).ino)
    for number in (0, 1, 0, 2, 0, 1):
        assert shards.content("000000/a.txt", number) == b"abc"[number : number + 1]
    assert dataset.opened == ["a", "b", "c", "b"], "the least recently used one went"
    assert shards.opened == 2
    assert bytes(blob.read(0, 1)) == b"a"
    assert not made["c"].closed, "somebody may be reading in it"
    shards.close()
    assert made["a"].closed
    assert made["b"].closed
    assert shards.opened == 0


def test_there_are_no_more_shards_than_numbers() -> None:
    class Endless(FakeDataset):
        @property
        def shards(self) -> Sequence[ShardRef]:
            return [ShardRef("x", "", 0, 0, "")] * MAX_SHARDS

    shards = space({})
    with pytest.raises(Unsupported, match="mount a part"):
        shards.add(Endless({}), MemoryStore({}))
    assert shards.count == 1


def test_several_datasets_share_the_numbers() -> None:
    shards = space({"a": b"1"})
    second = FakeDataset({"two": FakeShard([{"b": b"2"}]), "three": FakeShard([{}, {}])})
    assert shards.add(second, MemoryStore({}, "memory://second")) == 1
    assert [shards.ref(number).name for number in range(3)] == ["one", "two", "three"]
    assert shards.content("000000/b.txt", 1) == b"2"
    assert shards.count == 3
    assert [(first, url) for _, first, url in shards.datasets()][1:] == [(1, "memory://second")]


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"one.bin": b"1234"}, "has changed since"), ({"other": b""}, "the file is gone")],
)
def test_a_file_that_is_not_the_one_of_the_index_is_not_read(
    files: Mapping[str, bytes], reason: str
) -> None:
    dataset = Versioned({"one": FakeShard([{}])})
    with pytest.raises(Unreadable, match=f"^one.bin: .*{reason}"):
        Space(dataset, MemoryStore(files)).shard(0)
    assert not dataset.opened
    Space(dataset, MemoryStore({"one.bin": b"123"})).shard(0)
    assert dataset.opened


# --- nodes ---


def test_attributes_say_size_and_time() -> None:
    shards = space({"a": b"four", "empty": b""})
    assert shards.at("000000").type is Type.FOLDER
    attr = shards.at("000000/a.txt")
    assert (attr.type, attr.size, attr.mtime_ns) == (Type.FILE, 4, 1)
    assert shards.attr(attr.ino) == attr
    assert shards.at("000000/empty.txt").size == 0
    listed = {entry.name: entry.attr for entry in shards.scan(shards.at("000000").ino, 0)}
    assert listed == {name: shards.at(f"000000/{name}") for name in ("a.txt", "empty.txt")}


def test_the_shard_itself_has_attributes_without_being_opened() -> None:
    dataset = FakeDataset({"one": Corrupt("bad")})
    assert Space(dataset).attr(shard_ino(0)).type is Type.FOLDER
    assert not dataset.opened


def test_files_are_no_folders_and_folders_no_files() -> None:
    shards = space({"a": b""})
    file = shards.at("000000/a.txt")
    for use in (lambda: shards.names(file.ino), lambda: shards.lookup(file.ino, "x")):
        with pytest.raises(NotAFolder):
            use()
    for path in (shard_ino(0), shards.at("000000").ino):
        with pytest.raises(IsAFolder):
            shards.open(path)
    with pytest.raises(NotALink):
        shards.readlink(file.ino)
    with pytest.raises(NotFound):
        shards.at("000000/b.txt")


def test_a_damaged_record_is_listed_and_can_not_be_looked_into() -> None:
    shards = space({"a": b"1"}, Corrupt("offsets decrease"), {"a": b"3"})
    assert shards.names(shard_ino(0)) == ["000000", "000001", "000002"]
    record = shards.at("000001")
    for use in (lambda: shards.names(record.ino), lambda: shards.lookup(record.ino, "a.txt")):
        with pytest.raises(Corrupt, match="record 1: offsets decrease"):
            use()
    assert shards.content("000002/a.txt") == b"3"


@pytest.mark.parametrize("layout", ["flat", "field"])
def test_a_damaged_record_is_a_file_where_records_are_no_folders(layout: str) -> None:
    shards = space({"a": b"1"}, Corrupt("offsets decrease"), layout=layout)
    attr = shards.at("000001" if layout == "flat" else "a/000001")
    assert (attr.type, attr.size) == (Type.FILE, 0)
    with pytest.raises(Corrupt, match="record 1: offsets decrease"):
        shards.open(attr.ino)


def test_a_damaged_field_is_listed_as_empty_and_says_why_when_it_is_opened() -> None:
    shards = space({"good": b"1", "bad": Corrupt("too long")})
    listed = {entry.name: entry.attr.size for entry in shards.scan(shards.at("000000").ino, 0)}
    assert listed == {"good.txt": 1, "bad.txt": 0}
    with pytest.raises(Corrupt, match=r"^one: record 0: bad.txt: too long$"):
        shards.open(shards.at("000000/bad.txt").ino)
    assert shards.content("000000/good.txt") == b"1"
    messages = [json.loads(line)["message"] for line in shards.journal.lines().splitlines()]
    assert messages == ["one: record 0: bad.txt: too long"]


def test_more_files_than_there_are_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardfs.tree.records.MAX_FILES", 2)
    shards = space({"a": b"", "b": b"", "c": b""}, {"a": b""})
    with pytest.raises(TooLarge, match="3 files, more than 2"):
        shards.names(shards.at("000000").ino)
    assert shards.names(shards.at("000001").ino) == ["a.txt"]


def test_opening_waits_for_the_lock_and_not_for_other_shards() -> None:
    """A shard that takes long to open keeps nobody from another one."""
    gate = threading.Event()

    class Gated(FakeDataset):
        def open_shard(self, index: int, /) -> FakeShard:
            if index == 0:
                gate.wait(10)
            return super().open_shard(index)

    shards = Space(Gated({"slow": FakeShard([{}]), "quick": FakeShard([{}])}))
    waiting = threading.Thread(target=shards.shard, args=(0,))
    waiting.start()
    try:
        assert shards.names(shard_ino(1)) == ["000000"]
        assert waiting.is_alive()
    finally:
        gate.set()
        waiting.join()
    assert shards.opened == 2
