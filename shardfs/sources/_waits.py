"""When to ask a server again: as it says, else later and later, and not without end."""

from __future__ import annotations

import random
import re
import threading
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from shardfs.errors import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 60.0
"""Seconds. Whoever is asked to wait longer is told so instead."""

# Seconds before the second try, and at most before any, when the server says nothing.
_FIRST, _MOST = 0.25, 8.0
# Seconds to spread those over that were all asked to come back at the same time.
_SPREAD = 0.5
# Bytes that came in a try that failed, so that it does not count as one: the server does work.
_PROGRESS = 1 << 20

# Hugging Face: `"resolvers";r=0;t=172`, by draft-ietf-httpapi-ratelimit-headers.
_RATE_LIMIT = re.compile(r"r=0\s*;\s*t=(\d+)")


class Transient(Exception):
    """A failure that may be over soon. *wait*: seconds that the server asks for, None if it does not."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.message, self.wait = message, wait


def asked_wait(status: int, headers: Mapping[str, str]) -> float | None:
    """How many seconds an answer asks to wait before the next request, None where it does not."""
    found = _RATE_LIMIT.search(headers.get("RateLimit", ""))
    if found:
        return float(found[1])
    # Zenodo says in every answer how many more it will give until when.
    is_spent = headers.get("X-RateLimit-Remaining", "").strip() == "0"
    if status < 400 and not is_spent:
        return None
    after = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,9}", after):
        return float(after)
    if after:
        try:
            return max(parsedate_to_datetime(after).timestamp() - time.time(), 0.0)
        except (ValueError, OverflowError):
            return None
    reset = headers.get("X-RateLimit-Reset", "")
    if (status == 429 or is_spent) and re.fullmatch(r"\d{1,11}", reset):
        return max(int(reset) - time.time(), 0.0)
    return None


class Gates:
    """Hosts that asked for a pause. Closing lets nobody through any more."""

    def __init__(self) -> None:
        # By host: until when, and how many seconds that was from when it asked.
        self._pauses: dict[str, tuple[float, float]] = {}
        self._closed = threading.Event()

    def shut(self, host: str, seconds: float) -> None:
        """Let nobody to *host* for so long."""
        pause = time.monotonic() + seconds, seconds
        self._pauses[host] = max(pause, self._pauses.get(host, pause))

    def pass_through(self, host: str) -> None:
        """Wait until requests to *host* may go on. Raises Unreadable where that is too long, or never."""
        until, seconds = self._pauses.get(host, (0.0, 0.0))
        left = until - time.monotonic()
        if left > LONGEST:  # in the same words until it is over
            raise Unreadable(f"{host} asks to wait {seconds:.0f} seconds before the next request")
        self.sleep(left + random.uniform(0, _SPREAD) if left > 0 else 0.0)

    def sleep(self, seconds: float) -> None:
        """Wait. Raises Unreadable when closed."""
        if self._closed.wait(max(seconds, 0.0)):
            raise Unreadable("the source was closed")

    def close(self) -> None:
        self._closed.set()


class Tries:
    """The tries of one request: each later than the one before."""

    def __init__(self, name: str, most: int, gates: Gates) -> None:
        """Take *most* tries, after which it is told that *name* could not be read."""
        self._name, self._most, self._gates = name, most, gates
        self._count = 0

    def failed(self, problem: Transient, *, progress: int = 0) -> None:
        """Wait before the next try; *progress*: bytes that came in this one. Raises Unreadable after the last."""
        if progress >= _PROGRESS:
            self._count = 0
        self._count += 1
        if problem.wait is not None and problem.wait > LONGEST:
            raise Unreadable(
                f"{self._name}: {problem.message}, to try again in {problem.wait:.0f} s"
            )
        if self._count >= self._most:
            tries = f" ({self._count} tries)" if self._count > 1 else ""
            raise Unreadable(f"{self._name}: {problem.message}{tries}")
        if problem.wait is None:  # else the gate of the host is shut
            self._gates.sleep(min(_FIRST * 2.0**self._count, _MOST) * random.uniform(0.5, 1.0))
