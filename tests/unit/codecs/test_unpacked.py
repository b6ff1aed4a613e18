"""Files of every codec, by every way to read them."""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import random
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from shardfs.blob import Bytes, no_wait, read_all
from shardfs.codecs import _zlib
from shardfs.codecs.pieces import Pieced
from shardfs.codecs.replayed import Replayed
from shardfs.codecs.spilled import Spilled
from shardfs.errors import Unreadable, WouldBlock
from shardfs.stores import Entry
from tests.fakes import SlowBlob
from tests.packed_files import INDEXED, PLAIN, gzip_members, zstd_unsized
from tests.unit.codecs.shop import ALL, CACHES, CHANCE, CONTENT, WITHOUT, Shop, files, way

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.blob import Blob


pytestmark = pytest.mark.usefixtures("small_pieces")


# --- right bytes ---


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, CACHES["disk"]) for kind in ALL),
        *((kind, CACHES[how]) for kind in WITHOUT for how in ("small disk", "no disk")),
    ],
)
def test_it_reads_like_the_plain_bytes_by_many_threads(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, write(CONTENT), codec, **options)

    def read(seed: int, blob: Blob) -> None:
        chance = random.Random(seed)
        for _ in range(6):
            offset = chance.randrange(len(CONTENT) + 1000)
            length = chance.choice([1, 100, 5000, 131_072, 500_000])
            assert bytes(blob.read(offset, length)) == CONTENT[offset : offset + length]

    for _ in range(2):  # the second time with what the first has left on disk
        blob = shop.unpack()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(read, range(4), [blob] * 4))
        assert blob.size() == len(CONTENT)
        assert bytes(read_all(blob)) == CONTENT
        shop.workshop.close()
        shop.begin()


# Writers of parts leave nothing at all of nothing, which is no such stream.
@pytest.mark.parametrize(
    ("kind", "content"),
    [(kind, b"x") for kind in ALL]
    + [(kind, b"") for kind in ("gzip", "zstd", "xz", "bzip2", "lz4", "brotli")],
)
def test_next_to_nothing(tmp_path: Path, kind: str, content: bytes) -> None:
    codec, write = ALL[kind]
    blob = Shop(tmp_path, write(content), codec).unpack()
    assert bytes(blob.read(0, 10)) == content
    assert blob.size() == len(content)


@pytest.mark.parametrize("kind", INDEXED)
def test_files_with_places_to_start_from_go_without_a_copy_on_disk(
    tmp_path: Path, kind: str
) -> None:
    codec, write = INDEXED[kind]
    shop = Shop(tmp_path, write(CONTENT), codec, memory_limit=8 << 20)
    blob = shop.unpack()
    blob.size()
    assert way(blob) is Pieced
    assert set(files(tmp_path)) == {"index"}


@pytest.mark.parametrize("kind", PLAIN)
def test_other_files_are_written_to_disk_once(tmp_path: Path, kind: str) -> None:
    codec, write = PLAIN[kind]
    shop = Shop(tmp_path, SlowBlob(write(CONTENT)), codec)
    blob = shop.unpack()
    assert blob.size() == len(CONTENT)
    assert way(blob) is Spilled
    assert files(tmp_path)["unpacked"] - len(CONTENT) in range(200)
    shop.begin()
    shop.blob.reads.clear()  # type: ignore[attr-defined]
    assert bytes(shop.unpack().read(5, 10)) == CONTENT[5:15]
    assert shop.blob.reads == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["gzip", "zstd-skippable", "bzip2", "brotli", "lz4"])
