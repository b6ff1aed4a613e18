"""JSON Lines and JSON documents as shards."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Slice, no_wait, read_all
from shardfs.errors import Corrupt, TooLarge, WouldBlock
from shardfs.formats.text import files as _text_files
from shardfs.formats.text import json_shard as _json_shard
from shardfs.formats.text.jsonl import Json, Jsonl
from shardfs.model import Plain
from tests.fakes import FailingBlob, FakeServices, MemoryStore
from tests.text_files import KeepingServices, files, open_shard, records

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.stores import Entry, Store


def test_members_are_files_by_their_type() -> None:
    line = {"s": "tëxt", "e": "a\nb", "i": 1, "f": 0.5, "b": True, "d": {"x": [1, 2]}, "n": None}
    shard = open_shard("a.jsonl", json.dumps(line).encode() + b"\n")
    assert files(shard, 0) == {
        "s.txt": "tëxt".encode(),
        "e.txt": b"a\nb",
        "i.txt": b"1\n",
        "f.txt": b"0.5\n",
        "b.txt": b"true\n",
        "d.json": b'{"x":[1,2]}\n',
    }
    assert (len(shard), shard.key(0), shard.find("000000"), shard.find("1")) == (
        1,
        "000000",
        0,
        None,
    )


def test_plain_text_is_a_part_of_the_file() -> None:
    (field,) = open_shard("a.jsonl", '{"a": "é"}'.encode()).fields(0)
    assert isinstance(field.data, Slice)
    assert (field.kind, field.data.start, field.data.length) == (Plain(".txt"), 7, 2)


def test_blank_lines_line_ends_and_a_byte_order_mark_are_no_data() -> None:
    data = b'\xef\xbb\xbf\n{"a":1}\r\n \t\r\n  {"a":2}\n\n{"a":"\xe2\x80\xa8"}'
    assert records(open_shard("a.jsonl", data)) == [
        *({"a.txt": b"1\n"}, {"a.txt": b"2\n"}, {"a.txt": b"\xe2\x80\xa8"})
    ]


def test_lines_of_other_values_are_one_field() -> None:
    assert records(open_shard("a.jsonl", b'1\n"x"\nnull\n[1, 2]\ntrue\n')) == [
        {"data.txt": b"1\n"},
        {"text.txt": b"x"},
        {},
        {"data.json": b"[1,2]\n"},
        {"data.txt": b"true\n"},
    ]


def test_members_of_one_name_are_all_shown() -> None:
    assert files(open_shard("a.jsonl", b'{"a":1,"a":2}'), 0) == {"a.txt": b"1\n", "a~1.txt": b"2\n"}


@pytest.mark.parametrize(
    "line", [b'{"a":1', b"{a:1}", b'{"a":1} x', b'{"a":"\t"}', b"\0\xff", b"[" * 100_000]
)
def test_a_bad_line_harms_only_itself(line: bytes) -> None:
    shard = open_shard("a.jsonl", b'{"a":1}\n' + line + b'\n{"a":2}\n')
    good, bad, last = records(shard)
    assert (good, last) == ({"a.txt": b"1\n"}, {"a.txt": b"2\n"})
    assert isinstance(bad, Corrupt)
    assert any(word in str(bad) for word in ("is no JSON", "more behind", "nested too deeply"))


def test_bytes_that_are_no_text_harm_only_their_field() -> None:
    found = files(open_shard("a.jsonl", b'{"a":"\xff","b":"\xc3\xa9","c":1}'), 0)
    assert isinstance(found.pop("a.txt"), Corrupt)
    assert found == {"b.txt": "é".encode(), "c.txt": b"1\n"}


def test_a_line_may_be_long_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text_files, "MAX_ROW", 3 << 20)
    long, longer = b'{"a":"%s"}' % (b"x" * (2 << 20)), b'{"a":"%s"}' % (b"x" * (4 << 20))
    shard = open_shard("a.jsonl", long + b"\n" + longer + b'\n{"a":1}')
    assert files(shard, 0) == {"a.txt": b"x" * (2 << 20)}
    with pytest.raises(TooLarge):
        shard.fields(1)
    assert files(shard, 2) == {"a.txt": b"1\n"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_marks_tell_the_encoding(encoding: str) -> None:
    shard = open_shard("a.jsonl", '{"a":"数"}\n{"a":"\U0001f98a"}'.encode(encoding))
    assert [files(shard, index) for index in range(len(shard))] == [
        {"a.txt": "数".encode()},
        {"a.txt": "\U0001f98a".encode()},
    ]


def test_columns_are_those_of_the_first_records() -> None:
    data = b'{"a":1}\nbad\n{"b":1,"a":2}\n'
    assert list(open_shard("a.jsonl", data).columns) == ["a", "b"]


def test_compressed_lines_are_read_by_their_content() -> None:
    data = gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"a":2}\n')
    for name in ("a.jsonl.gz", "a.jsonl.zst", "a.jsonl"):
        assert records(open_shard(name, data)) == [{"a.txt": b"1\n"}, {"a.txt": b"2\n"}]
    assert records(open_shard("a.jsonl.gz", b'{"a":1}')) == [{"a.txt": b"1\n"}]


class Damaged(KeepingServices):
    """Services by which compressed files are damaged from byte 5000 of what they hold on."""

    def unpack(self, store: Store, entry: Entry, codec: str, /) -> Blob:
        return FailingBlob(gzip.decompress(bytes(read_all(store.open(entry.path)))), 5000)


def test_a_compressed_file_that_is_damaged_ends_in_a_damaged_record() -> None:
    data = gzip.compress(b"".join(b'{"a":%04d}\n' % n for n in range(1000, 2000)))
    services = Damaged()
    *good, bad = records(open_shard("a.jsonl.gz", data, services))
    assert good == [{"a.txt": b"%d\n" % n} for n in range(1000, 1000 + 5000 // 11)]
    assert isinstance(bad, Corrupt)
    assert [str(error) for error in services.reports] == ["a.jsonl.gz: injected at 5000"]


def test_the_rows_are_found_once() -> None:
    services, data = KeepingServices(), b'{"a":1}\n{"a":2}\n'
    assert len(open_shard("a.jsonl", data, services)) == 2
    (key,) = services.kept
    services.kept[key] = services.kept[key].replace(b"\2", b"\1", 1)  # the count
    assert len(open_shard("a.jsonl", data, services)) == 1


def test_suffixes_and_names() -> None:
    names = ["a.jsonl", "b.NDJSON", "c.jsonl.zst", "d.json"]
    store = MemoryStore(dict.fromkeys(names, b""))
    assert Jsonl.detect(store, names)
    assert not Jsonl.detect(store, ["d.json"])
    dataset = Jsonl.open(store, names, FakeServices())
    assert [ref.name for ref in dataset.shards] == ["a", "b", "c"]
    assert [dataset.owns(name) for name in names] == [True, True, True, False]
    assert [ref.name for ref in Json.open(store, ["d.json"], FakeServices()).shards] == ["d"]


# --- documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
def test_the_items_of_an_array_are_records(indent: int | None) -> None:
    data = json.dumps([{"a": 1}, "b", {"a": [1, {"c": 2}]}, None, 3], indent=indent).encode()
    expected = [
        {"a.txt": b"1\n"},
        {"text.txt": b"b"},
        {"a.json": b'[1,{"c":2}]\n'},
        {},
        {"data.txt": b"3\n"},
    ]
    assert records(open_shard("a.json", data)) == expected
    assert records(open_shard("a.jsonl", b" " + data + b"\n")) == expected


@pytest.mark.parametrize("data", [b"[]", b" [ ]\n"])
def test_an_empty_array_has_no_records(data: bytes) -> None:
    assert records(open_shard("a.json", data)) == []


def test_a_bad_item_harms_only_itself() -> None:
    data = b'[{"a":1}, {"a":x}, {"a":2} 7, [1}, {"a":3},, {"a":4}]'
    found = records(open_shard("a.json", data))
    assert [isinstance(each, Corrupt) for each in found] == [
        *(False, True, True, True, False, True, False)
    ]
    assert found[-1] == {"a.txt": b"4\n"}


@pytest.mark.parametrize("end", [b" ", b",", b', {"a"', b"] []", b"] x"])
def test_an_array_that_does_not_end_well_ends_in_a_damaged_record(end: bytes) -> None:
    found = records(open_shard("a.json", b'[{"a":1}, {"a":2}' + end))
    assert found[0] == {"a.txt": b"1\n"}
    assert [isinstance(each, Corrupt) for each in found] == [False, False, True]


def test_one_object_is_one_record() -> None:
    data = json.dumps({"a": 1, "b": {"c": 2}}, indent=2).encode()
    assert records(open_shard("a.json", data)) == [{"a.txt": b"1\n", "b.json": b'{"c":2}\n'}]
    assert records(open_shard("a.json", b'{"a": 1}\n')) == [{"a.txt": b"1\n"}]


def test_an_object_too_large_to_look_for_columns_is_one_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b'{"a":{"0":1}}'
    assert records(open_shard("a.json", data)) == [{"a.txt": b"1\n"}]
    monkeypatch.setattr(_json_shard, "MAX_PARSED", 5)
    assert records(open_shard("a.json", data)) == [{"a.json": b'{"0":1}\n'}]


def test_a_table_by_columns_is_turned_round() -> None:
    table = {"a": {"0": 1, "1": 2}, "b": {"0": "é", "1": "\n"}, "c": {"0": None, "1": [1]}}
    for ascii_only in (True, False):
        shard = open_shard("a.json", json.dumps(table, ensure_ascii=ascii_only).encode())
        assert shard.columns == ["a", "b", "c"]
        assert records(shard) == [
            {"a.txt": b"1\n", "b.txt": "é".encode()},
            {"a.txt": b"2\n", "b.txt": b"\n", "c.json": b"[1]\n"},
        ]


@pytest.mark.parametrize(
    "table",
    [
        *({}, {"a": {}}, {"a": {"0": 1}, "b": {"0": 1, "1": 2}}, {"a": {"0": 1}, "b": 2}),
        *({"a": {"1": 1, "0": 2}}, {"a": {"x": 1}}, {"a": [1, 2]}),
    ],
)
def test_other_objects_are_no_tables(table: object) -> None:
    assert len(open_shard("a.json", json.dumps(table).encode())) == 1


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b'{"a":1}\n{"a":2}\n', 2),
        (b'{"a":1} \r\n\n{"a":2}', 2),
        (b'{"a":{}\n,"b":1}', 1),
        (b'{"a":[1,\n2]}', 1),
        (b"[1]\n[2]\n", 2),
        (b"[[1]\n,[2]\n]", 2),
        (b"[[1]\n]", 1),
        (b"1\n2\n3", 3),
        (b'"a"', 1),
        (b"", 0),
        (b" \n ", 0),
    ],
)
def test_lines_by_the_name_of_a_document_are_lines(data: bytes, count: int) -> None:
    found = records(open_shard("a.json", data))
    assert len(found) == count
    assert not any(isinstance(each, Corrupt) for each in found)


def test_what_is_not_found_yet_waits() -> None:
    shard = open_shard("a.jsonl", b'{"a":1}\n')
    with no_wait(), pytest.raises(WouldBlock):
        shard.has(0)
    assert shard.has(0)
    with no_wait():
        assert shard.has(0)
        assert shard.fields(0)[0].name == "a"
