"""CSV as READMEs declare it. The right rows are those that pandas 3.1 and `datasets` 5.2 gave for the same files."""

from __future__ import annotations

import pytest

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.text.csv_dialect import Dialect, DialectRows
from tests.text_files import files, open_shard

Rows = list[dict[str, str]]


def rows(data: bytes, **parameters: object) -> Rows:
    shard = open_shard("t.csv", data, parameters=parameters)
    found = []
    for index in range(len(shard)):
        shown = files(shard, index)
        texts = {name: text for name, text in shown.items() if isinstance(text, bytes)}
        assert texts == shown
        found.append({name.removesuffix(".txt"): text.decode() for name, text in texts.items()})
    return found


def ab(*pairs: str) -> Rows:
    """Rows of the columns a and b, `1 2` for each."""
    return [dict(zip("ab", pair.split(" "), strict=False)) for pair in pairs]


@pytest.mark.parametrize(
    ("data", "parameters", "right"),
    [
        (b"1,2\n3,4\n", {"header": None, "names": ["a", "b"]}, ab("1 2", "3 4")),
        (b"1,2\n3,4\n", {"names": ["a", "b"]}, ab("1 2", "3 4")),
        (b"1,2\n3,4\n", {"header": "infer", "names": ["a", "b"]}, ab("1 2", "3 4")),
        (b"x,y\n3,4\n", {"header": 0, "names": ["a", "b"]}, ab("3 4")),
        (b"x,y\n3,4\n", {"header": 0, "column_names": ["a", "b"], "names": ["c"]}, ab("3 4")),
        (b"1,2\n", {"header": None}, [{"0": "1", "1": "2"}]),
        (b"j\n\nk\na,b\n1,2\n", {"header": 2}, ab("1 2")),
        (b"1,2,3\n", {"names": ["a", "b"]}, [{"__index_level_0__": "1", "a": "2", "b": "3"}]),
        (b"1,2,3\n", {"names": ["a", "b"], "index_col": False}, ab("1 2")),
        (
            b"x,y,z\n1,2\n",
            {"header": 0, "names": ["b"]},
            [{"__index_level_0__": "1", "__index_level_1__": "2"}],
        ),
        (b"1\n", {"names": ["a", "b"]}, ab("1")),
        (b"a;b\n1;2,5\n", {"sep": ";"}, ab("1 2,5")),
        (b"a|b\n1|2\n", {"delimiter": "|", "sep": ";"}, ab("1 2")),
        (b"a|b\n1|2\n", {"sep": "\\|"}, ab("1 2")),
        (b"a\tb\n1\t2\n", {"sep": "\\t"}, ab("1 2")),
        (b"a;b\n1;2\n", {"sep": None}, ab("1 2")),
        (b"a  b\n1 2\n 3\t 4 \r\n \n5   6", {"sep": "\\s+"}, ab("1 2", "3 4", "5 6")),
        (b" a b  \n1 2  ", {"sep": "\\s+"}, ab("1 2")),
        (b'a b\n"1"  "2"\n', {"delimiter": "\\s+"}, ab("1 2")),
        ("a\xa7b\n1\xa72\n".encode(), {"sep": "\xa7"}, ab("1 2")),
        (b"a;b\n1;2\n", {"quoting": 0}, [{"a;b": "1;2"}]),
        (b'junk\n"a\nb",c\na,b\n1,2\n', {"skiprows": 2}, ab("1 2")),
        (b"junk\n\na,b\n1,2\n", {"skiprows": 2}, ab("1 2")),
        (b"x\na,b\n1,2\n3,4\n", {"skiprows": [0, 2]}, ab("3 4")),
        (b"a,b\n1,2\n\n3,4\n", {"skiprows": [1, 2]}, ab("3 4")),
        (b"a,b\n1,2\n", {"skiprows": 50}, []),
        (b"a,b\n1,2\n", {"skiprows": []}, ab("1 2")),
        (b"a,b\n1,2\n3,4\n", {"nrows": 1}, ab("1 2")),
        (b"a,b\n1,2\n", {"nrows": 0}, []),
        (b"a,b\n'1,''','2\n'\n", {"quotechar": "'"}, ab("1,' 2\n")),
        (b'a,b\n1,"2\n"3,4\n', {"quoting": 3}, ab('1 "2', '"3 4')),
        (b'a,b\n1,"2"\n', {"quoting": 1}, ab("1 2")),
        (b'a,b\n1\\,x,"q\\"r"\nz\\\nw,3\n', {"escapechar": "\\"}, ab('1,x q"r', "z\nw 3")),
        (b'a,b\n1,"x""y"\n"q"r,2\n', {"doublequote": False}, ab('1 x"y"', "qr 2")),
        (b'a,b\n1,"x\\"y"\n', {"doublequote": False, "escapechar": "\\"}, ab('1 x"y')),
        (
            b'#z\na,b\n1,2#c\n#z\n"q"#x,3\n4#5\n"a#b",7\n',
            {"comment": "#"},
            ab("1 2", "q#x 3", "4", "a#b 7"),
        ),
        (b'a, b\n1,  "2,"\n', {"skipinitialspace": True}, ab("1 2,")),
        (
            b"a,b\n1,2\n\n3,4\n",
            {"skip_blank_lines": False},
            [{"a": "1", "b": "2"}, {"a": ""}, {"a": "3", "b": "4"}],
        ),
        (b"a;b\n1;2\r\n", {"sep": ";", "lineterminator": "\n"}, ab("1 2\r")),
        (b"a,b,c\n1,2,3\n", {"usecols": ["b", "a"]}, ab("1 2")),
        (b"a,b,c\n1,2,3\n4,5,6,7\n", {"usecols": [1, 0]}, ab("1 2", "4 5")),
        (b"1,x,2\n", {"names": ["a", "b"], "usecols": [0, 2]}, ab("1 2")),
        (b"a,b,c\n1,2,3\n", {"header": 0, "usecols": [0, 1], "names": ["a", "b"]}, ab("1 2")),
        (b"a,b\n9,1,2\n", {"usecols": ["b"]}, [{"__index_level_0__": "9", "b": "2"}]),
        (b"a,b\n?,2\n1,-1.0\n", {"na_values": ["?", -1]}, [{"b": "2"}, {"a": "1"}]),
        (b"a,b\n1,1\n", {"na_values": {"a": 1}}, [{"b": "1"}]),
        (b'a,b\n"?",2\n', {"na_values": "?"}, [{"b": "2"}]),
        (b"a,b\n?,2\n", {"na_values": "?", "na_filter": False}, ab("? 2")),
        (b"a,b\nNA,\n", {"keep_default_na": True}, ab("NA ")),
        (b"a,b\n1,2\n", {"thousands": ",", "decimal": ".", "engine": "c"}, ab("1 2")),
        ("a,b\n\xe9,2\n".encode("latin-1"), {"encoding": "latin-1"}, ab("\xe9 2")),
        ("a,b\n\u20ac,2\n".encode("cp1252"), {"encoding": "windows-1252"}, ab("\u20ac 2")),
        ("a,b\n数,2\n".encode("utf-16"), {"encoding": "utf-16"}, ab("数 2")),
        ("a,b\n数,2\n".encode("utf-16"), {}, ab("数 2")),
        ("a,b\n数,2\n".encode("utf-16-be"), {"encoding": "UTF-16BE"}, ab("数 2")),
        (
            "a,b\n\u8868,2\n".encode("shift_jis"),
            {"encoding": "shift_jis", "escapechar": "\\"},
            ab("\u8868 2"),
        ),
        ("a,b\n数,2\n".encode("gbk"), {"encoding": "gb2312"}, ab("数 2")),
        (b"\xef\xbb\xbfa,b\n1,2\n", {"encoding": "utf-8"}, ab("1 2")),
    ],
)
def test_rows_are_those_of_datasets(
    data: bytes, parameters: dict[str, object], right: Rows
) -> None:
    assert rows(data, **parameters) == right


