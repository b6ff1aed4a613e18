"""How much more is fetched than is read, and when."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shardfs.blob import no_wait
from shardfs.cache.cached import Blobs
from shardfs.cache.kept import BLOCK
from shardfs.errors import Unreadable
from tests.remote_fakes import RemoteBytes, cached, means, open_in
from tests.unit.cache.far import DATA, in_order, read, soon

# --- reading ahead ---


def test_reading_in_order_takes_few_requests_and_gets_nothing_twice(source: RemoteBytes) -> None:
    blob = cached(source)
    in_order(blob, len(DATA))
    assert sum(length for _, length in source.fetched) == len(DATA)
    assert len(source.fetched) < 60
    assert max(length for _, length in source.fetched) >= 1 << 20
    assert source.most <= 7


def test_so_does_a_walk_by_small_steps(source: RemoteBytes) -> None:
    blob = cached(source)
    for at in range(0, len(DATA) - 512, 300_000):
        read(blob, at, 512)
    assert len(source.fetched) < 60


@pytest.mark.parametrize("size", [1000, 100_000, 400_000, 1_500_000])
def test_a_small_file_in_a_large_one_costs_little_more_than_itself(
    source: RemoteBytes, size: int
) -> None:
    blob, start = cached(source, least=2 * BLOCK), 9 * BLOCK + 1000
    read(blob, start, 4096)
    for at in range(0, size, BLOCK):
        read(blob, start + at, min(BLOCK, size - at))
    soon(lambda: source._now == 0)
    assert sum(length for _, length in source.fetched) <= size + (900 << 10)


def test_random_reads_are_not_ahead_of_themselves(source: RemoteBytes) -> None:
    blob = cached(source)
    for step in range(20):
        read(blob, (step * 7919 * BLOCK // 3) % len(DATA) // (4 << 20) * (4 << 20), 10)
    assert all(length == BLOCK for _, length in source.fetched)


def test_a_table_that_is_read_between_records_does_not_disturb(source: RemoteBytes) -> None:
    blob = cached(source)
    for number, at in enumerate(range(8 << 20, len(DATA) - BLOCK, BLOCK)):
        read(blob, 4 * number, 8)
        read(blob, at, BLOCK)
    assert len(source.fetched) < 60


def test_what_is_ahead_in_all_files_together_is_bounded() -> None:
    what = means(memory=8 << 20)
    sources = [RemoteBytes(DATA) for _ in range(4)]
    blobs = [cached(source, what, key=str(n)) for n, source in enumerate(sources)]
    for at in range(0, 20 << 20, 128 << 10):
        for blob in blobs:
            read(blob, at, 128 << 10)
    soon(lambda: all(source._now == 0 for source in sources))
    for source in sources:
        fetched = max(offset + length for offset, length in source.fetched)
        # A quarter of the memory for all, a block more for each.
        assert fetched <= (20 << 20) + (2 << 20) // 4 + BLOCK


def test_one_long_read_does_not_show_that_reading_goes_on(source: RemoteBytes) -> None:
    blob, start = cached(source, least=2 * BLOCK), 9 * BLOCK
    for length in (100, 16, 4096, 10 * BLOCK):
        read(blob, start, length)
    soon(lambda: source._now == 0)
    assert sum(length for _, length in source.fetched) == 10 * BLOCK


def test_what_lies_between_a_few_reads_is_not_gone_over(source: RemoteBytes) -> None:
    blob = cached(source)
    for at in (0, 10 * BLOCK, 11 * BLOCK, 18 * BLOCK):
        read(blob, at, 100)
    assert all(length == BLOCK for _, length in source.fetched)


def test_who_opens_the_file_again_goes_on_reading_in_order(source: RemoteBytes) -> None:
    blobs = Blobs(means())
    for at in range(0, 20 << 20, 100_000):
        read(open_in(blobs, source), at, 100_000)
    assert len(source.fetched) < 40


def test_a_little_more_than_is_worth_a_request_is_no_two(source: RemoteBytes) -> None:
    read(cached(source), 0, 11 * BLOCK)
    assert source.fetched == [(0, 11 * BLOCK)]


# --- what is expected ---


def test_what_is_expected_comes_at_once_and_nothing_beside_it(source: RemoteBytes) -> None:
    blob = cached(source, least=4 * BLOCK)
    source.gate.clear()
    blob.expect([(5 * BLOCK + 10, 20), (9 * BLOCK - 1, 2), (len(DATA) - 1, 100), (1 << 40, 1)])
    soon(lambda: source._now == 3)
    source.gate.set()
    for at, length in ((5 * BLOCK, BLOCK), (8 * BLOCK, 2 * BLOCK), (len(DATA) - 7, 7)):
        read(blob, at, length)
        blob.expect([(at, length)])
    last = len(DATA) // BLOCK * BLOCK
    wanted = [(5 * BLOCK, BLOCK), (8 * BLOCK, 2 * BLOCK), (last, len(DATA) - last)]
    assert sorted(source.fetched) == wanted


def test_where_reading_goes_on_more_than_is_expected_comes(source: RemoteBytes) -> None:
    blob = cached(source)
    for at in range(0, 20 << 20, 100_000):
        blob.expect([(at, 100_000)])
        read(blob, at, 100_000)
    assert len(source.fetched) < 40
    assert sum(length for _, length in source.fetched) < 45 << 20


def test_a_failure_of_what_is_expected_meets_who_reads_it_then(source: RemoteBytes) -> None:
    blob, source.error = cached(source), Unreadable("no luck")
    source.gate.clear()
    source.fails_after = 1
    blob.expect([(0, 10)])
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(blob.read, 0, 10)
        time.sleep(0.02)
        source.gate.set()
        with pytest.raises(Unreadable, match="no luck"):
            reading.result()
    source.error = None
    read(blob, 0, 10)
    assert len(source.fetched) in (2, 3), "three, if it had failed before it was read"


def test_expecting_is_bounded_and_waits_for_nothing(source: RemoteBytes) -> None:
    read(blob := cached(source), 0, 1)
    with no_wait():
        blob.expect([(BLOCK, 10)])
    cached(source, means(offline=True)).expect([(BLOCK, 10)])
    # Where requests are scarce, a read brings all around it.
    cached(source, least=4 << 20).expect([(BLOCK, 10)])
    assert source.fetched == [(0, BLOCK)]
    blob.expect((0, 1 << 60) for _ in range(10**9))
    soon(lambda: source._now == 0)
    assert sum(length for _, length in source.fetched) <= (32 << 20) + BLOCK


def test_without_a_free_worker_it_comes_before_it_is_read(source: RemoteBytes) -> None:
    what = means(connections=1)
    what.workers.close()
    blob = cached(source, what)
    blob.expect([(0, 10), (5 * BLOCK, 10)])
    assert source.fetched == [(0, BLOCK), (5 * BLOCK, BLOCK)]
