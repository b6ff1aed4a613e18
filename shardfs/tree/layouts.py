"""How the files of a shard's records stand in folders: the layouts.

Numbers are those of ``inodes``; the folders above the records are those of ``keys``.
"""

from __future__ import annotations

import re
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.blob import may_wait
from shardfs.errors import ShardfsError, WouldBlock
from shardfs.names import distinct, escape, shorten, split_extension
from shardfs.tree.inodes import DAMAGED, FOLDER, INNER, SHARD_ROOT
from shardfs.tree.keys import AT_ONCE, Item, file_name, is_short, spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Shard
    from shardfs.tree.keys import Keys


class NamedFile(NamedTuple):
    """A file of a record.

    Attributes:
        name: what it is called in the record's folder.
        blob: its content.
        column: the field that it shows.
        fixed: whether the dataset itself gave the name, so that it is the same in every layout.
    """

    name: str
    blob: Blob
    column: str
    fixed: bool


class Records(Protocol):
    """An opened shard, as the layouts see it."""

    shard: Shard

    @property
    def columns(self) -> Sequence[str]:
        """The fields that are shown."""
        ...

    def files(self, record: int, /) -> Sequence[NamedFile]:
        """The files of a record. Raises a ShardfsError where it can't be read."""
        ...

    def early(self, record: int, name: str, /) -> int | None:
        """The number of a file, where it is known although the shard is still being scanned for more."""
        ...


class ShardLayout(Protocol):
    """The files and folders of a shard."""

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        """What stands in *folder*, from the cookie *start* on, in storage order."""
        ...

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        """(record, field) of what is called *name* in *folder*."""
        ...

    def described(self, folder: int, /) -> int | None:
        """The record whose folder this is."""
        ...

    def path(self, record: int, /) -> str:
        """Where in the shard's folder a record is to be found; "" where it has no folder of its own."""
        ...

    def place(self, record: int, field: int, /) -> str:
        """Where in the shard's folder a file of a record stands."""
        ...


# A cookie in a folder that mixes several records: position of the record << 20 | its files that were listed.
_FILE_BITS = 20
MAX_FILES = (1 << _FILE_BITS) - 1
"""The most files that a record can have."""
# Cookies of files that stand in a folder of their own right, behind the records and folders.
_BESIDE = 1 << 60


class Beside(NamedTuple):
    """The files directly in a folder: name, record and field of each in order, and where each name is among them."""

    files: list[tuple[str, int, int]]
    positions: dict[str, int]


class RecordLayout:
    """A folder a record."""

    def __init__(self, records: Records, keys: Keys) -> None:
        self._records, self._keys = records, keys
        # Those of the folder that was looked at last: a tar archive may have thousands of files without a key.
        self._last: tuple[int, Beside] | None = None

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        if start < _BESIDE:
            yield from self._children(folder, start)
        begin, files = max(start - _BESIDE, 0), self._beside(folder).files
        for position in range(begin, len(files)):
            yield Item(_BESIDE + position + 1, *files[position])

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        if SHARD_ROOT < folder < INNER:
            field = self._records.early(folder, name)
            if field is not None:
                return folder, field
        found = self._find_child(folder, name)
        if found is not None:
            return found
        beside = self._beside(folder)
        position = beside.positions.get(name)
        return None if position is None else beside.files[position][1:]

    def described(self, folder: int, /) -> int | None:
        if SHARD_ROOT < folder < INNER:
            return folder
        return next((r for r in self._keys.own_records(folder) if self._records.shard.has(r)), None)

    def path(self, record: int, /) -> str:
        return self._keys.path(record)

    def place(self, record: int, field: int, /) -> str:
        name = self._records.files(record)[field].name
        if self._records.shard.nested:  # a folder in the record's may have taken its name
            beside = self._beside(record).files
            name = next((n for n, *place in beside if place == [record, field]), name)
        return _joined(self.path(record), name)

    def _children(self, folder: int, start: int) -> Iterator[Item]:
        return self._keys.children(folder, start)

    def _find_child(self, folder: int, name: str) -> tuple[int, int] | None:
        record = self._keys.find(folder, name)
        return None if record is None else (record, FOLDER)

    def _beside(self, folder: int) -> Beside:
        last = self._last
        if last is None or last[0] != folder:
            files = self._files_beside(folder)
            names = {name: position for position, (name, _, _) in enumerate(files)}
            self._last = last = folder, Beside(files, names)
        return last[1]

    def _files_beside(self, folder: int) -> list[tuple[str, int, int]]:
        """What stands directly in a folder: `name~1` where a record or folder has a file's name."""
        files = [
            (file.name, record, field)
            for record in self._keys.own_records(folder)
            for field, file in enumerate(self._records.files(record))
        ]
        if not self._records.shard.nested and not self._records.shard.loose:
            return files  # nothing else stands beside them
        taken = {name for name, _, _ in files if self._find_child(folder, name) is not None}
        used = {name for name, _, _ in files}
        shown = []
        for name, record, field in files:
            if name in taken:
                name = next(
                    wish
                    for wish in _marked(name)
                    if wish not in used and self._find_child(folder, wish) is None
                )
                used.add(name)
            shown.append((name, record, field))
        return shown


