"""The inside of shards as a part of the tree: opened on the first look, by numbers that say shard, record and field."""

from __future__ import annotations

import contextlib
import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

from shardfs.blob import Blob, Bytes, may_wait, stored_at
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotFound,
    ShardfsError,
    TooLarge,
    Unreadable,
    Unsupported,
    WouldBlock,
    located,
)
from shardfs.names import distinct, escape
from shardfs.tree.inodes import (
    CONTROL,
    DAMAGED,
    FOLDER,
    INNER,
    MAX_SHARDS,
    SHARD_ROOT,
    Ino,
    Places,
    shard_ino,
    split_shard,
)
from shardfs.tree.keys import GroupedKeys, NestedKeys, PlainKeys
from shardfs.tree.layouts import FieldLayout, FlatLayout, NamedFile, RecordLayout
from shardfs.tree.listing import VERSION, Listing, Recorder
from shardfs.tree.nodes import Attr, Listed, NoLinks, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.cache.index import IndexCache
    from shardfs.journal import Journal
    from shardfs.model import Dataset, Field, File, Shard, ShardRef, Store
    from shardfs.options import Options
    from shardfs.tree.layouts import ShardLayout

CONTROL_NAME = ".shardfs.json"

# Open shards hold a file descriptor and a little memory each; more than this many are never in use at once.
_OPEN_SHARDS = 256
# Records whose files are known, so that lookup, getattr and open of one file parse the record once.
_KNOWN_RECORDS = 1024


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

    def get(self, key: tuple[int, int]) -> tuple[NamedFile, ...] | None:
        known = self._young.get(key)
        return self._old.get(key) if known is None else known

    def put(self, key: tuple[int, int], files: tuple[NamedFile, ...]) -> None:
        if len(self._young) >= _KNOWN_RECORDS:
            self._young, self._old = {}, self._young
        self._young[key] = files


@lru_cache(maxsize=1024)
def _legal_names(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """File names for (stem, extension) pairs. Cached, since the records of a shard mostly have the same fields."""
    return tuple(distinct((escape(stem), extension) for stem, extension in pairs))


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
    ) -> None:
        self.shard, self.ref, self._presenter = shard, ref, presenter
        self._memory, self._known, self._serial = memory, known, next(_serials)
        self._columns = frozenset(options.columns)
        self.places = Places(shard.capacity)
        self.layout = self._make_layout(options)

    def _make_layout(self, options: Options) -> ShardLayout:
        if options.layout == "field":
            return FieldLayout(self)
        keys: PlainKeys | NestedKeys
        if self.shard.nested:
            keys = NestedKeys(self.shard)
        elif 0 < options.fanout < self.shard.capacity:
            keys = GroupedKeys(self.shard, options.fanout)
        else:
            keys = PlainKeys(self.shard)
        return (FlatLayout if options.layout == "flat" else RecordLayout)(self, keys)

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
            return self._memory.files(record, lambda file: self._content(record, file))
        files = list(self._present(record))
        if self._memory is not None:
            with contextlib.suppress(
                ShardfsError
            ):  # a shard with a fault is looked at anew each time
                self._memory.note(record, files)
        return files

    def _content(self, record: int, file: int) -> Blob:
        """The content of a file of which only name and size were remembered."""
        files = list(self._present(record))
        if file >= len(files):
            raise Unreadable("is not what the index cache says: use --rebuild-index")
        return files[file].blob

    def _present(self, record: int) -> Iterator[NamedFile]:
        shown = [
            (field, file)
            for field in self.shard.fields(record)
            if not self._columns or field.name in self._columns
            for file in self._presenter.files((field,))
        ]
        if len(shown) > self.places.max_fields:
            raise TooLarge(
                f"has {len(shown)} files, more than {self.places.max_fields} can be shown"
            )
        names = _legal_names(tuple((file.stem, file.extension) for _, file in shown))
        for name, (field, file) in zip(names, shown, strict=True):
            yield NamedFile(name, file.blob, field.name, field.filename is not None)

    def describe(self, record: int) -> bytes:
        """What is known of a record, as JSON."""
        fields = []
        for field in self.shard.fields(record):
            files = self._presenter.files((field,))
            kind = {k: v for k, v in asdict(field.kind).items() if k != "render"}
            row: dict[str, object] = {
                "name": field.name,
                "kind": type(field.kind).__name__.lower(),
                **{k: v for k, v in kind.items() if isinstance(v, (str, int, tuple)) and v != ""},
                "files": [escape(file.stem) + file.extension for file in files],
            }
            try:
                offset = stored_at(field.data)
                row |= {"bytes": field.data.size()} | ({} if offset is None else {"offset": offset})
            except ShardfsError as error:
                row["error"] = str(error)
            fields.append(row)
        what = {
            "shard": self.ref.file or self.ref.name,
            "index": record,
            "key": self.shard.key(record),
            "fields": fields,
        }
        return json.dumps(what, indent=1).encode("ascii") + b"\n"


