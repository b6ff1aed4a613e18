from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from tests import DATA

fsspec = pytest.importorskip("fsspec")

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = DATA / "litdata" / "plain_dict"
WORDS = b"A red bicycle leaning against a brick wall"


@pytest.fixture
def files() -> Any:
    return fsspec.filesystem(
        "shardfs", source=str(PLAIN), options={"disk_cache": False}, skip_instance_cache=True
    )


def test_folders_are_listed(files: Any) -> None:
    assert files.ls("", detail=False) == ["chunk-0-0", "chunk-0-1", "index.json"]
    entry = files.ls("chunk-0-0")[0]
    assert (entry["name"], entry["type"], entry["size"]) == ("chunk-0-0/000000", "directory", None)
    assert files.isdir("chunk-0-0/000000")
    assert len(files.glob("chunk-0-0/*/caption.txt")) == 9
    assert len(files.find("")) == 14 * 3 + 1


def test_files_have_sizes_and_content(files: Any) -> None:
    path = "chunk-0-0/000000/caption.txt"
    assert files.info(path)["size"] == files.size(path) == len(WORDS)
    assert files.cat(f"shardfs://{path}") == WORDS
    assert files.cat_file(path, start=2, end=5) == WORDS[2:5]
    with files.open(path, "rt") as text:
        assert text.read().encode() == WORDS
    with files.open(path) as file:
        assert file.seek(-4, 2) == len(WORDS) - 4
        assert (file.read(), file.read(), file.tell()) == (WORDS[-4:], b"", len(WORDS))
        assert file.seek(100) == 100
        assert file.read() == b""


def test_a_chained_url_names_the_source_behind_the_path() -> None:
    with fsspec.open(f"shardfs://chunk-0-0/000000/caption.txt::{PLAIN}") as file:
        assert file.read() == WORDS


@pytest.mark.parametrize(
    ("use", "number"),
    [
        (lambda files: files.ls("none"), errno.ENOENT),
        (lambda files: files.open("none"), errno.ENOENT),
        (lambda files: files.open("chunk-0-0").read(), errno.EISDIR),
        (lambda files: files.ls("index.json/x"), errno.ENOTDIR),
    ],
)
def test_errors_are_those_of_a_mount(files: Any, use: Callable[[Any], Any], number: int) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        use(files)
    assert caught.value.errno == number


def test_nothing_can_be_written(files: Any) -> None:
    with pytest.raises(OSError, match="read-only"):
        files.open("new", "wb")


def test_a_source_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        fsspec.filesystem("shardfs", source=str(DATA / "none"), skip_instance_cache=True)
