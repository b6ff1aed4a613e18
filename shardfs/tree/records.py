"""The records of an opened shard as files: presented when somebody looks, and known for a while."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields
from functools import lru_cache
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.blob import Blob, stored_at
from shardfs.errors import Corrupt, ShardfsError, TooLarge, Unreadable, located
from shardfs.names import NAME_MAX, distinct, escape, extended, split_extension
from shardfs.tree.keys import GroupedKeys, NestedKeys, PlainKeys
from shardfs.tree.layouts import MAX_FILES, FieldLayout, FlatLayout, NamedFile, RecordLayout
from shardfs.tree.listing import Listing, Recorder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from shardfs.model import Field, File, Kind, Shard, ShardRef
    from shardfs.options import Options
    from shardfs.stores import Watch
    from shardfs.tree.inodes import Places
    from shardfs.tree.layouts import ShardLayout

# Files of records that are known, so that lookup, getattr and open of one file parse the record once. Counted in
# files, since a record may have one or ten thousand.
_KNOWN_FILES = 4096


class Presenter(Protocol):
    """Makes files of fields."""

    def files(self, fields: Sequence[Field], /) -> Sequence[File]: ...


# Distinguishes shards in the cache of known records, also from those that were closed and opened again.
_serials = count()


class KnownRecords:
    """The files of the records that were looked at last.

    Two generations of plain dictionaries: cheaper than an exact order of use, and safe without a lock, since each
    operation on them is atomic and a lost entry is only made again.
    """

    def __init__(self) -> None:
        self._young: dict[tuple[int, int], tuple[NamedFile, ...]] = {}
        self._old: dict[tuple[int, int], tuple[NamedFile, ...]] = {}
        self._room = _KNOWN_FILES

    def get(self, key: tuple[int, int]) -> tuple[NamedFile, ...] | None:
        known = self._young.get(key)
        return self._old.get(key) if known is None else known

    def put(self, key: tuple[int, int], files: tuple[NamedFile, ...]) -> None:
        if self._room <= 0:
            self._young, self._old, self._room = {}, self._young, _KNOWN_FILES
        self._young[key] = files
        self._room -= 1 + len(files)


@lru_cache(maxsize=1024)
def _legal_names(files: tuple[tuple[str, str, bool], ...]) -> tuple[str, ...]:
    """File names for files by stem, extension, and whether the stem is a whole name that the dataset gave.

    Cached, since the records of a shard mostly have the same fields.
    """
    return tuple(
        distinct(
            split_extension(escape(stem)) if given else extended(escape(stem), extension)
            for stem, extension, given in files
        )
    )


class ShownField(NamedTuple):
    """A field of a record, and the files that show it: their names in the record's folder, and what is in them."""

    field: Field
    names: Sequence[str]
    files: Sequence[File]


