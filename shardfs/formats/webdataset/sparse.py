"""Sparse members of tar archives: files with holes, of which only the rest is stored.

GNU tar has written four forms (manual, "Storing Sparse Files"): its own with the map in header blocks, and in pax
archives the versions 0.0 (a pair of records for each part), 0.1 (one record) and 1.0 (text before the data).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import clip, read_exactly
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.webdataset.header import BLOCK, MAX_SIZE, number, padded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from shardfs.blob import Blob

MAX_PARTS = 1 << 16
"""The most parts that a sparse file may have. A guess: training data has none, disk images have thousands."""

_PAIR = 24
_IN_HEADER, _IN_EXTENSION = 4, 21
_MAX_NUMBER = 19
"""Digits of the largest number that a map may hold."""


class Map(NamedTuple):
    """Where the stored parts of a sparse file belong.

    Attributes:
        size: bytes of the file, holes included.
        skip: bytes of the stored data that the map itself takes up.
        parts: offset in the file and length of each part, one after another; parts are stored in this order.
    """

    size: int
    skip: int
    parts: array[int]


def checked(size: int, skip: int, numbers: Sequence[int], stored: int) -> Map:
    """A map whose parts stand in order inside the file and are all there. Raises Corrupt, TooLarge."""
    if len(numbers) > 2 * MAX_PARTS:
        raise TooLarge(f"a sparse file in more than {MAX_PARTS} parts")
    parts, last, total = array("Q"), 0, skip
    for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
        if not last <= offset <= offset + length <= size < MAX_SIZE:
            raise Corrupt(f"a part of {length} bytes at {offset} in a sparse file of {size} bytes")
        if length:
            parts.extend((offset, length))
        last, total = offset + length, total + length
    if not 0 <= size < MAX_SIZE or total > stored:
        raise Corrupt(f"a sparse file has parts of {total} bytes, but {stored} bytes are stored")
    return Map(size, skip, parts)


def gnu_map(header: bytes, extensions: Sequence[bytes], stored: int) -> Map:
    """The map of a member of type S, in its header and the blocks behind it. Raises Corrupt, TooLarge."""
    numbers = _pairs(header, 386, _IN_HEADER)
    for block in extensions:
        numbers += _pairs(block, 0, _IN_EXTENSION)
    return checked(number(header[483:495]), 0, numbers, stored)


def is_extended(block: bytes, *, header: bool) -> bool:
    """Whether another block of the map follows."""
    return block[482 if header else 504] != 0


def _pairs(block: bytes, at: int, count: int) -> list[int]:
    """The pairs in a block, up to the first empty one."""
    found = []
    for place in range(at, at + count * _PAIR, _PAIR):
        if not block[place + 12]:
            break
        found += [number(block[place : place + 12]), number(block[place + 12 : place + _PAIR])]
    return found


def pax_map(
    records: Mapping[bytes, bytes],
    pairs: Sequence[bytes],
    stored: int,
    read: Callable[[int], bytes],
) -> Map | None:
    """The map of a member with the extended *records*, None where they have none. Raises Corrupt, TooLarge.

    Args:
        pairs: the values of all `GNU.sparse.offset` and `GNU.sparse.numbytes`, in order.
        read: so many bytes from the beginning of the stored data.
    """
    size = records.get(b"GNU.sparse.realsize", records.get(b"GNU.sparse.size"))
    if records.get(b"GNU.sparse.major") == b"1":
        numbers, skip = _leading_map(stored, read)
        return checked(_number(size or b""), skip, numbers, stored)
    text = records.get(b"GNU.sparse.map")
    if text is not None:
        pairs = text.split(b",", 2 * MAX_PARTS + 1) if text else ()
    elif not pairs and b"GNU.sparse.numblocks" not in records:
        return None
    if len(pairs) % 2:
        raise Corrupt("a sparse file has an offset without a length")
    return checked(_number(size or b""), 0, list(map(_number, pairs)), stored)


def _leading_map(stored: int, read: Callable[[int], bytes]) -> tuple[list[int], int]:
    """The numbers at the beginning of the stored data: how many pairs, the pairs, each in a line; and their length."""
    length = min(BLOCK, stored)
    while True:
        lines = read(length).split(b"\n", 2 * MAX_PARTS + 2)[:-1]
        count = 2 * _number(lines[0]) if lines else 0
        if count > 2 * MAX_PARTS:
            raise TooLarge(f"a sparse file in more than {MAX_PARTS} parts")
        if len(lines) > count:
            lines = lines[: count + 1]
            return list(map(_number, lines[1:])), padded(sum(map(len, lines)) + len(lines))
        if length == stored or length > (_MAX_NUMBER + 1) * (2 * MAX_PARTS + 1):
            raise Corrupt("the map of a sparse file does not end")
        length = min(2 * length, stored)


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > _MAX_NUMBER:
        raise Corrupt(f"{digits[:20]!r} in the map of a sparse file is no number")
    return int(digits)


class Sparse:
    """A sparse file: its parts, which lie one after another in *parent* from *start* on, and zeros between them."""

    __slots__ = ("_offsets", "_parent", "_size", "_starts")

    def __init__(self, parent: Blob, start: int, size: int, parts: Iterable[int]) -> None:
        numbers = list(parts)
        self._parent, self._size, self._offsets = parent, size, numbers[::2]
        self._starts = list(accumulate(numbers[1::2], initial=start))

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        content = bytearray(stop - start)
        part = max(bisect_right(self._offsets, start) - 1, 0)
        while part < len(self._offsets) and self._offsets[part] < stop:
            first, stored = self._offsets[part], self._starts[part]
            begin, end = max(first, start), min(first + self._starts[part + 1] - stored, stop)
            if begin < end:
                content[begin - start : end - start] = read_exactly(
                    self._parent, stored + begin - first, end - begin, "a sparse file"
                )
            part += 1
        return memoryview(content).toreadonly()
