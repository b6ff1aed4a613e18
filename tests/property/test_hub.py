"""What the Hub answers, as arbitrary JSON, headers and bytes: values or a failure with a name, nothing outside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st

from shardfs.cache.remote import _by_folder
from shardfs.errors import ShardfsError
from shardfs.names import safe_parts, to_bytes
from shardfs.sources._downloads import Downloads
from shardfs.sources._hub_api import Place, next_page, parse_entries, parse_state
from shardfs.sources._hub_api import State as HubState

KINDS = st.sampled_from(["datasets", "models", "spaces", "buckets"])
FOLDERS = st.sampled_from(["", "a", "a/b"])
PLACES = st.builds(Place, KINDS, st.just("o/n"), st.sampled_from(["", "main"]), FOLDERS)

PARTS = st.one_of(st.sampled_from(["..", ".", "", "a", "b", "x.tar", "\0"]), st.text(max_size=4))
PATHS = st.lists(PARTS, max_size=4).map("/".join)
TEXTS = st.one_of(
    PATHS,
    st.text(st.characters(), max_size=8),  # with halves of surrogate pairs
    st.sampled_from(["file", "directory", "a" * 40, "2026-01-02T03:04:05.000Z"]),
    st.from_regex(r"-?[0-9]{1,5}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,9})*Z"),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63 - 1, 2**63, -1, 10**400]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
DIGESTS = st.one_of(st.text("0123456789abcdef", max_size=70), VALUES)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, VALUES)


ITEMS = st.one_of(
    st.fixed_dictionaries(
        {"type": mostly(st.sampled_from(["file", "directory"])), "path": mostly(PATHS)},
        optional={
            "size": mostly(st.integers(0, 1 << 63)),
            "oid": DIGESTS,
            "xetHash": DIGESTS,
            "lfs": mostly(st.fixed_dictionaries({"oid": DIGESTS})),
            "mtime": VALUES,
        },
    ),
    VALUES,
)


def body(answer: object) -> bytes:
    return json.dumps(answer, ensure_ascii=True).encode()


BODIES = st.one_of(st.lists(ITEMS, max_size=6).map(body), VALUES.map(body), st.binary(max_size=40))


@given(BODIES, PLACES)
def test_no_listing_leads_outside_or_to_what_no_file_can_be(answer: bytes, place: Place) -> None:
    try:
        entries = parse_entries(answer, place, 5)
    except ShardfsError:
        return
    for entry in entries:
        assert "/".join(safe_parts(entry.path) or ()) == entry.path != ""
        assert place.file_url("c" * 40, entry.path).isascii()
        assert type(entry.size) is int
        assert 0 <= entry.size < 1 << 63
        assert type(entry.mtime_ns) is int
        assert entry.version.isalnum() or not entry.version
        to_bytes(entry.path).decode("utf-8", "surrogateescape")
    everything = _by_folder(entries)
    for path, inside in everything.folders.items():
        assert all(entry.path.rpartition("/")[0] == path for entry in inside.values())
    assert {entry.path for entry in entries} <= {p for f in everything.folders.values() for p in f}


@given(
    st.one_of(
        st.fixed_dictionaries(
            {}, optional={"sha": DIGESTS, "lastModified": VALUES, "createdAt": VALUES}
        ).map(body),
        BODIES,
    ),
    PLACES,
)
def test_a_state_is_a_commit_and_a_time(answer: bytes, place: Place) -> None:
    try:
        state = parse_state(answer, place)
    except ShardfsError:
        return
    assert isinstance(state, HubState)
    assert type(state.mtime_ns) is int
    if place.is_bucket:
        assert state.commit == ""
    else:
        assert 7 <= len(state.commit) <= 64
        assert state.commit.isalnum()


LINKS = st.one_of(
    st.text(max_size=30),
    st.builds(
        "<{}{}>; rel={}".format,
        st.sampled_from(["", "http://", "http://[", "https://evil/", "//", "http://h:x/"]),
        st.one_of(st.text(max_size=20), PATHS.map("/api/datasets/{}?cursor=1".format)),
        st.sampled_from(["next", '"next"', "prev"]),
    ),
)


@given(LINKS, PLACES)
def test_the_next_page_is_on_the_hub_or_there_is_none(link: str, place: Place) -> None:
    try:
        url = next_page({"Link": link}, place)
    except ShardfsError:
        return
    assert not url or url.startswith(f"https://huggingface.co/api/{place.kind}/")


TREES = st.one_of(
    st.dictionaries(
        TEXTS,
        mostly(
            st.fixed_dictionaries(
                {"size": mostly(st.integers(0, 1 << 63)), "blob_id": DIGESTS},
                optional={"lfs_sha256": DIGESTS},
            )
        ),
        max_size=3,
    ).map(lambda files: body({"format_version": 1, "files": files})),
    BODIES,
)


@given(TREES)
def test_a_listing_that_was_downloaded_is_believed_no_more(
    tmp_path_factory: pytest.TempPathFactory, tree: bytes
) -> None:
    state = HubState("c" * 40, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path_factory.getbasetemp() / "property"))
        downloads = Downloads(Place("datasets", "o/n"))
    file = downloads._folder / "trees" / f"{state.commit}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(tree)
    for entry in downloads.entries(state):
        assert "/".join(safe_parts(entry.path) or ()) == entry.path != ""
        assert type(entry.size) is int
        assert 0 <= entry.size < 1 << 63
