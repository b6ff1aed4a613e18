from __future__ import annotations

import contextlib
import errno
import gc
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait, stored_at
from shardfs.cache.cached import Blobs
from shardfs.cache.disk import BLOCKS, DiskCache, Room
from shardfs.cache.kept import BLOCK
from shardfs.errors import Unexpected, Unreadable, WouldBlock
from tests.remote_fakes import RemoteBytes, cached, means, open_in
from tests.unit.cache.far import DATA, in_order, read, soon

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(Room(tmp_path, 1 << 30), BLOCKS)


def used(folder: Path) -> int:
    """Bytes of all files."""
    total = 0
    for place in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # just renamed
            total += place.lstat().st_size if place.is_file() else 0
    return total


# --- what is fetched ---


def test_only_what_is_read_is_fetched_and_only_once(source: RemoteBytes) -> None:
    blob = cached(source)
    for _ in range(2):
        read(blob, 5 * BLOCK + 10, 20)
    assert source.fetched == [(5 * BLOCK, BLOCK)]


def test_neighbours_come_by_one_request(source: RemoteBytes) -> None:
    blob = cached(source)
    read(blob, 5 * BLOCK + 10, 3 * BLOCK)
    assert source.fetched == [(5 * BLOCK, 4 * BLOCK)]


def test_what_lies_between_is_not_fetched_again(source: RemoteBytes) -> None:
    blob = cached(source)
    read(blob, 6 * BLOCK, 1)
    read(blob, 4 * BLOCK, 5 * BLOCK)
    assert sorted(source.fetched[1:]) == [(4 * BLOCK, 2 * BLOCK), (7 * BLOCK, 2 * BLOCK)]


@pytest.mark.parametrize(
    ("at", "begin", "end"),
    [
        (0, 0, 3),
        (5 * BLOCK, 5, 8),
        (len(DATA) - 8, 318, 320),  # at the end, what lies before it comes along
        (len(DATA) - BLOCK - 8, 318, 320),
    ],
)
def test_a_request_is_for_as_much_as_is_worth_one(
    source: RemoteBytes, at: int, begin: int, end: int
) -> None:
    blob = cached(source, least=3 * BLOCK - 5)
    read(blob, at, 8)
    blob.read((end - 1) * BLOCK, BLOCK)
    stop = min(end * BLOCK, len(DATA)) if end < 320 else len(DATA)
    assert source.fetched == [(begin * BLOCK, stop - begin * BLOCK)]


def test_what_is_there_is_not_fetched_along(source: RemoteBytes) -> None:
    blob = cached(source, least=4 * BLOCK)
    read(blob, 7 * BLOCK, 1)
    read(blob, 5 * BLOCK, 1)
    assert source.fetched == [(7 * BLOCK, 4 * BLOCK), (5 * BLOCK, 2 * BLOCK)]


def test_a_long_read_is_divided_among_connections(source: RemoteBytes) -> None:
    blob = cached(source, means(connections=8))
    source.gate.clear()
    thread = threading.Thread(target=read, args=(blob, 0, 48 * BLOCK))
    thread.start()
    soon(lambda: source._now == 6)
    source.gate.set()
    thread.join()
    assert sorted(source.fetched) == [(at * BLOCK, 8 * BLOCK) for at in range(0, 48, 8)]
    assert source.most == 6


def test_one_connection_is_one_request_at_a_time(source: RemoteBytes) -> None:
    blob = cached(source, means(connections=1))
    for at in range(0, len(DATA), 1 << 20):
        read(blob, at, 1 << 20)
    assert source.most == 1


def test_the_first_block_is_served_before_the_last_has_come(source: RemoteBytes) -> None:
    blob = cached(source, least=32 * BLOCK)
    let_through, gate = 3 * BLOCK, source.gate
    came = 0

    def wait(timeout: float) -> bool:
        nonlocal came
        came += 50_000
        return came < let_through or gate_wait(timeout)

    gate.clear()
    gate_wait, source.gate.wait = gate.wait, wait  # type: ignore[method-assign,assignment]
    read(blob, 0, 10)
    with no_wait(), pytest.raises(WouldBlock):
        blob.read(20 * BLOCK, 1)
    gate.set()


