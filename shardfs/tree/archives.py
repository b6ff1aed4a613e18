"""Archives as folders: their members are looked at as the files of a folder are."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from shardfs.blob import may_wait
from shardfs.errors import WouldBlock, located
from shardfs.registry import ARCHIVES, Row, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.model import Entry, Services, Store

# An archive in an archive is opened this deep, since one can hold itself.
_MAX_DEPTH = 4
_OPEN_ARCHIVES = 64


class WithArchives:
    """A store in which archives are folders, under their file names. They can be opened as files all the same."""

    def __init__(self, store: Store, services: Services, depth: int = 0) -> None:
        self._store, self._services, self._depth = store, services, depth
        self.url = store.url
        self._open: LRUCache[str, Store] = LRUCache(_OPEN_ARCHIVES)
        self._lock = threading.Lock()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        found = self._inside(prefix)
        if found is None:
            return [_shown(entry) for entry in self._store.list(prefix)]
        archive, store, rest = found
        with located(archive):
            entries = store.list(rest)
        return [replace(entry, path=f"{archive}/{entry.path}") for entry in entries]

    def stat(self, path: str, /) -> Entry:
        found = self._inside(path)
        if found is None or not found[2]:
            return _shown(self._store.stat(path.rstrip("/")))
        archive, store, rest = found
        with located(archive):
            return replace(store.stat(rest), path=path)

    def open(self, path: str, /) -> Blob:
        found = self._inside(path)
        if found is None or not found[2]:
            return self._store.open(path)
        archive, store, rest = found
        with located(archive):
            return store.open(rest)

    def _inside(self, path: str) -> tuple[str, Store, str] | None:
        """(path of the archive, its store, path in it) where *path* is or lies in an archive."""
        parts = path.rstrip("/").split("/")
        for count, part in enumerate(parts, 1):
            row = archive_row(part)
            if row is not None:
                archive = "/".join(parts[:count])
                store = self._archive(archive, row)
                if store is not None:
                    return archive, store, "/".join(parts[count:])
        return None

    def _archive(self, path: str, row: Row) -> Store | None:
        """The archive at *path*; None where a folder has such a name."""
        with self._lock:
            store = self._open.get(path)
        if store is None:
            if not may_wait():
                raise WouldBlock
            entry = self._store.stat(path)
            if entry.is_dir:
                return None
            with located(path):
                made: Store = load("sources", row)(self._store, entry, self._services)
            if self._depth + 1 < _MAX_DEPTH:
                made = WithArchives(made, self._services, self._depth + 1)
            with self._lock:
                store = self._open.setdefault(path, made)
        return store


def archive_row(name: str) -> Row | None:
    """The row of the archives that have such a name."""
    if name.startswith("."):
        return None
    lower = name.lower()
    return next(
        (row for row in ARCHIVES if lower.endswith(row.suffixes) and lower not in row.suffixes),
        None,
    )


def _shown(entry: Entry) -> Entry:
    if entry.is_dir or entry.problem or archive_row(entry.name) is None:
        return entry
    return replace(entry, size=0, is_dir=True, is_archive=True)
