"""The beginnings of files, which come along when the files are asked for."""

from __future__ import annotations

import os
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import read_all
from shardfs.errors import Unreadable
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.sources import http
from shardfs.sources._ranges import RangeBlob, probe
from shardfs.sources._web import Origin, Web
from tests.litdata_files import chunk, entry, index, record
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.sources.http import HttpStore
    from shardfs.tree.tree import Tree

DATA = os.urandom(300_000)
CHUNK = chunk(*(record(f"text {n}".encode(), struct.pack("<q", n)) for n in range(5)))
SET = {
    "set/index.json": index(entry("chunk-0-0.bin", 5, len(CHUNK))),
    "set/chunk-0-0.bin": CHUNK,
    "file": DATA,
    "empty": b"",
}


pytestmark = pytest.mark.usefixtures("opened")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer(dict(SET)) as server:
        yield server


@pytest.fixture
def web() -> Iterator[Web]:
    with closing(Web(Options())) as web:
        yield web


def origin(server: WebServer, name: str) -> Origin:
    return Origin(url=f"{server.url}/{name}", name=f"the {name}")


def open_set(opened: list[HttpStore], server: WebServer) -> HttpStore:
    store, _ = http.open_source(f"{server.url}/set/", Options())
    opened.append(store)
    return store


def mounted(server: WebServer, cache: Path) -> closing[Tree]:
    return closing(open_tree(f"{server.url}/set/", Options(cache_dir=cache)))


def test_more_than_the_first_byte_may_come_along(web: Web, server: WebServer) -> None:
    facts = probe(web, origin(server, "file"), 1000)
    assert (facts.size, facts.begin) == (len(DATA), DATA[:1000])
    assert probe(web, origin(server, "file"), 1 << 40).begin == DATA
    assert probe(web, origin(server, "empty"), 1000).begin == b""
    assert len(server.requests) == 3
    server.fail(1, cut_after=500)
    assert probe(web, origin(server, "file"), 1000).begin == DATA[:1000]
    assert len(server.requests) == 5


def test_what_has_come_is_not_asked_for_again(web: Web, server: WebServer) -> None:
    tag = server.validators(DATA)["ETag"]
    file = RangeBlob(web, origin(server, "file"), len(DATA), tag, DATA[:1000])
    for start, length in ((0, 1000), (10, 5), (999, 1)):
        assert bytes(file.read(start, length)) == DATA[start : start + length]
    assert not server.requests
    for start, length in ((0, 1001), (900, 5000), (1000, 10)):
        assert bytes(file.read(start, length)) == DATA[start : start + length]
    assert [r.range for r in server.requests] == [
        "bytes=1000-1000",
        "bytes=1000-5899",
        "bytes=1000-1009",
    ]


def test_what_is_read_comes_along_with_its_size_and_not_again(
    server: WebServer, tmp_path: Path
) -> None:
    paths = ["/set/index.json", "/set/chunk-0-0.bin"]
    for mount in range(2):
        server.forget()
        with mounted(server, tmp_path) as tree:
            assert [r.path for r in server.requests] == paths[:1]
            assert bytes((tree.root / "chunk-0-0/000003/a.txt").read()) == b"text 3"
            assert [r.path for r in server.requests] == paths
            assert [r.path for r in server.data()] == ([] if mount else paths)


def test_nothing_comes_along_of_what_is_read_from_its_end(
    server: WebServer, opened: list[HttpStore]
) -> None:
    server.files = {f"set/{name}": DATA for name in ("x.parquet", "x.ZIP", "x.tar")}
    store = open_set(opened, server)
    assert [store.stat(name).size for name in ("x.parquet", "x.ZIP", "x.tar")] == [len(DATA)] * 3
    assert [r.range for r in server.requests] == ["bytes=0-0", "bytes=0-0", "bytes=0-262143"]


def test_what_nobody_reads_is_held_only_for_a_while(
    server: WebServer, opened: list[HttpStore]
) -> None:
    server.files = {f"set/{n}.tar": b"%d" % n for n in range(100)}
    store = open_set(opened, server)
    entries = [store.stat(f"{n}.tar") for n in range(100)]
    server.forget()
    for n, seen in enumerate(entries):
        assert bytes(read_all(store.blob(seen))) == b"%d" % n
    assert len(server.requests) == 84


def test_of_a_long_index_only_the_rest_is_asked_for(
    server: WebServer, opened: list[HttpStore], tmp_path: Path
) -> None:
    long = index(entry("chunk-0-0.bin", 5, len(CHUNK)), more="x" * 1_000_000)
    server.files = {**SET, "set/index.json": long}
    with mounted(server, tmp_path) as tree:
        assert [node.name for node in tree.root.children()] == ["chunk-0-0", "index.json"]
    assert [r.range.partition("-")[0] for r in server.requests] == ["bytes=0", "bytes=262144"]
    assert server.sent() == len(long)
    store = open_set(opened, server)
    for begin in (300_000, 100_000, 0):
        server.forget()
        assert bytes(store.open("index.json").read(begin, 200_000)) == long[begin:][:200_000]
        assert server.sent() <= max(len(long[begin:]), 1 << 18)


def test_an_index_that_changes_is_no_mix(server: WebServer, opened: list[HttpStore]) -> None:
    old, new = b'{"a": "' + b"x" * 400_000, b'{"a": "' + b"y" * 400_000
    server.files = {"set/index.json": old}
    store = open_set(opened, server)
    before = store.stat("index.json")
    server.files = {"set/index.json": new}
    with pytest.raises(Unreadable, match="has changed since it was mounted"):
        read_all(store.blob(before))
    store = open_set(opened, server)
    for _ in range(2):
        assert bytes(read_all(store.open("index.json"))) == new


@pytest.mark.parametrize("mode", ["gzip", "short", "whole"])
def test_an_index_that_comes_otherwise_than_asked_for(
    server: WebServer, opened: list[HttpStore], mode: str
) -> None:
    store = open_set(opened, server)
    server.fail(1, mode=mode)
    if mode == "whole":
        with pytest.raises(Unreadable, match="serves no parts of files"):
            store.stat("index.json")
    assert bytes(read_all(store.open("index.json"))) == SET["set/index.json"]
