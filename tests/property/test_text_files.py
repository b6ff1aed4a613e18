"""Text formats against the obvious slow programs: the csv and json modules, and str.split."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.json_values import NESTED, NUMBER
from shardfs.formats.text import rows as _rows
from shardfs.formats.text.csv_dialect import Dialect, DialectRows
from shardfs.formats.text.csv_rows import CsvRows, cells, unquoted
from shardfs.formats.text.json_items import Items
from shardfs.formats.text.json_lines import JsonLines
from shardfs.formats.text.line_rows import AllLines, AllText, Paragraphs
from tests.text_files import open_shard, records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.text.rows import Finder

cuts = st.lists(st.integers(0, 60), max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def pieces(data: bytes, places: Sequence[int]) -> list[bytes]:
    """*data* cut at these places."""
    ends = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


def rows(finder: Finder, data: bytes, places: Sequence[int], at: int = 0) -> list[bytes]:
    """The rows that a finder finds in *data* when it comes in pieces."""
    starts: list[int] = []
    for piece in pieces(data, places):
        starts += finder.feed(piece, at)
        at += len(piece)
    return [data[a:b] for a, b in pairwise([*starts, len(data)])]


@given(st.text(st.sampled_from("ab\r\n\u2028\x0b\x85")), cuts)
def test_lines_of_text_are_those_of_universal_newlines(text: str, places: list[int]) -> None:
    data = text.encode()
    expected = io.StringIO(text, newline="").readlines()
    assert rows(AllLines(), data, places) == [line.encode() for line in expected]


@given(st.text(st.sampled_from("ab1 \t\r\n\u2028")), cuts)
def test_lines_of_json_are_those_that_are_not_blank(text: str, places: list[int]) -> None:
    found = rows(JsonLines(), text.encode(), places)
    expected = [line.strip(" \t\r") for line in text.split("\n") if line.strip(" \t\r")]
    assert [row.decode().strip(" \t\r\n") for row in found] == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a}{[]",:\\\n ')),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3)
    ),
    max_leaves=8,
)
PRINTED = st.tuples(
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    st.sampled_from([None, 0, 1, "\t"]),
    st.sampled_from(["\n", "\r\n", " \n\n", "", " "]),
)


@given(st.lists(PRINTED, min_size=1, max_size=6), cuts)
def test_objects_are_found_however_they_are_printed(
    printed: list[tuple[dict[str, Any], Any, str]], places: list[int]
) -> None:
    texts = [json.dumps(value, indent=indent) + end for value, indent, end in printed]
    data = "".join(texts).encode()
    assert rows(JsonLines(), data, places) == [text.encode() for text in texts]
    shard = open_shard("t.jsonl", data)
    assert [json.loads(shard.row(index)[1]) for index in range(len(shard))] == [  # type: ignore[attr-defined]
        value for value, _, _ in printed
    ]


@given(st.text(st.sampled_from('a",\r\n'), max_size=30), cuts)
def test_csv_rows_and_cells_are_those_of_the_csv_module(text: str, places: list[int]) -> None:
    data, finder = text.encode(), CsvRows(b",")
    found = rows(finder, data, places)
    if finder.finish() is not None:
        return  # what is left open the module closes at the end, and a damaged row is one here
    shown = []
    for row in found:
        parts = [(row[cell.begin : cell.end], cell.quoted) for cell in cells(row, b",")]
        shown.append([(unquoted(part) if quoted else part).decode() for part, quoted in parts])
    assert shown == [row for row in csv.reader(io.StringIO(text, newline="")) if row]


@given(
    st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_tables_by_the_csv_module_come_back(table: list[list[str]], quoting: Any, end: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(["one", "two"])
    writer.writerows([re.sub("[\0\ud800-\udfff]", "", cell) for cell in row] for row in table)
    shown = records(open_shard("t.csv", text.getvalue().encode()))
    # Not *table* itself: before 3.13 the writer leaves a lone CR bare, which ends a row.
    read = list(csv.reader(io.StringIO(text.getvalue(), newline="")))
    assert shown == [
        {f"{name}.txt": cell.encode() for name, cell in zip(read[0], row, strict=False)}
        for row in read[1:]
        if row
    ]


FINDERS: list[Callable[[], Finder]] = [
    *(JsonLines, AllLines, AllText, Paragraphs, Items, partial(CsvRows, b",")),
    partial(DialectRows, Dialect(b",", escape=b"1", comment=b"]", spaces=True)),
    partial(DialectRows, Dialect(b",", quote=b"", blank=True, feeds=True)),
]


@given(st.text(st.sampled_from('a1",[]{}\r\n '), max_size=60), st.sampled_from(FINDERS))
def test_rows_are_the_same_by_small_pieces_and_marks(text: str, make: Callable[[], Finder]) -> None:
    data, finder = text.encode(), make()
    starts = list(finder.feed(data, 0))
    if finder.finish() is not None or finder.fault:
        return
    with patch.object(_rows, "PIECE", 5), patch.object(_rows, "_BETWEEN_MARKS", 3):
        found = _rows.Rows(
            _rows.Text(Bytes(data), None, 0, make, 1000),
            None,
            keep=Bytes,
            digits=lambda: None,
            report=raise_it,
        )
        assert [found.span(index) for index in range(len(found))] == list(
            pairwise([*starts, len(data)])
        )


def raise_it(fault: str) -> None:
    raise AssertionError(fault)


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal; NaN is itself."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def shown_as(name: str, value: Any) -> tuple[str, Callable[[bytes], Any]] | None:
    """The file that shows a member, and what reads it."""
    if value is None:
        return None
    if isinstance(value, str):
        return f"{name}.txt", lambda data: data.decode()
    if isinstance(value, (dict, list)):
        return f"{name}.json", json.loads
    return f"{name}.txt", lambda data: json.loads(
        {b"nan\n": b"NaN", b"inf\n": b"Infinity", b"-inf\n": b"-Infinity"}.get(data, data)
    )


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), json_values), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([".jsonl", ".json"]),
    st.sampled_from([None, 1]),
)
def test_records_hold_what_the_json_module_reads(
    objects: list[dict[str, Any]], ascii_only: bool, end: str, indent: int | None
) -> None:
    if end == ".json":
        text = json.dumps(objects, ensure_ascii=ascii_only, indent=indent)
    else:
        text = "\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in objects)
    shown = records(open_shard(f"t{end}", text.encode("utf-8", "backslashreplace")))
    assert len(shown) == len(objects)
    for files, values in zip(shown, json.loads(json.dumps(objects)), strict=True):
        assert isinstance(files, dict)
        expected = {name: shown_as(name, value) for name, value in values.items()}
        assert list(files) == [file[0] for file in expected.values() if file is not None]
        for name, file in expected.items():
            if file is not None:
                data = files[file[0]]
                assert isinstance(data, bytes)
                assert same(clean(file[1](data)), clean(values[name]))


def clean(value: Any) -> Any:
    """*value* with halves of surrogate pairs as the escapes that they are shown as."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


