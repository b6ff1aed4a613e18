"""What is wrong with compressed files, or with what they come from."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, TooLarge, Unreadable
from tests.packed_files import parts, xz_blocks
from tests.unit.codecs.shop import ALL, CONTENT, Shop

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.blob import Blob


pytestmark = pytest.mark.usefixtures("small_pieces")


# --- damage ---


def checksummed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def good_part(blob: Blob) -> int:
    """How many bytes can be read from the beginning on."""
    good, bad = 0, len(CONTENT) + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            good, bad = (middle, bad) if len(blob.read(0, middle)) == middle else (good, middle)
        except Corrupt:
            bad = middle
    return good


@pytest.mark.parametrize("kind", sorted(set(ALL) - {"zstd-seekable", "zstd-seekable-checked"}))
def test_before_a_cut_all_is_right_and_the_end_is_an_error(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    codec, write = ALL[kind]
    stored = write(CONTENT)
    blob = Shop(tmp_path, stored[: len(stored) * 2 // 3], codec, **options).unpack()
    with pytest.raises(Corrupt):
        blob.size()
    with pytest.raises(Corrupt):
        blob.read(len(CONTENT) - 5, 5)
    good = good_part(blob)
    # What a cut block held is lost; bzip2's have 900 KB.
    assert good > len(CONTENT) * 0.4 or codec == "bz2"
    assert bytes(blob.read(0, good)) == CONTENT[:good]
    with pytest.raises(Corrupt):
        blob.read(good - 1, 2)


@pytest.mark.parametrize("kind", ["gzip", "gzip-members", "xz", "zstd-unsized", "bzip2"])
def test_before_a_wrong_checksum_all_can_be_read(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    codec, write = ALL[kind]
    stored = bytearray(write(CONTENT))
    at = {"gz": -8, "xz": -40, "zstd": -4, "bz2": -6}[codec]
    stored[at] ^= 0x10
    blob = Shop(tmp_path, bytes(stored), codec, **options).unpack()
    with pytest.raises(Corrupt):
        blob.read(len(CONTENT) - 1, 2)
    good = good_part(blob)
    assert bytes(blob.read(0, good)) == CONTENT[:good]
    assert good > len(CONTENT) - (128 << 10)


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        ("zstd", b"".join(map(checksummed, parts(CONTENT, 100_000)))),
        ("xz", xz_blocks(CONTENT, 100_000)),
    ],
)
def test_damage_in_one_piece_harms_only_that(tmp_path: Path, codec: str, stored: bytes) -> None:
    broken = bytearray(stored)
    broken[len(broken) // 2 : len(broken) // 2 + 20] = bytes(20)
    blob = Shop(tmp_path, bytes(broken), codec).unpack()
    assert blob.size() == len(CONTENT)
    damaged = 0
    for start in range(0, len(CONTENT), 100_000):
        try:
            assert bytes(blob.read(start, 100_000)) == CONTENT[start : start + 100_000]
        except Corrupt:
            damaged += 1
    assert damaged == 1


@pytest.mark.parametrize("codec", ["gz", "zstd", "xz", "bz2", "lz4"])
def test_what_is_no_such_file(tmp_path: Path, codec: str) -> None:
    blob = Shop(tmp_path, b"<html>" * 100, codec).unpack()
    for _ in range(2):
        with pytest.raises(Corrupt):
            blob.read(0, 1)


# (pyarrow's LZ4 looks ahead: it loses the last few KB.)
@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_garbage_behind_the_end_is_an_error_there_and_no_earlier(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    blob = Shop(tmp_path, write(CONTENT) + b"garbage", codec).unpack()
    assert bytes(blob.read(0, len(CONTENT))) == CONTENT
    with pytest.raises(Corrupt):
        blob.size()


def test_a_bomb_is_stopped(tmp_path: Path) -> None:
    stored = bz2.compress(bytes(8 << 20))
    assert len(stored) < 1000
    shop = Shop(tmp_path, stored, "bz2", max_chunk_size=1 << 20)
    blob = shop.unpack()
    assert bytes(blob.read(0, 10)) == bytes(10)
    with pytest.raises(TooLarge, match="max-chunk-size"):
        blob.size()


# --- a source that fails ---


class Flaky(Bytes):
    """Fails once at each of several places."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.bad = [len(data) * part // 100 for part in (10, 40, 41, 80)]
        self.failures = 0

    def read(self, offset: int, length: int, /) -> memoryview:
        for place in self.bad:
            if offset <= place < offset + length:
                self.bad.remove(place)
                self.failures += 1
                raise Unreadable("no network")
        return super().read(offset, length)


@pytest.mark.parametrize("kind", ["gzip", "gzip-members", "zstd-unsized", "xz-blocks", "lz4"])
def test_a_source_that_fails_is_asked_again(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    codec, write = ALL[kind]
    source = Flaky(write(CONTENT))
    blob = Shop(tmp_path, source, codec, **options).unpack()
    failed = 0
    for offset in range(0, len(CONTENT), 100_000):
        while True:
            try:
                data = blob.read(offset, 100_000)
                break
            except Unreadable:
                failed += 1
        assert bytes(data) == CONTENT[offset : offset + 100_000]
    assert blob.size() == len(CONTENT)
    assert failed == source.failures > 0