class OpenShard:
    """A shard that was looked into: its records as files, laid out in folders."""

    def __init__(
        self,
        shard: Shard,
        ref: ShardRef,
        presenter: Presenter,
        options: Options,
        memory: Listing | Recorder | None,
        known: KnownRecords,
        places: Places,
        watches: Sequence[Watch] = (),
    ) -> None:
        self.place = ref.file or ref.name
        """What messages call it."""
        self.shard, self.ref, self._presenter = shard, ref, presenter
        self._memory, self._known, self._serial = memory, known, next(_serials)
        self._columns = frozenset(options.columns)
        self.places, self._watches = places, watches
        self.layout = self._make_layout(options)

    def _make_layout(self, options: Options) -> ShardLayout:
        if options.layout == "field":
            return FieldLayout(self)
        keys: PlainKeys | NestedKeys
        if self.shard.nested:
            keys = NestedKeys(self.shard, merged=options.layout != "flat")
        elif 0 < options.fanout < self.shard.capacity:
            keys = GroupedKeys(self.shard, options.fanout)
        else:
            keys = PlainKeys(self.shard)
        return (FlatLayout if options.layout == "flat" else RecordLayout)(self, keys)

    @property
    def columns(self) -> Sequence[str]:
        return [c for c in self.shard.columns if not self._columns or c in self._columns]

    def check(self) -> None:
        """Raise Changed where its files are no longer what they were when it was opened."""
        for look in self._watches:
            look()

    def files(self, record: int, /) -> tuple[NamedFile, ...]:
        key = self._serial, record
        known = self._known.get(key)
        if known is None:
            with located(f"record {record}"):
                known = tuple(self._learn(record))
            self._known.put(key, known)
        return known

    def _learn(self, record: int) -> Sequence[NamedFile]:
        if isinstance(self._memory, Listing):
            with contextlib.suppress(Corrupt):  # a spoiled cache costs time, not answers
                return self._memory.files(record, lambda file: self._content(record, file))
        return self._present(self.shard.fields(record))

    def listed(self, record: int) -> None:
        """Take down names and sizes of a record whose files are being listed, where that is worth it."""
        if isinstance(self._memory, Recorder):
            with contextlib.suppress(ShardfsError):  # a shard with a fault is looked at anew
                self._memory.note(record, self.files(record))

    def early(self, record: int, name: str, /) -> int | None:
        """The number of a file, where it is known although the shard is still being scanned for more."""
        fields = self.shard.early(record, name)
        if fields is None:
            return None
        files = tuple(self._present(fields))
        self._known.put((self._serial, ~record), files)
        return next((field for field, file in enumerate(files) if file.name == name), None)

    def file(self, record: int, field: int) -> NamedFile:
        """A file by its number. Raises a ShardfsError where the record can't be read."""
        known = self._known.get((self._serial, record)) or self._known.get((self._serial, ~record))
        if known is not None and field < len(known):
            return known[field]
        return self.files(record)[field]

    def _content(self, record: int, file: int) -> Blob:
        """The content of a file of which only name and size were remembered."""
        files = self._present(self.shard.fields(record))
        if file >= len(files):
            raise Unreadable("is not what the index cache says: use --rebuild-index")
        return files[file].blob

    def _present(self, fields: Sequence[Field]) -> Sequence[NamedFile]:
        shown = self._shown(fields)
        names = iter(_names(shown))
        return [
            NamedFile(next(names), file.blob, field.name, field.filename is not None)
            for field, files in shown
            for file in files
        ]

    def _shown(self, fields: Iterable[Field]) -> Sequence[tuple[Field, Sequence[File]]]:
        """Those of the fields of a record that are to be shown, and the files that show them."""
        shown = [
            (field, self._presenter.files((field,)))
            for field in fields
            if not self._columns or field.name in self._columns
        ]
        found, limit = sum(len(files) for _, files in shown), min(MAX_FILES, self.places.max_fields)
        if found > limit:
            raise TooLarge(f"has {found} files, more than {limit} can be shown")
        return shown

    def record(self, record: int, only: Collection[str] = ()) -> list[ShownField]:
        """The fields of a record that are shown, in storage order; no others than *only*, if there are any.

        Raises a ShardfsError where it can't be read.
        """
        with located(f"record {record}"):
            shown = self._shown(f for f in self.shard.fields(record) if not only or f.name in only)
        names = iter(_names(shown))
        return [ShownField(field, list(islice(names, len(files))), files) for field, files in shown]

    def describe(self, record: int) -> bytes:
        """What is known of a record, as JSON."""
        what = {
            "shard": self.ref.file or self.ref.name,
            "index": record,
            "key": self.shard.key(record),
            "fields": [
                _description(shown.field) | {"files": shown.names} for shown in self.record(record)
            ],
        }
        return json.dumps(what, indent=1).encode("ascii") + b"\n"


def _names(shown: Sequence[tuple[Field, Sequence[File]]]) -> Sequence[str]:
    given = [field.filename for field, _ in shown if field.filename is not None]
    if len(set(given)) == len(shown) and all(map(_is_plain, given)):
        return given  # the dataset's own names, nothing about which needs a change
    return _legal_names(
        tuple(
            (file.stem, file.extension, field.filename is not None)
            for field, files in shown
            for file in files
        )
    )


def _is_plain(name: str) -> bool:
    return name.isascii() and len(name) < NAME_MAX and escape(name) == name


def _description(field: Field) -> dict[str, object]:
    """What is known of a field, as far as it fits JSON."""
    row = {"name": field.name, "kind": type(field.kind).__name__.lower(), **_facts(field.kind)}
    try:
        row["bytes"] = field.data.size()
    except ShardfsError as error:
        row["error"] = str(error)
        return row
    offset = stored_at(field.data)
    return row if offset is None else {**row, "offset": offset}


def _facts(kind: Kind) -> dict[str, object]:
    values = ((each.name, getattr(kind, each.name)) for each in fields(kind))
    return {
        name: value
        for name, value in values
        if isinstance(value, (str, int, tuple)) and value != ""
    }
