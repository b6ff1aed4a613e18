"""The faults that were met: logged once each, and kept for `.shardfs/errors.jsonl`."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardfs.errors import ShardfsError

log = logging.getLogger("shardfs")

# Enough for a person to read; a dataset with more faults than that has one cause.
_KEPT = 1000


def now() -> str:
    """The time as all that shardfs writes for programs has it: ISO 8601, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """Faults by message: the first of each is logged and kept, later ones are only counted."""

    def __init__(self) -> None:
        self._faults: deque[dict[str, object]] = deque(maxlen=_KEPT)
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.count = 0

    def note(self, error: ShardfsError) -> None:
        message = str(error)
        is_shown = log.isEnabledFor(logging.WARNING)
        with self._lock:
            self.count += 1
            if message in self._seen:
                error.told = is_shown
                return
            if len(self._seen) >= _KEPT:
                return
            self._seen.add(message)
            kind = type(error).__name__
            self._faults.append({"time": now(), "error": kind, "message": message})
        log.warning("%s", message)
        error.told = is_shown

    @property
    def different(self) -> int:
        """How many faults are told apart."""
        return len(self._seen)

    @property
    def last(self) -> dict[str, object] | None:
        """The newest fault that is kept."""
        with self._lock:
            return dict(self._faults[-1]) if self._faults else None

    def lines(self) -> bytes:
        """All that is kept, as JSON Lines."""
        with self._lock:
            rows = [json.dumps(fault, ensure_ascii=True) for fault in self._faults]
        return "".join(f"{row}\n" for row in rows).encode()
