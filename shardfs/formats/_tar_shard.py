"""A tar archive as a shard: scanned once, only as far as somebody waits for, and never again while its table is kept."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardfs.blob import Blob, Broken, Bytes, Slice, may_wait, read_all
from shardfs.errors import Corrupt, TooLarge, WouldBlock
from shardfs.formats._tar_growing import GrowingTable
from shardfs.formats._tar_members import MemberTable
from shardfs.formats._tar_scan import TarReader
from shardfs.formats._tar_sparse import Sparse
from shardfs.model import Encoded, Field
from shardfs.names import from_bytes, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats._tar_members import Stored

# How long the scan goes on before those who wait are told how far it has come. A guess: nobody notices it.
_TURN = 0.005
# Tables up to this size are held in memory: open shards are few hundreds, and file descriptors are scarce, too.
_SMALL = 64 << 10


@dataclass(frozen=True, slots=True)
class Archive:
    """What a shard is made of.

    Attributes:
        blob: the tar archive, uncompressed.
        size: its length where that is known without reading all of it.
        capacity: the most members that it can have, or may.
        keep: what stores the bytes that a function makes, and gives them back.
        report: takes what is wrong with the archive, and the offset.
    """

    blob: Blob
    size: int | None
    capacity: int
    keep: Callable[[Callable[[], bytes]], Blob]
    report: Callable[[str, int], None]


class Scan:
    """A scan of an archive into a table, which may stop anywhere and go on."""

    def __init__(self, archive: Archive, seed: bytes) -> None:
        self.table = GrowingTable(seed, archive.capacity)
        self._archive = archive
        self._reader = TarReader(archive.blob, archive.size, self._note)
        self._shown = False

    def run(self, seconds: float) -> bool:
        """Go on for a while; whether the end was reached."""
        deadline = time.monotonic() + seconds
        while (member := self._reader.next()) is not None:
            try:
                self._shown = self.table.add(member)
            except TooLarge as error:
                self._note(error.message, member.offset)
                break
            if time.monotonic() > deadline:
                return False
        if self._archive.size is None:
            self._read_on()
        self.table.finish(self._reader.cut if self._shown else "")
        return True

    def _read_on(self) -> None:
        """Reach the end of a compressed archive, where checksums stand that may not be right."""
        try:
            self._archive.blob.size()
        except Corrupt as error:
            if not self._reader.failed:
                self._note(error.message, self._reader.at)

    def _note(self, message: str, offset: int) -> None:
        self.table.note(message, offset)
        self._archive.report(message, offset)
