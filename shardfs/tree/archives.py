"""Archives as folders: their members are looked at as the files of a folder are."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from shardfs.blob import may_wait
from shardfs.errors import Corrupt, NotFound, WouldBlock, located
from shardfs.registry import ARCHIVES, Row, load
from shardfs.tree.instead import instead_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services
    from shardfs.stores import Entry, Store, Watch

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
        archive, rest = self._split(prefix)
        if not archive:
            return [_shown(entry) for entry in self._store.list(prefix)]
        with located(archive):
            entries = self._archive(archive).list(rest)
        return [entry.at(f"{archive}/{entry.path}") for entry in entries]

    def stat(self, path: str, /) -> Entry:
        archive, rest = self._split(path)
        if not rest:
            return _shown(self._store.stat(path))
        with located(archive):
            return self._archive(archive).stat(rest).at(path)

    def open(self, path: str, /) -> Blob:
        archive, rest = self._split(path)
        if not rest:
            return self._store.open(path)
        with located(archive):
            return self._archive(archive).open(rest)

    def watch(self, path: str, version: str, /) -> Watch | None:
        archive, rest = self._split(path)
        if not rest:
            return self._store.watch(path, version)
        return self._archive(archive).watch(rest, version)

    def _split(self, path: str) -> tuple[str, str]:
        """(archive, path in it) where *path* is or lies in an archive; two empty strings where it doesn't."""
        parts = path.split("/")
        for count, part in enumerate(parts, 1):
            if archive_row(part) is not None:
                archive = "/".join(parts[:count])
                if archive in self._open or not self._store.stat(archive).is_dir:
                    return archive, "/".join(parts[count:])
        return "", ""

    def _archive(self, path: str) -> Store:
        """The archive at *path*, opened if it is not open."""
        with self._lock:
            store = self._open.get(path)
        if store is None:
            row = archive_row(path.rpartition("/")[2])
            if row is None:
                raise NotFound(path)
            if not may_wait():
                raise WouldBlock
            entry = self._store.stat(path)
            made: Store
            try:
                made = load("sources", row)(self._store, entry, self._services)
            except Corrupt as error:
                raise instead_of(self._store, path) or error from None
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
