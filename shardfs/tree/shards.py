"""The inside of shards as a part of the tree: opened on the first look, by numbers that say shard, record and field."""

from __future__ import annotations

import contextlib
import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from shardfs.blob import Blob, Bytes, check_beside, may_wait
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotFound,
    ShardfsError,
    Spoilt,
    Unreadable,
    Unsupported,
    WouldBlock,
    located,
)
from shardfs.tree.inodes import (
    CONTROL,
    DAMAGED,
    FOLDER,
    MAX_SHARDS,
    SHARD_ROOT,
    Ino,
    Places,
    shard_ino,
    split_shard,
)
from shardfs.tree.instead import open_shard
from shardfs.tree.listing import VERSION, Listing, Recorder
from shardfs.tree.nodes import Attr, Listed, NoLinks, Type
from shardfs.tree.pins import Pins
from shardfs.tree.records import KnownRecords, OpenShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shardfs.cache.disk import DiskCache
    from shardfs.journal import Journal
    from shardfs.model import Dataset, Shard, ShardRef
    from shardfs.options import Options
    from shardfs.stores import Store
    from shardfs.tree.records import Presenter

CONTROL_NAME = ".shardfs.json"

# Open shards hold a file descriptor and a little memory each; more than this many are never in use at once.
_OPEN_SHARDS = 256


_T = TypeVar("_T")
_P = ParamSpec("_P")


def _twice(
    method: Callable[Concatenate[ShardSpace, Ino, _P], _T], /
) -> Callable[Concatenate[ShardSpace, Ino, _P], _T]:
    """Do it again with the shard opened anew, where what was kept of it on disk turns out to be damaged."""

    @wraps(method)
    def heal(self: ShardSpace, ino: Ino, /, *args: _P.args, **named: _P.kwargs) -> _T:
        try:
            return method(self, ino, *args, **named)
        except Spoilt:
            self._forget(ino)
            return method(self, ino, *args, **named)

    return heal