# --- memory ---


def test_what_is_in_memory_is_read_without_waiting(source: RemoteBytes) -> None:
    blob = cached(source)
    with no_wait(), pytest.raises(WouldBlock):
        blob.read(10, 10)
    read(blob, 0, BLOCK + 5)
    with no_wait():
        read(blob, 10, BLOCK)
        with pytest.raises(WouldBlock):
            blob.read(10, 5 * BLOCK)
    assert len(source.fetched) == 1


def test_memory_is_bounded_and_views_stay_right(source: RemoteBytes) -> None:
    what = means(memory=4 * BLOCK)
    blob = cached(source, what)
    first = blob.read(0, 100)
    for at in range(0, 4 << 20, BLOCK):
        read(blob, at, 10)
        assert what.keep.memory.total <= 4 * BLOCK
    assert bytes(first) == DATA[:100]
    read(blob, 0, 100)


def test_a_file_that_is_opened_again_finds_what_is_in_memory(source: RemoteBytes) -> None:
    blobs = Blobs(means())
    read(open_in(blobs, source), 0, 10)
    gc.collect()
    read(open_in(blobs, source), 0, 10)
    assert len(source.fetched) == 1


def test_content_without_a_name_is_kept_nowhere(source: RemoteBytes, disk: DiskCache) -> None:
    blobs = Blobs(means(disk))
    for _ in range(2):
        read(open_in(blobs, source, key=""), 0, 10)
    assert len(source.fetched) == 2


# --- disk ---


def test_another_mount_finds_it_on_disk(source: RemoteBytes, disk: DiskCache) -> None:
    read(cached(source, means(disk)), 3 * BLOCK - 5, 10)
    soon(lambda: disk.has("key\0" + "3"))

    def find() -> RemoteBytes:
        raise AssertionError("not even opened")

    blob = open_in(Blobs(means(disk)), source, find=find)
    read(blob, 3 * BLOCK - 5, 10)
    assert stored_at(blob) == 0


def test_another_version_does_not(source: RemoteBytes, disk: DiskCache) -> None:
    read(cached(source, means(disk)), 0, 10)
    other = RemoteBytes(b"x" * len(DATA))
    blob = cached(other, means(disk), key="another key")
    assert bytes(blob.read(0, 10)) == b"x" * 10


def test_damage_on_disk_is_noticed(source: RemoteBytes, disk: DiskCache, tmp_path: Path) -> None:
    read(cached(source, means(disk)), 0, 10)
    soon(lambda: disk.has("key\0" + "0"))
    (file,) = (tmp_path / BLOCKS).iterdir()
    content = bytearray(file.read_bytes())
    content[-5] ^= 1  # as after a power failure
    file.write_bytes(content)
    read(cached(source, means(disk)), BLOCK - 100, 100)
    assert len(source.fetched) == 2


def test_the_disk_cache_is_bounded(source: RemoteBytes, tmp_path: Path) -> None:
    limit = 10 * BLOCK
    disk = DiskCache(Room(tmp_path, limit), BLOCKS)
    what = means(disk, memory=BLOCK)
    blob = cached(source, what)
    for at in range(0, 8 << 20, BLOCK):
        read(blob, at, 10)
        assert used(tmp_path) <= limit
    assert len(list((tmp_path / BLOCKS).iterdir())) > 5


def test_mounts_share_a_folder(source: RemoteBytes, tmp_path: Path) -> None:
    blobs = [cached(source, means(DiskCache(Room(tmp_path, 1 << 30), BLOCKS))) for _ in range(3)]

    def work(number: int) -> None:
        for at in range(0, 3 << 20, BLOCK):
            read(blobs[number % 3], at, 10)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    soon(lambda: not [f for f in (tmp_path / BLOCKS).iterdir() if f.name.startswith(".new-")])
    again = RemoteBytes(DATA)
    read(cached(again, means(DiskCache(Room(tmp_path, 1 << 30), BLOCKS))), 0, 3 << 20)
    assert not again.fetched


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_without_room_on_disk_it_goes_on(
    source: RemoteBytes,
    disk: DiskCache,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "mkstemp", fail)
    blob = cached(source, means(disk))
    in_order(blob, 4 << 20)
    (message,) = caplog.messages
    assert os.strerror(number) in message


