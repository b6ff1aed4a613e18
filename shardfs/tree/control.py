"""`.shardfs/` at the root of a tree: what is known of the mount, and the records by their global index.

Nothing in it is listed, so that `find`, `grep -r` and `du` don't walk into it.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING

from shardfs.blob import Blob, Bytes, may_wait
from shardfs.errors import IsAFolder, NotAFolder, NotALink, NotFound, WouldBlock
from shardfs.names import to_bytes
from shardfs.tree.inodes import ROOT, Ino, Special, special_ino, split_special
from shardfs.tree.nodes import Attr, Listed, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from shardfs.journal import Journal
    from shardfs.tree.folders import FolderSpace
    from shardfs.tree.shards import ShardSpace

NAME = ".shardfs"

_TOP, _BY_INDEX, _INFO, _STATS, _ERRORS = range(5)
_NAMES = {"by-index": _BY_INDEX, "info.json": _INFO, "stats.json": _STATS, "errors.jsonl": _ERRORS}


# A number of more digits is beyond every dataset, and would not fit into an inode number.
_MAX_DIGITS = 18


def control_ino() -> Ino:
    return special_ino(Special.CONTROL, _TOP)


class ControlSpace:
    """The nodes of `.shardfs/`."""

    def __init__(
        self,
        folders: FolderSpace,
        shards: ShardSpace,
        journal: Journal,
        *,
        info: Callable[[], Mapping[str, object]],
        stats: Callable[[], Mapping[str, object]],
    ) -> None:
        self._folders, self._shards, self._journal = folders, shards, journal
        self._info, self._stats = info, stats
        # For each shard in listing order: the global index behind its last record, its path, its number.
        self._ends: list[int] = []
        self._paths: list[tuple[str, int]] = []
        self._rest: Iterator[tuple[str, int]] | None = None
        self._lock = threading.Lock()

    def attr(self, ino: Ino, /) -> Attr:
        kind, number = split_special(ino)
        mtime_ns = self._folders.attr(ROOT).mtime_ns
        if kind is Special.LINK:
            return Attr(ino, Type.LINK, len(to_bytes(self.readlink(ino))), mtime_ns)
        if number in (_TOP, _BY_INDEX):
            return Attr(ino, Type.FOLDER, 0, mtime_ns)
        return Attr(ino, Type.FILE, self._content(number).size(), mtime_ns, volatile=True)

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        kind, number = split_special(parent)
        if kind is Special.CONTROL and number == _TOP and name in _NAMES:
            return self.attr(special_ino(Special.CONTROL, _NAMES[name]))
        if kind is Special.CONTROL and number == _BY_INDEX and name.isascii() and name.isdigit():
            digits = name.lstrip("0")
            if len(digits) < _MAX_DIGITS:
                return self.attr(special_ino(Special.LINK, int(digits or "0")))
        raise NotFound(name)

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        if self.attr(ino).type is not Type.FOLDER:
            raise NotAFolder(f"node {ino}")
        return iter(())

    def open(self, ino: Ino, /) -> Blob:
        kind, number = split_special(ino)
        if kind is not Special.CONTROL or number in (_TOP, _BY_INDEX):
            raise IsAFolder(NAME)
        return self._content(number)

    def readlink(self, ino: Ino, /) -> str:
        kind, number = split_special(ino)
        if kind is not Special.LINK:
            raise NotALink(NAME)
        if not may_wait():
            raise WouldBlock
        path, shard, record = self._record(number)
        inner = self._shards.shard(shard).layout.path(record)
        return f"../../{path}/{inner}" if inner else f"../../{path}"

    def _record(self, number: int) -> tuple[str, int, int]:
        """(path of the shard, number of the shard, record in it) of a global index. Raises NotFound."""
        with self._lock:
            if self._rest is None:
                self._rest = self._folders.shards()
            while not self._ends or self._ends[-1] <= number:
                # A shard that could not be counted the last time is still the next one.
                if len(self._paths) == len(self._ends):
                    found = next(self._rest, None)
                    if found is None:
                        raise NotFound(f"by-index/{number}")
                    self._paths.append(found)
                count = self._shards.records(self._paths[-1][1])
                self._ends.append((self._ends[-1] if self._ends else 0) + count)
            at = bisect_right(self._ends, number)
            return *self._paths[at], number - (self._ends[at - 1] if at else 0)

    def _content(self, number: int) -> Bytes:
        if number == _ERRORS:
            return Bytes(self._journal.lines())
        what = self._info() if number == _INFO else self._stats()
        return Bytes(json.dumps(what, indent=1, default=str).encode("ascii") + b"\n")
