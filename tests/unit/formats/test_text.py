"""Plain text as shards of lines."""

from __future__ import annotations

import pytest

from shardfs.blob import Slice
from shardfs.errors import Corrupt
from shardfs.formats.text.line_rows import Paragraphs
from tests.text_files import files, open_shard, records


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\n\r\nb\rc\n", [b"a", b"", b"b", b"c"]),
        (b"\n\n", [b"", b""]),
        (b"\r", [b""]),
        (b"a\r\r\n", [b"a", b""]),
        ("x\u2028y\x85z\x0b\x0cw\n".encode(), ["x\u2028y\x85z\x0b\x0cw".encode()]),
        (b"\xef\xbb\xbfa\n\xff\0", [b"\xef\xbb\xbfa", b"\xff\0"]),
    ],
)
def test_a_line_is_a_record(data: bytes, lines: list[bytes]) -> None:
    assert records(open_shard("a.txt", data)) == [{"text.txt": line} for line in lines]


def test_a_line_is_a_part_of_the_file() -> None:
    shard = open_shard("a.txt", b"ab\r\ncd")
    assert list(shard.columns) == ["text"]
    ((field,), (last,)) = shard.fields(0), shard.fields(1)
    assert isinstance(field.data, Slice)
    assert (field.data.start, field.data.length) == (0, 2)
    assert isinstance(last.data, Slice)
    assert (last.data.start, last.data.length) == (4, 2)


@pytest.mark.parametrize(
    ("data", "parameters", "right"),
    [
        (b"a\r\nb\rc", {"keep_linebreaks": True}, [b"a\n", b"b\n", b"c"]),
        (b"a\nb\n\nc\n", {"sample_by": "paragraph"}, [b"a\nb", b"c\n"]),
        (b"a\n\n\nb\n\n\n\nc", {"sample_by": "paragraph"}, [b"a", b"\nb", b"c"]),
        (b"a\r\nb\r\n\r\nc\r\r", {"sample_by": "paragraph"}, [b"a\nb", b"c"]),
        (b"\n\na\n\n\n", {"sample_by": "paragraph"}, [b"a", b"\n"]),
        (b"\n\n\n\n", {"sample_by": "paragraph"}, []),
        (b"a\r\nb\n\n", {"sample_by": "document"}, [b"a\nb\n\n"]),
        (b"", {"sample_by": "document"}, [b""]),
        (b"\xef\xbb\xbfa", {}, [b"\xef\xbb\xbfa"]),
        (b"\xef\xbb\xbfa", {"encoding": "utf-8-sig"}, [b"a"]),
        ("\xe9\n".encode("latin-1"), {"encoding": "latin-1"}, ["\xe9".encode()]),
        ("数\n据".encode("utf-16"), {}, ["数".encode(), "据".encode()]),
        ("\ufeff数".encode("utf-16-le"), {"encoding": "utf-16-le"}, ["\ufeff数".encode()]),
    ],
)
def test_samples_are_those_of_datasets(
    data: bytes, parameters: dict[str, object], right: list[bytes]
) -> None:
    shard = open_shard("t.txt", data, parameters=parameters)
    assert [files(shard, index)["text.txt"] for index in range(len(shard))] == right


@pytest.mark.parametrize("size", range(1, 8))
def test_paragraphs_may_come_in_any_pieces(size: int) -> None:
    data = b"a\r\n\r\nb\n\nc\r\rd\n\r\n\n\n\n\ne\n"
    finder, starts = Paragraphs(), list[int]()
    for at in range(0, len(data), size):
        starts += finder.feed(data[at : at + size], at)
    assert starts == list(Paragraphs().feed(data, 0)) == [0, 5, 8, 11, 19]


def test_features_name_the_column() -> None:
    shard = open_shard("t.txt", b"x", parameters={"features": [{"name": "sentence"}]})
    assert files(shard, 0) == {"sentence.txt": b"x"}
    with pytest.raises(Corrupt, match="sample_by must be line, paragraph or document"):
        open_shard("t.txt", b"x", parameters={"sample_by": "word"})
