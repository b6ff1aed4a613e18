"""Which datasets lie in a folder of a source."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from shardfs.errors import NotFound
from shardfs.model import Entry
from shardfs.registry import FORMATS, Row, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.model import Dataset, Format, Services, Store


class SubStore:
    """A folder of a store, as a store: formats see the paths below it."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._prefix = store, prefix + "/"
        self.url = f"{store.url}/{prefix}"

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        cut = len(self._prefix)
        found = self._store.list((self._prefix + prefix).rstrip("/"))
        return [self._renamed(entry, entry.path[cut:]) for entry in found]

    def stat(self, path: str, /) -> Entry:
        return self._renamed(self._store.stat(self._prefix + path), path)

    def open(self, path: str, /) -> Blob:
        return self._store.open(self._prefix + path)

    @staticmethod
    def _renamed(entry: Entry, path: str) -> Entry:
        return Entry(path, entry.size, entry.mtime_ns, entry.version, entry.is_dir, entry.problem)


class Selection:
    """Some files of a store and nothing else: what the user named."""

    def __init__(self, store: Store, names: Sequence[str]) -> None:
        self._store, self._names = store, frozenset(names)
        self.url = store.url

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        if prefix:
            raise NotFound(prefix)
        return [entry for entry in self._store.list() if entry.path in self._names]

    def stat(self, path: str, /) -> Entry:
        return self._store.stat(path)

    def open(self, path: str, /) -> Blob:
        # Files beside the named ones may be read (an index, a meta file), though they are not shown.
        return self._store.open(path)


def discover(
    store: Store, entries: Sequence[Entry], services: Services, *, indexed: bool, named: bool
) -> list[Dataset]:
    """The datasets among *entries*, which lie at the top of *store*, in the order in which they are listed.

    Args:
        indexed: whether an index file makes a dataset of the folder; not below a dataset that has it already.
        named: whether the user named these very files, so that suffixes count which are too common otherwise.

    Raises:
        Corrupt, Unsupported: an index can't be read; the message names it.
    """
    names = [entry.name for entry in entries if not entry.is_dir and not entry.problem]
    datasets: list[Dataset] = []
    for row in FORMATS if indexed else ():
        if any(fnmatchcase(name, marker) for marker in row.markers for name in names):
            kind: type[Format] = load("formats", row)
            if kind.detect(store, names):
                dataset = kind.open(store, names, services)
                datasets.append(dataset)
                names = [name for name in names if not dataset.owns(name)]
    for row, files in _by_suffix(names, named=named):
        kind = load("formats", row)
        if kind.detect(store, files):
            datasets.append(kind.open(store, files, services))
    return datasets


def _by_suffix(names: Sequence[str], *, named: bool) -> list[tuple[Row, list[str]]]:
    """The names that end in a suffix of a format, by format; the longest suffix decides."""
    groups: dict[str, tuple[Row, list[str]]] = {}
    for name in names:
        row = None if name.startswith(".") else _row(name.lower(), named=named)
        if row is not None:
            groups.setdefault(row.name, (row, []))[1].append(name)
    return list(groups.values())


def _row(name: str, *, named: bool) -> Row | None:
    best, longest = None, 0
    for row in FORMATS:
        for suffix in (*row.suffixes, *(row.lone if named else ())):
            if name.endswith(suffix) and longest < len(suffix) < len(name):
                best, longest = row, len(suffix)
    return best
