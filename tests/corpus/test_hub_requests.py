"""What it costs to look at one picture in a repository on the Hub, as that counts it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.corpus.test_requests import CASES, MIB, ROW, Case, pictures, webdataset
from tests.fake_hub import FakeHub
from tests.hub_repos import NAME, Repository, asked, data, fresh, mounted, settle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


KINDS = ("litdata", "mds", "tar", "parquet", "row groups", "large footer")
IMAGES = pictures(60_000)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeHub]:
    with FakeHub(".") as hub:
        yield hub


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def hub(server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    return fresh(server, tmp_path, monkeypatch)


@pytest.fixture
def repository(hub: FakeHub, case: Case, tmp_path: Path) -> Repository:
    """The files of the case; the cache has what only a scan tells of them."""
    repository = Repository(tmp_path / "hub", case.make(IMAGES))
    if case.make is webdataset:
        with mounted(tmp_path) as tree:
            list((tree.root / "x").children())
        shutil.rmtree(tmp_path / "cache" / "blocks", ignore_errors=True)
    settle(hub)
    hub.reset()
    return repository


def test_a_picture_costs_few_requests_and_little_more_than_itself_and_nothing_again(
    hub: FakeHub, case: Case, repository: Repository, tmp_path: Path
) -> None:
    index = ["index.json"] if (repository.folder / "index.json").exists() else []
    is_known = case.make is webdataset
    with mounted(tmp_path) as tree, mounted(tmp_path) as besides:
        settle(hub)
        listing = [] if is_known else [f"/api/datasets/{NAME}/tree/{repository.commit}"]
        resolved = [
            f"{where}/datasets/{NAME}/{part}{repository.commit}/{path}"
            for path in index
            for where, part in (("", "resolve/"), ("/api/resolve-cache", ""))
        ]
        state = f"/api/datasets/{NAME}"
        assert asked(hub) == [state, *listing, *resolved, state]
        assert not data(hub)
        hub.reset()
        assert bytes((tree.root / case.image).read()) == IMAGES[ROW]
        settle(hub)
        assert 1 <= len(data(hub)) <= 4
        assert hub.bytes_served("/cdn/") <= len(IMAGES[ROW]) + MIB
        assert len(asked(hub)) == 1
        hub.reset()
        for each in (tree, besides):
            assert bytes((each.root / case.image).read()) == IMAGES[ROW]
        assert not hub.log
    with mounted(tmp_path) as tree:
        assert bytes((tree.root / case.image).read()) == IMAGES[ROW]
        settle(hub)
        assert len(hub.log) == 1
    repository.write({"words": b"another commit"})
    with mounted(tmp_path) as tree:
        hub.reset()
        assert bytes((tree.root / case.image).read()) == IMAGES[ROW]
        settle(hub)
        assert not hub.log