class ShardSpace(NoLinks):
    """All shards of a mount."""

    def __init__(
        self, presenter: Presenter, journal: Journal, options: Options, index: IndexCache | None
    ) -> None:
        self._presenter, self._journal, self._options = presenter, journal, options
        self._index = index
        self._firsts: list[int] = []
        self._datasets: list[tuple[Dataset, Store]] = []
        self._count = 0
        self._known = KnownRecords()
        self._open: OrderedDict[int, OpenShard | ShardfsError] = OrderedDict()
        self._opening: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()

    def add(self, dataset: Dataset, store: Store) -> int:
        """Take the shards of *dataset* in; the number of the first one."""
        with self._lock:
            first = self._count
            if first + len(dataset.shards) > MAX_SHARDS:
                raise Unsupported(f"more than {MAX_SHARDS} shards: mount a part of the source")
            self._firsts.append(first)
            self._datasets.append((dataset, store))
            self._count += len(dataset.shards)
            return first

    @property
    def count(self) -> int:
        """How many shards were found so far."""
        return self._count

    @property
    def opened(self) -> int:
        """How many shards are open."""
        return len(self._open)

    def info(self) -> dict[str, object]:
        """What is known of the datasets that were found so far."""
        records = [ref.records for dataset, _ in self._datasets for ref in dataset.shards]
        return {
            "shards": self._count,
            "records": None if None in records else sum(filter(None, records)),
            "datasets": [
                {"format": dataset.format, "url": store.url, **dataset.info()}
                for dataset, store in self._datasets
            ],
        }

    def ref(self, number: int) -> ShardRef:
        dataset, _, index = self._find(number)
        return dataset.shards[index]

    def _find(self, number: int) -> tuple[Dataset, Store, int]:
        at = bisect_right(self._firsts, number) - 1
        return *self._datasets[at], number - self._firsts[at]

    def folder_attr(self, number: int) -> Attr:
        """The attributes of a shard's own folder, without a look into the shard."""
        return Attr(shard_ino(number), Type.FOLDER, 0, self.ref(number).mtime_ns)

    # --- opening ---

    def shard(self, number: int) -> OpenShard:
        """The shard, opened by one thread however many ask."""
        found = self._opened(number)
        if found is None:
            if not may_wait():
                raise WouldBlock
            with self._lock:
                lock = self._opening.setdefault(number, threading.Lock())
            with lock:
                found = self._opened(number)
                if found is None:
                    found = self._open_now(number)
        if isinstance(found, ShardfsError):
            raise found.again()
        return found

    def _opened(self, number: int) -> OpenShard | ShardfsError | None:
        with self._lock:
            found = self._open.get(number)
            if found is not None:
                self._open.move_to_end(number)
            return found

    def _open_now(self, number: int) -> OpenShard | ShardfsError:
        dataset, store, index = self._find(number)
        ref = dataset.shards[index]
        result: OpenShard | ShardfsError
        try:
            with located(ref.file or ref.name):
                self._check_version(ref, store)
                shard = dataset.open_shard(index)
                memory = self._remember(shard, ref, store)
                result = OpenShard(shard, ref, self._presenter, self._options, memory, self._known)
        except ShardfsError as error:
            self._journal.note(error)
            if not isinstance(error, Corrupt):
                raise  # another try may go better
            result = error.again()
        with self._lock:
            self._open[number] = result
            self._opening.pop(number, None)
            while len(self._open) > _OPEN_SHARDS:
                # Not closed: somebody may be reading in it. It goes when the last of them does.
                self._open.popitem(last=False)
        return result

    def _remember(self, shard: Shard, ref: ShardRef, store: Store) -> Listing | Recorder | None:
        """What the index cache knows of the shard's files, or what will tell it."""
        if self._index is None or not (shard.costly and ref.version):
            return None
        options = self._options
        look = f"listing {VERSION} {options.raw} {options.block_size} {options.columns}"
        key = f"{store.url}/{ref.file}\0{ref.version}\0{look}"
        kept = None if options.rebuild_index else self._index.get(key)
        if kept is not None:
            with contextlib.suppress(Corrupt, ValueError):  # then it is made anew
                listing = Listing(kept)
                if listing.records == len(shard):
                    return listing
        return Recorder(len(shard), partial(self._index.put, key))

    @staticmethod
    def _check_version(ref: ShardRef, store: Store) -> None:
        if ref.file and ref.version:
            try:
                version = store.stat(ref.file).version
            except NotFound as error:
                raise Unreadable("the file is gone") from error
            if version != ref.version:
                raise Unreadable(
                    "has changed since it was mounted; mount the source again to see it"
                )

    def close(self) -> None:
        with self._lock:
            opened, self._open = list(self._open.values()), OrderedDict()
        for shard in opened:
            if isinstance(shard, OpenShard):
                shard.shard.close()

    # --- nodes ---

    def attr(self, ino: Ino, /) -> Attr:
        number, place = split_shard(ino)
        if not place:
            return self.folder_attr(number)
        shard = self.shard(number)
        record, field = shard.places.unpack(place)
        return self._attr(number, shard, record, field)

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        number, shard, folder = self._folder(parent)
        with located(shard.ref.file):
            if name == CONTROL_NAME and SHARD_ROOT < folder < INNER:
                found: tuple[int, int] | None = (folder, CONTROL)
            else:
                found = shard.layout.find(folder, name)
            if found is None:
                raise NotFound(name)
            return self._attr(number, shard, *found)

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        number, shard, folder = self._folder(ino)
        with located(shard.ref.file):
            for cookie, name, record, field in shard.layout.scan(folder, start):
                yield Listed(cookie, name, self._attr(number, shard, record, field))

    def open(self, ino: Ino, /) -> Blob:
        number, place = split_shard(ino)
        shard = self.shard(number)
        record, field = shard.places.unpack(place)
        with located(shard.ref.file):
            if place == 0 or field == FOLDER:
                raise IsAFolder(f"record {record}")
            if field == CONTROL:
                return Bytes(shard.describe(record))
            file = shard.files(record)[0 if field == DAMAGED else field]
            try:
                file.blob.size()  # what is wrong must show here: an empty file is never read
            except ShardfsError as error:
                error.at(f"record {record}", file.name)
                raise
            return file.blob

    def _folder(self, ino: Ino) -> tuple[int, OpenShard, int]:
        """(shard number, shard, folder in it)."""
        number, place = split_shard(ino)
        shard = self.shard(number)
        folder, field = shard.places.unpack(place)
        if field != FOLDER:
            raise NotAFolder(f"{shard.ref.file}: record {folder}")
        return number, shard, folder

    def _attr(self, number: int, shard: OpenShard, record: int, field: int) -> Attr:
        ino = shard_ino(number, shard.places.pack(record, field))
        mtime_ns = shard.ref.mtime_ns
        if field == FOLDER:
            return Attr(ino, Type.FOLDER, 0, mtime_ns)
        if field == CONTROL:
            return Attr(ino, Type.FILE, len(shard.describe(record)), mtime_ns)
        size = 0 if field == DAMAGED else self._size(shard, record, field)
        return Attr(ino, Type.FILE, size, mtime_ns)

    def _size(self, shard: OpenShard, record: int, field: int) -> int:
        """The size of a file; what can't be read is listed as empty, and says why when it is opened."""
        file = shard.files(record)[field]
        try:
            return file.blob.size()
        except ShardfsError as error:
            self._journal.note(error.at(shard.ref.file, f"record {record}", file.name))
            return 0