def test_lines_of_blanks_are_no_rows() -> None:
    data = b"a,b\n1,2\n   \n3,4\n \t\r\n\n 5,6\n  "
    assert (
        rows(data)
        == rows(data, sep=",")
        == rows(data, escapechar="\\")
        == [*ab("1 2", "3 4"), {"a": " 5", "b": "6"}]
    )
    assert rows(b"a\tb\n1\t2\n\t\n  \n", sep="\t") == ab("1 2", " ")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sep": 5}, "sep must be text, not 5"),
        ({"sep": ""}, "sep must be a character"),
        ({"header": -1}, "header must be the number of a row, or null, not -1"),
        ({"header": True}, "header must be"),
        ({"header": "x"}, "header must be"),
        ({"header": 9}, "the header should be row 9"),
        ({"names": "a"}, "names must be a list"),
        ({"names": ["a", "a"]}, "names must be a list of names that differ"),
        ({"names": [["a"]]}, "names must be a list of names"),
        ({"skiprows": "x"}, "skiprows must be"),
        ({"skiprows": [1, "x"]}, "skiprows must be"),
        ({"nrows": 1.5}, "nrows must be a whole number"),
        ({"quoting": 4}, "quoting must be 0, 1, 2 or 3"),
        ({"quotechar": "ab"}, "quotechar must be one character"),
        ({"quotechar": ","}, "sep must be another character"),
        ({"doublequote": 1}, "doublequote must be true or false"),
        ({"usecols": ["z"]}, "there is no column 'z'"),
        ({"usecols": [9]}, "there is no column 9"),
        ({"usecols": ["a", 1]}, "usecols must be"),
        ({"na_values": [[1]]}, "na_values must be"),
        ({"encoding": "zlib"}, "encoding must be the name of an encoding"),
        ({"encoding": "klingon"}, "encoding must be the name of an encoding"),
        ({"encoding": "\0"}, "encoding must be the name of an encoding"),
        ({"encoding": "idna"}, "encoding must be the name of an encoding"),
    ],
)
def test_values_that_make_no_sense_are_told(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(Corrupt) as caught:
        open_shard("t.csv", b"a,b\n1,2\n", parameters=parameters)
    assert words in str(caught.value)
    if "must" in words:
        assert str(caught.value).startswith("README.md: config 'c': ")


@pytest.mark.parametrize(
    "parameters",
    [
        {"sep": "||"},
        {"sep": ", *"},
        {"header": [0, 1]},
        {"skipfooter": 1},
        {"dialect": "excel"},
        {"lineterminator": ";"},
    ],
)
def test_what_is_not_supported_is_told(parameters: dict[str, object]) -> None:
    (name,) = parameters
    with pytest.raises(Unsupported, match=rf"config 'c': {name}: .* is not supported: "):
        open_shard("t.csv", b"a,b\n1,2\n", parameters=parameters)


def test_bytes_that_an_encoding_lacks_stay_or_go() -> None:
    data = b"a,b\n\x81,2\n"
    assert (
        files(open_shard("t.csv", data, parameters={"encoding": "cp1252"}), 0)["a.txt"] == b"\x81"
    )
    replaced = open_shard(
        "t.csv", data, parameters={"encoding": "cp1252", "encoding_errors": "replace"}
    )
    assert files(replaced, 0)["a.txt"] == b"\xef\xbf\xbd"
    ignored = open_shard(
        "t.csv", data, parameters={"encoding": "cp1252", "encoding_errors": "ignore"}
    )
    assert files(ignored, 0)["a.txt"] == b""


ESCAPED = Dialect(b";", b"'", b"\\", b"#", spaces=True)
TABLE = b"a; 'b\\'\r\n;''' ;c\r\n\r\n#x\n  \n 'd\n;e'f;\\\ng;h#y'\n;\n i"


@pytest.mark.parametrize("size", range(1, 12))
def test_data_may_come_in_any_pieces(size: int) -> None:
    whole = list(DialectRows(ESCAPED).feed(TABLE, 0))
    finder, starts = DialectRows(ESCAPED), list[int]()
    for at in range(0, len(TABLE), size):
        starts += finder.feed(TABLE[at : at + size], at)
    right = [0, *(TABLE.index(row) for row in (b" 'd", b";\n i", b" i"))]
    assert starts == whole == right
    assert finder.finish() is None


def test_quotation_marks_that_stay_open_harm_only_their_row() -> None:
    shard = open_shard("t.csv", b"a;b\n1;2\n3;'4\n5;6\n", parameters={"sep": ";", "quotechar": "'"})
    assert len(shard) == 3
    assert files(shard, 0) == {"a.txt": b"1", "b.txt": b"2"}
    with pytest.raises(Corrupt, match="not closed"):
        shard.fields(1)
    assert files(shard, 2) == {"a.txt": b"5", "b.txt": b"6"}
