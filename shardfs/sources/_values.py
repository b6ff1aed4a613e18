"""Values in the JSON that servers and other programs have written: none is believed unseen."""

from __future__ import annotations

from datetime import datetime, timezone

from shardfs.names import safe_parts

# Seconds since 1970 (in the year 2242) that are a mistake: they would not fit as nanoseconds.
_LATEST = 1 << 33


def size_of(value: object, limit: int = 1 << 63) -> int | None:
    """A size in bytes below *limit*, None where it is none."""
    # No bool, which is an int otherwise.
    return value if type(value) is int and 0 <= value < limit else None


def is_path(path: str) -> bool:
    """Whether *path* leads to something in a store, and is spelled as paths there are."""
    return bool(path) and "/".join(safe_parts(path) or ()) == path


def time_ns(said: object) -> int:
    """Nanoseconds since 1970 of a moment in ISO 8601, to the second; 0 where there is none."""
    if not isinstance(said, str):
        return 0
    try:
        moment = datetime.fromisoformat(said.replace("Z", "+00:00"))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        seconds = int(aware.timestamp())
    except ValueError:
        return 0
    return seconds * 10**9 if 0 <= seconds < _LATEST else 0