class FlatLayout(RecordLayout):
    """The files of all records in one folder, `000000.image.jpg`."""

    def described(self, folder: int, /) -> int | None:
        return None

    def path(self, record: int, /) -> str:
        return super().path(record).rpartition("/")[0]

    def place(self, record: int, field: int, /) -> str:
        key = file_name(self._records.shard.key(record).rpartition("/")[2])
        return _joined(self.path(record), _among_all(self._records, record, key)[field])

    def _children(self, folder: int, start: int) -> Iterator[Item]:
        for cookie, key, record, _ in self._keys.children(folder, start >> _FILE_BITS):
            base = (cookie - 1) << _FILE_BITS
            if record >= INNER:
                yield Item(cookie << _FILE_BITS, key, record)
            else:
                files = enumerate(self._files(key, record), 1)
                for position, (name, field) in islice(files, max(start - base, 0), None):
                    yield Item(base + position, name, record, field)

    def _find_child(self, folder: int, name: str) -> tuple[int, int] | None:
        for stem in _stems(name):
            record = self._keys.record(folder, stem)
            if record is not None:
                early = self._records.early(record, name)
                if early is not None:
                    return record, early
                key = file_name(self._records.shard.key(record).rpartition("/")[2])
                for file, field in self._files(key, record):
                    if file == name:
                        return record, field
        inner = self._keys.inner(folder, name)
        if inner is not None:
            return inner, FOLDER
        return _search(self._children(folder, 0), name)

    def _files(self, key: str, record: int) -> Iterator[tuple[str, int]]:
        """(name, field) of the files of a record; one that can't be read is a file, too."""
        try:
            names = _among_all(self._records, record, key)
        except ShardfsError:
            yield key, DAMAGED
            return
        for field, name in enumerate(names):
            yield name, field


