from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes, Slice, read_all
from shardfs.errors import Corrupt
from shardfs.formats.mds.text import TextShard, objects, separated
from shardfs.model import Field, Plain, Rendered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.mds.text import Splitter


def shard(
    lines: Sequence[bytes], columns: Sequence[str], split: Splitter, head: bytes = b""
) -> TextShard:
    offsets = [len(head)]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    meta = struct.pack(f"<{len(offsets) + 1}I", len(lines), *offsets) + b"{}"
    data = Bytes(head + b"".join(lines))
    return TextShard(data, Bytes(meta), columns, split, samples=len(lines), costly=False)


def csv(*lines: bytes, newline: str = "\n", separator: str = ",") -> TextShard:
    columns = ["a", "b"]
    return shard(lines, columns, separated(columns, separator, newline), b"a,b\n")


def json(*lines: bytes, newline: str = "\n", columns: Sequence[str] = ()) -> TextShard:
    return shard(lines, columns, objects(newline))


def shown(field: Field) -> tuple[str, str, bytes]:
    """(name, extension, content) of the file of a field."""
    data = read_all(field.data)
    if isinstance(field.kind, Rendered):
        return field.name, field.kind.suffix, field.kind.render(data)
    assert isinstance(field.kind, Plain)
    return field.name, field.kind.suffix, bytes(data)


# --- separated values ---


def test_values_are_slices_of_the_data() -> None:
    opened = csv(b"1,x\n", b'"q",\n')
    assert len(opened) == 2
    assert [shown(f) for f in opened.fields(0)] == [("a", ".txt", b"1"), ("b", ".txt", b"x")]
    assert [shown(f) for f in opened.fields(1)] == [("a", ".txt", b'"q"'), ("b", ".txt", b"")]
    assert all(isinstance(field.data, Slice) for field in opened.fields(0))


def test_any_text_can_be_newline_and_separator() -> None:
    opened = csv(b"one\nline::two\n;;", newline=";;", separator="::")
    assert [shown(f)[2] for f in opened.fields(0)] == [b"one\nline", b"two\n"]


@pytest.mark.parametrize("line", [b"1\n", b"1,2,3\n", b"1,2", b"1,2;", b"", b"\n"])
def test_a_line_that_is_none_is_damage(line: bytes) -> None:
    opened = csv(b"1,2\n", line)
    assert [shown(f)[2] for f in opened.fields(0)] == [b"1", b"2"]
    with pytest.raises(Corrupt):
        opened.fields(1)


def test_a_line_behind_the_end_is_damage() -> None:
    meta = Bytes(struct.pack("<4I", 2, 0, 4, 9))
    split = separated(["a", "b"], ",", "\n")
    opened = TextShard(Bytes(b"1,2\n3,4\n"), meta, ["a", "b"], split, samples=2, costly=False)
    assert len(opened.fields(0)) == 2
    with pytest.raises(Corrupt):
        opened.fields(1)


def test_half_a_surrogate_pair_can_separate() -> None:
    assert csv(b"1\xed\xa0\x802\n", separator="\ud800").fields(0)


# --- JSON objects ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'"text"', (".txt", b"text")),
        (b'""', (".txt", b"")),
        (b'"\\u00e9 \\ud83d\\ude80 \\n"', (".txt", "\u00e9 \U0001f680 \n".encode())),
        ('"\u00e9"'.encode(), (".txt", "\u00e9".encode())),
        (b'"\\ud800"', (".txt", b"\\ud800")),
        (b"7", (".txt", b"7\n")),
        (b"-1.5e+300", (".txt", b"-1.5e+300\n")),
        (b"1" * 6000, (".txt", b"1" * 6000 + b"\n")),
        (b"NaN", (".txt", b"nan\n")),
        (b"Infinity", (".txt", b"inf\n")),
        (b"-Infinity", (".txt", b"-inf\n")),
        (b"true", (".txt", b"true\n")),
        (b"false", (".txt", b"false\n")),
        (b'[1, {"x": null}]', (".json", b'[1, {"x": null}]')),
        (b"{}", (".json", b"{}")),
    ],
)
def test_members(value: bytes, expected: tuple[str, bytes]) -> None:
    opened = json(b'{"a": %b, "b" : %b}\n' % (value, value))
    assert [shown(f) for f in opened.fields(0)] == [("a", *expected), ("b", *expected)]


def test_null_has_no_file() -> None:
    (field,) = json(b'{"a": null, "b": 1}\n', columns=["a", "b"]).fields(0)
    assert field.name == "b"


@pytest.mark.parametrize("line", [b"{}\n", b" { } \n"])
def test_an_object_without_members(line: bytes) -> None:
    assert json(line).fields(0) == []


def test_names_are_unescaped() -> None:
    fields = json('{"\\u00e9": 1, "\u00e9 \\"": 2, "": 3}\n'.encode()).fields(0)
    assert [field.name for field in fields] == ["\u00e9", '\u00e9 "', ""]


def test_a_column_that_a_line_lacks_is_damage_of_its_own() -> None:
    there, missing = json(b'{"a": 1}\n', columns=["a", "b"]).fields(0)
    assert shown(there) == ("a", ".txt", b"1\n")
    with pytest.raises(Corrupt, match="no 'b'"):
        missing.data.size()


@pytest.mark.parametrize("newline", ["", "\r\n", " <br> "])
def test_any_text_can_be_newline(newline: str) -> None:
    (field,) = json(b'{"a": 1}' + newline.encode(), newline=newline).fields(0)
    assert shown(field) == ("a", ".txt", b"1\n")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"[]\n",
        b'"a"\n',
        b"{\n",
        b'{"a"}\n',
        b'{"a" 1}\n',
        b'{"a": }\n',
        b'{"a": 1\n',
        b'{"a": 1,}\n',
        b'{"a": 1 "b": 2}\n',
        b'{"a": 1}}\n',
        b'{"a": 1} x\n',
        b"{1: 2}\n",
        b'{"a": 1}',
        b'{"a": \xff}\n',
        b'{"\xff": 1}\n',
        b'{"a": ' + b"[" * 100_000 + b"\n",
    ],
)
def test_a_line_that_is_no_object_is_damage(line: bytes) -> None:
    opened = json(b'{"a": 1}\n', line)
    assert len(opened.fields(0)) == 1
    with pytest.raises(Corrupt):
        opened.fields(1)


def test_text_that_is_no_utf8_is_damage_of_its_own() -> None:
    good, bad = json(b'{"a": 1, "b": "\xff"}\n').fields(0)
    assert shown(good)[2] == b"1\n"
    with pytest.raises(Corrupt, match="no UTF-8"):
        shown(bad)
