from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import hf_hub_download, snapshot_download

from shardfs.errors import (
    NotFound,
    Unreadable,
)
from tests.hub_repos import (
    NAME,
    OTHER,
    SOURCE,
    TAR,
    Repository,
    content,
    data,
    info,
    mounted,
    names,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_hub import FakeHub


@pytest.mark.parametrize("by", ["option", "environment"])
def test_offline_shows_what_was_seen(
    hub: FakeHub,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    with mounted(tmp_path) as tree:
        assert content(tree, "data/x/a/a.txt") == b"first"
    hub.reset()
    if by == "environment":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with mounted(tmp_path, offline=by == "option") as tree:
        assert content(tree, "data/x/a/a.txt") == b"first"
        assert names(tree) == ["data", "notes"]
        assert json.loads(info(tree))["revision"] == repository.commit
        for path in ("notes", "data/y/a/a.txt"):
            with pytest.raises(Unreadable, match="offline"):
                content(tree, path)
        with pytest.raises(NotFound):
            content(tree, "none")
        assert "offline" in info(tree, "errors.jsonl")
    with pytest.raises(Unreadable, match="offline"), mounted(tmp_path, "hf://o/n", offline=True):
        pass
    assert not hub.log


def test_offline_and_folder_by_folder(hub: FakeHub, repository: Repository, tmp_path: Path) -> None:
    repository.write({f"more/{n}/x.tar": TAR for n in range(9)})
    hub.page_size = 2
    with mounted(tmp_path) as tree:
        assert content(tree, "more/3/x/a/a.txt") == b"first"
    hub.reset()
    with mounted(tmp_path, offline=True) as tree:
        assert content(tree, "more/3/x/a/a.txt") == b"first"
        with pytest.raises(Unreadable, match="offline"):
            names(tree, "more/4")
    assert not hub.log


@pytest.mark.parametrize("revision", ["", "@v1", "@refs/convert/parquet", "@commit"])
@pytest.mark.parametrize("path", ["", "/data", "/data/x.tar", "/data/*.tar"])
def test_offline_shows_what_the_library_downloaded(
    hub: FakeHub, repository: Repository, tmp_path: Path, revision: str, path: str
) -> None:
    name = revision[1:] or "main"
    if name == "commit":
        name = repository.commit
    elif revision:
        repository.write({"data/x.tar": TAR}, name)
    hf_hub_download(NAME, "data/x.tar", repo_type="dataset", revision=name)
    hub.reset()
    source = f"{SOURCE}{'@' + name if revision else ''}{path}"
    with mounted(tmp_path, source, offline=True) as tree:
        assert content(tree, ("" if path else "data/") + "x/a/a.txt") == b"first"
        assert names(tree, "" if path else "data") == ["x"]
    assert not hub.log


def test_offline_shows_what_was_downloaded_in_part_and_names_the_rest(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    snapshot_download(NAME, repo_type="dataset", allow_patterns="data/x.*")
    hub.reset()
    with mounted(tmp_path, offline=True) as tree:
        assert names(tree) == ["data", "notes"]
        assert content(tree, "data/x/b/b.txt") == b"second"
        for path in ("notes", "data/y/a/a.txt"):
            with pytest.raises(Unreadable, match="offline"):
                content(tree, path)
    assert not hub.log


def test_what_was_downloaded_is_not_fetched(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    hf_hub_download(NAME, "data/x.tar", repo_type="dataset")
    hub.reset()
    with mounted(tmp_path) as tree:
        assert content(tree, "data/x/a/a.txt") == b"first"
        assert len(hub.log) == 2
        assert content(tree, "data/y/a/a.txt") == b"first"
        assert len(data(hub)) == 1
    repository.write({"data/x.tar": OTHER})
    with mounted(tmp_path) as tree:
        assert content(tree, "data/x/a/a.txt") == b"FIRST", (
            "what was downloaded is of another commit"
        )
