"""WebDataset: tar archives, plain or compressed, whose members are the fields of records.

Which compression a file has is seen by its first bytes; its name may be wrong.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from shardfs.errors import Corrupt
from shardfs.formats._tar import BLOCK, END, has_checksum
from shardfs.formats._tar_members import LAYOUT, MemberTable
from shardfs.formats._tar_scan import next_header
from shardfs.formats._tar_shard import Archive, TarShard, held
from shardfs.model import ShardRef
from shardfs.names import without_suffix
from shardfs.registry import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Entry, Services, Shard, Store

SUFFIXES = next(row.suffixes for row in FORMATS if row.name == "webdataset")

# How far a damaged first header is looked over for the next one. A guess.
_FIRST_HEADER = 1 << 20
# The fewest bytes that a compressed member takes: a header has numbers that differ from those of its neighbours.
# A guess, which bounds what a small file can make us hold.
_MEMBER_BYTES = 8
_FREE_MEMBERS = 1 << 20

_MAGIC = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
# Frames to be skipped, in zstd (RFC 8878, 3.1.2) and LZ4 alike: pzstd puts one first.
_SKIPPABLE = b"\x2a\x4d\x18"
_MAX_SKIPPED = 16


class WebDataset:
    """The format `webdataset`."""

    name: ClassVar[str] = "webdataset"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        """Whether there are tar archives."""
        return any(name.lower().endswith(SUFFIXES) for name in names)

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> TarDataset:
        wanted = frozenset(name for name in names if name.lower().endswith(SUFFIXES))
        entries = [entry for entry in store.list() if entry.path in wanted]
        return TarDataset(store, entries, services)


class TarDataset:
    """Tar archives, each a shard."""

    format = "webdataset"

    def __init__(self, store: Store, entries: Sequence[Entry], services: Services) -> None:
        self._store, self._services, self._entries = store, services, entries
        self._files = frozenset(entry.path for entry in entries)
        self.shards = tuple(map(_ref, entries))

    def open_shard(self, index: int, /) -> Shard:
        entry = self._entries[index]
        stored = self._store.open(entry.path)
        size: int | None = stored.size()
        blob, capacity = stored, stored.size() // BLOCK
        codec = compression(stored)
        if codec is not None:
            blob, size = self._services.unpack(self._store, entry, codec), None
            capacity = _FREE_MEMBERS + stored.size() // _MEMBER_BYTES
        table = self._kept(entry)
        if table is None:
            check_begin(blob)
        else:
            for message, offset in table.faults():
                self._report(entry.path, message, offset)
        keep = partial(self._services.remember, self._store, entry, LAYOUT)
        report = partial(self._report, entry.path)
        return TarShard(Archive(blob, size, capacity, keep, report), table)

    def _kept(self, entry: Entry) -> MemberTable | None:
        """The table of an archive that was scanned before."""
        try:
            return held(self._services.remember(self._store, entry, LAYOUT, _not_kept))
        except (_NotKeptError, Corrupt):
            return None

    def _report(self, path: str, message: str, offset: int) -> None:
        error = Corrupt(f"at byte {offset}: {message}")
        error.places.append(path)
        self._services.report(error)

    def owns(self, path: str, /) -> bool:
        return path in self._files

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards), "bytes": sum(entry.size for entry in self._entries)}


class _NotKeptError(Exception):
    """Nothing is kept, and nothing is to be made now."""


def _not_kept() -> bytes:
    raise _NotKeptError


def _ref(entry: Entry) -> ShardRef:
    name = without_suffix(entry.path, SUFFIXES)
    return ShardRef(name, entry.path, None, entry.mtime_ns, entry.version)


def compression(blob: Blob) -> str | None:
    """The codec of a compressed file, None for a plain archive."""
    at = 0
    for _ in range(_MAX_SKIPPED):
        head = bytes(blob.read(at, BLOCK))
        if not at and has_checksum(head):
            return None
        if head[1:4] != _SKIPPABLE or head[0] & 0xF0 != 0x50:
            break
        at += 8 + int.from_bytes(head[4:8], "little")
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


def check_begin(blob: Blob) -> None:
    """Raise Corrupt where no tar archive begins, not even one with a damaged first header."""
    head = bytes(blob.read(0, BLOCK))
    if not head:
        raise Corrupt("is empty, not even a tar archive of nothing")
    if head != END and not has_checksum(head) and next_header(blob, BLOCK, _FIRST_HEADER) is None:
        raise Corrupt("is no tar archive: it begins with no header of one")
