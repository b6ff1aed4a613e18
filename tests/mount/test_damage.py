"""What is left of a compressed tar that is damaged, and what is around it."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.packed_files import INDEXED, PLAIN
from tests.property.test_damage import codec_of, served

if TYPE_CHECKING:
    from tests.mount.conftest import Runner

CHANCE = random.Random(4)
WORDS = [CHANCE.randbytes(CHANCE.randrange(2, 9)) for _ in range(400)]
MEMBERS = [b" ".join(CHANCE.choices(WORDS, k=4000)) for _ in range(80)]
# A member whose header is behind the damage is not known of.
GONE = f"{os.strerror(errno.EIO)}|{os.strerror(errno.ENOENT)}"


def tar() -> tuple[bytes, list[int]]:
    """(a tar, where the content of each member ends)."""
    target, ends = io.BytesIO(), []
    with tarfile.open(fileobj=target, mode="w") as archive:
        for number, data in enumerate(MEMBERS):
            member = tarfile.TarInfo(f"{number:06d}.bin")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            ends.append(archive.offset - (-len(data) % 512))
    return target.getvalue(), ends


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("zstd", ()),
        ("zstd-unsized", ("--no-disk-cache",)),
        ("gzip", ()),
        ("xz", ("--no-disk-cache",)),
        ("bzip2", ()),
        ("lz4", ("--no-disk-cache",)),
        ("lzma", ()),
    ],
)
def test_a_cut_tar_shows_all_that_comes_out_of_it(
    shardfs: Runner, kind: str, options: tuple[str, ...]
) -> None:
    plain, ends = tar()
    codec, write = {**INDEXED, **PLAIN}[kind]
    stored = write(plain)
    stored = stored[: len(stored) * 7 // 10]
    (shardfs.source / "cut.tar").write_bytes(stored)
    (shardfs.source / "whole.tar").write_bytes(write(plain))
    given, _ = served(codec_of(codec), stored, 1 << 19)
    whole = sum(end <= len(given) for end in ends)
    assert 10 < whole < len(MEMBERS)
    shardfs.mount(*options)

    def read(shard: str, number: int) -> bytes:
        return (shardfs.place / shard / f"{number:06d}/{number:06d}.bin").read_bytes()

    for number in reversed(range(whole)):
        assert read("cut", number) == MEMBERS[number]
    for _ in range(2):
        with pytest.raises(OSError, match=GONE):
            read("cut", whole)
    assert len(os.listdir(shardfs.place / "cut")) <= whole + 1
    assert [read("whole", number) for number in range(len(MEMBERS))] == MEMBERS
    lines = (shardfs.place / ".shardfs/errors.jsonl").read_text().splitlines()
    damage = [json.loads(line) for line in lines if "slow" not in line]
    assert 1 <= len(damage) <= 2
    assert all("cut.tar" in str(line) for line in damage)
