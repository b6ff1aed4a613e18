"""Large byte strings on disk that are written from their beginning and read meanwhile: decompressed files.

A file is named by a hash of what it is about. It gets that name when it is whole; before that it has a name of its
own and a lock on it, so that what a killed process left behind is known and goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
import tempfile
import threading
import weakref
from typing import TYPE_CHECKING

from shardfs.blob import Slice
from shardfs.errors import Unreadable
from shardfs.localfile import LocalFile
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.blob import Blob

# magic, hash of the key, length of the content before it.
_TAIL = struct.Struct("<8s32sQ")
_MAGIC = b"shardfs1"
_UNFINISHED = ".new-"
# Bytes that may be written between two looks at what the whole cache takes by now.
_GRANT = 64 << 20


class NoRoom(Exception):
    """The disk, or what the cache may take of it, is full; or the cache can't be written at all."""


class Spills:
    """Files in a folder of the cache. They give way to each other, so that the cache takes at most *limit* bytes."""

    def __init__(self, cache: Path, limit: int) -> None:
        self._cache, self._folder, self._limit = cache, cache / "unpacked", limit
        self._granted = 0
        self._lock = threading.Lock()
        self._unfinished: weakref.WeakSet[Spill] = weakref.WeakSet()

    def get(self, key: str) -> Blob | None:
        """The whole content that is kept under *key*, None where there is none. May wait for the disk."""
        place, digest = self._place(key)
        try:
            blob = LocalFile(place, "disk cache")
            size = blob.size() - _TAIL.size
            if size < 0 or blob.read(size, _TAIL.size) != _TAIL.pack(_MAGIC, digest, size):
                return None
            os.utime(place)  # used now
        except (OSError, Unreadable):
            return None
        return Slice(blob, 0, size)

    def create(self, key: str) -> Spill:
        """A new file for *key*. Raises NoRoom."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            spill = Spill(self, *self._place(key))
        except OSError as error:
            raise NoRoom(f"{self._folder}: {error.strerror}") from error
        self._unfinished.add(spill)
        return spill

    def close(self) -> None:
        """Throw away what is not finished."""
        for spill in list(self._unfinished):
            spill.discard()

    def reserve(self, size: int) -> None:
        """Make sure that *size* more bytes fit. Raises NoRoom."""
        with self._lock:
            if size > self._granted:
                self._granted = min(self._make_room(size), max(size, _GRANT))
            self._granted -= size

    def _place(self, key: str) -> tuple[str, bytes]:
        digest = hashlib.sha256(to_bytes(key)).digest()
        return str(self._folder / digest.hex()), digest

    def _make_room(self, size: int) -> int:
        """How many bytes there is room for, *size* or more, after the files used least recently have gone."""
        free = self._limit - sum(length for _, length, _ in _files(self._cache))
        for _, length, place in sorted(_files(self._folder)):
            name = os.path.basename(place)
            is_left_over = name.startswith(_UNFINISHED) and not _is_locked(place)
            if is_left_over or (free < size and not name.startswith(_UNFINISHED)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place)
                free += length
        if free < size:
            raise NoRoom(f"the disk cache may take {self._limit} bytes (--cache-size)")
        return free


class Spill:
    """A file that is written at its end and read anywhere before. Not to be written by two threads at a time."""

    def __init__(self, spills: Spills, place: str, digest: bytes) -> None:
        self._spills, self._place, self._digest = spills, place, digest
        folder = os.path.dirname(place)
        self._descriptor, self._aside = tempfile.mkstemp(dir=folder, prefix=_UNFINISHED)
        self._remove = weakref.finalize(self, _remove, self._descriptor, self._aside)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._reading = _Growing(self._aside)

    @property
    def size(self) -> int:
        """Bytes that were written."""
        return self._reading.size()

    def append(self, data: memoryview) -> None:
        """Write *data* at the end. Raises NoRoom; the file is gone then."""
        if not self._remove.alive:
            raise NoRoom("the disk cache is closed")
        try:
            self._spills.reserve(len(data))
            rest = data
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self.discard()
            raise NoRoom(f"{self._aside}: {error.strerror}") from error
        except NoRoom:
            self.discard()
            raise
        self._reading.grow(len(data))

    def read(self, offset: int, length: int) -> memoryview:
        """Bytes that were written. Obeys ``no_wait``."""
        return self._reading.read(offset, length)

    def finish(self) -> None:
        """Keep what was written as the whole content. It can be read on, even where keeping it fails."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, _TAIL.pack(_MAGIC, self._digest, self.size))
            # A name that outlives a power failure must not stand for bytes that do not.
            os.fdatasync(self._descriptor)
            os.replace(self._aside, self._place)
        self.discard()

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


def _is_locked(place: str) -> bool:
    """Whether a living process writes the file."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _files(folder: str | os.PathLike[str]) -> Iterator[tuple[int, int, str]]:
    """(time of the last use, size, path) of each file in a folder and below."""
    for path, _, names in os.walk(folder):
        for name in names:
            place = os.path.join(path, name)
            with contextlib.suppress(FileNotFoundError):  # another mount cleans up, too
                status = os.lstat(place)
                yield max(status.st_atime_ns, status.st_mtime_ns), status.st_size, place
