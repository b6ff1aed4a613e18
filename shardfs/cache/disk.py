"""The disk cache: a folder for each kind of content, and one budget for all of them.

A file is named by a hash of what it is about, so that a replaced shard (another version) never meets what was kept of
the old one. Files appear whole (written aside, then renamed) and may vanish at any time: several mounts share a cache,
and a person may empty it. One that can't be written is used as far as it can be read. Files are believed by their
checksums (sums.py), and only where nobody else can write (trust.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shardfs.cache.sums import Sums, open_sealed, seal_size
from shardfs.errors import Spoilt
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob

log = logging.getLogger("shardfs")

INDEX, UNPACKED, BLOCKS = "index", "unpacked", "blocks"
"""The folders: what was learned of shards, decompressed files, parts of remote files."""

UNFINISHED = ".new-"
"""How names of files begin that are not whole yet; whoever writes one has a lock on it."""

_OURS = re.compile(rf"[0-9a-f]{{64}}|{re.escape(UNFINISHED)}.*")
# Parts of the limit: a clean-up begins when less than this is free, and goes on until that much is.
_SCARCE, _ROOMY = 40, 10
# Part of the free room that one mount fills before it looks again what others did meanwhile.
_SHARE = 4


class NoRoom(Exception):
    """The disk, or what the cache may take of it, is full; or the cache can't be written at all."""


def default_folder() -> Path:
    """The user's cache folder, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else Path.home() / ".cache") / "shardfs"


def digest_of(key: str) -> bytes:
    """The hash that names the file of *key*."""
    return hashlib.sha256(to_bytes(key)).digest()


class Room:
    """The folder of the whole cache, in which all files together take at most *limit* bytes.

    Whatever was used least recently goes first, whoever put it there.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self._limit = folder, limit
        self._granted = self._pending = 0
        self._lock = threading.Lock()

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """While *size* more bytes are written, which will fit. Raises NoRoom."""
        with self._lock:
            if size > self._granted:
                self._granted = max(size, self._make_room(size) // _SHARE)
            self._granted -= size
            self._pending += size
        try:
            yield
        finally:
            with self._lock:
                self._pending -= size

    def _make_room(self, size: int) -> int:
        """How many bytes there is room for, *size* or more."""
        if size > self._limit:
            raise NoRoom(f"the disk cache may take {self._limit} bytes (--cache-size)")
        files = sorted(self._files())
        free = self._limit - self._pending - sum(length for _, length, _ in files)
        is_scarce = free < max(size, self._limit // _SCARCE)
        wanted = max(size, self._limit // _ROOMY) if is_scarce else free
        for _, length, place in files:
            is_unfinished = os.path.basename(place).startswith(UNFINISHED)
            # What a killed process left behind goes at once, what a living one writes never.
            if not _is_locked(place) if is_unfinished else free < wanted:
                with contextlib.suppress(FileNotFoundError):  # another mount cleans up, too
                    os.unlink(place)
                free += length
        if free < size:
            raise NoRoom(f"the disk cache may take {self._limit} bytes (--cache-size)")
        return free

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """(time of the last use, size, path) of each file."""
        for name in (INDEX, UNPACKED, BLOCKS):
            with contextlib.suppress(OSError), os.scandir(self.folder / name) as found:
                for item in found:
                    with contextlib.suppress(FileNotFoundError):  # as above
                        if _OURS.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                            status = item.stat(follow_symlinks=False)
                            used = max(status.st_atime_ns, status.st_mtime_ns)
                            yield used, status.st_size, item.path


class DiskCache:
    """Byte strings by key, in the folder *name* of a cache."""

    def __init__(self, room: Room, name: str) -> None:
        self._room, self._folder = room, room.folder / name
        self._warned = False
        self._lock = threading.Lock()

    def get(self, key: str) -> Blob | None:
        """What is kept under *key*, None where nothing is, or something else than was put. May wait for the disk.

        Where it is very long, only reads find that out: they raise Spoilt.
        """
        content = open_sealed(*self._place(key))
        try:
            if content is not None:
                content.check()
        except Spoilt:
            return None
        return content

    def get_parts(self, key: str) -> Blob | None:
        """What is kept under *key*; reads of damaged parts of it raise Spoilt, the others are right."""
        return open_sealed(*self._place(key), in_parts=True)

    def has(self, key: str) -> bool:
        """Whether something seems to be kept under *key*."""
        return os.path.exists(self._place(key)[0])

    def put(self, key: str, *content: bytes | bytearray | memoryview) -> None:
        """Keep *content*, unless it can't be: a cache that fails costs time, not answers."""
        (place, digest), length = self._place(key), sum(map(len, content))
        try:
            with self._room.reserved(length + seal_size(length)):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                sums = Sums()
                for part in content:
                    sums.add(part)
                self._write(place, *content, sums.seal(digest))
        except NoRoom:
            return
        except OSError as error:
            self._warn(error)

    def _place(self, key: str) -> tuple[str, bytes]:
        digest = digest_of(key)
        return f"{self._folder}/{digest.hex()}", digest

    def _warn(self, error: OSError) -> None:
        with self._lock:
            is_first, self._warned = not self._warned, True
        if is_first:
            log.warning("disk cache %s: %s; going on without", self._folder, error.strerror)

    def _write(self, place: str, *parts: bytes | bytearray | memoryview) -> None:
        descriptor, aside = tempfile.mkstemp(dir=self._folder, prefix=UNFINISHED)
        try:
            with os.fdopen(descriptor, "wb") as file:
                with contextlib.suppress(
                    OSError
                ):  # without a lock, a clean-up may cost us the file
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.writelines(parts)
                file.flush()  # before its lock goes with it
                os.replace(aside, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise


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
