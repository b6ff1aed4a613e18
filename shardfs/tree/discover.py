"""Which datasets lie in a folder of a source."""

from __future__ import annotations

from fnmatch import filter as fnfilter
from glob import has_magic
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import NotFound, Unsupported
from shardfs.registry import FORMATS, Row, load
from shardfs.stores import stated
from shardfs.tree.slicing import sliced
from shardfs.tree.splits import find_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Dataset, Format, Parameters, Services
    from shardfs.stores import Entry, Store, Watch
    from shardfs.tree.choice import Choice


# What may be declared of files of any kind and says nothing of their rows.
_ANYWHERE = "features"


class SubStore:
    """A folder of a store, as a store: formats see the paths below it."""

    _store: Store
    _prefix: str

    def __init__(self, store: Store, prefix: str) -> None:
        self.url = f"{store.url}/{prefix}"
        if isinstance(store, SubStore):  # one step for every path, however deep the folder is
            self._store, self._prefix = store._store, f"{store._prefix}{prefix}/"
        else:
            self._store, self._prefix = store, f"{prefix}/"

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        cut = len(self._prefix)
        found = self._store.list((self._prefix + prefix).rstrip("/"))
        return [entry.at(entry.path[cut:]) for entry in found]

    def stat(self, path: str, /) -> Entry:
        return self._store.stat((self._prefix + path).rstrip("/")).at(path)

    def open(self, path: str, /) -> Blob:
        return self._store.open(self._prefix + path)

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(self._prefix + path, version)


class Selection:
    """Some files of a store and nothing else: what the user named."""

    def __init__(self, store: Store, names: Sequence[str]) -> None:
        self._store, self._names = store, frozenset(names)
        self.url = store.url

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        if prefix.partition("/")[0] in self._names:  # it lies in an archive
            return self._store.list(prefix)
        if prefix:
            raise NotFound(prefix)
        if len(self._names) == 1:  # there may be thousands beside it
            return [self._store.stat(name) for name in self._names]
        return [entry for entry in self._store.list() if entry.path in self._names]

    def stat(self, path: str, /) -> Entry:
        return self._store.stat(path)

    def open(self, path: str, /) -> Blob:
        # Files beside the named ones may be read (an index, a meta file), though they are not shown.
        return self._store.open(path)

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(path, version)


class Glance:
    """A store whose top folder has just been listed: formats that list it, or ask for its files, cost nothing more."""

    def __init__(self, store: Store, entries: Sequence[Entry]) -> None:
        self._store, self._entries = store, entries
        self._known = {entry.path: entry for entry in entries if not entry.problem}
        self.url = store.url

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        return self._store.list(prefix) if prefix else self._entries

    def stat(self, path: str, /) -> Entry:
        known = self._known.get(path)
        return self._store.stat(path) if known is None else stated(self._store, known)

    def open(self, path: str, /) -> Blob:
        return self._store.open(path)

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(path, version)


class Found(NamedTuple):
    """A dataset, and where it belongs.

    Attributes:
        store: what its paths are relative to.
        base: the folder of that store in the folder that was looked into ("": that folder itself).
        folder: the folder in the tree that its shards stand in, None where its own names say so.
        indexed: whether an index gives the order of its shards.
        shown: whether the user wants to see it; else its files are not shown in another way, either.
    """

    dataset: Dataset
    store: Store
    base: str = ""
    folder: tuple[str, ...] | None = None
    indexed: bool = False
    shown: bool = True


def discover(
    store: Store,
    entries: Sequence[Entry],
    services: Services,
    *,
    indexed: bool,
    named: bool,
    files: Sequence[str] | None = None,
    choice: Choice | None = None,
) -> list[Found]:
    """The datasets among *entries*, which lie at the top of *store*, in the order in which they are listed.

    Args:
        indexed: whether an index file makes a dataset of the folder; not below a dataset that has it already.
        named: whether the user named these very files, so that suffixes count which are too common otherwise.
        files: all files of the repository, where the Hub's rules for names divide it into splits.
        choice: the config and split that the user asked for.

    Raises:
        Corrupt, Unsupported: an index can't be read; the message names it.
    """
    names = [entry.name for entry in entries if not entry.is_dir and not entry.problem]
    glance = Glance(store, entries)
    found: list[Found] = []
    for row in FORMATS if indexed else ():
        if _is_marked(row, names):
            kind: type[Format] = load("formats", row)
            if kind.detect(glance, names):
                found.append(Found(kind.open(glance, names, services), store, indexed=True))
                names = [name for name in names if not found[-1].dataset.owns(name)]
    if indexed and not found:
        found = list(_Splitting(store, services, choice).found(names, files))
        claimed = {f"{f.base}/{ref.file}".lstrip("/") for f in found for ref in f.dataset.shards}
        names = [name for name in names if name not in claimed]
    rest = _by_suffix(glance, names, services, named=named)
    found += [Found(dataset, store) for _, dataset in rest]
    rank, world = services.options.rank, services.options.world
    return [one._replace(dataset=sliced(one.dataset, rank, world)) for one in found]


