from __future__ import annotations

import gc
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import read_all
from shardfs.errors import (
    AccessDenied,
    NotFound,
    ShardfsError,
    TooLarge,
    Unreadable,
    UsageError,
)
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.sources import zenodo
from tests.unit.sources.records import FILES, TAR, OpenRecord, mounted, paths
from tests.zenodo_server import LEGACY, LISTED, SHAPES, ZenodoServer

if TYPE_CHECKING:
    from pathlib import Path

# --- access ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("access", "words"),
    [("restricted", "restricted"), ("embargoed", "embargoed"), ("closed", "closed")],
)
def test_files_that_not_everybody_may_read(
    record: ZenodoServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    access: str,
    words: str,
) -> None:
    record.shape, record.access = shape, access
    with pytest.raises(AccessDenied) as caught:
        mounted(tmp_path)
    assert f"records/123: its files are {words}" in str(caught.value)
    assert "put a token that has access into ZENODO_TOKEN" in str(caught.value)
    assert len(record.requests) == 1
    monkeypatch.setenv("ZENODO_TOKEN", "SECRET")
    record.password = "Bearer SECRET"
    with mounted(tmp_path) as tree:
        assert bytes((tree.root / "x/a/a.txt").read()) == b"first"


def test_the_end_of_an_embargo_is_told(record: ZenodoServer, open_record: OpenRecord) -> None:
    record.access = "embargoed"
    with pytest.raises(AccessDenied, match="its files are embargoed until 2031-02-03; put a token"):
        open_record().list()


@pytest.mark.parametrize("shape", [LEGACY, LISTED])
def test_a_token_that_has_no_access(
    record: ZenodoServer,
    open_record: OpenRecord,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    record.shape, record.access = shape, "restricted"
    record.answers["/api/records/123/files"] = (403, {})
    monkeypatch.setenv("ZENODO_TOKEN", "SECRET")
    with pytest.raises(AccessDenied) as caught:
        open_record().list()
    told = "its files are restricted; the token in ZENODO_TOKEN has no access"
    assert told in str(caught.value)


def test_a_record_that_is_refused(record: ZenodoServer, open_record: OpenRecord) -> None:
    record.answers["/api/records/123"] = (403, {})
    with pytest.raises(AccessDenied, match="HTTP 403; put a token that has access into ZENODO_TOK"):
        open_record().list()


def test_a_link_by_which_a_record_is_shared(record: ZenodoServer, tmp_path: Path) -> None:
    record.access, record.signatures = "restricted", {"token=SECRET%2Bx"}
    source = "https://zenodo.org/records/123?preview=1&token=SECRET%2Bx"
    with mounted(tmp_path, source) as tree:
        assert bytes((tree.root / "x/a/a.txt").read()) == b"first"
    assert {request.query for request in record.requests} == {"token=SECRET%2Bx"}
    with pytest.raises(AccessDenied):
        mounted(tmp_path, "zenodo:123?token=OTHER")


def test_a_token_goes_to_zenodo_alone(
    record: ZenodoServer, open_record: OpenRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZENODO_TOKEN", " SECRET\n")
    record.password = "Bearer SECRET"
    store = open_record()
    assert store.list()
    with ZenodoServer(FILES) as other:
        other.signatures = set()
        record.moves_to = other
        assert bytes(read_all(store.open("x.tar"))) == TAR
        assert other.requests
        assert not any("Authorization" in request.headers for request in other.requests)
        other.expire()
        assert bytes(store.open("x.tar").read(0, 10)) == TAR[:10]
    assert all(r.headers["Authorization"] == "Bearer SECRET" for r in record.requests)


def test_links_to_elsewhere_are_not_believed(
    record: ZenodoServer, open_record: OpenRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = record.entry("x.tar", TAR)
    for link in (
        "http://127.0.0.1:1/api/records/123/files/x.tar/content",
        f"{record.url}.example.org/api/records/123/files/x.tar/content",
        f"{record.url}@example.org/api/records/123/files/x.tar/content",
        f"{record.url}/api/records/1?/content",
        f"{record.url}/api/records/1\r\nX: y/content",
        f"{record.url}/elsewhere/content",
        "http://[::/content",
        5,
    ):
        entry["links"] = {"self": link}
        monkeypatch.setattr(record, "entries", lambda: [entry])
        assert bytes(read_all(open_record().open("x.tar"))) == TAR
    assert paths(record)[1::2] == ["/123/files/x.tar/content"] * 8


# --- failures ---


def test_a_record_that_was_deleted(record: ZenodoServer, tmp_path: Path) -> None:
    record.answers["/api/records/123"] = (410, {})
    record.has_search = False
    with pytest.raises(NotFound, match=r"records/123: deleted: .* HTTP 410"):
        mounted(tmp_path)


def test_a_record_without_files(record: ZenodoServer, tmp_path: Path) -> None:
    for record.shape in SHAPES:
        record.contents = {}
        with pytest.raises(UsageError, match="zenodo:123: no dataset found, the folder is empty"):
            mounted(tmp_path)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>maintenance</html>", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"id": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"null", "no record of Zenodo"),
        (b"[]", "no record of Zenodo"),
        (b'{"id": true}', "no record of Zenodo"),
        (b'{"id": "../1"}', "no record of Zenodo"),
        (b'{"id": -1}', "no record of Zenodo"),
        (b'{"id": 1, "files": "x"}', "no list of files"),
        (b'{"id": 1, "files": {"entries": 5}}', "no list of files"),
    ],
)
def test_answers_that_are_no_record(
    record: ZenodoServer,
    open_record: OpenRecord,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes,
    words: str,
) -> None:
    monkeypatch.setattr(record, "content", lambda _: answer)
    with pytest.raises(Unreadable, match=rf"records/123: what was answered .*{words}"):
        open_record().list()


def test_an_answer_without_end(
    record: ZenodoServer, open_record: OpenRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zenodo, "_LARGEST", 1 << 16)
    monkeypatch.setattr(record, "content", lambda _: b" " * (1 << 20))
    with pytest.raises(TooLarge, match="an answer of more than 65536 bytes"):
        open_record().list()


def test_too_many_requests_wait_as_long_as_zenodo_says(
    record: ZenodoServer, open_record: OpenRecord
) -> None:
    for header in ("Retry-After", "X-RateLimit-Reset"):
        store = open_record()
        seconds = 1 if header == "Retry-After" else int(time.time()) + 2
        record.fail(times=1, status=429, headers={header: str(seconds)})
        begin = time.monotonic()
        assert store.list()
        assert time.monotonic() - begin > 0.5
    record.fail(times=1, status=429, headers={"X-RateLimit-Reset": str(int(time.time()) + 3000)})
    with pytest.raises(Unreadable, match="HTTP 429, to try again in"):
        open_record().list()


def test_when_the_last_request_is_spent_the_next_one_waits(
    record: ZenodoServer, open_record: OpenRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_record()
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 100)}
    monkeypatch.setattr(record, "validators", lambda _: spent)
    assert store.list()
    with pytest.raises(Unreadable, match=r"asks to wait \d+ seconds before the next request"):
        read_all(store.open("x.tar"))
    assert len(record.requests) == 1


