"""`.shardfs/` in the folder of each shard: what is computed of the shard as a whole.

Nothing in it is listed, as at the root. A new file is one entry of the table that ``RoomSpace`` is made with.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cachetools import LRUCache

from shardfs.errors import IsAFolder, NotAFolder, NotFound
from shardfs.tree.inodes import Ino, Special, special_ino, split_special
from shardfs.tree.nodes import Attr, Listed, NoLinks, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from shardfs.blob import Blob
    from shardfs.tree.shards import ShardSpace

_KNOWN = 16
# A shard's number << 8 | a file's number + 1; 0 is the folder.
_FILE_BITS = 8


def room_ino(shard: int, file: int = 0) -> Ino:
    """The number of a shard's `.shardfs/`, or of a file in it."""
    return special_ino(Special.ROOM, shard << _FILE_BITS | file)


class RoomSpace(NoLinks):
    """The rooms of all shards. *files* gives the content of a file for the number of a shard."""

    def __init__(self, shards: ShardSpace, files: Mapping[str, Callable[[int], Blob]]) -> None:
        self._shards = shards
        self._numbers = {name: number for number, name in enumerate(files, 1)}
        self._makers = list(files.values())
        # Those that were looked at last: a file is made for its size first, and read then.
        self._known: LRUCache[Ino, Blob] = LRUCache(_KNOWN)
        self._lock = threading.Lock()

    def attr(self, ino: Ino, /) -> Attr:
        shard, file = self._split(ino)
        mtime_ns = self._shards.ref(shard).mtime_ns
        if not file:
            return Attr(ino, Type.FOLDER, 0, mtime_ns)
        return Attr(ino, Type.FILE, self._content(ino, shard, file).size(), mtime_ns)

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        shard, file = self._split(parent)
        if file:
            raise NotAFolder(f"node {parent}")
        if name not in self._numbers:
            raise NotFound(name)
        return self.attr(room_ino(shard, self._numbers[name]))

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        if self._split(ino)[1]:
            raise NotAFolder(f"node {ino}")
        return iter(())

    def open(self, ino: Ino, /) -> Blob:
        shard, file = self._split(ino)
        if not file:
            raise IsAFolder(f"node {ino}")
        return self._content(ino, shard, file)

    def _content(self, ino: Ino, shard: int, file: int) -> Blob:
        with self._lock:
            known = self._known.get(ino)
        if known is None:
            made = self._makers[file - 1](shard)
            with self._lock:
                known = self._known.setdefault(ino, made)
        return known

    def _split(self, ino: Ino) -> tuple[int, int]:
        _, number = split_special(ino)
        shard, file = number >> _FILE_BITS, number & ((1 << _FILE_BITS) - 1)
        if shard >= self._shards.count or file > len(self._makers):
            raise NotFound(f"node {ino}")
        return shard, file
