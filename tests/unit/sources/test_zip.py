from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    Unreadable,
)
from shardfs.names import from_bytes
from tests import DATA
from tests.unit.sources.zips import ONE, opened, paths, read, store_of
from tests.zip_files import (
    DEFLATED,
    DOS,
    END_MARK,
    LINK_MODE,
    LZMA,
    METHODS,
    UTF8,
    Item,
    make_zip,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


# --- what real writers made ---

CORPUS = sorted((DATA / "zip").glob("*.truth.json"))


def shards() -> Iterator[Any]:
    for truth in CORPUS:
        for shard in json.loads(truth.read_bytes())["shards"]:
            yield pytest.param(
                truth.parent / truth.name.removesuffix(".truth.json") / shard["name"],
                shard,
                id=f"{truth.name.partition('.')[0]}-{shard['name']}",
            )


@pytest.mark.parametrize(("place", "shard"), list(shards()))
def test_members_of_real_zips(place: Any, shard: dict[str, Any]) -> None:
    if "zipfile_error" in shard:
        with pytest.raises(Corrupt, match="no zip file"):
            opened(place.read_bytes())
        return
    store = opened(place.read_bytes())
    found = [path for path in paths(store) if not path.endswith("/")]
    assert sorted(found) == sorted(record["key"] for record in shard["records"])
    for record in shard["records"]:
        (field,) = record["fields"]
        assert store.stat(record["key"]).size == field["stored_size"]
        if "read_error" in field:
            with pytest.raises(Corrupt, match="CRC"):
                read(store, record["key"])
        else:
            digest = hashlib.sha256(read(store, record["key"])).hexdigest()
            assert digest == field["stored_sha256"]


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_members_as_the_standard_library_writes_them(method: int) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as writer:
        writer.writestr("a/b.txt", b"hello " * 1000)
        writer.writestr("empty", b"")
    store = opened(target.getvalue())
    assert read(store, "a/b.txt") == b"hello " * 1000
    assert read(store, "empty") == b""


def test_more_members_than_the_old_records_can_count() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as writer:
        for number in range(66_000):
            writer.writestr(f"{number % 3}/{number:06}", str(number))
    store = opened(target.getvalue())
    entries = [entry for folder in "012" for entry in store.list(folder)]
    assert len(entries) == 66_000
    assert [entry.path for entry in store.list("1")] == [f"1/{n:06}" for n in range(1, 66_000, 3)]
    assert read(store, "2/065999") == b"65999"
    assert store.stat("1/000001").size == 1


# --- where things lie ---


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method: int) -> None:
    data = bytes(range(256)) * 500
    store = store_of(ONE, Item(name=b"b", data=data, method=method), ONE)
    assert read(store, "b") == data
    assert bytes(store.open("b").read(77_777, 10)) == data[77_777:77_787]


def test_lzma_data_may_say_where_they_end_themselves() -> None:
    item = Item(name=b"b", data=b"x" * 999, method=LZMA, flags=END_MARK)
    assert read(store_of(item), "b") == b"x" * 999


@pytest.mark.parametrize(
    "how",
    [
        {"prefix": b"#!/bin/sh\n" * 99},
        {"prefix": b"#!/bin/sh\n" * 99, "adjusted": True},
        {"prefix": b"#!/bin/sh\n" * 99, "zip64": True},
        {"comment": b"a comment"},
        {"comment": b"x" * 0xFFFF},
        {"comment": b"PK\5\6" + bytes(18)},
        {"comment": b"PK\5\6" + bytes(30)},
        {"comment": make_zip([Item(name=b"fake", data=b"fake")])},
        {"tail": b"\n"},
        {"tail": bytes(1000), "prefix": b"before"},
        {"zip64": True},
        {"gap": b"signature"},
        {"gap": b"signature", "zip64": True},
    ],
)
def test_the_directory_is_found(how: dict[str, Any]) -> None:
    store = store_of(ONE, Item(name=b"d/b", data=b"other", method=DEFLATED), **how)
    assert list(paths(store)) == ["a.txt", "d/", "d/b"]
    assert read(store, "a.txt") == b"content"
    assert read(store, "d/b") == b"other"


def test_of_two_zips_one_after_another_the_last_counts() -> None:
    first = make_zip([Item(name=b"first", data=b"1")])
    store = opened(first + make_zip([Item(name=b"second", data=b"2")]))
    assert list(paths(store)) == ["second"]
    assert read(store, "second") == b"2"


def test_an_empty_zip_is_an_empty_folder() -> None:
    assert store_of().list() == []
    assert store_of().stat("").is_dir


def test_the_local_header_says_where_data_begin_and_nothing_else() -> None:
    store = store_of(Item(name=b"a", data=b"content", extra=b"", local_extra=b"\x99\x99\4\0abcd"))
    assert read(store, "a") == b"content"


# --- names ---