class FieldLayout:
    """A folder a field, `image/000000.jpg`; what has no key stands beside these folders."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._columns = list(records.columns)
        self._names = list(distinct((escape(column), "") for column in self._columns))

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        if folder == SHARD_ROOT:
            yield from islice(self._root(), start, None)
            return
        for record in range(start >> _FILE_BITS, len(self._records.shard)):
            if not may_wait() and record % AT_ONCE == AT_ONCE - 1:
                raise WouldBlock  # a column may be empty in very many records
            base = record << _FILE_BITS
            skip = max(start - base, 0)
            files = enumerate(self._files(folder - INNER, record), 1)
            for position, (name, field) in islice(files, skip, None):
                yield Item(base + position, name, record, field)

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        if folder == SHARD_ROOT:
            items = self._root()
            return next((item[2:] for item in items if item.name == name), None)
        if folder < INNER:
            return None
        for stem in _stems(name):
            for key in spellings(stem):
                record = self._records.shard.find(key)
                if record is not None:
                    for file, field in self._files(folder - INNER, record):
                        if file == name:
                            return record, field
        return _search(self.scan(folder, 0), name)

    def described(self, folder: int, /) -> int | None:
        return None

    def path(self, record: int, /) -> str:
        return ""  # a record is in no single place

    def place(self, record: int, field: int, /) -> str:
        column = self._columns.index(self._records.files(record)[field].column)
        names = (name for name, number in self._files(column, record) if number == field)
        return _joined(self._names[column], next(names))

    def _root(self) -> Iterator[Item]:
        for column, name in enumerate(self._names):
            yield Item(column + 1, name, INNER + column)
        shard, places, pairs = self._records.shard, [], [(name, "") for name in self._names]
        for record in range(len(shard), len(shard) + shard.loose) if shard.loose else ():
            for field, file in enumerate(self._records.files(record)):
                places.append((record, field))
                pairs.append(split_extension(_above(shard.key(record)) + file.name))
        names = list(distinct(pairs))[len(self._names) :]
        for cookie, (name, place) in enumerate(zip(names, places, strict=True), len(self._names)):
            yield Item(cookie + 1, name, *place)

    def _files(self, column: int, record: int) -> Iterator[tuple[str, int]]:
        """(name, field) of the files that show one column of a record; a damaged record is a file in every column."""
        key = self._records.shard.key(record)
        folder, _, base = key.rpartition("/")
        try:
            files = self._records.files(record)
            names = _among_all(self._records, record, file_name(base))
        except ShardfsError:
            yield file_name(key), DAMAGED
            return
        for field, (file, name) in enumerate(zip(files, names, strict=True)):
            if file.column == self._columns[column]:
                yield _cut(_above(folder) + name) if file.fixed else _in_column(key, file), field


def _in_column(key: str, file: NamedFile) -> str:
    """What a file of a record is called in the folder of its column: as the record, with what the file has more."""
    stem = escape(file.column)
    rest = file.name.removeprefix(stem) if file.name.startswith(stem) else f".{file.name}"
    if not rest:  # the column is called as a file is, with an extension
        rest = split_extension(stem)[1]
    return _cut(file_name(key) + rest)


def _among_all(records: Records, record: int, key: str) -> Sequence[str]:
    """What the files of the record *key* are called where those of all records stand in one folder.

    The mark of a second `a.jpg`, `a~1.jpg`, may make it the name of a file of the record `a~1`: then it counts on.
    """
    files = records.files(record)
    names = [file.name if file.fixed else _cut(f"{key}.{file.name}") for file in files]
    for position, (file, name) in enumerate(zip(files, names, strict=True)):
        if file.fixed and not name.startswith(f"{key}.") and _is_taken(records, record, name):
            plain = re.sub(r"~\d+(?=\.|$)", "", name)
            names[position] = next(
                wish
                for wish in _marked(plain)
                if wish not in names and not _is_taken(records, record, wish)
            )
    return names


def _is_taken(records: Records, record: int, name: str) -> bool:
    """Whether another record in the folder of *record* has a file of that name as its own."""
    shard = records.shard
    above, slash, _ = shard.key(record).rpartition("/")
    other = shard.find(above + slash + name.partition(".")[0])
    if other is None or other == record:
        return False
    try:
        return any(file.name == name for file in records.files(other))
    except ShardfsError:
        return False


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _above(folder: str) -> str:
    """What comes before the names of files in *folder* where folders are not shown."""
    return escape(f"{folder}/") if folder else ""


def _cut(name: str) -> str:
    """*name* in its legal length, with its extension."""
    return shorten(*split_extension(name))


def _marked(name: str) -> Iterator[str]:
    """What a second file of that name may be called, a third one, and so on."""
    stem, extension = split_extension(name)
    return (shorten(stem, f"~{number}{extension}") for number in count(1))


def _stems(name: str) -> Iterator[str]:
    """What a file may be called after: a key ends before one of the dots, or before a mark in front of that."""
    ends = [match.start() for match in re.finditer(r"\.", name)]
    for stem in (name[:end] for end in [*ends, len(name)]):
        yield stem
        plain = re.sub(r"~\d+$", "", stem)
        if plain != stem:
            yield plain


def _search(items: Iterator[Item], name: str) -> tuple[int, int] | None:
    """(record, field) of a name that is found only by a look at all of them."""
    if not is_short(name):
        return None
    return next(((item.record, item.field) for item in items if item.name == name), None)
