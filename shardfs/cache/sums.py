"""Files of the disk cache with checksums: what is read of them is what was written, or nothing.

    content | u32 CRC-32 of each BLOCK of it | magic, hash of the key, length of the content, CRC-32 of all that

The checksums are at the end, since the content of some files is not known when they are begun. The content itself
is checked when it is read for the first time, so that a file of any length opens at once.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from array import array
from contextlib import suppress

from shardfs.blob import clip, may_wait
from shardfs.errors import Spoilt, Unreadable, WouldBlock
from shardfs.localfile import LocalFile

BLOCK = 64 << 10
"""What a checksum is about. A guess: 20 us of CRC-32 at the first read of it, and 64 bytes of checksums a MiB."""

_TAIL = struct.Struct("<8s32sQ")
_CRC = struct.Struct("<I")
_MAGIC = b"shardfs2"
# How much is checked at a time where all of it is.
_STEP = 16 * BLOCK
CHECKED_AT_ONCE = 16 << 20
"""The longest content that is checked as a whole before it is believed: 5 ms of CRC-32."""
# The longest that is so where no wait is due: 0.2 ms.
_UNWAITED = 512 << 10


class Sums:
    """The checksums of content that comes in parts."""

    def __init__(self) -> None:
        self._done = array("I")
        self._crc = self._filled = self._length = 0

    def add(self, data: memoryview | bytes | bytearray) -> None:
        """Take *data* into account, behind what came before."""
        rest = memoryview(data).cast("B")
        self._length += len(rest)
        while rest:
            part = rest[: BLOCK - self._filled]
            self._crc, self._filled = zlib.crc32(part, self._crc), self._filled + len(part)
            rest = rest[len(part) :]
            if self._filled == BLOCK:
                self._done.append(self._crc)
                self._crc = self._filled = 0

    def seal(self, digest: bytes) -> bytes:
        """What stands behind all of the content in the file of the key with that hash."""
        done = self._done + array("I", [self._crc] if self._filled else [])
        table = _packed(done) + _TAIL.pack(_MAGIC, digest, self._length)
        return table + _CRC.pack(zlib.crc32(table))


def seal_size(length: int) -> int:
    """The length of what ``Sums.seal`` gives for *length* bytes."""
    return _CRC.size * -(-length // BLOCK) + _TAIL.size + _CRC.size


def open_sealed(place: str, digest: bytes, *, in_parts: bool = False) -> Sealed | None:
    """The content of the file *place* of the key with that hash; None where there is none that can be believed.

    Its reads raise Spoilt where something else was written; the file is gone then, unless its parts are of use
    without one another.
    """
    try:
        file = LocalFile(place, "disk cache")
        sums = _read_seal(file, digest)
        if sums is None:
            _remove(place)
            return None
        with suppress(PermissionError):
            os.utime(place)  # used now
    except (OSError, Unreadable):
        return None
    return Sealed(file, sums, "" if in_parts else place)


class Sealed:
    """The content of a file, of which each block is checked when it is read for the first time."""

    __slots__ = ("_checked", "_file", "_place", "_size", "_sums")

    def __init__(self, file: LocalFile, sums: array[int], place: str) -> None:
        """Remove the file at *place*, if that is given, as soon as it turns out to be damaged."""
        self._file, self._sums, self._place = file, sums, place
        self._size = file.size() - _CRC.size * len(sums) - _TAIL.size - _CRC.size
        self._checked = bytearray(len(sums))

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        first, end = start // BLOCK, -(-stop // BLOCK)
        if start == stop or self._checked.find(0, first, end) < 0:
            return self._read(start, stop)
        begin = first * BLOCK
        data = self._read(begin, min(end * BLOCK, self._size))
        for number in range(first, end):
            at = number * BLOCK - begin
            if zlib.crc32(data[at : at + BLOCK]) != self._sums[number]:
                raise self._spoilt()
            self._checked[number] = 1
        return data[start - begin : stop - begin]

    def check(self) -> None:
        """Check all of it, if it is not very long. Raises Spoilt."""
        if self._size > CHECKED_AT_ONCE:
            return
        if self._size > _UNWAITED and not may_wait():
            raise WouldBlock
        for at in range(0, self._size, _STEP):
            self.read(at, _STEP)

    def _read(self, start: int, stop: int) -> memoryview:
        try:
            return self._file.read(start, stop - start)
        except Unreadable as error:  # it was cut, or the disk fails
            raise self._spoilt() from error

    def _spoilt(self) -> Spoilt:
        if self._place:
            _remove(self._place)
        return Spoilt("a file of the disk cache is damaged; it is made anew")


def _read_seal(file: LocalFile, digest: bytes) -> array[int] | None:
    """The checksums of a file, None where it is no whole file of that key."""
    end = file.size() - _TAIL.size - _CRC.size
    if end < 0:
        return None
    tail = file.read(end, _TAIL.size + _CRC.size)
    magic, owner, length = _TAIL.unpack_from(tail)
    if (magic, owner) != (_MAGIC, digest) or length + seal_size(length) != file.size():
        return None
    table = file.read(length, end - length)
    if _CRC.unpack_from(tail, _TAIL.size)[0] != zlib.crc32(tail[: _TAIL.size], zlib.crc32(table)):
        return None
    sums = array("I", bytes(table))
    if sys.byteorder == "big":
        sums.byteswap()
    return sums


def _packed(sums: array[int]) -> bytes:
    if sys.byteorder == "big":
        sums.byteswap()
    return sums.tobytes()


def _remove(place: str) -> None:
    """Remove what can't be believed. Where that fails, the next one finds it out again."""
    with suppress(OSError):
        os.unlink(place)
