"""CSV and TSV as shards."""

from __future__ import annotations

import pytest

from shardfs.blob import Slice
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.text import csv
from shardfs.formats.text import csv_rows as _csv_rows
from shardfs.formats.text.csv_rows import CsvRows, cells, sniff
from shardfs.model import Plain
from tests.text_files import files, open_shard, records


def test_cells_are_text_as_it_stands() -> None:
    data = b'a,b,c\n1,"x, ""y""\n",\n 2 ,\xff,"quoted"\n'
    assert records(open_shard("t.csv", data)) == [
        {"a.txt": b"1", "b.txt": b'x, "y"\n', "c.txt": b""},
        {"a.txt": b" 2 ", "b.txt": b"\xff", "c.txt": b"quoted"},
    ]


def test_cells_are_parts_of_the_file_where_they_can_be() -> None:
    fields = open_shard("t.csv", b'a,b,c\n1,"2","3"""\n').fields(0)
    places = [(f.data.start, f.data.length) for f in fields if isinstance(f.data, Slice)]
    assert places == [(6, 1), (9, 1), (12, 5)]
    assert [f.kind == Plain(".txt") for f in fields] == [True, True, False]


def test_a_mark_line_ends_and_empty_lines_are_no_data() -> None:
    data = b'\xef\xbb\xbf"a",b\r\n\r\n1,2\r3,4\n\n\n5,6'
    assert [found for found in records(open_shard("t.csv", data))] == [
        {"a.txt": a, "b.txt": b} for a, b in ((b"1", b"2"), (b"3", b"4"), (b"5", b"6"))
    ]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf"])
def test_nothing_is_a_table_of_nothing(data: bytes) -> None:
    shard = open_shard("t.csv", data)
    assert (list(shard.columns), len(shard)) == ([], 0)


def test_a_header_alone_is_a_table_without_rows() -> None:
    shard = open_shard("t.csv", b"a,b")
    assert (list(shard.columns), len(shard)) == (["a", "b"], 0)


def test_rows_may_be_short_but_not_long() -> None:
    short, even, padded, long, last = records(
        open_shard("t.csv", b"a,b\n1\n1,2\n1,2,,\n1,2,3\n4,5")
    )
    assert short == {"a.txt": b"1"}
    assert even == padded == {"a.txt": b"1", "b.txt": b"2"}
    assert isinstance(long, Corrupt)
    assert "more cells than the 2 columns" in str(long)
    assert last == {"a.txt": b"4", "b.txt": b"5"}


def test_names_of_columns_may_be_anything() -> None:
    data = b'a,a,,"x/y","q ""z"""\n1,2,3,4,5\n'
    assert files(open_shard("t.csv", data), 0) == {
        **{"a.txt": b"1", "a~1.txt": b"2", ".txt": b"3", "x/y.txt": b"4", 'q "z".txt': b"5"}
    }


def test_quotation_marks_that_stay_open_harm_only_their_row() -> None:
    first, bad, last = records(open_shard("t.csv", b'a,b\n1,2\n3,"4\n5,6\n'))
    assert (first, last) == ({"a.txt": b"1", "b.txt": b"2"}, {"a.txt": b"5", "b.txt": b"6"})
    assert isinstance(bad, Corrupt)


def test_quotation_marks_inside_of_a_cell_are_text() -> None:
    data = b'a,b\n5" disk,x "y"\n"z"w,"q"" ""\n" end"\n'
    assert records(open_shard("t.csv", data)) == [
        {"a.txt": b'5" disk', "b.txt": b'x "y"'},
        {"a.txt": b"zw", "b.txt": b'q" "\n end"'},
    ]


def test_tabs_separate_where_the_name_says_so() -> None:
    data = b"a,b\tc\n1,2\t3\n"
    for name in ("t.tsv", "T.TSV", "t.tsv.gz"):
        assert records(open_shard(name.lower(), data)) == [{"a,b.txt": b"1,2", "c.txt": b"3"}]
    assert list(open_shard("t.tsv.csv", b"a,b\n").columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("sample", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("a,b\nx;y;z,1\n", ","),
        ("a;b,c\n1;2,3\n", ","),
        ("name\nx\n", ","),
        ("", ","),
        ('"a;b",c\n"1;2",3\n', ","),
        ("a b;c\nx\x85y;1\n", ";"),
    ],
)
def test_delimiters_are_seen(sample: str, delimiter: str) -> None:
    assert sniff(sample) == delimiter


def test_a_long_sample_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "_SAMPLE", 10)
    assert list(open_shard("t.csv", b"a;b\n1;2\n3,4,5;6\n").columns) == ["a", "b"]


def test_tables_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLarge, match="65536 columns"):
        open_shard("t.csv", b"a," * 70_000 + b"\n")
    monkeypatch.setattr(csv, "MAX_ROW", 1000)
    with pytest.raises(TooLarge, match="a row of more"):
        open_shard("t.csv", b'"' + b"a" * (1 << 20))


def test_wide_tables_leave_room_for_their_columns() -> None:
    header = ",".join(f"c{n}" for n in range(20_000)).encode()
    shard = open_shard("t.csv", header + b"\n" + b"1," * 19_999 + b"1\n")
    assert len(shard.fields(0)) == 20_000
    assert shard.capacity < 1 << 26


@pytest.mark.parametrize("place", range(1, 12))
def test_doubled_marks_may_be_cut_apart(place: int) -> None:
    data = b'a"",""""\nb,"c"'
    finder = CsvRows(b",")
    starts = [*finder.feed(data[:place], 0), *finder.feed(data[place:], place)]
    assert starts == [0, 9]
    assert finder.finish() is None


def test_a_row_is_left_open_only_where_it_is() -> None:
    for data, is_open in ((b'"a', True), (b'"a""', True), (b'"a"', False), (b'a"', False)):
        finder = CsvRows(b",")
        finder.feed(data, 0)
        assert (finder.finish() is not None) is is_open


def test_cells_of_a_broken_row_are_told_of() -> None:
    with pytest.raises(Corrupt, match="byte 2"):
        list(cells(b'a,"b', b","))
    assert _csv_rows.unquoted(b'"a""b"c') == b'a"bc'
