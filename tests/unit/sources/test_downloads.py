from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import constants, hf_hub_download, snapshot_download

from shardfs.blob import read_all
from shardfs.sources._downloads import Downloads
from shardfs.sources._hub_api import Place
from shardfs.stores import Entry
from tests.hub_repos import NAME, Repository

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from tests.fake_hub import FakeHub

COMMIT = "c" * 40
FILES = {"README.md": b"# words", "data/x.tar": b"a tar" * 100, "data/empty.tar": b""}
PLACE = Place("datasets", NAME)


@pytest.fixture
def repository(hub: FakeHub, tmp_path: Path) -> Repository:
    return Repository(tmp_path / "hub", FILES)


def version(path: str) -> str:
    content = FILES[path]
    if path.endswith(".tar"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry(path: str) -> Entry:
    return Entry(path, len(FILES[path]), 0, version(path))


def content(blob: Blob | None) -> bytes | None:
    return None if blob is None else bytes(read_all(blob))


def test_nothing_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "none"))
    assert Downloads(PLACE).state() is None
    assert Downloads(PLACE).open(COMMIT, "x.tar", Entry("x.tar", 1, 0, "a")) is None


def test_all_that_the_library_downloaded(hub: FakeHub, repository: Repository) -> None:
    snapshot_download(NAME, repo_type="dataset")
    hub.reset()
    downloads = Downloads(PLACE)
    state = downloads.state()
    assert state is not None
    assert state.commit == repository.commit
    found = {e.path: e for e in downloads.entries(state)}
    assert set(found) == set(FILES)
    for path, wanted in FILES.items():
        assert found[path] == Entry(path, len(wanted), state.mtime_ns, version(path))
        assert content(downloads.open(state.commit, path, found[path])) == wanted
    assert not hub.log


def test_some_that_the_library_downloaded(hub: FakeHub, repository: Repository) -> None:
    """The listing of the commit names the others; without one, nothing does."""
    snapshot_download(NAME, repo_type="dataset", allow_patterns="*.md")
    downloads = Downloads(PLACE)
    state = downloads.state()
    assert state is not None
    assert {e.path for e in downloads.entries(state)} == set(FILES)
    assert content(downloads.open(state.commit, "README.md", entry("README.md"))) == b"# words"
    assert downloads.open(state.commit, "data/x.tar", entry("data/x.tar")) is None
    shutil.rmtree(downloads._folder / "trees")
    assert [e.path for e in downloads.entries(state)] == ["README.md"]


@pytest.mark.parametrize("revision", ["main", "refs/convert/parquet", "v1", "commit"])
def test_a_file_of_any_revision(hub: FakeHub, repository: Repository, revision: str) -> None:
    if revision not in ("main", "commit"):
        repository.write(FILES, revision)
    name = repository.commit if revision == "commit" else revision
    hf_hub_download(NAME, "data/x.tar", repo_type="dataset", revision=name)
    downloads = Downloads(Place("datasets", NAME, name))
    state = downloads.state()
    assert state is not None
    assert [(e.path, e.version) for e in downloads.entries(state)] == [
        ("data/x.tar", version("data/x.tar"))
    ]
    assert content(downloads.open(state.commit, "data/x.tar", entry("data/x.tar"))) is not None
    assert Downloads(Place("datasets", NAME, "other")).state() is None
    assert Downloads(Place("models", NAME, name)).state() is None


