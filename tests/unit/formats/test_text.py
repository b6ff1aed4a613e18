"""Plain text as shards of lines."""

from __future__ import annotations

import pytest

from shardfs.blob import Slice
from tests.text_files import open_shard, records


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