def _is_marked(row: Row, names: Sequence[str]) -> bool:
    """Whether a file marks the folder as a dataset of the format, perhaps."""
    plain = [marker for marker in row.markers if not has_magic(marker)]
    patterns = (marker for marker in row.markers if has_magic(marker))
    return any(marker in names for marker in plain) or any(fnfilter(names, p) for p in patterns)


class _Splitting:
    """Looks for the datasets in the splits of a source."""

    def __init__(self, store: Store, services: Services, choice: Choice | None) -> None:
        self._store, self._services, self._choice = store, services, choice
        self._folders: dict[str, tuple[Store, Mapping[str, Entry]]] = {}

    def found(self, names: Sequence[str], files: Sequence[str] | None) -> Iterator[Found]:
        chosen, others = find_splits(self._store, names, self._services, files, self._choice)
        alone = len({split.config for split in chosen}) == 1
        unknown: dict[tuple[str, str], list[str]] = {}
        for is_shown, split in [*((True, s) for s in chosen), *((False, s) for s in others)]:
            services = _Declared(self._services, split.parameters)
            for base, paths in groupby(split.files, key=lambda path: path.rpartition("/")[0]):
                where = split.folder(alone=alone)
                part, here = self._part(base, list(paths))
                for row, dataset in _by_suffix(part, here, services, named=True):
                    yield Found(dataset, part, base, where, shown=is_shown)
                    for name in split.parameters.values.keys() - {
                        *row.parameters.split(),
                        _ANYWHERE,
                    }:
                        places = unknown.setdefault((row.name, name), [])
                        places.append(split.parameters.place)
        self._tell(unknown)

    def _part(self, base: str, paths: Sequence[str]) -> tuple[Store, Sequence[str]]:
        """The folder *base*, in which just the files at *paths* are listed, and their names."""
        if base not in self._folders:
            part = SubStore(self._store, base) if base else self._store
            self._folders[base] = part, {entry.name: entry for entry in part.list()}
        part, there = self._folders[base]
        names = [path.rpartition("/")[2] for path in paths]
        # Splits may be many, with all their files in one folder.
        return Glance(part, [there[name] for name in names if name in there]), names

    def _tell(self, unknown: Mapping[tuple[str, str], Sequence[str]]) -> None:
        """Report parameters that nobody knows, each once."""
        for (kind, name), places in sorted(unknown.items()):
            more = f" (and {len(set(places)) - 1} more configs)" if len(set(places)) > 1 else ""
            self._services.report(
                Unsupported(
                    f"{places[0]}{more}: {name[:99]!r} is no parameter that is known for {kind};"
                    " files are read as if it were not there"
                )
            )


class _Declared:
    """Services for files of which the source declares how they are to be read."""

    def __init__(self, services: Services, parameters: Parameters) -> None:
        self.options, self.parameters = services.options, parameters
        self.inflate, self.unpack, self.derive = services.inflate, services.unpack, services.derive
        self.remember, self.report = services.remember, services.report


def _by_suffix(
    store: Store, names: Sequence[str], services: Services, *, named: bool
) -> Iterator[tuple[Row, Dataset]]:
    """Datasets of the files that end in a suffix of a format; the longest suffix decides."""
    groups: dict[str, tuple[Row, list[str]]] = {}
    for name in names:
        row = None if name.startswith(".") else row_of(name.lower(), named=named)
        if row is not None:
            groups.setdefault(row.name, (row, []))[1].append(name)
    for row, files in groups.values():
        kind: type[Format] = load("formats", row)
        if kind.detect(store, files):
            yield row, kind.open(store, files, services)


def row_of(name: str, *, named: bool) -> Row | None:
    """The format of files with such a name, which is in lower case."""
    best, longest = None, 0
    for row in FORMATS:
        for suffix in (*row.suffixes, *(row.lone if named else ())):
            if name.endswith(suffix) and longest < len(suffix) < len(name):
                best, longest = row, len(suffix)
    return best
