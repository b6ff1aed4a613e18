from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, Unreadable
from shardfs.model import Plain
from shardfs.tree.lines import LineStream, RecordLines, line, record_object
from tests.fakes import FakeShard
from tests.unit.tree.test_layouts import LAYOUTS, Layout, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fakes import Record

PICTURE = b"\xff\xd8\xff\xe0" + bytes(30)


def objects(*records: Record | Exception, layout: Layout = "record") -> list[dict[str, Any]]:
    shard = opened(FakeShard(records), layout)  # type: ignore[arg-type]
    return [record_object(shard, "train/a", number) for number in range(len(records))]


def read(stream: LineStream, step: int) -> bytes:
    found, target = b"", memoryview(bytearray(step))
    while count := stream.readinto1(target):
        found += bytes(target[:count])
    return found


def test_values_stand_as_they_are_and_what_lacks_one_is_null() -> None:
    assert objects({"a": b"x", "b": b"y"}, {"b": b"z"}) == [
        {"key": "000000", "index": 0, "fields": {"a": "x", "b": "y"}},
        {"key": "000001", "index": 1, "fields": {"a": None, "b": "z"}},
    ]


@pytest.mark.parametrize(
    ("layout", "places"),
    [
        ("record", ["train/a/000001/a.bin", "train/a/000001/b.bin"]),
        ("flat", ["train/a/000001.a.bin", "train/a/000001.b.bin"]),
        ("field", ["train/a/a/000001.bin", "train/a/b/000001.bin"]),
    ],
)
def test_files_are_referred_to_where_they_stand(layout: Layout, places: Sequence[str]) -> None:
    shard = opened(FakeShard([{}, {"a": b"1", "b": b"22"}], kind=Plain(".bin")), layout)
    for only in ((), ("b",)):
        fields = record_object(shard, "train/a", 1, only)["fields"]
        assert fields.get("b") == {"file": places[1], "bytes": 2}
        assert fields.get("a") == (None if only else {"file": places[0], "bytes": 1})
        assert list(fields) == (["b"] if only else ["a", "b"])


def test_damage_is_told_in_its_place_and_harms_no_neighbour() -> None:
    bad = Corrupt("is damaged")
    whole, part = objects(bad, {"a": bad, "b": b"y"})
    assert whole == {"key": "000000", "index": 0, "fields": {}, "error": "is damaged"}
    assert part["fields"] == {
        "a": {"file": "train/a/000001/a.txt", "error": "is damaged"},
        "b": "y",
    }


def test_what_another_try_may_read_is_no_value() -> None:
    with pytest.raises(Unreadable):
        objects({"a": Unreadable("no answer")})


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_the_lines_of_a_shard_are_one_for_each_record(layout: Layout, step: int) -> None:
    shard = opened(FakeShard([{"a": b"x\ny"}, Corrupt("bad"), {}]), layout)
    codec = RecordLines(lambda: shard, "s")
    text = read(codec.stream(Bytes(b""), 0), step)
    assert text == read(codec.stream(Bytes(b""), 0), 50)
    lines = text.decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(each)["index"] for each in lines] == [0, 1, 2]


def test_a_line_holds_whatever_there_is() -> None:
    assert line({"a": float("nan"), "b": "\ud800é"}) == b'{"a":NaN,"b":"\\ud800\xc3\xa9"}\n'
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    told = json.loads(line({"key": "k", "index": 1, "fields": {"a": deep}}))
    assert told == {"key": "k", "index": 1, "fields": {}, "error": "can't be shown as JSON"}
