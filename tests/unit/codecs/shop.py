"""Compressed files in a workshop of their own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from shardfs.blob import Bytes
from shardfs.cache.disk import Room
from shardfs.cache.memory import Memory
from shardfs.journal import Journal
from shardfs.mounting import Workshop
from shardfs.options import Options
from shardfs.stores import Entry
from tests.fakes import MemoryStore
from tests.packed_files import INDEXED, PLAIN

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.blob import Blob

CHANCE = random.Random(1)
# Some of it compresses, some does not, and it takes several pieces, steps and chunks.
CONTENT = b"".join(
    CHANCE.randbytes(CHANCE.randrange(120_000)) + bytes(range(256)) * CHANCE.randrange(400)
    for _ in range(9)
)
ALL = {**INDEXED, **PLAIN}
# By the ways that do without the disk cache.
WITHOUT = ("gzip", "zstd", "xz", "bzip2", "lz4")


class Shop:
    """A workshop over one file, and another one over the same cache, as a later mount has it."""

    def __init__(
        self,
        folder: Path,
        stored: bytes | Blob,
        codec: str,
        *,
        memory_limit: int = 4 << 20,
        **options: Any,
    ) -> None:
        self.options = Options(cache_dir=folder, memory_limit=memory_limit, **options)
        self.codec = codec
        self.blob = Bytes(stored) if isinstance(stored, bytes) else stored
        self.store = MemoryStore({"d/file": b""})
        self.store.open = lambda path: self.blob  # type: ignore[method-assign]
        self.store.stat = lambda path: self.entry  # type: ignore[method-assign]
        self.entry = Entry("d/file", self.blob.size(), 1, "v1")
        self.begin()

    def begin(self) -> None:
        self.journal, self.memory = Journal(), Memory(self.options.memory_limit)
        room = None
        if self.options.disk_cache and self.options.cache_dir is not None:
            room = Room(self.options.cache_dir, self.options.cache_size)
        self.workshop = Workshop(self.options, self.memory, room, self.journal)

    def unpack(self) -> Blob:
        return self.workshop.unpack(self.store, self.entry, self.codec)


def files(folder: Path) -> dict[str, int]:
    """Sizes by folder of the cache."""
    return {
        place.parent.name: place.stat().st_size for place in folder.rglob("*") if place.is_file()
    }


def way(blob: Any) -> type:
    return type(blob._way)


CACHES: dict[str, dict[str, Any]] = {
    "disk": {},
    "small disk": {"cache_size": 200_000},
    "no disk": {"disk_cache": False},
}