@given(st.lists(json_values, max_size=6), st.sampled_from([None, 1]), cuts)
def test_items_of_an_array_are_found_however_it_comes(
    items: list[Any], indent: int | None, places: list[int]
) -> None:
    data = json.dumps(items, indent=indent).encode()
    finder = Items()
    found = rows(finder, data[1:], places)
    assert finder.finish() is None
    assert finder.fault == ""
    values = [json.JSONDecoder().raw_decode(row.decode())[0] for row in found]
    assert same(values, json.loads(json.dumps(items)))


@given(st.binary(max_size=60), cuts)
def test_any_bytes_are_some_items_and_at_most_a_fault(data: bytes, places: list[int]) -> None:
    finder = Items()
    whole = Items()
    assert rows(finder, data, places) == rows(whole, data, [])
    assert finder.between == whole.between


@given(st.binary(max_size=80), st.sampled_from([".jsonl", ".json", ".csv", ".tsv", ".txt"]))
def test_any_bytes_are_a_shard_of_good_and_bad_records(data: bytes, end: str) -> None:
    try:
        shard = open_shard(f"t{end}", data)
    except (Corrupt, Unsupported):
        return
    assert len(records(shard)) == len(shard)


@given(st.floats())
def test_numbers_are_the_shortest_text_that_reads_back(value: float) -> None:
    for token in (json.dumps(value), f"{value:.25e}" if math.isfinite(value) else "NaN"):
        shown = NUMBER.render(memoryview(token.encode())).decode()
        read = float(shown)
        assert shown.endswith("\n")
        assert read == float(token) or math.isnan(read)
        assert len(shown) <= max(len(repr(value)), 3) + 1


@given(json_values)
def test_nested_values_are_compact(value: Any) -> None:
    text = json.dumps([value], indent=2).encode()
    shown = NESTED.render(memoryview(text))
    assert same(json.loads(shown), json.loads(text)) or b"\\u" in shown
    assert re.search(rb"\s", re.sub(rb'"(\\.|[^"\\])*"', b"", shown[:-1])) is None
