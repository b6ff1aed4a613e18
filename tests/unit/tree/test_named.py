from __future__ import annotations

import bz2
import gzip
import lzma
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import ipc

from shardfs.errors import NotFound
from shardfs.registry import FORMATS, begins
from shardfs.tree.named import by_content, those_there, told
from tests.fakes import FakeServices, MemoryStore
from tests.tar_files import archive, header, member
from tests.zip_files import Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Sequence

TAR = archive(member("a.txt", b"1"), member("b.txt", b"2"))
OLD_TAR = header("a.txt", magic=bytes(8)) + bytes(1024)
LINES = b'{"a": 1}\n{"a": 2}\n'
TABLE = pa.table({"a": [1, 2]})


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    return bytes(sink.getvalue())


def arrow(*, stream: bool) -> bytes:
    sink = pa.BufferOutputStream()
    new = ipc.new_stream if stream else ipc.new_file
    with new(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return bytes(sink.getvalue())


CONTENTS = [
    (TAR, ".tar"),
    (OLD_TAR, ".tar"),
    (gzip.compress(TAR), ".tar.gz"),
    (bz2.compress(TAR), ".tar.bz2"),
    (lzma.compress(TAR), ".tar.xz"),
    (zstandard.compress(TAR), ".tar.zst"),
    (parquet(), ".parquet"),
    (arrow(stream=False), ".arrow"),
    (arrow(stream=True), ".arrow"),
    (make_zip([Item(name=b"a", data=b"1")]), ".zip"),
    (LINES, ".jsonl"),
    (b"\xef\xbb\xbf" + LINES, ".jsonl"),
    (b'{"a": "' + b"x" * 100_000 + b'"}\n' + LINES, ".jsonl"),
    (b'{\n "a": 1\n}\n{\n "a": 2\n}\n', ".jsonl"),
    (gzip.compress(LINES), ".jsonl.gz"),
    (b'{\n "a": 1\n}\n', ".json"),
    (b'[{"a": 1}, {"a": 2}]', ".json"),
    (b'[\n  {"a": "' + b"x" * 100_000 + b'"},\n {"a": 1}]', ".json"),
    (gzip.compress(b'[{"a": 1}]'), ".json.gz"),
    (b"", ""),
    (bytes(10_000), ""),
    (b"{text in braces}\n", ""),
    (b"[1] a footnote\n", ""),
    (b"a,b\n1,2\n", ""),
    (gzip.compress(b"only text"), ""),
    (gzip.compress(TAR)[:15], ""),
    (b"\x1f\x8b\x08 no gzip", ""),
    (b"PAR", ""),
    (bytes(range(256)) * 10, ""),
]


@pytest.mark.parametrize(("content", "suffix"), CONTENTS, ids=range(len(CONTENTS)))
def test_content_tells_what_a_file_is(content: bytes, suffix: str) -> None:
    assert told(MemoryStore({"blob": content}), "blob", FakeServices()) == suffix


def test_a_tar_is_told_by_its_checksum_alone() -> None:
    store = MemoryStore({"blob": archive(member("a.txt", b"1"))})
    assert told(store, "blob", FakeServices()) == ".tar"
    row = next(row for row in FORMATS if row.name == "webdataset")
    head = bytearray(archive(member("a.txt", b"1"))[:512])
    assert begins(row, bytes(head))
    head[0] ^= 1
    assert not begins(row, bytes(head))


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("5c3a91d0f2", TAR, "5c3a91d0f2.tar"),
        ("00000.tar?download=true", TAR, "00000.tar"),
        ("00000.tgz?download=true", gzip.compress(TAR), "00000.tgz"),
        ("00000.tar?download=true", gzip.compress(TAR), "00000.tar"),  # tars look for themselves
        ("blob?X-Signature=ab", TAR, "blob.tar"),
        ("?X-Signature=ab", TAR, "?X-Signature=ab.tar"),
        ("x.csv?download=true", b"a,b\n", "x.csv"),
        ("data.bin", LINES, "data.bin.jsonl"),
        ("data.bin", b"who knows", "data.bin"),
        ("what?.tar", LINES, "what?.tar"),
        ("notes", b"text", "notes"),
        ("x.dat", parquet(), "x.dat.parquet"),
    ],
    ids=range(12),
)
def test_names_say_what_content_tells(name: str, content: bytes, shown: str) -> None:
    store, names = by_content(MemoryStore({name: content}), [name], FakeServices())
    assert names == [shown]
    assert bytes(store.open(shown).read(0, 1 << 20)) == content
    assert [entry.path for entry in store.list()] == [shown]
    assert store.stat(shown).path == shown


def test_two_files_of_one_name_keep_what_tells_them_apart() -> None:
    files = {"blob?a": TAR, "blob?b": TAR}
    _, names = by_content(MemoryStore(files), list(files), FakeServices())
    assert len(set(names)) == 2
    assert all(name.endswith(".tar") for name in names)


# --- which of them are there ---


@pytest.mark.parametrize("listed", [False, True])
def test_names_that_are_not_there_are_told_once(listed: bool) -> None:
    services = FakeServices()
    store = MemoryStore({f"s-{number}.tar": b"" for number in range(3)})
    names = [f"s-{number}.tar" for number in range(10)]
    assert those_there(store, names, services, listed=listed) == names[:3]
    (said,) = map(str, services.reports)
    assert said == (
        "7 of the 10 files that the source names are not there: s-3.tar, s-4.tar, s-5.tar and 4 more"
    )


@pytest.mark.parametrize(
    ("names", "found", "missing"),
    [
        (["a.tar"], ["a.tar"], ""),
        (["*.tar"], ["a.tar", "b.tar"], ""),
        (["*.tar", "a.tar"], ["a.tar", "b.tar"], ""),
        (["a.*", "z.*"], ["a.tar"], "z.*"),
    ],
)
def test_patterns_are_what_they_match(names: Sequence[str], found: list[str], missing: str) -> None:
    services = FakeServices()
    store = MemoryStore({"a.tar": b"", "b.tar": b"", "c.txt": b""})
    assert list(those_there(store, names, services, listed=True)) == found
    assert [missing in str(report) for report in services.reports] == [True] * bool(missing)


def test_where_nothing_is_there_that_is_refused() -> None:
    for names in (["x", "y"], ["*.tar"]):
        with pytest.raises(NotFound, match="nothing there is called"):
            those_there(MemoryStore({"a": b""}), names, FakeServices(), listed=True)
