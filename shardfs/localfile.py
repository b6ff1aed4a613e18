"""Open files of this machine as blobs."""

from __future__ import annotations

import errno
import os
import stat

from shardfs.blob import Stored, clip, may_wait
from shardfs.errors import (
    AccessDenied,
    IsAFolder,
    NotAFolder,
    NotFound,
    ShardfsError,
    Unreadable,
    WouldBlock,
)
from shardfs.names import to_bytes

_CLASSES: dict[int, type[ShardfsError]] = {
    errno.ENOENT: NotFound,
    errno.ENOTDIR: NotAFolder,
    errno.EISDIR: IsAFolder,
    errno.EACCES: AccessDenied,
    errno.EPERM: AccessDenied,
}
_NOT_AT_HAND = (errno.EAGAIN, errno.EOPNOTSUPP)


def named_error(error: OSError, path: str) -> ShardfsError:
    """An operating system's error as one of ours."""
    kind = _CLASSES.get(error.errno or 0, Unreadable)
    return kind(f"{path}: {error.strerror or error}")


class LocalFile(Stored):
    """An open file. It stays open as long as anything refers to it."""

    __slots__ = ("_fd", "_name", "_size")

    def __init__(self, place: str, name: str) -> None:
        self._name = name
        # O_NONBLOCK: opening a pipe must not wait for its writer. It has no effect on a file.
        self._fd = os.open(to_bytes(place), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        self._size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EISDIR, "not a file")

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        data = self._wait(start, stop - start) if may_wait() else self._at_hand(start, stop - start)
        if len(data) != stop - start:
            raise Unreadable(f"{self._name}: has become shorter than it was when it was opened")
        return memoryview(data)

    def _wait(self, start: int, length: int) -> bytes:
        try:
            data = os.pread(self._fd, length, start)
            while data and len(data) < length:
                more = os.pread(self._fd, length - len(data), start + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise named_error(error, self._name) from error
        return data

    def _at_hand(self, start: int, length: int) -> bytearray:
        data = bytearray(length)
        self.fill(start, memoryview(data))
        return data

    def fill(self, offset: int, target: memoryview, /) -> bool:
        if not target:
            return True
        try:
            count = os.preadv(self._fd, [target], offset, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno in _NOT_AT_HAND:
                raise WouldBlock from None
            raise named_error(error, self._name) from error
        if count != len(target):  # only a part of it is in the page cache
            raise WouldBlock
        return True
