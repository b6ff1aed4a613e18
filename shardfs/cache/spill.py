"""Large byte strings on disk that are written from their beginning and read meanwhile: decompressed files.

A file is named by a hash of what it is about. It gets that name when it is whole; before that it has a name of its
own and a lock on it, so that what a killed process left behind is known and goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import weakref
from typing import TYPE_CHECKING

from shardfs.cache.disk import UNFINISHED, UNPACKED, NoRoom, digest_of
from shardfs.cache.sums import Sums, open_sealed
from shardfs.localfile import LocalFile

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.cache.disk import Room


class Spills:
    """Files in a folder of the cache."""

    def __init__(self, room: Room) -> None:
        self._room, self._folder = room, room.folder / UNPACKED
        self._unfinished: weakref.WeakSet[Spill] = weakref.WeakSet()

    def get(self, key: str) -> Blob | None:
        """The whole content that is kept under *key*, None where there is none. May wait for the disk.

        Its reads raise Spoilt where it is not what was written.
        """
        return open_sealed(*self._place(key))

    def create(self, key: str) -> Spill:
        """A new file for *key*. Raises NoRoom."""
        return self._create(*self._place(key))

    def create_unkept(self) -> Spill:
        """A new file that nobody will find. Raises NoRoom."""
        return self._create(f"{self._folder}/", b"")

    def _create(self, place: str, digest: bytes) -> Spill:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            spill = Spill(self._room, place, digest)
        except OSError as error:
            raise NoRoom(f"{self._folder}: {error.strerror}") from error
        self._unfinished.add(spill)
        return spill

    def close(self) -> None:
        """Throw away what is not finished."""
        for spill in list(self._unfinished):
            spill.discard()

    def _place(self, key: str) -> tuple[str, bytes]:
        digest = digest_of(key)
        return str(self._folder / digest.hex()), digest


class Spill:
    """A file that is written at its end and read anywhere before. Not to be written by two threads at a time.

    Without a *digest* it can't be finished, and costs no checksums.
    """

    def __init__(self, room: Room, place: str, digest: bytes) -> None:
        self._room, self._place, self._digest = room, place, digest
        folder = os.path.dirname(place)
        self._descriptor, self._aside = tempfile.mkstemp(dir=folder, prefix=UNFINISHED)
        self._remove = weakref.finalize(self, _remove, self._descriptor, self._aside)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._reading, self._sums = _Growing(self._aside), Sums()
        self._whole: Blob | None = None

    @property
    def size(self) -> int:
        """Bytes that were written."""
        return self._reading.size()

    def append(self, data: memoryview) -> None:
        """Write *data* at the end. Raises NoRoom; the file is gone then."""
        if not self._remove.alive:
            raise NoRoom("the disk cache is closed")
        try:
            with self._room.reserved(len(data)):
                self._write(data)
        except OSError as error:
            self.discard()
            raise NoRoom(f"{self._aside}: {error.strerror}") from error
        except NoRoom:
            self.discard()
            raise
        if self._digest:
            self._sums.add(data)
        self._reading.grow(len(data))

    def read(self, offset: int, length: int) -> memoryview:
        """Bytes that were written. Obeys ``no_wait``. Raises Spoilt where they are others by now."""
        return (self._whole or self._reading).read(offset, length)

    def finish(self) -> None:
        """Keep what was written as the whole content. It can be read on, even where keeping it fails."""
        with contextlib.suppress(OSError):
            self._write(memoryview(self._sums.seal(self._digest)))
            # A name that outlives a power failure must not stand for bytes that do not.
            os.fdatasync(self._descriptor)
            os.replace(self._aside, self._place)
            self._whole = open_sealed(self._place, self._digest)
        self.discard()

    def _write(self, data: memoryview) -> None:
        # Not where the descriptor stands: a process that was forked from this one has the same.
        at, rest = self.size, data
        while rest:
            count = os.pwrite(self._descriptor, rest, at)
            at, rest = at + count, rest[count:]

    def discard(self) -> None:
        """Leave no file that is not whole. What was written can be read on."""
        self._remove()


class _Growing(LocalFile):
    """A file of which more and more is there."""

    __slots__ = ()

    def __init__(self, place: str) -> None:
        super().__init__(place, "disk cache")

    def grow(self, size: int) -> None:
        self._size += size


def _remove(descriptor: int, place: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(place)
    os.close(descriptor)
