"""What was learned of shards at some cost, kept on disk: small files, written once, read by every later mount.

A file is named by a hash of what it is about, so a replaced shard (another size or time) never meets old
knowledge. Files appear whole (written aside, then renamed), and may vanish at any time: two mounts may share a folder,
and a person may empty it. A folder that can't be written is used as far as it can be read.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import struct
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from shardfs.blob import Slice
from shardfs.errors import Unreadable
from shardfs.localfile import LocalFile
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob

log = logging.getLogger("shardfs")

# magic, hash of the key, length of the content: a file that was cut by a full disk or a crash is not taken for whole.
_HEAD = struct.Struct("<8s32sQ")
_MAGIC = b"shardfs1"
# Part of the limit that is left after a clean-up, so that not every new file begins another one.
_KEEP = 0.9


def default_folder() -> Path:
    """The user's cache folder, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else Path.home() / ".cache") / "shardfs"


class IndexCache:
    """Byte strings on disk by key, at most *limit* bytes of them in all."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder / "index", limit
        self._total: int | None = None
        self._lock = threading.Lock()
        self._warned = False

    def get(self, key: str) -> Blob | None:
        """What is kept under *key*, None where nothing is. May wait for the disk."""
        digest = hashlib.sha256(to_bytes(key)).digest()
        try:
            blob = LocalFile(str(self._folder / digest.hex()), "index cache")
            head = bytes(blob.read(0, _HEAD.size))
        except (OSError, Unreadable):
            return None
        if len(head) == _HEAD.size and head == _HEAD.pack(_MAGIC, digest, blob.size() - _HEAD.size):
            return Slice(blob, _HEAD.size, blob.size() - _HEAD.size)
        return None

    def put(self, key: str, content: bytes) -> None:
        """Keep *content*, unless it can't be: a cache that fails costs time, not answers."""
        digest = hashlib.sha256(to_bytes(key)).digest()
        size = _HEAD.size + len(content)
        if size > self._limit:
            return
        try:
            with self._lock:
                self._make_room(size)
            self._write(
                self._folder / digest.hex(), _HEAD.pack(_MAGIC, digest, len(content)), content
            )
        except OSError as error:
            if not self._warned:
                log.warning("index cache %s: %s; going on without", self._folder, error.strerror)
            self._warned = True

    def _write(self, place: Path, *parts: bytes) -> None:
        descriptor, aside = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
            os.replace(aside, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise

    def _make_room(self, size: int) -> None:
        """Remove the files that were used least recently until *size* more bytes fit."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._total is None or self._total + size > self._limit:
            files = sorted(self._files())
            self._total = sum(length for _, length, _ in files)
            for _, length, path in files if self._total + size > self._limit else ():
                if self._total + size <= self._limit * _KEEP:
                    break
                with contextlib.suppress(FileNotFoundError):  # another mount cleans up, too
                    os.unlink(path)
                self._total -= length
        self._total += size

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """(time of the last use, size, path) of each file."""
        with os.scandir(self._folder) as found:
            for item in found:
                # Another mount cleans up, too. A folder is none of ours.
                with contextlib.suppress(FileNotFoundError):
                    if item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        yield status.st_atime_ns, status.st_size, item.path
