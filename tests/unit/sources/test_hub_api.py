from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from huggingface_hub import constants

from shardfs.errors import Unreadable
from shardfs.sources._hub_api import Place, State, next_page, parse_entries, parse_state
from shardfs.stores import Entry

HUB = "https://hub.test"
SET = Place("datasets", "org/set")
PART = Place("datasets", "org/set", "", "a b/ü")
BRANCH = Place("datasets", "org/set", "refs/pr/1")
MODEL = Place("models", "org/set", "v1#?")
BUCKET = Place("buckets", "org/set", "", "deep")
COMMIT = "1234567890abcdef1234567890abcdef12345678"
WHEN = 1_767_323_045 * 10**9
FILE = {"type": "file", "path": "x.tar", "size": 7, "oid": "a" * 40}


@pytest.fixture(autouse=True)
def _hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", HUB)


def entries(*items: object, place: Place = SET) -> list[Entry]:
    return parse_entries(json.dumps(items).encode(), place, WHEN)


# --- what is asked ---


@pytest.mark.parametrize(
    ("place", "url"),
    [
        (SET, "/api/datasets/org/set?"),
        (PART, "/api/datasets/org/set?"),
        (BRANCH, "/api/datasets/org/set/revision/refs%2Fpr%2F1?"),
        (MODEL, "/api/models/org/set/revision/v1%23%3F?"),
    ],
)
def test_the_state_costs_little_more_than_the_commit_and_its_time(place: Place, url: str) -> None:
    assert place.state_url() == f"{HUB}{url}expand=sha&expand=lastModified"


def test_a_bucket_has_no_commit() -> None:
    assert BUCKET.state_url() == f"{HUB}/api/buckets/org/set"
    assert BUCKET.file_url("", "x y") == f"{HUB}/buckets/org/set/resolve/deep/x%20y"
    assert BUCKET.list_url("", "x", recursive=False).startswith(
        f"{HUB}/api/buckets/org/set/tree/deep%2Fx?recursive=false"
    )
    assert BUCKET.ask_url("") == f"{HUB}/api/buckets/org/set/paths-info"
    kind, body = BUCKET.question("x")
    assert (kind, json.loads(body)) == ("application/json", {"paths": ["deep/x"]})


@pytest.mark.parametrize(
    ("place", "path", "listed", "resolved"),
    [
        (SET, "", "", "/"),
        (SET, "a/b", "/a%2Fb", "/a/b"),
        (SET, "100%25#?&+ \udcff", "/100%2525%23%3F%26%2B%20%FF", "/100%2525%23%3F%26%2B%20%FF"),
        (PART, "", "/a%20b%2F%C3%BC", "/a%20b/%C3%BC"),
        (PART, "é", "/a%20b%2F%C3%BC%2F%C3%A9", "/a%20b/%C3%BC/%C3%A9"),
    ],
)
def test_paths_are_below_the_folder_and_spelled_for_urls(
    place: Place, path: str, listed: str, resolved: str
) -> None:
    where = f"{HUB}/api/datasets/org/set/tree/{COMMIT}{listed}?recursive="
    assert place.list_url(COMMIT, path, recursive=True).startswith(f"{where}true")
    assert place.list_url(COMMIT, path, recursive=False).startswith(f"{where}false")
    assert place.file_url(COMMIT, path).rstrip("/") == (
        f"{HUB}/datasets/org/set/resolve/{COMMIT}{resolved}".rstrip("/")
    )
    kind, body = place.question(path)
    assert kind == "application/x-www-form-urlencoded"
    asked = parse_qs(body.decode(), errors="surrogateescape")
    assert asked.get("paths", [""]) == [place.inside(path)]


def test_models_have_no_kind_in_their_pages() -> None:
    assert MODEL.file_url(COMMIT, "x") == f"{HUB}/org/set/resolve/{COMMIT}/x"
    assert MODEL.ask_url(COMMIT) == f"{HUB}/api/models/org/set/paths-info/{COMMIT}"
    assert (MODEL.page, SET.page) == (f"{HUB}/org/set", f"{HUB}/datasets/org/set")


@pytest.mark.parametrize(
    ("place", "url"),
    [
        (SET, "hf://datasets/org/set"),
        (PART, "hf://datasets/org/set/a b/ü"),
        (BRANCH, "hf://datasets/org/set@refs/pr/1"),
        (BUCKET, "hf://buckets/org/set/deep"),
    ],
)
def test_its_name_says_what_it_is(place: Place, url: str) -> None:
    assert place.url == url


# --- the state ---


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"sha": COMMIT, "lastModified": "2026-01-02T03:04:05.000Z"}, State(COMMIT, WHEN)),
        ({"sha": COMMIT, "lastModified": "2026-01-02T03:04:05Z"}, State(COMMIT, WHEN)),
        ({"sha": COMMIT, "lastModified": "yesterday"}, State(COMMIT, 0)),
        ({"sha": COMMIT, "lastModified": "2026-01-02T03:04:05.1.2Z"}, State(COMMIT, 0)),
        ({"sha": COMMIT, "lastModified": 5}, State(COMMIT, 0)),
        # More nanoseconds than the kernel can be told.
        ({"sha": COMMIT, "lastModified": "9999-12-31T00:00:00.000Z"}, State(COMMIT, 0)),
        ({"sha": COMMIT}, State(COMMIT, 0)),
    ],
)
def test_a_commit_and_its_time(answer: dict[str, Any], state: State) -> None:
    assert parse_state(json.dumps(answer).encode(), SET) == state