# --- what is not believed ---


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a commit, made by hand: x.tar is a link to its blob, y.tar a file, as where links can't be."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "downloads"))
    folder = Downloads(PLACE)._folder
    snapshot = folder / "snapshots" / COMMIT
    for place, text in (
        (folder / "refs" / "main", COMMIT),
        (folder / "blobs" / ("a" * 64), "x content"),
        (snapshot / "y.tar", "y content"),
        (tmp_path / "secret", "a secret!"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (snapshot / "x.tar").symlink_to(f"../../blobs/{'a' * 64}")
    return snapshot


def file(path: str, size: int = 9, digest: str = "a" * 64) -> Entry:
    return Entry(path, size, 0, digest)


def test_links_and_files_are_opened_if_they_are_what_is_asked_for(snapshot: Path) -> None:
    downloads = Downloads(PLACE)
    assert content(downloads.open(COMMIT, "x.tar", file("x.tar"))) == b"x content"
    assert content(downloads.open(COMMIT, "y.tar", file("y.tar"))) == b"y content"
    assert downloads.open(COMMIT, "x.tar", file("x.tar", size=8)) is None
    assert downloads.open(COMMIT, "x.tar", file("x.tar", digest="b" * 64)) is None
    assert downloads.open("d" * 40, "x.tar", file("x.tar")) is None
    assert downloads.open(COMMIT, "z.tar", file("z.tar")) is None
    assert Downloads(Place("buckets", NAME)).open(COMMIT, "x.tar", file("x.tar")) is None


def test_a_blob_that_repositories_share(snapshot: Path) -> None:
    shared = Path(constants.HF_HUB_CACHE) / "blobs" / "ab" / "xet"
    shared.parent.mkdir(parents=True)
    blob = snapshot.parents[1] / "blobs" / ("a" * 64)
    blob.rename(shared)
    blob.symlink_to("../../blobs/ab/xet")
    found = Downloads(PLACE).open(COMMIT, "x.tar", file("x.tar"))
    assert content(found) == b"x content"


@pytest.mark.parametrize("way", ["secret", "../secret", "blob", "folder", "gone", "loop"])
def test_links_lead_nowhere_else(snapshot: Path, tmp_path: Path, way: str) -> None:
    link = snapshot / "x.tar"
    link.unlink()
    target = {
        "secret": str(tmp_path / "secret"),
        "../secret": os.path.relpath(tmp_path / "secret", snapshot),
        "blob": f"../../blobs/{'a' * 64}",
        "folder": "../../blobs",
        "gone": f"../../blobs/{'b' * 64}",
        "loop": "x.tar",
    }[way]
    link.symlink_to(target)
    if way == "blob":  # which itself leads out
        blob = snapshot.parents[1] / "blobs" / ("a" * 64)
        blob.unlink()
        blob.symlink_to(tmp_path / "secret")
    digest = Path(target).name
    assert Downloads(PLACE).open(COMMIT, "x.tar", file("x.tar", digest=digest)) is None


@pytest.mark.parametrize("path", ["../../refs/main", "/etc/passwd", "..", "a\0b", "x.tar/y"])
def test_paths_lead_nowhere_else(snapshot: Path, path: str) -> None:
    assert Downloads(PLACE).open(COMMIT, path, file(path, size=40, digest="")) is None


@pytest.mark.parametrize("commit", ["../../secret", "/etc", "", ".", "..", "a/b", "d" * 40, "\0"])
def test_a_ref_that_names_no_commit(snapshot: Path, commit: str) -> None:
    (snapshot.parents[1] / "refs" / "main").write_text(commit)
    assert Downloads(PLACE).state() is None


@pytest.mark.parametrize("revision", ["../snapshots", "..", "x\0", "/etc/hostname", "refs"])
def test_a_revision_that_is_none(snapshot: Path, revision: str) -> None:
    assert Downloads(Place("datasets", NAME, revision)).state() is None


@pytest.mark.parametrize(
    "tree",
    [
        "",
        "[]",
        '{"files": 5}',
        '{"files": {"x": {}}}',
        '{"files": {"x": {"size": -1, "blob_id": "a"}}}',
        '{"files": {"x": {"size": 1e999, "blob_id": "a"}}}',
        '{"files": {"../x": {"size": 1, "blob_id": "a"}}}',
        '{"files": {"": {"size": 1, "blob_id": "a"}}}',
        "[" * 100_000,
    ],
)
def test_a_listing_that_is_none_is_not_believed(snapshot: Path, tree: str) -> None:
    trees = snapshot.parents[1] / "trees"
    trees.mkdir()
    (trees / f"{COMMIT}.json").write_text(tree)
    state = Downloads(PLACE).state()
    assert state is not None
    (snapshot / "gone.tar").symlink_to("../../blobs/none")
    found = {e.path: e for e in Downloads(PLACE).entries(state)}
    assert set(found) == {"x.tar", "y.tar"}
    assert found["x.tar"].version == "a" * 64
    assert found["y.tar"].version


def test_a_listing_has_the_digests_of_large_files(snapshot: Path) -> None:
    trees = snapshot.parents[1] / "trees"
    trees.mkdir()
    facts = {"size": 9, "blob_id": "e" * 40}
    files = {"x.tar": {**facts, "lfs_sha256": "a" * 64}, "z.tar": facts}
    (trees / f"{COMMIT}.json").write_text(json.dumps({"format_version": 1, "files": files}))
    state = Downloads(PLACE).state()
    assert state is not None
    found = [(e.path, e.version) for e in Downloads(PLACE).entries(state)]
    assert found == [("x.tar", "a" * 64), ("z.tar", "e" * 40)]
