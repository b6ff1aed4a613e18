from __future__ import annotations

import os
import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import (
    NotFound,
    ShardfsError,
    TooLarge,
    UsageError,
)
from shardfs.options import Options
from shardfs.sources import hub as hub_source
from tests.fake_hub import FakeHub, Repo
from tests.hub_repos import (
    NAME,
    SOURCE,
    TAR,
    Repository,
    asked,
    content,
    data,
    mounted,
    names,
    settle,
)
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path


WHEN = 1_767_323_045 * 10**9


# --- what a source names ---

ALL = ("datasets", "org/set", "", "")


@pytest.mark.parametrize(
    ("source", "place", "found"),
    [
        ("hf://datasets/org/set", ALL, []),
        ("hf://datasets/org/set/", ALL, []),
        ("hf://org/set", ALL, []),
        ("hf://org/set@v1/x", ("datasets", "org/set", "v1", ""), ["x"]),
        ("hf://models/org/set", ("models", *ALL[1:]), []),
        ("hf://spaces/org/set", ("spaces", *ALL[1:]), []),
        ("hf://kernels/org/set", ("kernels", *ALL[1:]), []),
        ("hf://buckets/org/set/a/b", ("buckets", "org/set", "", "a"), ["b"]),
        ("hf://datasets/org/set@v1.0", (*ALL[:2], "v1.0", ""), []),
        ("hf://datasets/org/set@a/b", (*ALL[:2], "a", ""), ["b"]),
        ("hf://datasets/org/set@a%2Fb/c/d", (*ALL[:2], "a/b", "c"), ["d"]),
        ("hf://datasets/org/set@refs/convert/parquet", (*ALL[:2], "refs/convert/parquet", ""), []),
        (
            "hf://datasets/org/set@refs%2Fconvert%2Fparquet/default/train",
            (*ALL[:2], "refs/convert/parquet", "default"),
            ["train"],
        ),
        ("hf://datasets/org/set@refs/pr/3/x.tar", (*ALL[:2], "refs/pr/3", ""), ["x.tar"]),
        ("hf://datasets/org/set/data/", ALL, ["data"]),
        ("hf://datasets/org/set/a/b/x.tar", (*ALL[:3], "a/b"), ["x.tar"]),
        ("hf://datasets/org/set/data/*.tar", (*ALL[:3], "data"), ["*.tar"]),
        ("hf://datasets/org/set/data/?-[0-3].tar", (*ALL[:3], "data"), ["?-[0-3].tar"]),
        (
            "hf://datasets/org/set/d/x-{08..10}.tar",
            (*ALL[:3], "d"),
            ["x-08.tar", "x-09.tar", "x-10.tar"],
        ),
        ("hf://datasets/org/set/a b/é#%41@1.tar", (*ALL[:3], "a b"), ["é#%41@1.tar"]),
        ("https://huggingface.co/datasets/org/set", ALL, []),
        ("https://huggingface.co/datasets/org/set?row=5#top", ALL, []),
        ("https://www.huggingface.co/datasets/org/set", ALL, []),
        ("https://user:secret@huggingface.co/datasets/org/set", ALL, []),
        ("http://hf.co/datasets/org/set/", ALL, []),
        ("https://huggingface.co/org/set", ("models", *ALL[1:]), []),
        ("https://hf.co/datasets/org/set/tree/main", (*ALL[:2], "main", ""), []),
        ("https://hf.co/datasets/org/set/tree/main/data", (*ALL[:2], "main", ""), ["data"]),
        (
            "https://huggingface.co/datasets/org/set/tree/refs%2Fconvert%2Fparquet/default",
            (*ALL[:2], "refs/convert/parquet", ""),
            ["default"],
        ),
        (
            "https://huggingface.co/datasets/org/set/blob/v1/data/a%20b%3F.tar",
            (*ALL[:2], "v1", "data"),
            ["a b?.tar"],
        ),
        (
            "https://huggingface.co/datasets/org/set/resolve/v1/x-{1..2}.tar?download=true",
            (*ALL[:2], "v1", ""),
            ["x-1.tar", "x-2.tar"],
        ),
        ("https://huggingface.co/datasets/org/set/viewer", ALL, []),
        ("https://huggingface.co/datasets/org/set/viewer/default/train?row=1", ALL, []),
        ("https://huggingface.co/buckets/org/set/tree/a/b", ("buckets", "org/set", "", "a"), ["b"]),
    ],
)
def test_sources(source: str, place: tuple[str, ...], found: list[str]) -> None:
    store, names = hub_source.open_source(source, Options())
    with closing(store):
        shown = store._place
        assert (shown.kind, shown.name, shown.revision, shown.folder) == place
        assert list(names) == found
        assert store.hub_rules == (place[0] == "datasets" and place[2][:13] != "refs/convert/")
        assert "secret" not in store.url


