"""How the files of a shard's records stand in folders: the layouts.

Numbers are those of ``inodes``; the folders above the records are those of ``keys``.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.errors import ShardfsError
from shardfs.names import distinct, escape, split_extension
from shardfs.tree.inodes import DAMAGED, FOLDER, INNER, SHARD_ROOT
from shardfs.tree.keys import Item, file_name

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

    def files(self, record: int, /) -> Sequence[NamedFile]:
        """The files of a record. Raises a ShardfsError where it can't be read."""
        ...


class ShardLayout(Protocol):
    """The files and folders of a shard."""

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        """What stands in *folder*, from the cookie *start* on, in storage order."""
        ...

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        """(record, field) of what is called *name* in *folder*."""
        ...

    def path(self, record: int, /) -> str:
        """Where in the shard's folder a record is to be found."""
        ...


# A cookie in a folder that mixes several records: position of the record << 20 | its files that were listed.
_FILE_BITS = 20
# Cookies of files that stand in a folder of their own right, behind the records and folders.
_BESIDE = 1 << 60


class RecordLayout:
    """A folder a record."""

    def __init__(self, records: Records, keys: Keys) -> None:
        self._records, self._keys = records, keys

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        if start < _BESIDE:
            yield from self._children(folder, start)
        yield from self._beside(folder, max(start - _BESIDE, 0))

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        found = self._find_child(folder, name)
        if found is not None:
            return found
        own = self._keys.own_record(folder)
        return None if own is None else _position(own, self._names_beside(folder, own), name)

    def path(self, record: int, /) -> str:
        return self._keys.path(record)

    def _children(self, folder: int, start: int) -> Iterator[Item]:
        return self._keys.children(folder, start)

    def _find_child(self, folder: int, name: str) -> tuple[int, int] | None:
        record = self._keys.find(folder, name)
        return None if record is None else (record, FOLDER)

    def _beside(self, folder: int, start: int) -> Iterator[Item]:
        """The files of the record whose folder this is."""
        own = self._keys.own_record(folder)
        if own is not None:
            names = enumerate(self._names_beside(folder, own))
            for field, name in islice(names, start, None):
                yield Item(_BESIDE + field + 1, name, own, field)

    def _names_beside(self, folder: int, record: int) -> list[str]:
        """Where a record or folder has a file's name, the file is `name~1`."""
        names = [file.name for file in self._records.files(record)]
        if not self._records.shard.nested and folder == record:
            return names  # the common case: nothing else stands in a record's folder
        clashes = [(name, "") for name in names if self._find_child(folder, name) is not None]
        if not clashes:
            return names
        pairs = [split_extension(name) for name in names]
        return list(distinct([*clashes, *pairs]))[len(clashes) :]


class FlatLayout(RecordLayout):
    """The files of all records in one folder, `000000.image.jpg`."""

    def _children(self, folder: int, start: int) -> Iterator[Item]:
        for cookie, key, record, _ in self._keys.children(folder, start >> _FILE_BITS):
            base = (cookie - 1) << _FILE_BITS
            if record >= INNER:
                yield Item(cookie << _FILE_BITS, key, record)
            else:
                skip = max(start - base, 0)
                for position, (name, field) in islice(
                    enumerate(self._files(key, record), 1), skip, None
                ):
                    yield Item(base + position, name, record, field)

    def _find_child(self, folder: int, name: str) -> tuple[int, int] | None:
        record = self._keys.find(folder, name)
        if record is not None and record >= INNER:
            return record, FOLDER
        if record is None:
            record = self._keys.find(folder, name.partition(".")[0])
        if record is None or record >= INNER:
            return None
        key = file_name(self._records.shard.key(record).rpartition("/")[2])
        return next(
            ((record, field) for file, field in self._files(key, record) if file == name), None
        )

    def _files(self, key: str, record: int) -> Iterator[tuple[str, int]]:
        """(name, field) of the files of a record; one that can't be read is a file, too."""
        try:
            files = self._records.files(record)
        except ShardfsError:
            yield key, DAMAGED
            return
        for field, file in enumerate(files):
            yield file.name if file.fixed else file_name(f"{key}.{file.name}"), field


class FieldLayout:
    """A folder a field, `image/000000.jpg`."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._columns = list(records.shard.columns)
        self._names = list(distinct((escape(column), "") for column in self._columns))

    def scan(self, folder: int, start: int, /) -> Iterator[Item]:
        if folder == SHARD_ROOT:
            for column, name in islice(enumerate(self._names), start, None):
                yield Item(column + 1, name, INNER + column)
            return
        for record in range(start >> _FILE_BITS, len(self._records.shard)):
            base = record << _FILE_BITS
            skip = max(start - base, 0)
            files = enumerate(self._files(folder - INNER, record), 1)
            for position, (name, field) in islice(files, skip, None):
                yield Item(base + position, name, record, field)

    def find(self, folder: int, name: str, /) -> tuple[int, int] | None:
        if folder == SHARD_ROOT:
            known = name in self._names
            return (INNER + self._names.index(name), FOLDER) if known else None
        if folder < INNER:
            return None
        record = self._records.shard.find(name.partition(".")[0].replace("%2F", "/"))
        if record is None:
            return None
        files = self._files(folder - INNER, record)
        return next(((record, field) for file, field in files if file == name), None)

    def path(self, record: int, /) -> str:
        return ""  # a record is in no single place

    def _files(self, column: int, record: int) -> Iterator[tuple[str, int]]:
        """(name, field) of the files that show one column of a record; a damaged record is a file in every column."""
        key = file_name(self._records.shard.key(record))
        try:
            files = self._records.files(record)
        except ShardfsError:
            yield key, DAMAGED
            return
        for field, file in enumerate(files):
            if file.column == self._columns[column]:
                yield self._file_name(key, file), field

    @staticmethod
    def _file_name(key: str, file: NamedFile) -> str:
        stem = escape(file.column)
        rest = file.name.removeprefix(stem) if file.name.startswith(stem) else f".{file.name}"
        return file.name if file.fixed else file_name(key + rest)


def _position(record: int, names: Iterator[str] | list[str], name: str) -> tuple[int, int] | None:
    return next(((record, field) for field, known in enumerate(names) if known == name), None)
