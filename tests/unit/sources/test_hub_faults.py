from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import (
    Unreadable,
)
from tests.hub_repos import (
    OTHER,
    SOURCE,
    TAR,
    Repository,
    asked,
    content,
    data,
    info,
    mounted,
    names,
)
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_hub import FakeHub


# --- what is pinned ---


@pytest.mark.parametrize("source", [SOURCE, f"{SOURCE}/data", f"{SOURCE}/data/x.tar"])
def test_the_commit_of_the_first_look_is_shown_while_the_branch_moves_on(
    hub: FakeHub, repository: Repository, tmp_path: Path, source: str
) -> None:
    x = {"": "data/x", "data": "x", "x.tar": "x"}[source[len(SOURCE) :].rpartition("/")[2]]
    commit = repository.keep()
    with mounted(tmp_path, source) as tree:
        repository.write({"data/x.tar": OTHER, "data/z.tar": TAR})
        assert content(tree, f"{x}/a/a.txt") == b"first"
        assert "z" not in names(tree, x.rpartition("/")[0])
        assert json.loads(info(tree))["revision"] == commit
        assert commit != repository.commit
        assert all(commit in path for path in asked(hub)[1:])
    with mounted(tmp_path, source) as tree:
        assert content(tree, f"{x}/a/a.txt") == b"FIRST"
        assert json.loads(info(tree))["revision"] == repository.commit
    with mounted(tmp_path, source.replace(SOURCE, f"{SOURCE}@{commit}")) as tree:
        assert content(tree, f"{x}/a/a.txt") == b"first"


def test_a_file_that_stays_when_the_branch_moves_is_not_fetched_again(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    for text in (b"old", b"new"):
        repository.write({"words": text})
        with mounted(tmp_path) as tree:
            assert content(tree, "data/x/a/a.txt") == b"first"
            assert content(tree, "words") == text
            assert len(data(hub)) == 1
    assert len(asked(hub, "x.tar")) == 1


@pytest.mark.parametrize("by", ["resolve", "expired"])
def test_other_content_under_the_same_commit_is_an_error_and_no_mix(
    hub: FakeHub, repository: Repository, tmp_path: Path, by: str
) -> None:
    """As a Hub would that lost its mind: the digest that was listed is not that of what it leads to."""
    big = os.urandom(4 << 20)
    tar = archive(member("a.bin", big), member("b.bin", big))
    repository.write({"big.tar": tar})
    commit = repository.keep()
    with mounted(tmp_path) as tree:
        if by == "expired":
            hub.url_ttl = 0.3
            assert (tree.root / "big/a/a.bin").read(0, 10) == big[:10]
        place = repository.place("big.tar", commit)
        place.write_bytes(archive(member("a.bin", big[::-1]), member("b.bin", big[::-1])))
        time.sleep(0.3 if by == "expired" else 0)
        with pytest.raises(Unreadable, match=r"big.tar: has changed since it was mounted"):
            content(tree, "big/b/b.bin")
        if by == "expired":
            assert (tree.root / "big/a/a.bin").read(0, 10) == big[:10]


# --- manners ---


def test_limits_of_requests_and_tries(hub: FakeHub, repository: Repository, tmp_path: Path) -> None:
    hub.faults.update(only="/api/", error_every=1, error_status=503)
    with pytest.raises(Unreadable, match=r"HTTP 503.*\(3 tries\)"), mounted(tmp_path, retries=2):
        pass
    assert len(hub.log) == 3
    hub.faults.update(error_every=0, latency=30)
    began = time.monotonic()
    with pytest.raises(Unreadable, match="no answer in time"):
        mounted(tmp_path, retries=1, timeout=0.2).__enter__()
    assert time.monotonic() - began < 2
    assert len(hub.log) == 5


@pytest.mark.parametrize(("part", "resolved"), [("/resolve/", 3), ("/cdn/", 1)])
def test_a_failure_says_nothing_of_where_a_file_is(
    hub: FakeHub, repository: Repository, tmp_path: Path, part: str, resolved: int
) -> None:
    with mounted(tmp_path) as tree:
        hub.faults.update(only=part, error_every=1, error_status=503, times=2)
        assert content(tree, "data/x/a/a.txt") == b"first"
        assert len(asked(hub, "/resolve/")) == resolved
        assert len([entry for entry in hub.log if entry["fault"]]) == 2
        assert json.loads(info(tree, "stats.json"))["remote"]["retries"] == 2


@pytest.mark.parametrize("headers", ["both", "ratelimit", "retry-after", "none"])
def test_a_hub_that_asks_to_wait_is_not_asked_meanwhile(
    hub: FakeHub, repository: Repository, tmp_path: Path, headers: str
) -> None:
    repository.write({f"{n}/x.tar": TAR for n in range(3)})
    hub.faults.update(rate_limit=3, rate_window=1.0, rate_headers=headers)
    with mounted(tmp_path, retries=20) as tree:
        for n in range(3):
            assert content(tree, f"{n}/x/a/a.txt") == b"first"
    refused = [entry for entry in hub.log if entry["status"] == 429]
    assert refused
    if headers != "none":
        assert len(refused) == 1


def test_a_wait_that_is_too_long_is_told(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    hub.faults.update(rate_limit=1, rate_window=250)
    with (
        pytest.raises(Unreadable, match=r"429.*rate limit.*try again in 2\d\d s"),
        mounted(tmp_path),
    ):
        pass


def test_without_etags_it_reads_as_well(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    hub.faults.update(no_etag=True)
    with mounted(tmp_path) as tree:
        assert content(tree, "notes") == b"notes"
        assert content(tree, "data/x/a/a.txt") == b"first"