def test_a_bucket_is_as_old_as_it_is() -> None:
    answer = {"id": "org/set", "createdAt": "2026-01-02T03:04:05.000Z", "sha": COMMIT}
    assert parse_state(json.dumps(answer).encode(), BUCKET) == State("", WHEN)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[" * 100_000,
        b"9" * 5000,
        b"[]",
        b"{}",
        b'{"sha": null}',
        b'{"sha": "main"}',
        b'{"sha": "../../etc"}',
        b'{"sha": "1234567\\n"}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_state_is_not_taken_for_one(body: bytes) -> None:
    with pytest.raises(Unreadable, match="hf://datasets/org/set: the Hub"):
        parse_state(body, SET)
    if body not in (b"[]", b"{}") and not body.startswith(b'{"sha'):
        with pytest.raises(Unreadable, match="the Hub"):
            parse_entries(body, SET, 0)


# --- listings ---


@pytest.mark.parametrize(
    ("facts", "version"),
    [
        ({"oid": "a" * 40}, "a" * 40),
        ({"oid": "a" * 40, "lfs": {"oid": "b" * 64, "size": 7}, "xetHash": "c" * 64}, "b" * 64),
        ({"oid": "a" * 40, "lfs": {"oid": 5}}, "a" * 40),
        ({"oid": "a" * 40, "lfs": "x"}, "a" * 40),
        ({"oid": "../x", "xetHash": "c" * 64}, "c" * 64),
        ({"oid": None}, ""),
    ],
)
def test_files_have_the_digest_of_their_content(facts: dict[str, Any], version: str) -> None:
    item = {"type": "file", "path": "x.tar", "size": 7, **facts}
    assert entries(item) == [Entry("x.tar", 7, WHEN, version)]


def test_folders_and_files_of_buckets_with_times_of_their_own() -> None:
    folder = {"type": "directory", "path": "deep/a", "uploadedAt": "2026-01-02T03:04:05Z"}
    file = {
        "type": "file",
        "path": "deep/a/x",
        "size": 7,
        "xetHash": "c" * 64,
        "mtime": "2026-01-02T03:04:06.500Z",
        "uploadedAt": "2026-01-02T03:04:07Z",
    }
    assert entries(folder, file, place=BUCKET) == [
        Entry("a", 0, WHEN, "", is_dir=True),
        Entry("a/x", 7, WHEN + 10**9, "c" * 64),
    ]


def test_only_what_lies_in_the_folder_counts() -> None:
    paths = ["a b/ü/x", "a b/ü/sub/y", "a b/ü", "a b/üx", "x", "a b/ü/"]
    found = entries(*({**FILE, "path": path} for path in paths), place=PART)
    assert [entry.path for entry in found] == ["x", "sub/y"]


@pytest.mark.parametrize(
    "item",
    [
        {**FILE, "path": path}
        for path in ("", "/x", "../x", "a/../x", "a//x", "./x", "x/", "x\0", None, 5, ["x"])
    ]
    + [{**FILE, "size": size} for size in (-1, 1 << 63, 1e300, "7", None, True)]
    + [{**FILE, "type": "symlink"}, {"type": "directory", "path": ".."}, {}, [], "x", None],
)
def test_what_can_be_no_file_is_left_out(item: Any) -> None:
    assert entries(item, FILE) == [Entry("x.tar", 7, WHEN, "a" * 40)]


@pytest.mark.parametrize("name", ["datasets", "api", "%2e%2e", "a\\b", "é", "e\u0301", " ", "\n"])
def test_names_stay_as_they_are(name: str) -> None:
    assert [entry.path for entry in entries({**FILE, "path": f"{name}/x"})] == [f"{name}/x"]


def test_half_a_character_is_a_name_that_can_be_asked_for() -> None:
    (entry,) = entries({**FILE, "path": "\ud800x"})
    assert "%ED%A0%80x" in SET.file_url(COMMIT, entry.path)


# --- pages ---


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("", ""),
        ('<https://x>; rel="prev"', ""),
        (
            f'<{HUB}/api/datasets/org/set/tree/c?cursor=a%2Bb>; rel="next"',
            "org/set/tree/c?cursor=a%2Bb",
        ),
        ("</api/datasets/org/set/tree/c?cursor=2>;rel=next", "org/set/tree/c?cursor=2"),
        ('<https://x/1>; rel="prev", </api/datasets/o/s?p=3>; rel="next"', "o/s?p=3"),
        (
            '<http://elsewhere/api/datasets/org/set/tree/c?cursor=2>; rel="next"',
            "org/set/tree/c?cursor=2",
        ),
    ],
)
def test_the_next_page_is_asked_for_where_the_first_was(link: str, url: str) -> None:
    assert next_page({"Link": link}, SET) == (f"{HUB}/api/datasets/{url}" if url else "")


@pytest.mark.parametrize("url", ["http://[", "https://elsewhere/x", "?", "//[::1/api/datasets/x"])
def test_a_next_page_that_is_none_is_no_end_of_the_listing(url: str) -> None:
    with pytest.raises(Unreadable, match="hf://datasets/org/set: the Hub"):
        next_page({"Link": f'<{url}>; rel="next"'}, SET)
