from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from shardfs.errors import Unreadable
from shardfs.sources._waits import LONGEST, Gates, Transient, Tries, asked_wait


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {}, None),
        (429, {"Retry-After": "7"}, 7),
        (503, {"Retry-After": " 7 "}, 7),
        (200, {"Retry-After": "7"}, None),
        (429, {"Retry-After": "soon"}, None),
        (429, {"Retry-After": "-5"}, None),
        (429, {"RateLimit": '"resolvers";r=0;t=172', "Retry-After": "7"}, 172),
        (200, {"RateLimit": '"api";r=0;t=3'}, 3),
        (200, {"RateLimit": '"api";r=299;t=3'}, None),
        (200, {"RateLimit": '"api";r=10;t=3'}, None),
        (429, {"RateLimit": "nonsense"}, None),
        (200, {"X-RateLimit-Remaining": "0", "Retry-After": "7"}, 7),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 0),
        (200, {"X-RateLimit-Remaining": "0"}, None),
        (200, {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1", "Retry-After": "7"}, None),
        (404, {"X-RateLimit-Remaining": "10", "X-RateLimit-Reset": "1"}, None),
    ],
)
def test_waits_that_servers_ask_for(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    assert asked_wait(status, headers) == seconds


def test_waits_until_a_moment() -> None:
    for headers in (
        {"Retry-After": formatdate(time.time() + 100, usegmt=True)},
        {"X-RateLimit-Reset": str(int(time.time()) + 100)},
    ):
        for status, spent in ((429, {}), (206, {"X-RateLimit-Remaining": "0"})):
            wait = asked_wait(status, {**headers, **spent})
            assert wait is not None
            assert 95 < wait <= 101
    for headers in (
        {"Retry-After": formatdate(time.time() - 100, usegmt=True)},
        {"X-RateLimit-Reset": "1"},
    ):
        assert asked_wait(429, headers) == 0


def test_tries_wait_longer_and_longer_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates()
    slept: list[float] = []
    monkeypatch.setattr(gates, "sleep", slept.append)
    tries = Tries("the file", 7, gates)
    for _ in range(6):
        tries.failed(Transient("no luck"))
    with pytest.raises(Unreadable, match=r"the file: no luck \(7 tries\)"):
        tries.failed(Transient("no luck"))
    assert all(0.25 <= a <= 8 for a in slept)
    assert slept[0] <= 0.5
    assert slept[-1] >= 4
    assert sum(slept) < 30


def test_an_asked_wait_is_not_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates()
    slept: list[float] = []
    monkeypatch.setattr(gates, "sleep", slept.append)
    tries = Tries("the file", 3, gates)
    tries.failed(Transient("slow down", 5))
    assert not slept  # the gate of the host makes it wait
    with pytest.raises(Unreadable, match="to try again in 61 s"):
        tries.failed(Transient("slow down", LONGEST + 1))


def test_a_gate_is_shut_for_one_host_and_for_as_long_as_the_longest_wait() -> None:
    gates = Gates()
    gates.shut("host", 100)
    gates.shut("host", 1)
    gates.pass_through("other")
    with pytest.raises(Unreadable, match="host asks to wait 100 seconds"):
        gates.pass_through("host")


def test_nobody_waits_at_a_closed_gate() -> None:
    gates = Gates()
    gates.shut("host", 30)
    gates.close()
    started = time.monotonic()
    for host in ("host", "other"):
        with pytest.raises(Unreadable, match="closed"):
            gates.pass_through(host)
    assert time.monotonic() - started < 1
