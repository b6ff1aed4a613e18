"""The folder to mount on, as far as it can be tried without a mount."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from shardfs.cli.mount_point import check, present, release
from shardfs.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def prepared(place: Path, source: str = "/src", *, allow_non_empty: bool = False) -> Iterator[bool]:
    owned = check(str(place), source, allow_non_empty=allow_non_empty)
    with present(str(place), owned=owned):
        yield owned


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_a_missing_folder_is_made_and_removed(here: Path) -> None:
    place = here / "m"
    with prepared(place) as made:
        assert made
        assert place.is_dir()
    assert not place.exists()


def test_it_is_removed_after_a_failure_too(here: Path) -> None:
    place = here / "m"
    with (
        pytest.raises(RuntimeError),
        prepared(place),
    ):
        raise RuntimeError
    assert not place.exists()


def test_what_somebody_put_there_stays(here: Path) -> None:
    place = here / "m"
    with prepared(place):
        (place / "mine").touch()
    assert (place / "mine").exists()


def test_a_folder_that_was_there_stays(here: Path) -> None:
    with prepared(here) as made:
        assert not made
    assert here.is_dir()


def refused(place: Path, source: Path, words: str, *, allow_non_empty: bool = False) -> None:
    with (
        pytest.raises(UsageError, match=words) as error,
        prepared(place, str(source), allow_non_empty=allow_non_empty),
    ):
        pytest.fail("it was accepted")
    assert str(place) in str(error.value)


def test_what_cannot_be_mounted_on(here: Path) -> None:
    (here / "file").touch()
    (here / "full" / "child").mkdir(parents=True)
    source = here / "source"
    refused(here / "file", source, "not a folder")
    refused(here / "file" / "m", source, "is not a folder")
    refused(here / "no" / "m", source, "there is no folder")
    refused(here / "full", source, "not empty")
    with prepared(here / "full", allow_non_empty=True) as made:
        assert not made


def test_source_and_mount_point_must_not_hold_each_other(here: Path) -> None:
    source = here / "source"
    (source / "m").mkdir(parents=True)
    (here / "link").symlink_to("source")
    refused(source / "m", source, "inside the source")
    refused(source / "new", here / "link", "inside the source")
    refused(source, source, "holds the source", allow_non_empty=True)
    refused(here, source, "holds the source", allow_non_empty=True)
    assert not (source / "new").exists()


def test_beside_a_single_shard_is_fine(here: Path) -> None:
    (here / "a.tar").touch()
    with prepared(here / "a", str(here / "a.tar")) as made:
        assert made


def test_nothing_is_unmounted_where_nothing_is(here: Path) -> None:
    with pytest.raises(NotFound, match="not a mount point"):
        release(str(here), lazy=False)
