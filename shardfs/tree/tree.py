"""A source as a tree of numbered nodes: folders and files above the shards, what is inside them, and `.shardfs/`.

Synchronous and thread-safe. Inside ``blob.no_wait()`` every method raises WouldBlock rather than wait.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from shardfs.errors import AccessDenied, Changed, NoKey, ShardfsError, WouldBlock
from shardfs.tree import control
from shardfs.tree.inodes import (
    ROOT,
    Ino,
    Special,
    is_folder,
    is_shard,
    is_special,
    split_shard,
    split_special,
)
from shardfs.tree.paths import Node, root
from shardfs.tree.rooms import room_ino

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.journal import Journal
    from shardfs.tree.control import ControlSpace
    from shardfs.tree.folders import FolderSpace
    from shardfs.tree.nodes import Attr, Listed, Space
    from shardfs.tree.records import OpenShard
    from shardfs.tree.rooms import RoomSpace
    from shardfs.tree.shards import ShardSpace
    from shardfs.tree.survey import Survey

# One listing reply: enough that a million-entry folder needs about 2,000 thread hops (0.1 ms each) at most, few
# enough that the first screen of `ls` does not wait.
BATCH = 512
# A batch that takes longer is handed out as far as it got. A guess: a person does not notice it.
PATIENCE = 0.05


class Served:
    """What was asked of a mount so far."""

    __slots__ = ("bytes_read", "requests")

    def __init__(self) -> None:
        self.requests = self.bytes_read = 0


class Tree:
    """The union of the spaces; each inode number says which one it belongs to."""

    def __init__(
        self,
        folders: FolderSpace,
        shards: ShardSpace,
        control: ControlSpace,
        rooms: RoomSpace,
        journal: Journal,
        *,
        survey: Survey,
        info: Callable[[], Mapping[str, object]],
        stats: Callable[[], Mapping[str, object]],
        served: Served,
        total_size: Callable[[], int],
        on_close: Callable[[], None],
    ) -> None:
        self._folders, self._shards = folders, shards
        self._control, self._rooms = control, rooms
        self._special: dict[Special, Space] = {
            Special.FILE: folders,
            Special.LINK: control,
            Special.CONTROL: control,
            Special.ROOM: rooms,
        }
        self._journal = journal
        self.info, self.stats, self.total_size = info, stats, total_size
        self.served, self.survey = served, survey
        self._on_close = on_close

    @property
    def root(self) -> Node:
        """The top folder, for walking by names."""
        return root(self)

    def _space(self, ino: Ino) -> Space:
        if is_special(ino):
            return self._special[split_special(ino)[0]]
        return self._folders if is_folder(ino) else self._shards

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        """The node *name* in a folder. Raises NotFound."""
        if name == control.NAME:
            if parent == ROOT:
                return self._control.attr(control.control_ino())
            if is_shard(parent):
                return self._rooms.attr(room_ino(split_shard(parent)[0]))
        return self._space(parent).lookup(parent, name)

    def attr(self, ino: Ino, /) -> Attr:
        return self._space(ino).attr(ino)

    def scan(self, ino: Ino, start: int = 0, /) -> Sequence[Listed]:
        """Entries of a folder, from the cookie *start* on; none at the end."""
        found: list[Listed] = []
        deadline = time.monotonic() + PATIENCE
        try:
            for listed in self._space(ino).scan(ino, start):
                found.append(listed)
                if len(found) == BATCH or time.monotonic() > deadline:
                    break
        except (WouldBlock, ShardfsError):
            if not found:
                raise
        return found

    def open(self, ino: Ino, /) -> Blob:
        """The content of a file. Raises what is wrong with it."""
        return self._space(ino).open(ino)

    @staticmethod
    def is_volatile(ino: Ino, /) -> bool:
        """Whether a file's content may be another at the next open."""
        return is_special(ino) and split_special(ino)[0] is Special.CONTROL

    def readlink(self, ino: Ino, /) -> str:
        return self._space(ino).readlink(ino)

    # --- by records ---

    def shards(self) -> Iterator[tuple[str, int]]:
        """(path, number) of all shards, in listing order. Looks into every folder, and into no shard."""
        return self._folders.shards()

    def shard(self, number: int, /) -> OpenShard:
        """The inside of a shard. Raises what is wrong with it."""
        return self._shards.shard(number)

    def records(self, number: int, /) -> int:
        """How many records a shard has; where no index tells, this waits for a scan."""
        return self._shards.records(number)

    def note(self, error: ShardfsError, /) -> None:
        """Take down a failure that a user met, unless it is in the nature of things (no such name)."""
        told = (NoKey, AccessDenied, Changed)
        if error.errno == ShardfsError.errno or isinstance(error, told):
            self._journal.note(error)

    def close(self) -> None:
        self._shards.close()
        self._on_close()
