from __future__ import annotations

import gc
import json
import logging
import struct
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from shardfs.blob import read_all
from shardfs.errors import AccessDenied, NotFound, ShardfsError, Unreadable, UsageError
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.sources import http
from tests.litdata_files import chunk, entry, index, record
from tests.tar_files import archive, member
from tests.web_server import CHANGED_NS, WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.sources.http import HttpStore
    from shardfs.tree.tree import Tree

TAR = archive(member("a.txt", b"first"), member("b.txt", b"second"))
CHUNK = chunk(*(record(f"text {n}".encode(), struct.pack("<q", n)) for n in range(5)))
FILES = {
    "set/index.json": index(entry("chunk-0-0.bin", 5, len(CHUNK))),
    "set/chunk-0-0.bin": CHUNK,
    "x.tar": TAR,
    "x-000.tar": TAR,
    "x-001.tar": TAR,
    "x-002.tar": TAR,
    "a b/é?#%41.tar": TAR,
    "notes": b"no shard",
}


pytestmark = pytest.mark.usefixtures("opened")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer(dict(FILES)) as server:
        yield server


def open_store(opened: list[HttpStore], url: str, **options: Any) -> tuple[HttpStore, list[str]]:
    store, names = http.open_source(url, Options(**options))
    opened.append(store)
    return store, list(names)


def mounted(server: WebServer, source: str, cache: Path, **options: Any) -> closing[Tree]:
    return closing(open_tree(f"{server.url}/{source}", Options(cache_dir=cache, **options)))


# --- what a URL names ---