class ShardSpace(NoLinks):
    """All shards of a mount."""

    def __init__(
        self, presenter: Presenter, journal: Journal, options: Options, index: DiskCache | None
    ) -> None:
        self._presenter, self.journal, self._options = presenter, journal, options
        self._index = index
        self._firsts: list[int] = []
        self._datasets: list[tuple[Dataset, Store]] = []
        self._folders: list[str] = []
        self._count = 0
        self._known = KnownRecords()
        self._pins = Pins()
        # Of the shards that were opened: a few bytes each, kept as long as their numbers may be used.
        self._places: dict[int, Places] = {}
        self._open: OrderedDict[int, OpenShard | ShardfsError] = OrderedDict()
        self._opening: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()

    def add(self, dataset: Dataset, store: Store, folder: str = "") -> int:
        """Take the shards of *dataset* in, which lies in a *folder* of the source; the number of the first one."""
        with self._lock:
            first = self._count
            if first + len(dataset.shards) > MAX_SHARDS:
                raise Unsupported(f"more than {MAX_SHARDS} shards: mount a part of the source")
            self._firsts.append(first)
            self._datasets.append((dataset, store))
            self._folders.append(folder)
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

    def datasets(self) -> list[tuple[Dataset, int, str]]:
        """(dataset, number of its first shard, URL of its folder) of those that were found so far."""
        with self._lock:
            pairs = zip(self._datasets, self._firsts, strict=True)
            return [(dataset, first, store.url) for (dataset, store), first in pairs]

    def ref(self, number: int) -> ShardRef:
        dataset, _, index = self._find(number)
        return dataset.shards[index]

    def _place(self, number: int) -> str:
        """What messages call a shard."""
        ref, folder = self.ref(number), self._folders[bisect_right(self._firsts, number) - 1]
        return f"{folder}/{ref.file or ref.name}" if folder else ref.file or ref.name

    def records(self, number: int) -> int:
        """How many records a shard has: by an index, else by a look into it, which may wait for a scan."""
        count = self.ref(number).records
        return len(self.shard(number).shard) if count is None else count

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
        ref, place = dataset.shards[index], self._place(number)
        result: OpenShard | ShardfsError
        try:
            with located(place):
                version, watches = self._pins.pin(number, ref, store)
                shard = open_shard(dataset, store, index)
                memory = self._remember(shard, ref, store, version)
                # The kernel knows nodes by numbers made with the first capacity, which a scan may narrow down.
                places = self._places.setdefault(number, Places(shard.capacity))
                result = OpenShard(
                    shard,
                    ref,
                    self._presenter,
                    self._options,
                    memory,
                    self._known,
                    places,
                    watches,
                )
                result.place = place
        except Spoilt:
            raise
        except ShardfsError as error:
            if isinstance(error, NotFound):  # what is listed can't be said not to be there
                error = Unreadable(error.message).at(*error.places)
            self.journal.note(error)
            if not isinstance(error, Corrupt):
                raise error from None  # another try may go better
            result = error.again()
        with self._lock:
            self._open[number] = result
            self._opening.pop(number, None)
            while len(self._open) > _OPEN_SHARDS:
                # Not closed: somebody may be reading in it. It goes when the last of them does.
                self._open.popitem(last=False)
        return result

    def _remember(
        self, shard: Shard, ref: ShardRef, store: Store, version: str
    ) -> Listing | Recorder | None:
        """What the index cache knows of the shard's files, or what will tell it."""
        if self._index is None or not (shard.costly and version):
            return None
        key = self._key(ref, store, version, f"listing {VERSION}")
        kept = None if self._options.rebuild_index else self._index.get(key)
        if kept is not None:
            with contextlib.suppress(Corrupt):  # then it is made anew
                listing = Listing(kept)
                if listing.records == len(shard):
                    return listing
        return Recorder(len(shard), partial(self._index.put, key))

    def _key(self, ref: ShardRef, store: Store, version: str, what: str) -> str:
        """Under what *what* is kept of a shard: it depends on how fields are shown."""
        options = self._options
        look = f"{what} {options.raw} {options.block_size} {options.columns}"
        return f"{store.url}/{ref.file}\0{version}\0{look}"

    def key(self, number: int, what: str) -> str:
        """Under what *what*, computed of a whole shard, is kept; "" where nothing tells its version. May wait."""
        dataset, store, index = self._find(number)
        ref = dataset.shards[index]
        version, _ = self._pins.pin(number, ref, store)
        facts = json.dumps(dataset.info(), default=str)  # what a README says of it, too
        return self._key(ref, store, version, f"{what} {facts}") if version else ""

    def close(self) -> None:
        with self._lock:
            opened, self._open = list(self._open.values()), OrderedDict()
        for shard in opened:
            if isinstance(shard, OpenShard):
                shard.shard.close()

    def _forget(self, ino: Ino) -> None:
        """Have a shard opened anew: what was kept of it on disk is damaged, and gone."""
        with self._lock:
            self._open.pop(split_shard(ino)[0], None)

    # --- nodes ---

    @_twice
    def attr(self, ino: Ino, /) -> Attr:
        number, place = split_shard(ino)
        if not place:
            return self.folder_attr(number)
        shard = self.shard(number)
        record, field = shard.places.unpack(place)
        return self._attr(number, shard, record, field)

    @_twice
    def lookup(self, parent: Ino, name: str, /) -> Attr:
        number, shard, folder = self._folder(parent)
        with located(shard.place):
            if name == CONTROL_NAME:
                record = shard.layout.described(folder)
                found = None if record is None else (record, CONTROL)
            else:
                found = shard.layout.find(folder, name)
            if found is None:
                raise NotFound(name)
            return self._attr(number, shard, *found)

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        try:
            for listed in self._scan(ino, start):
                start = listed.cookie
                yield listed
        except Spoilt:
            self._forget(ino)
            yield from self._scan(ino, start)

    def _scan(self, ino: Ino, start: int) -> Iterator[Listed]:
        number, shard, folder = self._folder(ino)
        with located(shard.place):
            if not start:  # somebody opens the folder
                shard.check()
            last = SHARD_ROOT
            for cookie, name, record, field in shard.layout.scan(folder, start):
                if field >= 0 and record != last:
                    shard.listed(record)
                    last = record
                yield Listed(cookie, name, self._attr(number, shard, record, field))

    @_twice
    def open(self, ino: Ino, /) -> Blob:
        number, place = split_shard(ino)
        shard = self.shard(number)
        record, field = shard.places.unpack(place)
        with located(shard.place):
            if place == 0 or field == FOLDER:
                raise IsAFolder(f"record {record}")
            shard.check()
            if field == CONTROL:
                return Bytes(shard.describe(record))
            file = shard.file(record, 0 if field == DAMAGED else field)
            try:
                check_beside(file.blob)
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
            raise NotAFolder(f"{shard.place}: record {folder}")
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
        file = shard.file(record, field)
        try:
            return file.blob.size()
        except Spoilt:
            raise
        except ShardfsError as error:
            self.journal.note(error.at(shard.place, f"record {record}", file.name))
            return 0