def test_an_answer_of_everything_is_not_read(record: ZenodoServer, open_record: OpenRecord) -> None:
    blob = open_record().open("d.zip")
    record.forget()
    record.fail(mode="whole")
    with pytest.raises(Unreadable, match="serves no parts of files"):
        blob.read(0, 100)
    record.settle()
    assert len(record.requests) == 1
    assert record.sent() < len(FILES["d.zip"]) // 2


FAULTS: list[dict[str, Any]] = [
    {"status": 403},
    {"status": 404},
    {"status": 410},
    {"status": 500},
    {"cut_after": -1},
    {"mode": "whole"},
    {"mode": "shifted"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_no_secret_is_in_any_message(
    record: ZenodoServer,
    tmp_path: Path,
    fault: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    open_record: OpenRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ZENODO_TOKEN", "SECRET1")
    source = "https://zenodo.org/records/123?token=SECRET2"
    store = open_record(source, retries=1)
    blob = store.open("d.zip")
    record.fail(**fault)
    told = [store.url, repr(store), repr(store._reference)]
    with pytest.raises(ShardfsError) as caught:
        blob.read(0, 100)
    told += [str(caught.value), repr(caught.value.__cause__)]
    if "mode" not in fault:
        with pytest.raises(ShardfsError) as caught:
            open_tree(source, Options(cache_dir=tmp_path, retries=1))
        told += [str(caught.value), repr(caught.value.__cause__)]
    assert not any("SECRET" in text for text in [*told, *caplog.messages])
    gc.collect()  # a response that nobody closed would say so here


def test_what_is_kept_on_disk_has_no_secret_in_it(
    record: ZenodoServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZENODO_TOKEN", "SECRET1")
    with mounted(tmp_path, "zenodo:123?token=SECRET2") as tree:
        (tree.root / "x/a/a.txt").read()
        for name in ("info.json", "stats.json", "errors.jsonl"):
            assert b"SECRET" not in bytes((tree.root / ".shardfs" / name).read())
        assert b'"123.4"' in bytes((tree.root / ".shardfs/info.json").read())
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 2
    assert not any(b"SECRET" in file for file in files)