@pytest.mark.parametrize(
    ("url", "base", "names"),
    [
        ("http://h/x.tar", "http://h", ["x.tar"]),
        ("http://h/d/e/x.tar", "http://h/d/e", ["x.tar"]),
        ("HTTP://H:80/d/x.tar#part", "http://h:80/d", ["x.tar"]),
        ("https://h/d/x.tar?Signature=1", "https://h/d", ["x.tar"]),
        ("https://u:p%40@h/d/x.tar", "https://h/d", ["x.tar"]),
        ("http://h/d/x-{00..02}.tar", "http://h/d", ["x-00.tar", "x-01.tar", "x-02.tar"]),
        ("http://h/d/{a/x,b/y,z}.tar", "http://h/d", ["a", "b", "z.tar"]),
        ("http://h/d/", "http://h/d", []),
        ("http://h/d/index.json", "http://h/d", []),
        ("http://h", "http://h", []),
        ("http://h/a%20b/%C3%A9%3F.tar", "http://h/a%20b", ["é?.tar"]),
        ("http://h/a b/é.tar", "http://h/a%20b", ["é.tar"]),
        ("http://h/a%2Fb.tar", "http://h", ["a%2Fb.tar"]),
    ],
)
def test_files_by_their_urls(
    opened: list[HttpStore], url: str, base: str, names: list[str]
) -> None:
    store, found = open_store(opened, url)
    assert (store.url, found) == (base, names)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http:///x.tar", "no host in it"),
        ("http://{a,b}/x.tar", "names files on several hosts"),
        ("http://h/{0..1000000}{0..9}", "spells more than"),
    ],
)
def test_urls_that_name_nothing(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        http.open_source(url, Options())


def test_odd_names_come_back_as_they_were(server: WebServer, opened: list[HttpStore]) -> None:
    store, names = open_store(opened, f"{server.url}/a b/{quote('é?#%41.tar')}")
    assert names == ["é?#%41.tar"]
    assert bytes(read_all(store.open("é?#%41.tar"))) == TAR


# --- what a mount costs ---


def test_mounting_a_file_is_one_request_and_no_data(server: WebServer, tmp_path: Path) -> None:
    for times in (1, 2):
        with mounted(server, "x.tar", tmp_path) as tree:
            assert [node.name for node in tree.root.children()] == ["x"]
            assert next(tree.root.children()).mtime_ns == CHANGED_NS
            assert len(server.requests) == times
    assert not server.data()


def test_mounting_many_shards_is_one_request(server: WebServer, tmp_path: Path) -> None:
    with mounted(server, "x-{000..999}.tar", tmp_path) as tree:
        assert len(list(tree.root.children())) == 1000
        assert len(server.requests) == 1
        assert bytes((tree.root / "x-001/b/b.txt").read()) == b"second"
        assert {request.path for request in server.requests} <= {
            "/x-000.tar",
            "/x-001.tar",
            "/x-001.json",
            "/.nv-meta/.info.json",
        }
        with pytest.raises(Unreadable, match=r"x-500.tar"):
            list((tree.root / "x-500").children())


def test_a_shard_of_many_is_not_asked_again_by_the_next_mount(
    server: WebServer, tmp_path: Path
) -> None:
    for _ in range(2):
        server.forget()
        with mounted(server, "x-{000..002}.tar", tmp_path) as tree:
            for name in ("x-000", "x-002"):
                assert bytes((tree.root / name / "b/b.txt").read()) == b"second"
                list((tree.root / name).children())
    assert sorted((r.path, r.range) for r in server.requests) == [
        (f"/x-00{number}.tar", "bytes=0-0") for number in range(3)
    ]


@pytest.mark.parametrize("source", ["set/", "set/index.json", "set/{index.json,chunk-0-0.bin}"])
def test_a_dataset_by_its_index(server: WebServer, tmp_path: Path, source: str) -> None:
    with mounted(server, source, tmp_path) as tree:
        assert bytes((tree.root / "chunk-0-0/000003/a.txt").read()) == b"text 3"


def test_a_file_that_is_no_shard(server: WebServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="notes: not a shard of a format that shardfs knows"):
        mounted(server, "notes", tmp_path)


def test_files_beside_shards_have_their_size(server: WebServer, tmp_path: Path) -> None:
    with mounted(server, "{x.tar,notes,none}", tmp_path) as tree:
        sizes = {node.name: node.attr.size for node in tree.root.children()}
        assert sizes == {"x": 0, "notes": 8}
        assert bytes((tree.root / "notes").read()) == b"no shard"


@pytest.mark.parametrize(
    ("source", "shown", "told"),
    [
        ("x-{000..009}.tar", ["x-000", "x-001", "x-002"], "7 of the 10 files"),
        ("x-{009..001}.tar", ["x-001", "x-002"], "7 of the 9 files"),
        ("{gone,x-000,x-009}.tar", ["x-000"], "2 of the 3 files"),
    ],
)
def test_named_files_that_are_not_there_are_told(
    server: WebServer, tmp_path: Path, source: str, shown: list[str], told: str
) -> None:
    with mounted(server, source, tmp_path) as tree:
        assert [node.name for node in tree.root.children()] == shown
        errors = bytes((tree.root / ".shardfs/errors.jsonl").read()).decode()
    assert f"{told} that the source names are not there" in errors
    assert "x-009.tar" in errors or "x-003.tar" in errors


def test_all_named_files_missing_is_refused(server: WebServer, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        mounted(server, "y-{0..3}.tar", tmp_path)


def test_the_first_of_many_may_be_missing(server: WebServer, tmp_path: Path) -> None:
    files = {f"z-{number}.tar": TAR for number in range(1, 100)}
    with WebServer(files) as many, mounted(many, "z-{0..99}.tar", tmp_path) as tree:
        assert len(many.requests) == 2
        assert len(list(tree.root.children())) == 99


def test_what_a_mount_has_cost_is_told(server: WebServer, tmp_path: Path) -> None:
    with mounted(server, "x.tar", tmp_path) as tree:
        (tree.root / "x/a/a.txt").read()
        stats = json.loads(bytes((tree.root / ".shardfs/stats.json").read()))
    assert stats["remote"]["requests"] == len(server.requests)
    assert stats["remote"]["bytes"] >= len(TAR)
    assert stats["remote"]["blocks_fetched"] == 1


# --- without a network ---


@pytest.mark.parametrize("how", ["option", "variable"])
def test_offline_shows_what_was_read(
    server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    source = "x-{000..001}.tar"
    with mounted(server, source, tmp_path) as tree:
        list((tree.root / "x-000").children())
    server.forget()
    if how == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with mounted(server, source, tmp_path, offline=how == "option") as tree:
        assert [node.name for node in tree.root.children()] == ["x-000", "x-001"]
        assert bytes((tree.root / "x-000/b/b.txt").read()) == b"second"
        with pytest.raises(Unreadable, match="offline, and not all of it was read before"):
            list((tree.root / "x-001").children())
    with pytest.raises(Unreadable, match="offline, and never seen before"):
        mounted(server, "x-002.tar", tmp_path, offline=True)
    assert not server.requests


def test_offline_a_file_that_was_not_there_is_not_there(server: WebServer, tmp_path: Path) -> None:
    server.files = {"chunk-0-0.bin": CHUNK}
    for offline in (False, True):
        with mounted(server, "chunk-0-{0..0}.bin", tmp_path, offline=offline) as tree:
            assert list((tree.root / "chunk-0-0/000001").children())


# --- versions ---


def test_a_changed_file_is_an_error_in_this_mount_and_new_in_the_next(
    server: WebServer, tmp_path: Path
) -> None:
    content = [b"x" * 300_000, b"y" * 300_000, b"y" * 300_001]
    rest = b"z" * 3_000_000
    for number, data in enumerate(content):
        server.files = {"x.tar": archive(member("a.txt", data), member("b.txt", rest))}
        with mounted(server, "x.tar", tmp_path / "cache") as tree:
            assert bytes((tree.root / "x/a/a.txt").read()) == data
            if number == 0:
                server.files = {"x.tar": archive(member("a.txt", content[1]), member("b.txt", b""))}
                with pytest.raises(Unreadable, match="has changed since it was mounted"):
                    bytes((tree.root / "x/b/b.txt").read())
                assert bytes((tree.root / "x/a/a.txt").read()) == data


def test_without_a_version_nothing_is_kept(server: WebServer, tmp_path: Path) -> None:
    server.validates = "none"
    for text in (b"first", b"other"):
        server.files = {"x.tar": archive(member("a.txt", text))}
        with mounted(server, "x.tar", tmp_path) as tree:
            assert bytes((tree.root / "x/a/a.txt").read()) == text


def test_a_time_is_no_version_where_a_query_chooses_the_file(
    server: WebServer, opened: list[HttpStore]
) -> None:
    server.validates = "time"
    for source, has_version in (("x.tar", True), ("x.tar?id=1", False)):
        store, _ = open_store(opened, f"{server.url}/{source}")
        assert bool(store.stat("x.tar").version) == has_version
    server.validates = "etag"
    assert store.stat("x.tar").version


# --- access ---


def test_a_password_in_the_url_or_in_netrc(
    server: WebServer, tmp_path: Path, opened: list[HttpStore]
) -> None:
    server.password = "Basic bWU6c2VjcmV0QA=="
    with pytest.raises(AccessDenied, match=r"HTTP 401; a user and a password .* ~/\.netrc"):
        mounted(server, "x.tar", tmp_path)
    store, _ = open_store(opened, f"http://me:secret%40@{server.host}/x.tar")
    assert store.stat("x.tar").size == len(TAR)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret@\n")
    (tmp_path / "netrc").chmod(0o600)
    store, _ = open_store(opened, f"{server.url}/x.tar")
    assert store.stat("x.tar").size == len(TAR)


def test_a_redirect_is_followed_once_and_again_when_it_expires(
    server: WebServer, opened: list[HttpStore]
) -> None:
    with WebServer(dict(FILES), signed=True) as other:
        server.moves_to = other
        store, _ = open_store(opened, f"{server.url}/x.tar")
        blob = store.open("x.tar")
        for at in range(0, 1000, 100):
            assert bytes(blob.read(at, 100)) == TAR[at : at + 100]
        assert len(server.requests) == 1
        other.expire()
        assert bytes(blob.read(0, 100)) == TAR[:100]
        assert len(server.requests) == 2
        other.files = {}
        with pytest.raises(NotFound):
            blob.read(0, 100)


def test_tokens_go_to_the_origin_alone(server: WebServer, opened: list[HttpStore]) -> None:
    with WebServer(dict(FILES), signed=True) as other:
        server.password, server.moves_to = "Basic bWU6c2VjcmV0", other
        store, _ = open_store(opened, f"http://me:secret@{server.host}/x.tar")
        assert bytes(read_all(store.open("x.tar"))) == TAR
        assert all("Authorization" in request.headers for request in server.requests)
        assert other.requests
        assert not any("Authorization" in request.headers for request in other.requests)


def test_redirects_in_a_circle_end(server: WebServer, opened: list[HttpStore]) -> None:
    server.moves_to = server
    store, _ = open_store(opened, f"{server.url}/x.tar")
    with pytest.raises(Unreadable, match="redirects in a circle"):
        store.stat("x.tar")
    assert len(server.requests) < 20


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://host/x", "gopher:x"])
def test_redirects_lead_to_web_servers_only(
    server: WebServer, opened: list[HttpStore], location: str
) -> None:
    server.fail(status=302, headers={"Location": location})
    store, _ = open_store(opened, f"{server.url}/x.tar")
    with pytest.raises(Unreadable, match="redirects to what is no web server"):
        store.stat("x.tar")


FAULTS: list[dict[str, Any]] = [
    {"status": 403},
    {"status": 404},
    {"status": 500},
    {"cut_after": -1},
    {"mode": "whole"},
    {"mode": "shifted"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_no_secret_is_in_any_message(
    server: WebServer,
    tmp_path: Path,
    fault: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    opened: list[HttpStore],
) -> None:
    caplog.set_level(logging.DEBUG)
    with WebServer(dict(FILES), signed=True) as other:
        server.moves_to = other
        secret = f"http://me:PASSWORD@{server.host}/x.tar?token=TOKEN"
        store, _ = open_store(opened, secret, retries=1)
        blob = store.open("x.tar")
        for target in (server, other):
            target.fail(**fault)
        errors: list[ShardfsError] = []
        again, _ = open_store(opened, secret, retries=1)
        other.expire()
        for use in (lambda: blob.read(0, 100), lambda: again.stat("x.tar")):
            with pytest.raises(ShardfsError) as caught:
                use()
            errors.append(caught.value)
        with pytest.raises(ShardfsError) as caught:
            open_tree(secret, Options(cache_dir=tmp_path, retries=1))
        errors.append(caught.value)
    told = [store.url, repr(store), *caplog.messages]
    for error in errors:
        told += [str(error), repr(error), repr(error.__cause__)]
    for text in told:
        assert not any(word in text for word in ("PASSWORD", "TOKEN", "SECRET"))
    gc.collect()  # a response that nobody closed would say so here


def test_what_is_kept_on_disk_has_no_secret_in_it(server: WebServer, tmp_path: Path) -> None:
    source = f"http://me:PASSWORD@{server.host}/x.tar?token=TOKEN"
    with closing(open_tree(source, Options(cache_dir=tmp_path))) as tree:
        (tree.root / "x/a/a.txt").read()
        for name in ("info.json", "stats.json", "errors.jsonl"):
            text = bytes((tree.root / ".shardfs" / name).read())
            assert b"PASSWORD" not in text
            assert b"TOKEN" not in text
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 2
    assert not any(b"PASSWORD" in file or b"TOKEN" in file for file in files)
