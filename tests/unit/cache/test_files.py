from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait, read_all
from shardfs.cache.disk import NoRoom, Room
from shardfs.cache.files import Files
from shardfs.cache.memory import Derived, Memory

if TYPE_CHECKING:
    from pathlib import Path


class Owner:
    """Anything that can be referred to weakly."""


def names(folder: Path) -> list[str]:
    return [place.name for place in folder.rglob("*") if place.is_file()]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(Room(tmp_path, 10_000), 10_000)


def test_what_is_large_lies_in_a_file_and_takes_no_memory(files: Files, tmp_path: Path) -> None:
    memory, owner = Memory(1000, files), Owner()
    content = os.urandom(800)
    blob = memory.keep(owner, content)
    assert bytes(read_all(blob)) == content
    assert memory.total == 0
    assert len(names(tmp_path)) == 1
    found = memory.kept(owner)
    assert found is not None
    assert bytes(found.read(10, 20)) == content[10:30]
    del owner, blob, found
    gc.collect()
    assert names(tmp_path) == []


def test_what_is_small_does_not(files: Files, tmp_path: Path) -> None:
    memory, owner = Memory(1000, files), Owner()
    memory.keep(owner, bytes(600))
    assert memory.total == 600
    assert names(tmp_path) == []


def test_large_derived_bytes_are_read_without_waiting_once_they_are_made(files: Files) -> None:
    content = os.urandom(900)
    derived = Derived(lambda: content, Memory(1000, files))
    assert derived.size() == 900
    with no_wait():
        assert bytes(derived.read(0, 900)) == content


def test_files_have_a_budget_of_their_own(files: Files, tmp_path: Path) -> None:
    memory, owners = Memory(1000, files), [Owner() for _ in range(4)]
    for owner in owners:
        memory.keep(owner, bytes(2000))
    assert [memory.kept(owner) is not None for owner in owners] == [False, False, True, True]
    assert len(names(tmp_path)) == 2


def test_what_finds_no_room_on_disk_is_in_memory(tmp_path: Path) -> None:
    memory, owner = Memory(1000, Files(Room(tmp_path, 500), 500)), Owner()
    assert bytes(read_all(memory.keep(owner, bytes(800)))) == bytes(800)
    assert memory.total == 800
    assert names(tmp_path) == []


def test_closing_leaves_nothing(files: Files, tmp_path: Path) -> None:
    memory, owner = Memory(1000, files), Owner()
    blob = memory.keep(owner, b"x" * 900)
    files.close()
    assert names(tmp_path) == []
    assert bytes(blob.read(0, 3)) == b"xxx", "who has it open can read on"
    spill = files.create()
    files.close()
    with pytest.raises(NoRoom):
        spill.append(memoryview(b"more"))
