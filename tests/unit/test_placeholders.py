from __future__ import annotations

import gzip
import json

import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt
from shardfs.placeholders import HEAD, check_pointer, may_be_placeholder, placeholder
from tests.tar_files import archive, member

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 250000000\n" % (
    b"4d7a" * 16
)
EXTENDED = LFS.replace(b"\noid", b"\next-0-foo sha256:%b\noid" % (b"00" * 32))
ANNEX = b"/annex/objects/SHA256E-s9--ab.tar\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please.</body></html>\n"
ERRORS = [
    {"error": "Repository not found"},
    {"error": {"code": 404, "message": "Requested entity was not found."}},
    {"errors": [{"message": "Authentication required"}]},
    {"message": "Not Found", "documentation_url": "https://docs", "status": "404"},
    {"detail": "Not found."},
    {"message": "404: Not Found"},
    {"timestamp": "2024-01-01", "status": 503, "path": "/x.jsonl", "message": "come back"},
    {"statusCode": 401, "message": "who are you"},
    {"error": "Access to dataset x is restricted. You must be authenticated to access it."},
]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    ("head", "word"),
    [
        (LFS, "git lfs pull"),
        (LFS.replace(b"\n", b"\r\n"), "git lfs pull"),
        (LFS.replace(b"git-lfs", b"hawser"), "git lfs pull"),
        (EXTENDED, "git lfs pull"),
        (ANNEX, "git annex get"),
        (PAGE, "HTML"),
        (PAGE.upper(), "HTML"),
        (b"\xef\xbb\xbf\r\n" + PAGE, "HTML"),
        (b"<?xml version='1.0'?>\n<!-- x -->\n<html xmlns='x'>\n</html>", "HTML"),
        (PAGE.replace(b"Please", b"P" * HEAD)[:HEAD], "HTML"),
        (gzip.compress(PAGE, mtime=0), "HTML"),
        (gzip.compress(PAGE * 3, mtime=0)[:90], "HTML"),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "XML"),
        *((json.dumps(error).encode(), "JSON") for error in ERRORS),
        (b"\n" + json.dumps(ERRORS[0], indent=2).encode(), "(Repository not found)"),
    ],
)
def test_what_is_no_data_anywhere(head: bytes, word: str, *, text: bool) -> None:
    assert may_be_placeholder(head[:1])
    assert word in placeholder(head, text=text)


@pytest.mark.parametrize(
    "head",
    [
        b'{"text": "not found"}\n',
        b'{"error": null, "text": "x"}\n',
        b'{"error": 0.25}\n',
        b'{"message": "I can\'t log in", "code": 3}\n',
        b'{"title": "Forbidden", "name": "x"}\n',
        b'{"error": "not found"}\n{"error": "not found"}\n',
        b'{"message": "hello"}',
        b"[1, 2, 3]",
        b"[]",
        b"{}",
        b"<html>one</html>\n<html>two</html>\n",
        b"<html-like>,b\n1,2\n",
        b"<image> a chat",
        b"version https://git-lfs.github.com/spec/v1 is what pointers begin with\n",
        LFS + b"x" * 1024,
        b"/annex/objects/a\n/annex/objects/b\n",
        b"version,oid\n1,2\n",
        b"",
    ],
)
def test_what_text_may_be(head: bytes) -> None:
    assert not placeholder(head, text=True)


@pytest.mark.parametrize(
    "head",
    [
        archive(member("a.txt", b"<html>")),
        archive(member("version https:", LFS)),
        gzip.compress(archive(member("a.html", PAGE))),
        b"PAR1" + PAGE,
        b"\x1f\x8b\x08 no gzip",
        b'{"cut": "',
        b'{"error": "%b"}' % (b"x" * HEAD),
        b"[" * 5000,
        b"",
    ],
)
def test_what_binary_data_may_be(head: bytes) -> None:
    assert not placeholder(head[:HEAD])


def test_json_where_no_text_belongs_is_no_data() -> None:
    assert "JSON" in placeholder(b'{"text": "hello"}')
    assert "JSON" in placeholder(b"[]")


def test_a_pointer_in_the_place_of_a_file() -> None:
    with pytest.raises(Corrupt, match="git lfs pull"):
        check_pointer(Bytes(LFS))
    for content in (PAGE, b"", b"{}", LFS * 9):
        check_pointer(Bytes(content))
