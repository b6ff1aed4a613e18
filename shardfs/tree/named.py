"""The files that a source names one by one: which of them are there, and what they are where their names don't say."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from glob import has_magic
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, NotAFolder, NotFound, OutsideSource, Unsupported
from shardfs.formats.shared.compressed import codec_of
from shardfs.registry import ARCHIVES, CODECS, FORMATS, Row, begins
from shardfs.tree.archives import archive_row
from shardfs.tree.discover import row_of
from shardfs.tree.instead import instead_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services
    from shardfs.stores import Entry, Store, Watch

# Bytes at the beginning of a file that tell what it is, compressed or not: the header of a tar, a row of JSON Lines.
_HEAD = 64 << 10
# Names that a message has room for.
_TOLD = 3


def those_there(
    store: Store, names: Sequence[str], services: Services, *, listed: bool
) -> Sequence[str]:
    """Those of *names* that are there, patterns among them replaced by what they match; others are reported.

    *listed*: a listing of the store costs less than to ask for each.

    Raises:
        NotFound: none is there.
    """
    if len(names) < 2 and not any(map(has_magic, names)):
        return names
    there = [entry.name for entry in store.list()] if listed else [*_stated(store, names)]
    known = set(there)
    found: dict[str, None] = {}
    missing = []
    for name in names:
        matches = [name] if name in known else []
        if not matches and has_magic(name):
            matches = [each for each in there if fnmatchcase(each, name)]
        found.update(dict.fromkeys(matches))
        if not matches:
            missing.append(name)
    more = f" and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
    told = ", ".join(missing[:_TOLD]) + more
    if not found:
        raise NotFound(f"{store.url}: nothing there is called {told}")
    if missing:
        count = f"{len(missing)} of the {len(names)} files that the source names"
        services.report(NotFound(f"{count} are not there: {told}"))
    return list(found)


def _stated(store: Store, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        try:
            store.stat(name)
        except (NotFound, NotAFolder, OutsideSource):
            continue
        yield name


class Renamed:
    """A store in which some of the files at the top have other names; *names*: what they are called in truth."""

    def __init__(self, store: Store, names: Mapping[str, str]) -> None:
        self._store, self._names, self.url = store, names, store.url

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        entries = self._store.list(self._true(prefix))
        if prefix:
            return entries
        shown = {true: name for name, true in self._names.items()}
        return [replace(e, path=shown[e.path]) if e.path in shown else e for e in entries]

    def stat(self, path: str, /) -> Entry:
        return self._store.stat(self._true(path)).at(path)

    def open(self, path: str, /) -> Blob:
        return self._store.open(self._true(path))

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(self._true(path), version)

    def _true(self, path: str) -> str:
        return self._names.get(path, path)


def by_content(
    store: Store, names: Sequence[str], services: Services
) -> tuple[Store, Sequence[str]]:
    """*store* with names that say what the files *names* are, told by their content where their own don't; and these.

    What a web server was asked for (`x.tar?download=true`) is no part of a name.
    """
    true: dict[str, str] = {}
    for name in names:
        if archive_row(name) or (row_of(name.lower(), named=True) and not _is_vague(name)):
            continue
        shown = _said(store, name, services)
        if shown in true or shown in names:  # two of one name keep what tells them apart
            shown = f"{name}{shown[len(name.partition('?')[0]) :]}"
        if shown != name:
            true[shown] = name
    if not true:
        return store, names
    shown_as = {name: shown for shown, name in true.items()}
    return Renamed(store, true), [shown_as.get(name, name) for name in names]


def _is_vague(name: str) -> bool:
    """Whether the suffix of a name is that of one format and of many other things."""
    return name.lower().endswith(".bin")


def _said(store: Store, name: str, services: Services) -> str:
    """A name that says what the file *name* is; the same where nothing tells that."""
    if store.stat(name).is_dir:
        return name
    base = name.partition("?")[0] or name
    suffix = told(store, name, services)
    row = row_of(f"x{suffix}", named=True) or archive_row(f"x{suffix}")
    said = row_of(base.lower(), named=True) or archive_row(base)
    if not (suffix or said):
        found = instead_of(store, name)
        if found is not None:
            raise found.at(name)
    if suffix:
        return base if said == row and not _is_vague(base) else f"{base}{suffix}"
    return base if said else name


def told(store: Store, name: str, services: Services) -> str:
    """The suffix of files with such content as the file *name*, "" where that tells nothing."""
    blob = store.open(name)
    row = _row_of(blob, (*FORMATS, *ARCHIVES))
    if row is not None:
        return _suffixes(row)[0]
    codec = codec_of(blob)
    if codec is None:
        return ""
    try:
        row = _row_of(services.unpack(store, store.stat(name), codec), FORMATS)
    except (Corrupt, Unsupported):
        row = None
    if row is None:
        return ""
    packed = next(each.suffixes[0] for each in CODECS if each.name == codec)
    suffix = _suffixes(row)[0] + packed
    return suffix if suffix in _suffixes(row) else ""


def _suffixes(row: Row) -> Sequence[str]:
    return (*row.suffixes, *row.lone)


def _row_of(blob: Blob, rows: Iterable[Row]) -> Row | None:
    head = bytes(blob.read(0, _HEAD))
    return next((row for row in rows if begins(row, head)), None)