def test_the_beginning_costs_only_the_beginning(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    content = CHANCE.randbytes(4 << 20)
    shop = Shop(tmp_path, SlowBlob(write(content)), codec)
    assert bytes(shop.unpack().read(0, 10)) == content[:10]
    reads = shop.blob.reads  # type: ignore[attr-defined]
    assert max(start + length for start, length in reads if length > 100) < 2 << 20


@pytest.mark.parametrize("kind", ["gzip", "gzip-members", "zstd-seekable", "xz-blocks"])
def test_a_later_mount_reads_only_what_it_needs(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, SlowBlob(write(CONTENT)), codec)
    shop.unpack().size()
    shop.begin()
    shop.blob.reads.clear()  # type: ignore[attr-defined]
    blob = shop.unpack()
    assert blob.size() == len(CONTENT)
    middle = len(CONTENT) // 2
    assert bytes(blob.read(middle, 10)) == CONTENT[middle : middle + 10]
    assert sum(length for _, length in shop.blob.reads) < 450_000  # type: ignore[attr-defined]


# --- memory ---


@pytest.mark.parametrize("kind", ["gzip", "zstd-frames", "xz-blocks", "bzip2", "lzma"])
def test_what_is_held_stays_in_the_budget(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, write(CONTENT), codec, **options, memory_limit=1 << 20)
    blob = shop.unpack()
    for offset in range(0, len(CONTENT), 90_000):
        blob.read(offset, 50_000)
        assert shop.memory.total <= 1 << 20


@pytest.mark.parametrize("stored", [zstandard.compress(CONTENT), zstd_unsized(CONTENT)])
def test_pieces_that_are_too_large_are_none(tmp_path: Path, stored: bytes) -> None:
    shop = Shop(tmp_path, stored, "zstd", memory_limit=2 << 20)
    blob = shop.unpack()
    assert bytes(blob.read(700_000, 10)) == CONTENT[700_000:700_010]
    assert way(blob) is Spilled
    assert bytes(read_all(blob)) == CONTENT


def test_a_deflate_block_without_end_is_no_piece(tmp_path: Path) -> None:
    # A writer with the most memory begins another block after 4 MB of zeros.
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31, 9)
    stored = deflate.compress(bytes(3 << 20)) + deflate.flush()
    blob = Shop(tmp_path, stored, "gz", memory_limit=1 << 20).unpack()
    assert blob.size() == 3 << 20
    assert bytes(blob.read((3 << 20) - 5, 10)) == bytes(5)
    assert way(blob) is Spilled


# --- many readers, one pass ---


@pytest.mark.parametrize("kind", ["gzip", "zstd-skippable", "bzip2", "brotli"])
def test_many_readers_make_one_pass(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    stored = write(CONTENT)

    class Counted(Bytes):
        def __init__(self, data: bytes) -> None:
            super().__init__(data)
            self.total, self.lock = 0, threading.Lock()

        def read(self, offset: int, length: int, /) -> memoryview:
            data = super().read(offset, length)
            with self.lock:
                self.total += len(data)
            return data

    shop = Shop(tmp_path, Counted(stored), codec, memory_limit=64 << 20)
    with ThreadPoolExecutor(16) as pool:
        blobs = list(pool.map(lambda _: shop.unpack(), range(16)))
        sizes = list(pool.map(lambda blob: blob.size(), blobs))
    assert set(sizes) == {len(CONTENT)}
    assert len({id(blob) for blob in blobs}) == 1
    assert shop.blob.total < 1.2 * len(stored) + 100_000  # type: ignore[attr-defined]


def test_without_waiting_it_would_block_until_it_is_there(tmp_path: Path) -> None:
    for codec, stored in (("gz", gzip.compress(CONTENT)), ("bz2", bz2.compress(CONTENT))):
        blob = Shop(tmp_path, stored, codec).unpack()
        for use in (blob.size, lambda blob=blob: blob.read(0, 10)):
            with no_wait(), pytest.raises(WouldBlock):
                use()
        blob.read(0, 10)
        with no_wait():
            assert bytes(blob.read(0, 10)) == CONTENT[:10]
            with pytest.raises(WouldBlock):
                blob.size()
        assert blob.size() == len(CONTENT)
        with no_wait():
            assert blob.size() == len(CONTENT)


# --- the disk cache ---


def test_without_room_on_disk_one_word_is_said(tmp_path: Path) -> None:
    shop = Shop(tmp_path, bz2.compress(CONTENT), "bz2", cache_size=200_000)
    blob = shop.unpack()
    assert bytes(blob.read(0, 400_000)) == CONTENT[:400_000]
    assert bytes(blob.read(len(CONTENT) - 10, 10)) == CONTENT[-10:]
    assert bytes(blob.read(0, 400_000)) == CONTENT[:400_000]
    assert way(blob) is Replayed
    assert shop.journal.count == 1
    assert b"d/file: slow" in shop.journal.lines()
    assert b"--cache-size" in shop.journal.lines()
    assert files(tmp_path) == {}


def test_a_disk_that_fills_up_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, write = 0, os.pwrite

    def fill(descriptor: int, data: Any, at: int) -> int:
        nonlocal written
        written += len(data)
        if written > 300_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data, at)

    shop = Shop(tmp_path, bz2.compress(CONTENT), "bz2")
    monkeypatch.setattr(os, "pwrite", fill)
    blob = shop.unpack()
    with ThreadPoolExecutor(4) as pool:
        for start, data in pool.map(
            lambda start: (start, bytes(blob.read(start, 120_000))),
            range(0, len(CONTENT), 100_000),
        ):
            assert data == CONTENT[start : start + 120_000]
    assert b"No space left" in shop.journal.lines()
    assert files(tmp_path) == {}


