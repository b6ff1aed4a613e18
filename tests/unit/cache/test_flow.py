"""Requests that go on as long as reading does."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.cache import flow
from shardfs.cache.cached import Blobs
from shardfs.cache.disk import BLOCKS, DiskCache, Room
from shardfs.cache.kept import BLOCK
from shardfs.errors import Unreadable
from tests.remote_fakes import RemoteBytes, cached, means, open_in
from tests.unit.cache.far import DATA, in_order, read, soon

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.cache.cached import CachedBlob

MIB = 1 << 20


@pytest.fixture(params=["one connection", "costly requests"])
def blob(request: pytest.FixtureRequest, source: RemoteBytes) -> CachedBlob:
    if request.param == "one connection":
        return cached(source, means(connections=1))
    return cached(source, least=MIB)


def idle(source: RemoteBytes) -> None:
    soon(lambda: source._now == 0)


def test_reading_in_order_is_few_requests_one_at_a_time(
    blob: CachedBlob, source: RemoteBytes
) -> None:
    in_order(blob, len(DATA))
    idle(source)
    assert source.sent < len(DATA) + MIB  # a request that is given up has sent a little more
    assert len(source.fetched) < 12
    assert source.most == 1
    assert source.fetched[-1][1] > 16 * MIB  # more than is ever ahead


def test_so_it_is_where_several_threads_read_it(blob: CachedBlob, source: RemoteBytes) -> None:
    with ThreadPoolExecutor(4) as pool:
        spans = [(at, min(MIB, len(DATA) - at)) for at in range(0, len(DATA), MIB)]
        assert len(list(pool.map(lambda span: read(blob, *span), spans))) == len(spans)
    idle(source)
    assert source.sent < len(DATA) + MIB
    assert source.most <= 4


def test_a_reader_who_stops_is_not_far_behind(
    blob: CachedBlob, source: RemoteBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "_PATIENCE", 0.05)
    in_order(blob, 8 * MIB)
    idle(source)
    assert source.sent <= 8 * MIB + 8 * MIB + 2 * BLOCK  # as much again as was read
    before = len(source.fetched)
    in_order(blob, len(DATA))
    assert source.sent < len(DATA) + MIB
    assert len(source.fetched) <= before + 4


def test_the_connection_is_held_for_a_reader_who_comes_soon(
    blob: CachedBlob, source: RemoteBytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "_PATIENCE", 5.0)
    in_order(blob, 8 * MIB)
    time.sleep(0.1)
    assert source._now == 1
    in_order(blob, 16 * MIB)
    assert len(source.fetched) < 12


def test_who_reads_elsewhere_gets_his_turn(source: RemoteBytes) -> None:
    blob = cached(source, means(connections=1))
    done = threading.Event()

    def go_round() -> None:
        while not done.is_set():
            in_order(blob, 8 * MIB)

    reader = threading.Thread(target=go_round)
    reader.start()
    try:
        for at in range(len(DATA) - MIB, 20 * MIB, -MIB):
            read(blob, at, 100)
    finally:
        done.set()
        reader.join()
    assert source.most == 1


def test_two_readers_share_one_connection(source: RemoteBytes) -> None:
    blob = cached(source, means(connections=1))

    def back_half() -> None:
        for at in range(len(DATA) // 2, len(DATA), 100_000):
            read(blob, at, min(100_000, len(DATA) - at))

    with ThreadPoolExecutor(2) as pool:
        for each in (pool.submit(in_order, blob, len(DATA) // 2), pool.submit(back_half)):
            each.result(30)
    assert source.most == 1


def test_a_failure_meets_who_waits_and_then_it_is_tried_again(
    blob: CachedBlob, source: RemoteBytes
) -> None:
    in_order(blob, 2 * MIB)
    idle(source)
    source.fails_after, source.error = 1, Unreadable("the file: cut")
    with pytest.raises(Unreadable, match="cut"):
        in_order(blob, len(DATA))
    source.error = None
    idle(source)
    in_order(blob, len(DATA))


def test_what_is_on_disk_is_not_asked_for_again(source: RemoteBytes, tmp_path: Path) -> None:
    disk = DiskCache(Room(tmp_path, 200 * MIB), BLOCKS)
    blob = cached(source, means(disk, connections=1))
    for at in range(24 * MIB, 30 * MIB, BLOCK):
        read(blob, at, BLOCK)
    idle(source)
    source.sent = 0
    later = cached(source, means(disk, connections=1))
    in_order(later, len(DATA))
    idle(source)
    assert source.sent <= len(DATA) - 6 * MIB + 2 * BLOCK
    source.sent = 0
    in_order(cached(source, means(disk, connections=1)), len(DATA))
    assert source.sent == 0


def test_what_has_come_is_held_by_the_budget_alone(source: RemoteBytes) -> None:
    what = means(memory=4 * MIB, connections=1)
    in_order(cached(source, what), len(DATA))
    assert what.keep.memory.total <= 4 * MIB
    assert source.sent < len(DATA) + MIB


def test_what_is_in_memory_is_read_without_a_look_at_a_disk(
    source: RemoteBytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskCache(Room(tmp_path, 200 * MIB), BLOCKS)
    blob = cached(source, means(disk, connections=1))
    in_order(blob, 8 * MIB)
    soon(lambda: source.sent >= 11 * MIB)
    looks: list[str] = []
    me, has = threading.current_thread(), disk.has

    def look(key: str) -> bool:
        if threading.current_thread() is me:
            looks.append(key)
        return has(key)

    monkeypatch.setattr(disk, "has", look)
    with no_wait():
        for at in range(8 * MIB, 10 * MIB, BLOCK):
            read(blob, at, BLOCK)
    assert not looks


def test_closing_ends_it(source: RemoteBytes) -> None:
    blobs = Blobs(means(connections=1))
    in_order(open_in(blobs, source), 8 * MIB)
    began = time.monotonic()
    blobs.close()
    assert time.monotonic() - began < 2
    idle(source)
