"""What users of such mounts reported, as it must be: poisoned records, cut archives, names that clash."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import struct
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.mount.conftest import Runner


def tree(folder: Path) -> dict[str, bytes | None]:
    """All files by path, None for those that can't be read."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_dir():
            try:
                found[str(path.relative_to(folder))] = path.read_bytes()
            except OSError:
                found[str(path.relative_to(folder))] = None
    return found


def tar_of(path: Path, members: Iterable[tuple[str, bytes]]) -> list[tarfile.TarInfo]:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    with tarfile.open(path) as tar:
        return tar.getmembers()


def test_a_poisoned_record_harms_only_itself(shardfs: Runner) -> None:
    clean, poisoned = DATA / "mds" / "plain", shardfs.folder / "poisoned"
    shutil.copytree(clean, poisoned)
    shard = poisoned / "shard.00000.mds"
    data = bytearray(shard.read_bytes())
    count = int.from_bytes(data[:4], "little")
    bad = count // 2
    # The offset at which the record ends and the next one begins lies beyond the file.
    struct.pack_into("<I", data, 4 + 4 * (bad + 1), 0xFFFFFFF0)
    shard.write_bytes(data)
    assert shardfs("mount", clean, shardfs.place).returncode == 0
    right = {name: content for name, content in tree(shardfs.place).items() if "/" in name}
    assert shardfs("umount", shardfs.place).returncode == 0
    assert shardfs("mount", poisoned, shardfs.place).returncode == 0
    records = sorted(os.listdir(shardfs.place / "shard.00000"))
    assert len(records) == count
    hurt = {f"shard.00000/{bad:06d}", f"shard.00000/{bad + 1:06d}"}
    for name, content in right.items():
        if name.rpartition("/")[0] in hurt:
            with pytest.raises(OSError, match=os.strerror(errno.EIO)):
                (shardfs.place / name).read_bytes()
        else:
            assert (shardfs.place / name).read_bytes() == content
    faults = (shardfs.place / ".shardfs" / "errors.jsonl").read_text().splitlines()
    messages = [json.loads(fault)["message"] for fault in faults]
    assert any("shard.00000.mds" in text and f"record {bad}" in text for text in messages)


def test_a_cut_tar_shows_what_is_whole_and_nothing_short(shardfs: Runner) -> None:
    path = shardfs.folder / "cut.tar"
    members = [
        (f"{sample}.{field}", bytes([sample]) * size)
        for sample in range(4)
        for field, size in (("jpg", 3000), ("json", 2000))
    ]
    third = tar_of(path, members)[5]  # the second member of the third sample
    with path.open("r+b") as file:
        file.truncate(third.offset_data + 700)
    assert shardfs("mount", path, shardfs.place).returncode == 0
    found = tree(shardfs.place / "cut")
    for name, data in members[:5]:
        assert found.pop(f"{name.partition('.')[0]}/{name}") == data
    assert found in ({}, {"2/2.json": None})


def test_names_that_clash_are_all_there_and_the_same_after_a_remount(shardfs: Runner) -> None:
    path = shardfs.folder / "clash.tar"
    members = [
        ("a/b.txt", b"1"),
        ("a_b.txt", b"2"),
        ("A.txt", b"3"),
        ("a.txt", b"4"),  # the key of a folder
        ("a/b.txt", b"5"),  # the same member once more
        ("c.txt", b"6"),
        ("./c.txt", b"7"),
        ("c", b"8"),  # no key, named like one
    ]
    tar_of(path, members)
    seen = []
    for _ in range(2):
        assert shardfs("mount", path, shardfs.place).returncode == 0
        seen.append(tree(shardfs.place / "clash"))
        assert shardfs("umount", shardfs.place).returncode == 0
    assert seen[0] == seen[1]
    assert sorted(content or b"" for content in seen[0].values()) == [data for _, data in members]
    assert seen[0]["a/b/b.txt"] == b"1"
    assert seen[0]["a/b/b~1.txt"] == b"5"
    assert seen[0]["a/a.txt"] == b"4"
    assert seen[0]["c~1"] == b"8"
