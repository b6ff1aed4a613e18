from __future__ import annotations

import random
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import binary

from shardfs.blob import Bytes, no_wait, read_all
from shardfs.codecs import checked
from shardfs.codecs._crc import joined
from shardfs.codecs.checked import Checked
from shardfs.errors import Corrupt, WouldBlock
from tests.fakes import SlowBlob

CONTENT = random.Random(1).randbytes(100_000)
CRC = zlib.crc32(CONTENT)


@pytest.fixture(autouse=True)
def small_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "_GAP", 20_000)
    monkeypatch.setattr(checked, "_AHEAD", 3)


def test_content_that_is_right_reads_like_itself() -> None:
    blob = Checked(Bytes(CONTENT), CRC, "file")
    assert bytes(read_all(blob)) == CONTENT
    for start in range(0, len(CONTENT), 7_000):
        assert bytes(blob.read(start, 7_000)) == CONTENT[start : start + 7_000]


@pytest.mark.parametrize("step", [1_000, 33_333, 100_000])
def test_of_content_that_is_wrong_the_end_is_not_handed_out(step: int) -> None:
    blob = Checked(Bytes(CONTENT), CRC ^ 1, "the file")
    for _ in range(2):
        for start in range(0, len(CONTENT) - step, step):
            assert bytes(blob.read(start, step)) == CONTENT[start : start + step]
        with pytest.raises(Corrupt, match="the file: has a CRC-32"):
            blob.read(len(CONTENT) - step, step)


def test_a_small_file_is_checked_whatever_is_read_first() -> None:
    blob = Checked(Bytes(CONTENT[:20_000]), CRC, "file")
    assert bytes(blob.read(0, 10)) == CONTENT[:10]
    with pytest.raises(Corrupt):
        blob.read(19_999, 1)


def test_a_large_file_is_not_read_to_check_what_was_not_asked_for() -> None:
    source = SlowBlob(CONTENT)
    blob = Checked(source, CRC ^ 1, "file")
    assert bytes(blob.read(99_990, 10)) == CONTENT[-10:]
    assert source.reads == [(99_990, 10)]


@pytest.mark.parametrize("crc", [CRC, CRC ^ 1])
def test_requests_that_overtake_each_other_are_checked_all_the_same(crc: int) -> None:
    source = SlowBlob(CONTENT)
    blob = Checked(source, crc, "file")
    order = [1, 0, 3, 2, 2, 6, 5, 4, 7, 8]
    for number in order:
        blob.read(number * 10_000, 10_000)
    if crc == CRC:
        assert bytes(blob.read(90_000, 10_000)) == CONTENT[90_000:]
    else:
        with pytest.raises(Corrupt):
            blob.read(90_000, 10_000)
    assert len(source.reads) == len(order) + 1


def test_no_bytes_are_held_for_those_who_read_here_and_there() -> None:
    blob = Checked(Bytes(CONTENT), CRC, "file")
    for start in (5_000, 50_000, 98_000, 40_000, 29_000):
        blob.read(start, 1_000)
    assert blob._ahead == {
        start: (1_000, zlib.crc32(CONTENT[start : start + 1_000]))
        for start in (5_000, 29_000, 40_000)
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(binary(max_size=300), binary(max_size=300))
def test_checksums_of_two_parts_give_that_of_both(first: bytes, second: bytes) -> None:
    both = joined(zlib.crc32(first), zlib.crc32(second), len(second))
    assert both == zlib.crc32(first + second)


def test_reads_that_overlap_count_once() -> None:
    blob = Checked(Bytes(CONTENT), CRC, "file")
    for start in range(0, 100_000, 5_000):
        assert bytes(blob.read(start - 100, 9_000)) == CONTENT[max(start - 100, 0) :][:9_000]


def test_many_threads_see_the_same_fault() -> None:
    blob = Checked(Bytes(CONTENT[:15_000]), CRC, "file")

    def fails(_: int) -> bool:
        try:
            blob.read(0, 15_000)
        except Corrupt:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fails, range(40)))


def test_without_waiting_it_would_block_as_its_blob_does() -> None:
    blob = Checked(SlowBlob(CONTENT), CRC, "file")
    with no_wait(), pytest.raises(WouldBlock):
        blob.read(0, 10)
    assert bytes(read_all(blob)) == CONTENT


def test_without_waiting_nobody_waits_for_a_check_either() -> None:
    reading, go_on = threading.Event(), threading.Event()

    class Stuck(Bytes):
        def read(self, offset: int, length: int, /) -> memoryview:
            if (offset, length) == (0, 15_000):  # what the check reads
                reading.set()
                assert go_on.wait(10)
            return super().read(offset, length)

    blob = Checked(Stuck(CONTENT[:15_000]), zlib.crc32(CONTENT[:15_000]), "file")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(blob.read, 14_000, 1_000)
        assert reading.wait(10)
        with no_wait(), pytest.raises(WouldBlock):
            blob.read(5, 10)
        go_on.set()
        assert bytes(waiting.result()) == CONTENT[14_000:15_000]
