from __future__ import annotations

import errno
import os
import random
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.packed_files import PLAIN
from tests.zip_files import DEFLATED, ENCRYPTED, Item, make_zip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mount.conftest import Runner

CHANCE = random.Random(1)
LARGE = CHANCE.randbytes(3 << 20) + bytes(20 << 20)


def read(place: Path, seed: int) -> bool:
    """Whether parts of a large file are what they should be."""
    chance = random.Random(seed)
    with place.open("rb") as file:
        for _ in range(20):
            offset, length = chance.randrange(len(LARGE)), chance.choice([1, 4096, 300_000])
            if os.pread(file.fileno(), length, offset) != LARGE[offset : offset + length]:
                return False
    return True


def test_a_zip_as_the_source(shardfs: Runner) -> None:
    items = [
        Item(name=b"d/stored", data=LARGE),
        Item(name=b"d/deflated", data=LARGE, method=DEFLATED),
        Item(name=b"wrong", data=b"x" * 1000, crc=1),
        Item(name=b"secret", data=b"x", flags=ENCRYPTED),
    ]
    source = shardfs.folder / "source.zip"
    source.write_bytes(make_zip(items))
    assert shardfs("mount", source, shardfs.place).returncode == 0
    assert sorted(os.listdir(shardfs.place)) == ["d", "secret", "wrong"]
    for name in ("stored", "deflated"):
        place = shardfs.place / "d" / name
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda seed, place=place: read(place, seed), range(8)))
        assert place.read_bytes() == LARGE
    for name, code in (("wrong", errno.EIO), ("secret", errno.EACCES)):
        with pytest.raises(OSError, match=os.strerror(code)):
            (shardfs.place / name).read_bytes()
    assert b"wrong: has a CRC-32" in (shardfs.place / ".shardfs/errors.jsonl").read_bytes()


@pytest.mark.parametrize("options", [(), ("--cache-size", "1M"), ("--no-disk-cache",)])
def test_a_file_without_places_to_start_from(shardfs: Runner, options: tuple[str, ...]) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    plain = shardfs.folder / "plain.tar"
    content = shardfs.folder / "a.bin"
    content.write_bytes(LARGE)
    with tarfile.open(plain, "w") as archive:
        archive.add(content, "a.bin")
    (shardfs.source / "s.tar.lz4").write_bytes(PLAIN["lz4"][1](plain.read_bytes()))
    for _ in range(2):
        shardfs.mount(*options)
        place = shardfs.place / "s" / "a" / "a.bin"
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda seed, place=place: read(place, seed), range(8)))
        assert place.read_bytes() == LARGE
        assert shardfs("umount", shardfs.place).returncode == 0
        left = [path.name for path in shardfs.folder.rglob("unpacked/*")]
        assert len(left) == (0 if options else 1)
        assert not any(name.startswith(".new-") for name in left)
