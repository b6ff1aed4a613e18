"""The blocks of a remote file in the disk cache.

Those that came together and lie together are one file, since to make a file takes half a millisecond where there are
many (ext4); each of the others is one of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from shardfs.errors import ShardfsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.cache.disk import DiskCache

BLOCK = 128 << 10
"""Bytes of a block. A guess: a picture is one or two, and 10 GiB of them are files that a folder can hold."""

# Blocks of a group: 1 MiB.
_GROUP = 8


class Kept:
    """What is kept of the file *key*, of *size* bytes."""

    def __init__(self, disk: DiskCache, key: str, size: int) -> None:
        self._disk, self._key, self._size = disk, key, size
        self._count = -(-size // BLOCK)

    def has(self, number: int) -> bool:
        """Whether a block seems to be kept."""
        return self._disk.has(self._group(number)) or self._disk.has(self._block(number))

    def get(self, number: int) -> memoryview | None:
        """A block, if it is kept and is what was kept: a power failure may have left something else."""
        place = number % _GROUP
        return self._read(self._group(number), number, place) or self._read(
            self._block(number), number, 0
        )

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Keeps blocks that come in order; at the end, all of them are written."""
        writer = Writer(self)
        try:
            yield writer
        finally:
            writer.flush()

    def put(self, first: int, blocks: list[bytearray]) -> None:
        """Keep blocks that follow one another within a group: as one file if there are no others in it."""
        is_end = first + len(blocks) == self._count
        if first % _GROUP == 0 and len(blocks) > 1 and (len(blocks) == _GROUP or is_end):
            self._disk.put(self._group(first), *blocks)
            return
        for number, data in enumerate(blocks, first):
            self._disk.put(self._block(number), data)

    def _read(self, key: str, number: int, place: int) -> memoryview | None:
        """The block *number*, which is at *place* among those of a file."""
        kept = self._disk.get_parts(key)
        length = min(BLOCK, self._size - number * BLOCK)
        if kept is None or kept.size() < place * BLOCK + length:
            return None
        try:
            return kept.read(place * BLOCK, length)
        except ShardfsError:
            return None

    def _group(self, number: int) -> str:
        return f"{self._key}\0group {number // _GROUP:x}"

    def _block(self, number: int) -> str:
        return f"{self._key}\0{number:x}"


class Writer:
    """Collects blocks until a group is full."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._first, self._blocks = 0, list[bytearray]()

    def add(self, number: int, data: bytearray) -> None:
        """Keep the block *number*, behind the one before."""
        if not self._blocks:
            self._first = number
        self._blocks.append(data)
        if (number + 1) % _GROUP == 0:
            self.flush()

    def flush(self) -> None:
        """Write what was not written yet."""
        blocks, self._blocks = self._blocks, []
        if blocks:
            self._kept.put(self._first, blocks)
