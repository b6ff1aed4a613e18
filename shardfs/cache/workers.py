"""A few threads for work that somebody else would do otherwise."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


# Seconds. Connections are cut before, so that more is needed only where something hangs.
_PATIENCE = 1.0


class Workers:
    """Threads that take work only while one of them is free, so that nothing ever waits for its turn."""

    def __init__(self, count: int) -> None:
        self._count, self._free = count, threading.Semaphore(count)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="shardfs-fetch")

    def offer(self, job: Callable[[], object]) -> bool:
        """Whether a thread does *job*, which must not raise."""
        if not self._free.acquire(blocking=False):
            return False
        try:
            self._pool.submit(self._do, job)
        except RuntimeError:  # closed
            self._free.release()
            return False
        return True

    def _do(self, job: Callable[[], object]) -> None:
        try:
            job()
        finally:
            self._free.release()

    def close(self) -> None:
        """Take no more work, and wait a little for the end of what is being done."""
        self._pool.shutdown(wait=False)
        deadline = time.monotonic() + _PATIENCE
        for _ in range(self._count):
            self._free.acquire(timeout=max(deadline - time.monotonic(), 0))
