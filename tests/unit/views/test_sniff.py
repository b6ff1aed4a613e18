from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes, Slice
from shardfs.views.signatures import HEAD
from shardfs.views.sniff import extension_of
from tests.unit.views.samples import picture, sniff, zipped

if TYPE_CHECKING:
    from tests.unit.views.conftest import Encode

JPEG, PNG, GIF = picture("JPEG"), picture("PNG"), picture("GIF", "P")

# --- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ".bin"),
        (b"y", ".txt"),
        ("größer\n\t\f\r\n".encode(), ".txt"),
        (b"a\0b", ".bin"),
        (b"bell \x07", ".bin"),
        (b"delete \x7f", ".bin"),
        ("C1 \x85".encode(), ".bin"),
        (b"\xff\xfeu\0t\0f\0", ".bin"),
        ("Grüße".encode("latin-1"), ".bin"),
        ("cut: \N{GRINNING FACE}".encode()[:-1], ".bin"),
        ("\ufeffwith a mark".encode(), ".txt"),
        (b'{"a": [1, NaN]}\n', ".json"),
        (b"\n [1, 2]", ".json"),
        ('\ufeff{"a": 1}'.encode(), ".json"),
        (b"{}", ".json"),
        (b"12", ".txt"),
        (b'"text"', ".txt"),
        (b"{name} went home", ".txt"),
        (b"[1] A footnote", ".txt"),
        (b'{"a": 1}\n{"a": 2}\n', ".txt"),
        (b'{"a": ', ".txt"),
        (b"[" * 3000, ".txt"),
        (b'<?xml version="1.0"?>\n<note/>', ".xml"),
        (b'<?xml version="1.0"?><!-- x --><svg xmlns="http://www.w3.org/2000/svg"/>', ".svg"),
        (b'<svg width="1"></svg>', ".svg"),
        (b'<!DOCTYPE svg PUBLIC "a" [<!ENTITY b "c">]> <svg:svg/>', ".svg"),
        (b"<!doctype html><title>x</title>", ".html"),
        (b"<HTML><body></body></HTML>", ".html"),
        (b'<?xml version="1.0"?><html xmlns="x"/>', ".html"),
        (b"<image> What is this?", ".txt"),
        (b"<3", ".txt"),
    ],
)
def test_text(data: bytes, expected: str) -> None:
    assert sniff(data) == expected


@pytest.mark.parametrize("cut", range(4))
def test_text_longer_than_the_head_may_be_cut_inside_a_character(cut: int) -> None:
    data = b"x" * cut + "\N{GRINNING FACE}".encode() * 2000
    assert sniff(data) == ".txt"


@pytest.mark.parametrize("shift", range(40))
def test_json_longer_than_the_head_may_be_cut_anywhere(shift: int) -> None:
    record = {"name": "a \\ \u00e9\n", "n": [-1.5e-7, True, None, float("-inf")], "x": {}}
    data = b" " * shift + json.dumps([record] * 200).encode()
    assert sniff(data) == ".json"
    assert sniff(b" " * shift + json.dumps({"text": "y" * 9000}).encode()) == ".json"


def test_text_longer_than_the_head_that_only_begins_like_json() -> None:
    assert sniff(b'{"a": 1} and then prose ' * 400) == ".txt"
    assert sniff(b"[see above] " * 900) == ".txt"
    assert sniff(b'{"a": 1}\n' * 900) == ".txt"


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "data",
    [b"<!---->" * 600, b"<!DOCTYPE" * 500, b"<!DOCTYPE [" + b"]" * 4000, b"<?xml" + b"<?" * 2000],
)
def test_hostile_markup_takes_no_time(data: bytes) -> None:
    assert sniff(data) in (".txt", ".xml")


# --- the declared suffix -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "declared", "expected"),
    [
        (JPEG, ".png", ".jpg"),
        (PNG, ".jpeg", ".png"),
        (JPEG, ".jpeg", ".jpeg"),
        (JPEG, ".JPG", ".JPG"),
        (picture("TIFF"), ".tiff", ".tiff"),
        (PNG, ".svg", ".png"),
        (GIF, ".mp4", ".gif"),
        (picture("TIFF"), ".cr2", ".cr2"),
        (b"", ".jpg", ".jpg"),
        (b"no picture", ".jpg", ".jpg"),
        (b'{"a": 1}', ".png", ".png"),
        (b"<html></html>", ".jpg", ".jpg"),
        (gzip.compress(b"x", mtime=0), ".nii", ".nii"),
        (gzip.compress(b"x", mtime=0), ".gz", ".gz"),
        (zipped("a.txt"), ".jpg", ".jpg"),
        (zipped("[Content_Types].xml", "word/document.xml"), ".docx", ".docx"),
        (PNG, ".docx", ".docx"),
        (PNG, ".bin", ".png"),
        (bytes(9), ".xyz", ".xyz"),
    ],
)
def test_only_a_specific_signature_overrules_declared_media(
    data: bytes, declared: str, expected: str
) -> None:
    assert sniff(data, declared) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "declared", "expected"),
    [
        ("d.webm", ["-c:v", "libvpx"], ".mp4", ".webm"),
        ("d.avi", [], ".mp4", ".avi"),
        ("d.mov", ["-c:v", "mpeg4"], ".mp4", ".mov"),
        ("d.mp4", ["-c:v", "mpeg4"], ".m4v", ".m4v"),
        ("d.wmv", [], ".wmv", ".wmv"),
        ("d.mkv", ["-c:v", "mpeg4"], ".webm", ".mkv"),
    ],
)
def test_a_declared_film(
    encode: Encode, name: str, arguments: list[str], declared: str, expected: str
) -> None:
    assert sniff(encode("film", name, *arguments), declared) == expected


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("s.wav", ".mp3", ".wav"),
        ("s.flac", ".mp3", ".flac"),
        ("s.ogg", ".mp3", ".ogg"),
        ("s.opus", ".ogg", ".ogg"),
        ("s.m4a", ".mp4", ".mp4"),
        ("s.wma", ".wma", ".wma"),
    ],
)
def test_declared_sound(encode: Encode, name: str, declared: str, expected: str) -> None:
    assert sniff(encode("sound", name), declared) == expected


def test_a_file_name_counts_where_nothing_else_tells() -> None:
    assert sniff(bytes(9), "", "folder.d/take 1.Raw") == ".Raw"
    assert sniff(bytes(9), "", "folder.raw/name") == ".bin"
    assert sniff(bytes(9), "", "a.b c/d") == ".bin"
    assert sniff(bytes(9), "", "etc. and so on") == ".bin"
    assert sniff(bytes(9), "", ".hidden") == ".bin"
    assert sniff(JPEG, "", "lies.png") == ".jpg"
    assert sniff(b"text", "", "x.png") == ".txt"
    assert sniff(bytes(9), ".jpg", "x.png") == ".jpg"


# --- cost and consistency ----------------------------------------------------------------------------------


class Counted(Bytes):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, length: int, /) -> memoryview:
        self.reads.append((offset, length))
        return super().read(offset, length)


def test_one_read_of_the_head_at_most() -> None:
    blob = Counted(JPEG * 30)
    assert extension_of(blob) == ".jpg"
    assert blob.reads == [(0, HEAD)]
    assert extension_of(blob, ".docx") == ".docx"
    assert extension_of(blob, ".txt", "x.png") == ".txt"
    assert len(blob.reads) == 1


def test_a_blob_is_sniffed_like_its_bytes() -> None:
    assert extension_of(Slice(Bytes(b"xx" + PNG + b"xx"), 2, len(PNG)), ".jpg") == ".png"