def stamped(name: bytes, of: bytes) -> bytes:
    """Info-ZIP's field with the UTF-8 of a name."""
    body = b"\1" + struct.pack("<L", zlib.crc32(of)) + name
    return struct.pack("<2H", 0x7075, len(body)) + body


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (Item(name="é.txt".encode(), flags=UTF8), "é.txt"),
        (Item(name="é.txt".encode()), "é.txt"),
        (Item(name="é.txt".encode("cp437")), "é.txt"),
        (Item(name=b"\x82?", extra=stamped("日".encode(), b"\x82?")), "日"),
        (Item(name=b"\x82?", extra=stamped("日".encode(), b"stale")), "é?"),
        (Item(name=b"\xff\xfe.txt", flags=UTF8), from_bytes(b"\xff\xfe.txt")),
        (Item(name=b"a\\b\\c.txt", system=DOS), "a/b/c.txt"),
        (Item(name=b"a\\b.txt"), "a\\b.txt"),
        (Item(name=b"a/b\\c.txt", system=DOS), "a/b\\c.txt"),
        (Item(name=b"/etc/passwd"), "etc/passwd"),
        (Item(name=b"../../up"), "%2E%2E/%2E%2E/up"),
        (Item(name=b"a/.."), "a/%2E%2E"),
        (Item(name=b"./a//b"), "a/b"),
        (Item(name=b"a\0b"), "a%00b"),
        (Item(name=b""), "%"),
        (Item(name=b"a/."), "a"),
        (Item(name=b"new\nline"), "new\nline"),
    ],
)
def test_names(item: Item, path: str) -> None:
    store = store_of(item)
    assert [found for found in paths(store) if not found.endswith("/")] == [path]
    assert store.stat(path).size == 0
    assert read(store, path) == b""


def test_folders_are_those_that_members_stand_in_and_those_that_are_named() -> None:
    store = store_of(Item(name=b"a/b/c"), Item(name=b"empty/"), Item(name=b"a/"), Item(name=b"/"))
    assert list(paths(store)) == ["a/", "a/b/", "a/b/c", "empty/"]
    with pytest.raises(IsAFolder):
        store.open("a/b")


def test_listings_are_in_byte_order() -> None:
    names = ["b", "B", "a-b", "a/x", "a.b", "aé", "a\x01", "ab"]
    store = store_of(*(Item(name=name.encode(), flags=UTF8) for name in names))
    assert [entry.name for entry in store.list()] == [
        "B",
        "a",
        "a\x01",
        "a-b",
        "a.b",
        "ab",
        "aé",
        "b",
    ]


def test_of_one_name_the_later_member_gets_another() -> None:
    names = [b"d/a.txt", b"d/a.txt", b"d/a~1.txt", b"d/a.txt", b"b", b"b"]
    store = store_of(*(Item(name=name, data=b"%d" % n) for n, name in enumerate(names)))
    found = {path: read(store, path) for path in paths(store) if path[-1] != "/"}
    assert found == {
        "b": b"4",
        "b~1": b"5",
        "d/a.txt": b"0",
        "d/a~1.txt": b"2",
        "d/a~2.txt": b"1",
        "d/a~3.txt": b"3",
    }


@pytest.mark.parametrize("turned", [False, True])
def test_where_a_file_and_a_folder_want_one_name_the_file_gets_another(turned: bool) -> None:
    items = [Item(name=b"a", data=b"file"), Item(name=b"a/b", data=b"inside")]
    store = store_of(*(reversed(items) if turned else items))
    assert list(paths(store)) == ["a/", "a/b", "a~1"]
    assert read(store, "a~1") == b"file"


def test_a_path_too_deep_to_be_opened_ends_in_a_long_name() -> None:
    store = store_of(Item(name=b"d/" * 30_000 + b"end", data=b"deep"))
    (path,) = (path for path in paths(store) if not path.endswith("/"))
    assert path.count("/") == 127
    assert path.endswith("d%2Fend")
    assert read(store, path) == b"deep"


# --- links ---


def link(name: bytes, target: bytes, **how: Any) -> Item:
    return Item(name=name, data=target, mode=LINK_MODE, **how)


def test_links_inside_show_what_they_lead_to() -> None:
    store = store_of(
        Item(name=b"d/file", data=b"content"),
        link(b"d/same", b"file", method=DEFLATED),
        link(b"up", b"./d/../d/same"),
        link(b"folder", b"d"),
    )
    assert [(e.path, e.size, e.is_dir) for e in store.list()] == [
        ("d", 0, True),
        ("folder", 0, True),
        ("up", 7, False),
    ]
    for path in ("d/same", "up", "folder/same"):
        assert read(store, path) == b"content"
    assert [entry.path for entry in store.list("folder")] == ["folder/file", "folder/same"]


@pytest.mark.parametrize(
    ("target", "error", "problem"),
    [
        (b"/etc/passwd", OutsideSource, "leads outside"),
        (b"../etc/passwd", OutsideSource, "leads outside"),
        (b"nowhere", NotFound, "link"),
        (b"link", Unreadable, "leads nowhere"),
        (b"./" * 3000 + b"a.txt", Unreadable, "leads nowhere"),
    ],
)
def test_links_that_lead_nowhere_are_listed(
    target: bytes, error: type[ShardfsError], problem: str
) -> None:
    store = store_of(ONE, link(b"link", target))
    entry = store.list()[1]
    assert (entry.path, entry.is_dir) == ("link", False)
    assert problem in entry.problem
    with pytest.raises(error):
        store.open("link")


def test_a_link_is_one_only_where_a_unix_made_it() -> None:
    store = store_of(link(b"link", b"/etc/passwd", system=DOS))
    assert read(store, "link") == b"/etc/passwd"


def test_links_back_to_a_folder_above_are_loops() -> None:
    store = store_of(
        Item(name=b"a/x", data=b"1"),
        Item(name=b"b/y", data=b"2"),
        link(b"self", b"."),
        link(b"a/to-b", b"../b"),
        link(b"b/to-a", b"../a"),
    )
    found, folders = {}, [""]
    while folders:
        for entry in store.list(folders.pop()):
            found[entry.path] = entry.problem
            assert len(found) < 30, "an endless tree"
            if entry.is_dir:
                folders.append(entry.path)
    loops = {path for path, problem in found.items() if "a loop" in problem}
    assert loops == {"self", "a/to-b/to-a", "b/to-a/to-b"}
    assert found["a/to-b/y"] == ""