@pytest.mark.parametrize("revision", ["v1", "refs/convert/parquet", "1234567"])
def test_a_revision_by_its_option(revision: str) -> None:
    for source in (SOURCE, f"{SOURCE}@{revision}", f"{SOURCE}/x.tar"):
        store, _ = hub_source.open_source(source, Options(revision=revision))
        store.close()
        assert store.url == f"{SOURCE}@{revision}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("hf://", "Empty body"),
        ("hf://datasets", "Missing identifier"),
        ("hf://datasets/squad", "must be 'namespace/name'"),
        ("hf://dataset/org/set", "must be plural"),
        ("hf://datasets/org/set@", "Empty revision"),
        ("hf://datasets/org/set//x", "empty segments"),
        ("hf://datasets/org/s t/x", "Repo id must use"),
        ("hf://datasets/org/set/../x", "leads outside"),
        ("hf://datasets/org/set/a/../../x", "leads outside"),
        ("hf://datasets/org/set@..", "leads outside"),
        ("hf://datasets/org/set@a%2F..%2Fb", "leads outside"),
        ("hf://buckets/org/set@main", "do not support a revision"),
        ("hf://datasets/org/set/{a,b}/x.tar", "several folders"),
        ("hf://datasets/org/{a,b}", "several folders"),
        ("https://huggingface.co/", "Missing repository"),
        ("https://huggingface.co/datasets", "expected a '<namespace>/<name>'"),
        ("https://huggingface.co/datasets/org/set/discussions/1", "unsupported '/discussions/'"),
        ("https://u:secret@huggingface.co/datasets/org/set/settings", "unsupported '/settings/'"),
    ],
)
def test_sources_that_name_nothing(source: str, words: str) -> None:
    with pytest.raises(ShardfsError, match=words) as caught:
        hub_source.open_source(source, Options())
    message = str(caught.value)
    assert "secret" not in message
    assert "\n" not in message
    assert message == message.strip()
    assert message.startswith(source.replace("u:secret@", ""))


@pytest.mark.parametrize("source", [f"{SOURCE}@v1", "hf://buckets/org/set"])
def test_a_revision_that_can_not_be(source: str) -> None:
    with pytest.raises(UsageError, match="can't have the revision v2"):
        hub_source.open_source(source, Options(revision="v2"))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", ["data", "notes"]),
        ("/data", ["x", "y"]),
        ("/data/x.tar", ["x"]),
        ("/data/*.tar", ["x", "y"]),
        ("/data/{x,z}.tar", ["x"]),
        ("/d?ta", ["x", "y"]),
        ("@v1", ["odd [name]{1}?*"]),
        ("@v1/odd [name]{1}?*.tar", ["odd [name]{1}?*"]),
        ("/tree/main/data", ["x", "y"]),
        ("/blob/v1/odd%20%5Bname%5D%7B1%7D%3F%2A.tar", ["odd [name]{1}?*"]),
    ],
)
def test_what_is_shown(repository: Repository, tmp_path: Path, path: str, shown: list[str]) -> None:
    repository.write({"odd [name]{1}?*.tar": TAR}, "v1")
    is_page = path.startswith(("/tree/", "/blob/"))
    source = f"https://huggingface.co/datasets/{NAME}{path}" if is_page else SOURCE + path
    with mounted(tmp_path, source) as tree:
        assert names(tree) == shown


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("hf://datasets/org/none", "if http.*/datasets/org/none is private.*HF_TOKEN"),
        (f"{SOURCE}@none", "Invalid rev id: none"),
        (f"{SOURCE}/none", "there is no such file"),
        (f"{SOURCE}/none/x.tar", "there is no such file"),
        (f"{SOURCE}/data/*.zip", "nothing there is called"),
        (f"{SOURCE}/notes", "not a shard"),
    ],
)
def test_what_is_not_there_is_one_line(
    repository: Repository, tmp_path: Path, source: str, words: str
) -> None:
    with pytest.raises(ShardfsError, match=words) as caught, mounted(tmp_path, source):
        pass
    assert "\n" not in str(caught.value)
    assert source.partition("@")[0].removesuffix("/*.zip") in str(caught.value)


