"""What was computed once and is kept on disk since."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, may_wait
from shardfs.cache.sums import CHECKED_AT_ONCE
from shardfs.errors import Spoilt, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.cache.disk import DiskCache


def remembered(disk: DiskCache, key: str, build: Callable[[], bytes], *, is_fresh: bool) -> Blob:
    """What *build* computes, or what it computed before and *disk* keeps under *key*.

    *build* may raise Spoilt where it can't, since all that is known is what was kept; so do reads then. With
    *is_fresh*, what was kept before is not looked at.
    """
    kept = None if is_fresh else disk.get(key)
    if kept is None:
        return _made(disk, key, build)
    return kept if kept.size() <= CHECKED_AT_ONCE else _Remembered(disk, key, build, kept)


def _made(disk: DiskCache, key: str, build: Callable[[], bytes]) -> Blob:
    if not may_wait():
        raise WouldBlock  # what is built is written to a disk
    content = build()
    disk.put(key, content)
    return disk.get(key) or Bytes(content)


class _Remembered:
    """What is kept, as long as that is not damaged, and then what is computed anew."""

    __slots__ = ("_build", "_content", "_disk", "_key", "_lock")

    def __init__(self, disk: DiskCache, key: str, build: Callable[[], bytes], kept: Blob) -> None:
        self._disk, self._key, self._build, self._content = disk, key, build, kept
        self._lock = threading.Lock()

    def size(self) -> int:
        return self._content.size()

    def read(self, offset: int, length: int, /) -> memoryview:
        content = self._content
        try:
            return content.read(offset, length)
        except Spoilt:
            if not may_wait():
                raise WouldBlock from None
        with self._lock:
            if self._content is content:
                self._content = _made(self._disk, self._key, self._build)
        return self._content.read(offset, length)
