from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shardfs.blob import no_wait
from shardfs.errors import Corrupt, WouldBlock
from shardfs.turns import Turns


class Work:
    """Counts up; notes how many threads do it at a time."""

    def __init__(self, pause: float = 0.0, fails_at: int = -1) -> None:
        self.turns, self.done, self.pause, self.fails_at = Turns(), 0, pause, fails_at
        self.at_work = self.most = 0

    def until(self, count: int) -> None:
        self.turns.until(lambda: self.done >= count, self.turn)

    def turn(self) -> None:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        time.sleep(self.pause)
        self.at_work -= 1
        if self.done == self.fails_at:
            raise Corrupt("no further")
        self.done += 1


def test_no_more_is_done_than_is_needed() -> None:
    work = Work()
    work.until(5)
    work.until(3)
    assert work.done == 5


def test_one_thread_works_at_a_time_and_all_get_what_they_need() -> None:
    work = Work(pause=0.001)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work.until, [40, 3, 20, 40, 1, 39, 10, 5]))
    assert (work.done, work.most) == (40, 1)


def test_who_needs_little_does_not_wait_for_who_needs_much() -> None:
    work = Work(pause=0.01)
    much = threading.Thread(target=work.until, args=(100,))
    much.start()
    try:
        for count in (5, 10, 20):
            work.until(count)
            assert work.done < count + 20
    finally:
        much.join()


def test_who_waits_goes_on_where_another_has_failed() -> None:
    work = Work(pause=0.001, fails_at=10)

    def outcome(count: int) -> bool:
        try:
            work.until(count)
        except Corrupt:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, [20, 5, 10, 11, 20])) == [False, True, True, False, False]


def test_without_waiting_only_what_is_there_is_there() -> None:
    work = Work()
    work.until(5)
    with no_wait():
        work.until(5)
        with pytest.raises(WouldBlock):
            work.until(6)
    assert work.done == 5