# --- what is listed ---


@pytest.mark.parametrize(
    ("count", "listings", "more"), [(38, 4, 0), (39, 4 + 1, 2), (120, 4 + 1, 6)]
)
def test_few_pages_are_asked_for_at_once_and_many_folder_by_folder(
    hub: FakeHub, tmp_path: Path, count: int, listings: int, more: int
) -> None:
    """With the two folders, 38 files are four pages."""
    Repository(tmp_path / "hub", {f"{'ab'[n % 2]}/{n:03d}": b"x" for n in range(count)})
    hub.page_size = 10
    for known in (False, True):
        hub.reset()
        with mounted(tmp_path) as tree:
            assert names(tree) == ["a", "b"]
            assert len(hub.log) == 1 + (0 if known else listings)
            assert names(tree, "a") == [f"{n:03d}" for n in range(0, count, 2)]
            assert len(hub.log) == 1 + (0 if known else listings + more)
            assert names(tree, "b") == [f"{n:03d}" for n in range(1, count, 2)]
            assert len(hub.log) == 1 + (0 if known else listings + 2 * more)


@pytest.mark.parametrize("folder", ["", "data/"])
def test_ten_thousand_names(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """Those of one folder, in pages of a thousand: once."""
    entry = {"type": "file", "oid": "a" * 40, "size": 5}
    tree = {
        f"{folder}{n:05d}.txt": {**entry, "path": f"{folder}{n:05d}.txt"} for n in range(10_000)
    }
    top = {"data": {"type": "directory", "path": "data"}} if folder else {}
    monkeypatch.setattr(Repo, "tree", lambda self, folder: {**top, **tree})
    monkeypatch.setattr(Repo, "commit", lambda self, folder: "c" * 40)
    Repository(tmp_path / "hub", {})
    with mounted(tmp_path) as shown:
        assert len(names(shown, folder)) == 10_000
        assert shown.attr((shown.root / f"{folder}09999.txt").attr.ino).size == 5
        with pytest.raises(NotFound):
            shown.root / f"{folder}10000.txt"
        assert len(hub.log) == (1 + 4 + 1 + 10 if folder else 1 + 10)


ODD = [
    "a b",
    "a#b",
    "100%",
    "%41",
    "a?b",
    "é",
    "e\u0301",
    "datasets",
    "api",
    "tree",
    "+",
    "&",
    "~",
    '"',
    "'",
]


@pytest.mark.parametrize("pages", [1000, 2], ids=["at once", "by folder"])
def test_odd_names(hub: FakeHub, tmp_path: Path, pages: int) -> None:
    files = {f"{name}/{name}.tar": TAR + name.encode() for name in ODD}
    Repository(tmp_path / "hub", {**files, **{f"{name}/{name}.md": name.encode() for name in ODD}})
    hub.page_size = pages
    with mounted(tmp_path) as tree:
        assert sorted(names(tree)) == sorted(ODD)
        for name in ODD:
            assert content(tree, f"{name}/{name}/a/a.txt") == b"first"
            assert content(tree, f"{name}/{name}.md") == name.encode()


def test_times_are_those_of_the_commit(repository: Repository, tmp_path: Path) -> None:
    with mounted(tmp_path) as tree:
        assert tree.root.mtime_ns == WHEN
        assert [node.mtime_ns for node in tree.root.children()] == [WHEN, WHEN]


# --- what it costs ---


def test_a_mount_is_the_state_and_a_listing(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    with mounted(tmp_path) as tree:
        assert names(tree, "data") == ["x", "y"]
        listing = f"/api/datasets/{NAME}/tree/{repository.commit}"
        assert asked(hub) == [f"/api/datasets/{NAME}", listing]
        assert len(hub.log) == 2


def test_a_file_costs_the_state_and_a_look_at_it(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    with mounted(tmp_path, f"{SOURCE}/data/x.tar") as tree:
        assert names(tree) == ["x"]
        look = f"/api/datasets/{NAME}/paths-info/{repository.commit}"
        assert asked(hub) == [f"/api/datasets/{NAME}", look]
        assert len(hub.log) == 2


@pytest.mark.parametrize("extra", ["README.md", "index.json"])
def test_a_readme_or_an_index_costs_two_more(
    hub: FakeHub, repository: Repository, tmp_path: Path, extra: str
) -> None:
    text = b"{}" if extra == "index.json" else b"---\nx: y\n---\nwords"
    repository.write({extra: text})
    with mounted(tmp_path, splits=True):
        assert len(asked(hub)) == len(hub.log) == 4
        assert asked(hub)[2:] == [
            f"/datasets/{NAME}/resolve/{repository.commit}/{extra}",
            f"/api/resolve-cache/datasets/{NAME}/{repository.commit}/{extra}",
        ]
    hub.reset()
    with mounted(tmp_path, splits=True):
        assert len(hub.log) == 1


def test_a_file_is_resolved_once_and_read_once(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    big = os.urandom(3 << 20)
    repository.write({"big.tar": archive(member("a.bin", big), member("b.bin", big[::-1]))})
    with mounted(tmp_path) as tree:
        for _ in range(2):
            assert content(tree, "big/b/b.bin") == big[::-1]
            assert content(tree, "big/a/a.bin") == big
        assert len(asked(hub, "/resolve/")) == 1
        assert len(data(hub)) > 1
        assert hub.bytes_served("/cdn/") <= 2 * len(big) + (1 << 20)
    hub.reset()
    with mounted(tmp_path) as again, mounted(tmp_path) as besides:
        for tree in (again, besides):
            assert content(tree, "big/b/b.bin") == big[::-1]
        assert asked(hub) == [f"/api/datasets/{NAME}"] * 2
        assert len(hub.log) == 2


@pytest.mark.parametrize("offsets", [(4 << 20, 1 << 20, 7 << 20), (0, 8 << 20)])
def test_a_little_of_a_large_file_costs_little(
    hub: FakeHub, repository: Repository, tmp_path: Path, offsets: tuple[int, ...]
) -> None:
    """A request at most for each read, and for no more than 1 MiB."""
    big = os.urandom((8 << 20) + 100)
    repository.write({"big.npy": big})
    with mounted(tmp_path) as tree:
        file = tree.root / "big.npy"
        for offset in offsets:
            assert bytes(file.read(offset, 100)) == big[offset : offset + 100]
        settle(hub)
    asked_for = [re.fullmatch(r"bytes=(\d+)-(\d+)", entry["range"]) for entry in data(hub)]
    assert len(asked_for) <= len(offsets)
    assert all(found and int(found[2]) - int(found[1]) < 1 << 20 for found in asked_for)


def test_answers_that_have_no_end_are_not_read_to_it(
    hub: FakeHub, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f"{hub.url}/api/datasets/{NAME}/tree/{repository.commit}"
    with monkeypatch.context() as patch:
        patch.setattr(hub_source, "_MOST_PAGES", 7)
        patch.setattr(hub_source, "next_page", lambda *_: page)
        with (
            pytest.raises(TooLarge, match="a listing without end"),
            mounted(tmp_path, f"{SOURCE}/*.tar"),
        ):
            pass
        assert len(hub.log) == 1 + 7
    with monkeypatch.context() as patch:
        patch.setattr(hub_source, "_LARGEST", 100)
        with pytest.raises(TooLarge, match="more than 100 bytes"), mounted(tmp_path):
            pass
