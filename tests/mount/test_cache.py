"""The disk cache on real mounts: what is in it is believed for a reason, or made anew."""

from __future__ import annotations

import io
import os
import random
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests import packed_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mount.conftest import Runner

DICE = random.Random(3)
MEMBERS = {f"{number:04d}.txt": DICE.randbytes(900).hex().encode() for number in range(300)}


def flip(data: bytearray, dice: random.Random) -> None:
    for _ in range(1 + len(data) // 4096):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


def zero(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at:] = bytes(len(data) - at)


@pytest.fixture
def source(shardfs: Runner) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    plain = buffer.getvalue()
    folder = shardfs.folder / "shards"
    folder.mkdir()
    (folder / "b.tar.bz2").write_bytes(packed_files.PLAIN["bzip2"][1](plain))
    (folder / "g.tar.gz").write_bytes(packed_files.gzip_members(plain, 100_000))
    (folder / "t.tar").write_bytes(plain)
    (folder / "j.jsonl").write_bytes(b'{"a": 1}\n' * 3000)
    shardfs.place_source(folder)
    return folder


def check(shardfs: Runner) -> None:
    shardfs.mount()
    try:
        for shard in "bgt":
            # All of them, for which the scan has to come to the end.
            assert len(os.listdir(shardfs.place / shard)) == len(MEMBERS)
            for name, content in MEMBERS.items():
                found = (shardfs.place / shard / name[:4] / name).read_bytes()
                assert found == content, (shard, name)
        assert (shardfs.place / "j/002999/a.txt").read_bytes() == b"1\n"
        assert (shardfs.place / ".shardfs/errors.jsonl").read_bytes() == b""
    finally:
        assert shardfs("umount", shardfs.place).returncode == 0


def kept(shardfs: Runner) -> list[Path]:
    cache = shardfs.folder / "cache" / "shardfs"
    return sorted(place for place in cache.rglob("*") if place.is_file())


@pytest.mark.parametrize("damage", [flip, cut, zero])
def test_what_became_of_the_cache_shows_in_no_byte(
    shardfs: Runner, source: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    check(shardfs)
    before = {place.name for place in kept(shardfs)}
    assert len(before) >= 5
    for seed in range(3):
        for number, place in enumerate(kept(shardfs)):
            data = bytearray(place.read_bytes())
            damage(data, random.Random(f"{seed} {number}"))
            place.write_bytes(data)
        check(shardfs)
        assert {place.name for place in kept(shardfs)} >= before, "it is made anew"


def test_files_under_the_names_of_others_are_not_taken(shardfs: Runner, source: Path) -> None:
    check(shardfs)
    found = kept(shardfs)
    contents = [place.read_bytes() for place in found]
    for place, content in zip(found, contents[1:] + contents[:1], strict=True):
        place.write_bytes(content)
    check(shardfs)


@pytest.mark.parametrize("inside", ["", "index"])
def test_a_cache_that_others_can_write_in_is_not_used(
    shardfs: Runner, source: Path, inside: str
) -> None:
    check(shardfs)
    folder = shardfs.folder / "cache" / "shardfs" / inside
    folder.chmod(0o777)
    for place in kept(shardfs):
        place.write_bytes(b"what somebody else has put there")
    run = shardfs("mount", shardfs.source, shardfs.place)
    assert run.returncode == 0
    assert str(folder) in run.stderr
    assert "not used" in run.stderr
    assert (shardfs.place / "t/0000/0000.txt").read_bytes() == MEMBERS["0000.txt"]
    assert (shardfs.place / "b/0299/0299.txt").read_bytes() == MEMBERS["0299.txt"]
    assert {place.read_bytes() for place in kept(shardfs)} == {b"what somebody else has put there"}