@pytest.mark.parametrize("kind", ["gzip", "bzip2"])
def test_a_replaced_file_is_not_served_stale(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, write(CONTENT), codec)
    shop.unpack().size()
    other = CONTENT[:-1000]
    shop.blob = Bytes(write(other))
    shop.begin()
    with pytest.raises(Unreadable, match="has changed"):
        shop.unpack()
    shop.entry = Entry("d/file", shop.blob.size(), 2, "v2")
    assert bytes(read_all(shop.unpack())) == other


@pytest.mark.parametrize("kind", ["gzip", "bzip2"])
def test_what_is_kept_can_be_made_anew(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, write(CONTENT), codec)
    shop.unpack().size()
    for place in tmp_path.rglob("*"):  # nobody checks the middle of what is kept
        if place.is_file():
            content = bytearray(place.read_bytes())
            content[100:200] = bytes(100)
            place.write_bytes(content)
    again = Shop(tmp_path, write(CONTENT), codec, rebuild_index=True)
    assert bytes(read_all(again.unpack())) == CONTENT
    shop.begin()
    assert bytes(read_all(shop.unpack())) == CONTENT


@pytest.mark.parametrize("kind", ["gzip", "bzip2"])
def test_files_without_a_version_leave_nothing(tmp_path: Path, kind: str) -> None:
    codec, write = ALL[kind]
    shop = Shop(tmp_path, write(CONTENT), codec)
    shop.entry = Entry("d/file", shop.blob.size(), 1, "")
    assert bytes(read_all(shop.unpack())) == CONTENT
    shop.workshop.close()
    assert files(tmp_path) == {}


def test_closing_leaves_nothing_half_made(tmp_path: Path) -> None:
    shop = Shop(tmp_path, bz2.compress(CONTENT), "bz2")
    blob = shop.unpack()
    blob.read(0, 10)
    assert set(files(tmp_path)) == {"unpacked"}
    shop.workshop.close()
    assert files(tmp_path) == {}
    assert bytes(read_all(blob)) == CONTENT  # whoever still reads can go on


# --- without zlib ---


def test_without_a_zlib_gzip_files_are_unpacked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("shardfs.codecs.gzip.library", "shardfs.codecs.gzip_points.library"):
        monkeypatch.setattr(module, lambda: None)
    shop = Shop(tmp_path, gzip_members(CONTENT, 300_000), "gz")
    blob = shop.unpack()
    assert bytes(read_all(blob)) == CONTENT
    assert way(blob) is Spilled


def test_a_machine_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    _zlib.library.cache_clear()
    try:
        assert _zlib.library() is None
    finally:
        monkeypatch.undo()
        _zlib.library.cache_clear()
    assert _zlib.library() is not None