def test_offline_only_what_is_kept_can_be_read(source: RemoteBytes, disk: DiskCache) -> None:
    read(cached(source, means(disk)), 0, 10)
    soon(lambda: disk.has("key\0" + "0"))
    source.fetched.clear()
    blob = cached(source, means(disk, offline=True), least=4 * BLOCK)
    read(blob, 5, 100)
    started = time.monotonic()
    for offset, length in ((BLOCK, 1), (0, 2 * BLOCK)):
        with pytest.raises(Unreadable, match="the file: offline"):
            blob.read(offset, length)
    assert time.monotonic() - started < 1
    assert not source.fetched


# --- many threads ---


def test_a_block_is_on_its_way_once(source: RemoteBytes) -> None:
    blob = cached(source)
    source.gate.clear()
    with ThreadPoolExecutor(16) as pool:
        done = [pool.submit(read, blob, 10 * BLOCK + n, 100) for n in range(16)]
        soon(lambda: len(source.fetched) == 1)
        source.gate.set()
        for each in done:
            each.result()
    assert len(source.fetched) == 1


def test_a_stalled_file_leaves_a_connection_to_others(source: RemoteBytes) -> None:
    what = means(connections=4)
    stalled, other = cached(source, what, key="stalled"), cached(RemoteBytes(DATA), what)
    source.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(read, stalled, n << 20, 10) for n in range(8)]
        soon(lambda: source._now == 3)
        in_order(other, 8 << 20)
        assert source.most == 3
        source.gate.set()
        for each in waiting:
            each.result()


# --- failures ---


def test_a_failure_is_told_to_all_who_wait_and_then_it_is_tried_again(source: RemoteBytes) -> None:
    blob = cached(source)
    source.error, source.fails_after = Unreadable("it is gone"), 1
    source.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(blob.read, 0, 100) for _ in range(4)]
        soon(lambda: len(source.fetched) == 1)
        source.gate.set()
        for each in done:
            with pytest.raises(Unreadable, match="it is gone"):
                each.result()
    source.error = None
    read(blob, 0, 100)


def test_what_came_before_a_failure_is_there(source: RemoteBytes) -> None:
    blob = cached(source)
    source.error, source.fails_after = Unreadable("it is gone"), 3 * BLOCK
    with pytest.raises(Unreadable):
        blob.read(0, 8 * BLOCK)
    with no_wait():
        read(blob, 0, 3 * BLOCK)


def test_a_source_that_sends_too_little(source: RemoteBytes) -> None:
    blob = cached(source)
    source.data = DATA[: BLOCK + 5]
    read(blob, 0, 10)
    with pytest.raises(Unreadable, match="the file: the source sent too little"):
        blob.read(BLOCK, 100)


def test_what_nobody_thought_of_leaves_nobody_waiting(source: RemoteBytes) -> None:
    blob = cached(source)
    source.error = ZeroDivisionError("oops")
    for _ in range(2):
        with pytest.raises((Unexpected, ZeroDivisionError), match="oops"):
            blob.read(0, 10)
    source.error = None
    read(blob, 0, 10)


def test_when_closed_it_is_fetched_by_those_who_read(source: RemoteBytes) -> None:
    blobs = Blobs(means())
    blob = open_in(blobs, source)
    blobs.close()
    read(blob, 0, 16 * BLOCK)
    assert source.most == 1


def test_closing_waits_for_what_is_being_fetched_but_not_long(source: RemoteBytes) -> None:
    blobs = Blobs(means())
    blob = open_in(blobs, source)
    source.gate.clear()
    thread = threading.Thread(target=read, args=(blob, 0, 10))
    thread.start()
    soon(lambda: source._now == 1)
    threading.Timer(0.2, source.gate.set).start()
    blobs.close()
    assert source._now == 0
    thread.join()
