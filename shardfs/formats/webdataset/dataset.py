"""WebDataset: tar archives, plain or compressed, whose members are the fields of records.

Which compression a file has is seen by its first bytes; its name may be wrong.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_all
from shardfs.errors import Corrupt, NotAFolder, NotFound, Spoilt, TooLarge
from shardfs.formats.shared.compressed import codec_of
from shardfs.formats.webdataset.header import BLOCK, END, has_checksum
from shardfs.formats.webdataset.indexes import Indexes, table_of
from shardfs.formats.webdataset.members import LAYOUT, MemberTable
from shardfs.formats.webdataset.scan import next_header
from shardfs.formats.webdataset.shard import Archive, TarShard, held
from shardfs.formats.webdataset.wids import INDEX, listed_paths
from shardfs.model import ShardRef
from shardfs.names import without_suffix
from shardfs.registry import suffixes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services, Shard
    from shardfs.stores import Entry, Store

SUFFIXES = suffixes_of("webdataset")

# The largest index that is read. A guess: that of a million shards.
_MAX_INDEX = 64 << 20
# How far a damaged first header is looked over for the next one. A guess.
_FIRST_HEADER = 1 << 20
# The fewest bytes that a compressed member takes: a header has numbers that differ from those of its neighbours.
# A guess, which bounds what a small file can make us hold.
_MEMBER_BYTES = 8
_FREE_MEMBERS = 1 << 16


class WebDataset:
    """The format `webdataset`."""

    name: ClassVar[str] = "webdataset"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        """Whether there are tar archives, be it only in an index."""
        if any(map(_is_tar, names)):
            return True
        try:
            return INDEX in names and bool(_listed(store))
        except Corrupt:
            return False

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> TarDataset:
        here = frozenset(filter(_is_tar, names))
        entries = {entry.path: entry for entry in store.list() if entry.path in here}
        try:
            listed = dict.fromkeys(_listed(store)) if INDEX in names else {}
        except Corrupt as error:  # without it, only the order is lost
            error.places.append(INDEX)
            services.report(error)
            listed = {}
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in listed if "/" in path):
            with contextlib.suppress(NotFound, NotAFolder):
                found = (entry for entry in store.list(folder) if _is_tar(entry.path))
                entries |= {entry.path: entry for entry in found if entry.path in listed}
        order = dict.fromkeys([*(path for path in listed if path in entries), *entries])
        return TarDataset(store, [entries[path] for path in order], services)


def _is_tar(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _listed(store: Store) -> list[str]:
    """What the index lists. Raises Corrupt."""
    index = store.open(INDEX)
    if index.size() > _MAX_INDEX:
        raise TooLarge(f"an index of {index.size()} bytes")
    return listed_paths(bytes(read_all(index)))


class TarDataset:
    """Tar archives, each a shard."""

    format = "webdataset"

    def __init__(self, store: Store, entries: Sequence[Entry], services: Services) -> None:
        self._store, self._services, self._entries = store, services, entries
        self._files = frozenset(entry.path for entry in entries)
        self._indexes = Indexes(store, len(entries))
        self.shards = tuple(map(_ref, entries))

    def open_shard(self, index: int, /) -> Shard:
        entry = self._entries[index]
        stored = self._store.open(entry.path)
        codec, table = self._known(entry, stored)
        what, size, by_index = _kind(codec), stored.size(), False
        if table is None and codec is None:
            table = self._by_index(entry, stored)
            by_index = table is not None
        archive = Archive(
            blob=self._services.unpack(self._store, entry, codec) if codec else stored,
            size=None if codec else size,
            capacity=_FREE_MEMBERS + size // _MEMBER_BYTES if codec else size // BLOCK,
            keep=partial(self._services.remember, self._store, entry, what),
            report=partial(self._report, entry.path),
            by_index=by_index,
        )
        if table is None:
            check_begin(archive.blob)
        for message, offset in table.faults() if table is not None else ():
            self._report(entry.path, message, offset)
        shard = TarShard(archive, table)
        if self._services.options.fanout:
            len(
                shard
            )  # only the end of the scan tells whether keys have folders, and no groups then
        return shard

    def _known(self, entry: Entry, stored: Blob) -> tuple[str | None, MemberTable | None]:
        """The codec of an archive, and its table if that is known: of a plain one, without a look at the file."""
        table = self._kept(entry, _kind(None), _make_nothing)
        codec = compression(stored, entry.name) if table is None else None
        return codec, table if codec is None else self._kept(entry, _kind(codec), _make_nothing)

    def _kept(self, entry: Entry, what: str, build: Callable[[], bytes]) -> MemberTable | None:
        """A table that was made before or can be made without a scan."""
        try:
            return held(self._services.remember(self._store, entry, what, build))
        except Corrupt:
            return None

    def _by_index(self, entry: Entry, archive: Blob) -> MemberTable | None:
        """The table of an archive by an index that lies beside it."""
        seed = os.urandom(16)  # the same whenever the table is made anew

        def build() -> bytes:
            parts = self._indexes.read(entry, archive)
            return _make_nothing() if parts is None else table_of(parts, seed)

        return self._kept(entry, f"{LAYOUT} by index", build)

    def _report(self, path: str, message: str, offset: int) -> None:
        error = Corrupt(f"at byte {offset}: {message}")
        error.places.append(path)
        self._services.report(error)

    def owns(self, path: str, /) -> bool:
        return path in self._files

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards), "bytes": sum(entry.size for entry in self._entries)}


def _kind(codec: str | None) -> str:
    """What the table is called of an archive that is compressed by *codec*."""
    return LAYOUT if codec is None else f"{LAYOUT} {codec}"


def _make_nothing() -> bytes:
    raise Spoilt("nothing is kept")


def _ref(entry: Entry) -> ShardRef:
    name = without_suffix(entry.path, SUFFIXES)
    return ShardRef(name, entry.path, None, entry.mtime_ns, entry.version)


def compression(blob: Blob, name: str = "") -> str | None:
    """The codec of a compressed file, None for a plain archive."""
    return None if has_checksum(bytes(blob.read(0, BLOCK))) else codec_of(blob, name)


def check_begin(blob: Blob) -> None:
    """Raise Corrupt where no tar archive begins, not even one with a damaged first header."""
    head = bytes(blob.read(0, BLOCK))
    if not head:
        raise Corrupt("is empty, not even a tar archive of nothing")
    if head != END and not has_checksum(head) and next_header(blob, BLOCK, _FIRST_HEADER) is None:
        raise Corrupt("is no tar archive: it begins with no header of one")
