"""Files of the disk cache that stand in for memory: their pages go back to the kernel when it wants them.

They are for this mount alone and have no name for others to find. All of them together have a budget of their own, a
part of the disk cache's; the least recently used go first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardfs.cache.memory import Memory
from shardfs.cache.spill import Spills

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.cache.disk import Room
    from shardfs.cache.spill import Spill

# Part of the disk cache that they may take; what is kept for later mounts needs some, too.
_SHARE = 2


class Files:
    """Makes such files, and holds them by owner."""

    def __init__(self, room: Room, cache_size: int) -> None:
        self._spills = Spills(room)
        self.held = Memory(cache_size // _SHARE)
        """Holds values that hold a file, by the size of that."""

    def create(self) -> Spill:
        """A new file. Raises NoRoom."""
        return self._spills.create_unkept()

    def keep(self, owner: Any, content: bytes) -> Blob:
        """Let *owner* hold *content* in a file. Raises NoRoom."""
        spill = self.create()
        spill.append(memoryview(content))
        blob = _Filed(spill)
        self.held.put(owner, blob, len(content))
        return blob

    def close(self) -> None:
        """Remove them all."""
        self._spills.close()


class _Filed:
    """The content of a file, which is there as long as this is."""

    __slots__ = ("_spill",)

    def __init__(self, spill: Spill) -> None:
        self._spill = spill

    def size(self) -> int:
        return self._spill.size

    def read(self, offset: int, length: int, /) -> memoryview:
        return self._spill.read(offset, length)
