from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from shardfs.cache.trust import distrust, make

if TYPE_CHECKING:
    from pathlib import Path

INSIDE = ("index", "unpacked", "blocks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "above" / "cache"
    make(folder)
    (folder / "index").mkdir(mode=0o700)
    return folder


def test_a_folder_that_is_made_is_for_its_user_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert distrust(folder, INSIDE) == ""


def test_what_is_not_there_is_no_fault(tmp_path: Path) -> None:
    assert distrust(tmp_path / "nothing", INSIDE) == ""


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o770, 0o777, 0o1777])
@pytest.mark.parametrize("inside", ["", "index"])
def test_where_others_can_write_nothing_is_believed(folder: Path, mode: int, inside: str) -> None:
    (folder / inside).chmod(mode)
    fault = distrust(folder, INSIDE)
    assert "others can write" in fault
    assert str(folder / inside) in fault


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o500])
def test_others_may_look(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert distrust(folder, INSIDE) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("inside", ["", "index"])
def test_the_folder_of_another_is_not_believed(folder: Path, inside: str) -> None:
    os.chown(folder / inside, 12345, -1)
    assert "another user" in distrust(folder, INSIDE)


def test_the_folder_may_be_a_link_but_those_inside_may_not(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert distrust(link, INSIDE) == ""
    (folder / "blocks").symlink_to(folder / "index")
    assert "is a link" in distrust(link, INSIDE)


def test_a_link_is_as_good_as_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    folder.chmod(0o777)
    assert "others can write" in distrust(link, INSIDE)


def test_nobody_may_put_another_folder_in_its_place(folder: Path) -> None:
    folder.parent.chmod(0o777)
    assert "others can replace" in distrust(folder, INSIDE)
    folder.parent.chmod(0o1777)
    assert distrust(folder, INSIDE) == ""


def test_a_folder_that_can_not_be_made_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    make(tmp_path / "file" / "cache")
    assert distrust(tmp_path / "file" / "cache", INSIDE) == ""
