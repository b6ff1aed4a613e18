"""Things that are made on demand and found again while they are in use."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from cachetools import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Recent(Generic[_T]):
    """The *count* most recently used of things that are numbered and cheap to make.

    All who ask for one get the same, so that what it holds (a decompression under way) is there once. Where two
    threads make it at a time, one of the two is thrown away.
    """

    def __init__(self, count: int) -> None:
        self._held: LRUCache[int, _T] = LRUCache(count)
        self._lock = Lock()

    def get(self, number: int, make: Callable[[int], _T]) -> _T:
        """The thing of that *number*, from *make* where it is not held."""
        with self._lock:
            found = self._held.get(number)
        if found is None:
            made = make(number)
            with self._lock:
                found = self._held.setdefault(number, made)
        return found
