"""A faster way for pyfuse3 to wait for the next request.

pyfuse3 takes trio's lock and waits in trio's scheduler before every request, which costs more than most answers
do. Its own asyncio module shows that the name ``pyfuse3.trio`` may be replaced. What stands here looks at the device
first, and only where nothing is there goes the long way. With handlers that answer without awaiting, one task then
serves request after request with no scheduler between them.
"""

from __future__ import annotations

import os
import select
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyfuse3
import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

# Requests served in a row before trio's scheduler gets its turn: timers, signals and finished threads wait for no
# more than a few milliseconds. A guess; the cost of a turn (about 50 us) is small against so many requests.
_IN_A_ROW = 64
# Seconds to wait for the next request of a program that works through files, before going the long way. The program
# needs about 5 to 20 us between two requests.
_MOMENT = 0.00005


class _AtOnce:
    """What can be awaited without waiting; costs a fraction of a coroutine."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_AT_ONCE = _AtOnce()


class FastLoop:
    """Stands in for the module trio in pyfuse3."""

    def __init__(self) -> None:
        self.waiting = 0
        """How many requests wait for a thread. While there are any, the loop does not linger at the device."""
        self.ended = trio.Event()
        """Set when there is nothing mounted any more, though requests may still be under way."""
        self._poll = select.poll()
        self._devices: list[int] = []  # the one device, once it is known
        self._row = 0
        self._found = False
        # To look again and again spares putting the processor to sleep and waking it, which in a virtual machine costs
        # more than a whole request. With one processor the program would wait for it.
        self._spins = len(os.sched_getaffinity(0)) > 1

    def install(self) -> None:
        lowlevel = {**vars(trio.lowlevel), "wait_readable": self.wait_readable}
        names = {
            **vars(trio),
            "Lock": lambda: _ReadLock(self),
            "lowlevel": SimpleNamespace(**lowlevel),
        }
        pyfuse3.trio = SimpleNamespace(**names)  # type: ignore[attr-defined]

    def find(self) -> bool:
        """Whether a request is there, now or in a moment, and it is nobody else's turn."""
        self._found = bool(self._devices) and self._row < _IN_A_ROW and self._comes()
        return self._found

    def _is_there(self) -> bool:
        """Whether a request is there, or the end of all."""
        found = self._poll.poll(0)
        if found and found[0][1] & select.POLLERR:
            self.ended.set()
        return bool(found)

    def _comes(self) -> bool:
        if self._is_there():
            return True
        if self.waiting:
            return False
        if not self._spins:
            return bool(select.select(self._devices, (), (), _MOMENT)[0])
        poll, clock = self._poll.poll, time.perf_counter
        deadline = clock() + _MOMENT
        while clock() < deadline:
            if poll(0):
                return True
        return False

    def wait_readable(self, device: int) -> Awaitable[None]:
        if self._found:  # by the lock, and nothing came between
            self._found = False
            self._row += 1
            return _AT_ONCE
        return self._wait(device)

    async def _wait(self, device: int) -> None:
        if not self._devices:
            self._devices.append(device)
            self._poll.register(device, select.POLLIN)
        self._row = 0
        # Another task may have taken the request that woke this one: a read would then block the whole loop.
        while not self._is_there():
            await trio.lowlevel.wait_readable(device)


class _ReadLock:
    """The lock around the wait for the device.

    Who finds a request there needs no lock, for nothing comes between the look and the read; only who has to
    wait does, since trio lets one task at a time wait for a descriptor.
    """

    def __init__(self, loop: FastLoop) -> None:
        self._loop, self._lock, self._passing = loop, trio.Lock(), False

    def __aenter__(self) -> Awaitable[None]:
        self._passing = self._loop.find()
        return _AT_ONCE if self._passing else self._lock.acquire()

    def __aexit__(self, *exc: object) -> Awaitable[None]:
        if self._passing:
            self._passing = False
        else:
            self._lock.release()
        return _AT_ONCE
