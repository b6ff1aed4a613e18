"""What a user names as the source: files by braces, files whose names say nothing."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

from tests.tar_files import archive, member

if TYPE_CHECKING:
    from tests.mount.conftest import Runner

TAR = archive(member("0001.txt", b"one"))


def test_members_of_a_brace_that_are_not_there_are_told(shardfs: Runner) -> None:
    for number in range(3):
        (shardfs.source / f"s-{number:03d}.tar").write_bytes(TAR)
    run = shardfs("mount", f"{shardfs.source}/s-{{000..009}}.tar", shardfs.place)
    told = "7 of the 10 files that the source names are not there: s-003.tar"
    assert run.returncode == 0
    assert run.stderr.count(told) == 1
    assert sorted(os.listdir(shardfs.place)) == ["s-000", "s-001", "s-002"]
    lines = (shardfs.place / ".shardfs/errors.jsonl").read_text().splitlines()
    assert [told in json.loads(line)["message"] for line in lines] == [True]


def test_where_all_members_are_missing_nothing_is_mounted(shardfs: Runner) -> None:
    run = shardfs("mount", f"{shardfs.source}/s-{{000..009}}.tar", shardfs.place)
    assert run.returncode != 0
    assert "no such file" in run.stderr
    assert not shardfs.mounts(shardfs.place)


def test_a_source_whose_name_says_nothing(shardfs: Runner) -> None:
    for name, shown in (("5c3a91d0f2", "5c3a91d0f2"), ("x.tar?download=true", "x")):
        shutil.rmtree(shardfs.source)
        shardfs.source.mkdir()
        (shardfs.source / name).write_bytes(TAR)
        assert shardfs("mount", shardfs.source / name, shardfs.place).returncode == 0
        assert os.listdir(shardfs.place) == [shown]
        assert (shardfs.place / shown / "0001/0001.txt").read_bytes() == b"one"
        assert shardfs("umount", shardfs.place).returncode == 0


def test_shards_in_tars_are_folders_where_that_is_asked_for(shardfs: Runner) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    outer = archive(
        member("in.tar", TAR), member("a/rows.jsonl", b'{"t": 7}\n'), member("b.txt", b"b")
    )
    (shardfs.source / "outer.tar").write_bytes(outer)
    (shardfs.source / "plain.tar").write_bytes(TAR)
    shardfs.mount("--recursive")
    right = {
        "outer/in/0001/0001.txt": b"one",
        "outer/a/rows/000000/t.txt": b"7\n",
        "outer/b.txt": b"b",
        "plain/0001/0001.txt": b"one",
    }
    found = {str(p.relative_to(shardfs.place)): p for p in shardfs.place.rglob("*") if p.is_file()}
    assert {path: place.read_bytes() for path, place in found.items()} == right
