"""Archives as folders: their members are looked at as the files of a folder are."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from shardfs.blob import may_wait
from shardfs.errors import Corrupt, Unsupported, WouldBlock, located
from shardfs.names import without_suffix
from shardfs.registry import ARCHIVES, Row, load
from shardfs.tree.discover import row_of
from shardfs.tree.instead import instead_of
from shardfs.tree.tars import ROW as TAR
from shardfs.tree.tars import TarStore, holds_shards, open_tar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services
    from shardfs.stores import Entry, Store, Watch

# An archive in an archive is opened this deep, since one can hold itself.
_MAX_DEPTH = 4
_OPEN_ARCHIVES = 64


class WithArchives:
    """A store in which archives are folders, under their file names. They can be opened as files all the same.

    With ``--recursive``, tars that hold shards are archives, too.
    """

    def __init__(self, store: Store, services: Services, depth: int = 0) -> None:
        self._store, self._services, self._depth = store, services, depth
        self.url = store.url
        self._open: LRUCache[str, Store] = LRUCache(_OPEN_ARCHIVES)
        # Of tars, whether they hold shards.
        self._tars: dict[str, bool] = {}
        self._lock = threading.Lock()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        archive, rest = self._split(prefix)
        if not archive:
            return [self._shown(entry) for entry in self._store.list(prefix)]
        with located(archive):
            entries = self._archive(archive).list(rest)
            self._tell_of_depth(archive, entries)
        return [entry.at(f"{archive}/{entry.path}") for entry in entries]

    def stat(self, path: str, /) -> Entry:
        archive, rest = self._split(path)
        if not rest:
            return self._shown(self._store.stat(path))
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
            if archive_row(part) is not None or self._may_be_tar(part):
                archive = "/".join(parts[:count])
                if archive in self._open or self._is_archive(self._store.stat(archive)):
                    return archive, "/".join(parts[count:])
        return "", ""

    def _shown(self, entry: Entry) -> Entry:
        if not self._is_archive(entry):
            return entry
        return replace(entry, size=0, is_dir=True, is_archive=True)

    def _may_be_tar(self, name: str) -> bool:
        return self._services.options.recursive and is_tar(name)

    def _is_archive(self, entry: Entry) -> bool:
        if entry.is_dir or entry.problem:
            return False
        if archive_row(entry.name) is not None:
            return True
        return self._may_be_tar(entry.name) and self._holds_shards(entry)

    def _holds_shards(self, entry: Entry) -> bool:
        """Whether a tar holds shards. One that can't be read is a shard that says so."""
        found = self._tars.get(entry.path)
        if found is None:
            if not may_wait():
                raise WouldBlock
            with suppress(Corrupt, Unsupported):
                found = holds_shards(open_tar(self._store, entry, self._services))
            self._tars[entry.path] = found = bool(found)
        return found

    def _archive(self, path: str) -> Store:
        """The archive at *path*, opened if it is not open."""
        with self._lock:
            store = self._open.get(path)
        if store is None:
            if not may_wait():
                raise WouldBlock
            made = self._opened(self._store.stat(path))
            if self._depth + 1 < _MAX_DEPTH:
                made = WithArchives(made, self._services, self._depth + 1)
            with self._lock:
                store = self._open.setdefault(path, made)
        return store

    def _opened(self, entry: Entry) -> Store:
        row = archive_row(entry.name)
        if row is None:
            return TarStore(self._store, entry, open_tar(self._store, entry, self._services))
        try:
            made: Store = load("sources", row)(self._store, entry, self._services)
        except Corrupt as error:
            raise instead_of(self._store, entry.path) or error from None
        return made

    def _tell_of_depth(self, archive: str, entries: Sequence[Entry]) -> None:
        """Report archives that are not opened since they lie too deep."""
        if self._depth + 1 < _MAX_DEPTH:
            return
        inner = WithArchives(self._archive(archive), self._services)
        for entry in entries:
            if inner._is_archive(entry):
                fault = f"holds more, but archives are opened {_MAX_DEPTH} deep, one in the other"
                self._services.report(Unsupported(fault).at(archive, entry.path))


def is_tar(name: str) -> bool:
    """Whether a file of such a name is a tar."""
    return not name.startswith(".") and row_of(name.lower(), named=False) is TAR


def without_archive_suffix(name: str) -> str:
    """What the folder is called that an archive is shown as."""
    row = archive_row(name) or TAR
    return without_suffix(name, row.suffixes)


def archive_row(name: str) -> Row | None:
    """The row of the archives that have such a name."""
    if name.startswith("."):
        return None
    lower = name.lower()
    return next(
        (row for row in ARCHIVES if lower.endswith(row.suffixes) and lower not in row.suffixes),
        None,
    )
