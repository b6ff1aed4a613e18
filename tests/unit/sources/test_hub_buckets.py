from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import constants

from shardfs.errors import (
    AccessDenied,
    NotFound,
    Unreadable,
)
from tests.fake_bucket import CHANGED_NS, FakeBucket
from tests.fake_bucket import NAME as BUCKET
from tests.hub_repos import (
    OTHER,
    TAR,
    TOKEN,
    content,
    info,
    mounted,
    names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bucket(hasty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeBucket]:
    files = {"data/x.tar": TAR, "data/deep/y.tar": TAR, "data2/z.tar": TAR, "notes": b"notes"}
    with FakeBucket(files) as bucket:
        monkeypatch.setattr(constants, "ENDPOINT", bucket.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "downloads"))
        yield bucket


@pytest.mark.parametrize(
    ("path", "shown", "file"),
    [
        ("", ["data", "data2", "notes"], "data/x/a/a.txt"),
        ("/data", ["x", "deep"], "x/a/a.txt"),
        ("/data/x.tar", ["x"], "x/a/a.txt"),
        ("/data/*.tar", ["x"], "x/a/a.txt"),
        ("/data/deep/", ["y"], "y/a/a.txt"),
    ],
)
@pytest.mark.parametrize("pages", [1000, 1], ids=["at once", "by folder"])
def test_buckets(
    bucket: FakeBucket, tmp_path: Path, path: str, shown: list[str], file: str, pages: int
) -> None:
    bucket.page_size = pages
    with mounted(tmp_path, f"hf://buckets/{BUCKET}{path}") as tree:
        assert names(tree) == shown
        assert content(tree, file) == b"first"
        assert (tree.root / file).mtime_ns == CHANGED_NS
        assert "revision" not in json.loads(info(tree))
    with mounted(tmp_path, f"hf://buckets/{BUCKET}{path}", offline=True) as tree:
        assert content(tree, file) == b"first"


def test_the_requests_for_a_bucket(bucket: FakeBucket, tmp_path: Path) -> None:
    bucket.token = TOKEN
    with pytest.raises(AccessDenied, match=f"/buckets/{BUCKET} is private.*HF_TOKEN"):
        mounted(tmp_path, f"hf://buckets/{BUCKET}").__enter__()
    bucket.log.clear()
    with mounted(tmp_path, f"hf://buckets/{BUCKET}", token=TOKEN) as tree:
        assert bucket.log == [
            (f"GET /api/buckets/{BUCKET}", True),
            (f"GET /api/buckets/{BUCKET}/tree", True),
        ]
        bucket.log.clear()
        assert content(tree, "data/x/a/a.txt") == b"first"
        assert bucket.log[0] == (f"GET /buckets/{BUCKET}/resolve/data/x.tar", True)
        assert [has_token for _, has_token in bucket.log[1:]] == [False]


def test_a_file_of_a_bucket_that_changes_is_an_error_and_no_mix(
    bucket: FakeBucket, tmp_path: Path
) -> None:
    with mounted(tmp_path, f"hf://buckets/{BUCKET}") as tree:
        bucket.files["data/x.tar"] = OTHER
        with pytest.raises(Unreadable, match=r"x.tar: has changed since it was mounted"):
            content(tree, "data/x/a/a.txt")
    with mounted(tmp_path, f"hf://buckets/{BUCKET}") as tree:
        assert content(tree, "data/x/a/a.txt") == b"FIRST"


@pytest.mark.parametrize("path", ["/none", "/data/none.tar", "/dat", "/data/x.tar/y"])
def test_what_is_in_no_bucket(bucket: FakeBucket, tmp_path: Path, path: str) -> None:
    with pytest.raises(NotFound, match=f"hf://buckets/{BUCKET}"):
        mounted(tmp_path, f"hf://buckets/{BUCKET}{path}").__enter__()
