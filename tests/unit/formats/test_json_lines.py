"""JSON values one a line, over lines, and side by side; and in a field of a document."""

from __future__ import annotations

import json

import pytest

from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.text import json_field, json_lines, rows
from shardfs.formats.text.json_lines import JsonLines
from tests.text_files import open_shard, records


def ids(data: bytes, name: str = "t.jsonl", **parameters: object) -> list[object]:
    """The field `a` of each record, None for one that can't be read."""
    found = records(open_shard(name, data, parameters=parameters))
    return [one.get("a.txt") if isinstance(one, dict) else None for one in found]


ONE, TWO = b'{\n "a":1,\n "b": [\n  {\n   "c": 2},\n  3\n ]\n}', b'{"a":2}'


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.jsonl.gz"])
@pytest.mark.parametrize(
    "data",
    [
        ONE + b"\n" + TWO,
        ONE + b"\n\n" + TWO + b"\n",
        ONE + TWO,
        ONE + b" " + TWO + b" \n\n",
        (ONE + b"\n" + TWO).replace(b"\n", b"\r\n"),
        ONE.replace(b",\n", b"\n,") + b"\n" + TWO,
        b"\xef\xbb\xbf\n" + ONE + b"\n" + TWO,
        ONE.replace(b"\n", b"") + TWO + b"\n",
    ],
)
def test_objects_may_be_printed_in_any_way(data: bytes, name: str) -> None:
    assert ids(data, name) == [b"1\n", b"2\n"]


@pytest.mark.parametrize(
    "bad",
    [
        b'{"a": [',
        b'{"a":',
        b'{"a": 5,',
        b'{"a": "x',
        b'{"a": "x,',
        b'{"a": 5]}',
        b"}",
        b"nonsense,",
        b'"',
        b"[[[",
    ],
)
def test_a_line_that_is_no_json_harms_itself_alone(bad: bytes) -> None:
    lines = b"\n".join([b'{"a":1}', bad, b'{"a":2}', ONE, b'{"a":2}'])
    assert ids(lines) == [b"1\n", None, b"2\n", b"1\n", b"2\n"]


def test_an_object_over_lines_that_is_cut_off_is_one_record() -> None:
    assert ids(TWO + b"\n" + ONE[:-10]) == [b"2\n", None]


def test_marks_in_strings_end_nothing() -> None:
    rows = [{"a": "}{"}, {"a": '} {"\n'}, {"a": "},\n]"}, {"a": "\\"}]
    data = "\n".join(json.dumps(row) for row in rows).encode()
    assert ids(data) == [str(row["a"]).encode() for row in rows]


def test_values_that_are_too_long_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_MAX_VALUE", 50)
    data = b'{"a":\n"%s"}\n{"a":2}' % (b"x" * 100)
    assert ids(data) == [None, None, b"2\n"]
    finder = JsonLines()
    long = b'{"a":"%s"}\n' % (b"x" * 1000)
    starts = [
        s for at in range(0, 4 * len(long), 100) for s in finder.feed((4 * long)[at : at + 100], at)
    ]
    starts += finder.feed(b"", 4 * len(long))
    assert starts == [n * len(long) for n in range(4)]


def test_rows_are_found_again_between_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PIECE", 30)
    monkeypatch.setattr(rows, "_BETWEEN_MARKS", 40)
    data = b"\n".join([ONE, TWO, b'{"a": [', TWO, ONE, b'{"a": 5,', TWO] * 9)
    assert ids(data) == [b"1\n", b"2\n", None, b"2\n", b"1\n", None, b"2\n"] * 9


DOCUMENT = b'{"version": {"a": 0}, "data": [{"a": 1}, {"a": 2}], "more": [{"a": 3}]}'


@pytest.mark.parametrize(
    ("data", "field", "right"),
    [
        (DOCUMENT, "data", [b"1\n", b"2\n"]),
        (DOCUMENT, "more", [b"3\n"]),
        (b'{"t": {"a": [1, 2], "b": [3, 4]}}', "t", [b"1\n", b"2\n"]),
        (b'{"t": {"a": {"x": 1, "y": 2}}}', "t", [b"1\n", b"2\n"]),
        (b'\xef\xbb\xbf{"d\\u00e9": [{"a": 1}]}', "d\xe9", [b"1\n"]),
        (b'{"d": [], "e": 1}', "d", []),
        (b'{"d": [{"a": 1}, bad, {"a": 2}], "e": 1}', "d", [b"1\n", None, b"2\n"]),
    ],
)
def test_records_may_be_in_a_field(data: bytes, field: str, right: list[object]) -> None:
    assert ids(data, "t.json", field=field) == right
    assert ids(data, "t.jsonl", field=field) == right


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (DOCUMENT, "has no field 'd'"),
        (b"[]", "is no JSON object with the field 'd'"),
        (b'{"d"', "is no JSON object with the field 'd'"),
        (b"", "is no JSON object with the field 'd'"),
        (b'{"d": 5}', "the field 'd' holds neither"),
        (b'{"d": {"a": 5}}', "the field 'd' holds neither"),
        (b'{"d": {"a": [1], "b": []}}', "the field 'd' holds neither"),
        (b'{"d": {"a": [1', "the field 'd' is no JSON"),
    ],
)
def test_a_field_that_is_not_there_is_told(data: bytes, words: str) -> None:
    with pytest.raises(Corrupt, match=words):
        open_shard("t.json", data, parameters={"field": "d"})


def test_a_field_may_be_far_but_not_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'{"a": "%s", "d": [{"a": 1}]}' % (b"x" * 1000)
    monkeypatch.setattr(json_field, "MAX_PARSED", 100)
    assert ids(data, "t.json", field="d") == [b"1\n"]
    monkeypatch.setattr(json_field, "_FURTHEST", 100)
    with pytest.raises(TooLarge, match="the field 'd' is not within"):
        open_shard("t.json", data, parameters={"field": "d"})
