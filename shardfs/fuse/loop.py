"""A faster way for pyfuse3 to wait for the next request.

pyfuse3 takes trio's lock and waits in trio's scheduler before every request, which costs more than most answers
do. Its own asyncio module shows that the name ``pyfuse3.trio`` may be replaced. What stands here looks at the device
first, and only where nothing is there goes the long way. With handlers that answer without awaiting, one task then
serves request after request with no scheduler between them.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any

import pyfuse3
import trio

if TYPE_CHECKING:
    from types import TracebackType

# Requests served in a row before trio's scheduler gets its turn: timers, signals and finished threads wait for no
# more than a few milliseconds. A guess; the cost of a turn (about 50 us) is small against so many requests.
_IN_A_ROW = 64
# Seconds to wait for the next request of a program that works through files, before going the long way. The program
# needs about 5 to 20 us between two requests.
_MOMENT = 0.00005


class FastLoop:
    """Stands in for the module trio in pyfuse3."""

    def __init__(self) -> None:
        self.waiting = 0
        """How many requests wait for a thread. While there are any, the loop does not linger at the device."""
        self.lowlevel = _LowLevel(self)
        self._poll = select.poll()
        self._device: int | None = None
        self._row = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(trio, name)

    def Lock(self) -> _ReadLock:
        return _ReadLock(self)

    def install(self) -> None:
        pyfuse3.trio = self  # type: ignore[attr-defined]

    def readable(self) -> bool:
        """Whether a request is there, now or in a moment."""
        if self._device is None:
            return False
        if self._poll.poll(0):
            return True
        if self.waiting:
            return False
        return bool(select.select([self._device], [], [], _MOMENT)[0])

    async def wait_readable(self, device: int) -> None:
        if self._device is None:
            self._device = device
            self._poll.register(device, select.POLLIN)
        if self._poll.poll(0) and self._row < _IN_A_ROW:
            self._row += 1
            return
        self._row = 0
        await trio.lowlevel.checkpoint()
        # Another task may have taken the request that woke this one: a read would then block the whole loop.
        while not self._poll.poll(0):
            await trio.lowlevel.wait_readable(device)


class _LowLevel:
    """Stands in for trio.lowlevel."""

    def __init__(self, loop: FastLoop) -> None:
        self.wait_readable = loop.wait_readable

    def __getattr__(self, name: str) -> Any:
        return getattr(trio.lowlevel, name)


class _ReadLock:
    """The lock around the wait for the device.

    Who finds a request there needs no lock, for nothing comes between the look and the read; only who has to
    wait does, since trio lets one task at a time wait for a descriptor.
    """

    def __init__(self, loop: FastLoop) -> None:
        self._loop, self._lock, self._passing = loop, trio.Lock(), False

    async def __aenter__(self) -> None:
        if self._loop._row < _IN_A_ROW and self._loop.readable():
            self._passing = True
            return
        await self._lock.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._passing:
            self._passing = False
        else:
            self._lock.release()
