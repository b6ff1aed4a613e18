"""Parquet's RLE and bit-packing hybrid, in which levels, dictionary indices and truth values are stored.

Only where the runs lie is worked out beforehand: any value is then found without decoding those before it.
https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt
from shardfs.formats.parquet.thrift import varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob

# The longest run of packed values that is kept as one, so that few have to be unpacked to find or count some.
_MAX_PACKED = 128
_MAX_WIDTH = 32
_ALL = 1 << 62


class RunTable(NamedTuple):
    """Where runs lie: what ``Runs`` is made of.

    Attributes:
        firsts: the number of the first value of each run.
        words: a value that is repeated, or ~ the place of packed values in the data.
        ranks: how many values before each run equal the one that is counted; empty where none is.
    """

    firsts: Sequence[int]
    words: Sequence[int]
    ranks: Sequence[int]

    def to_bytes(self) -> bytes:
        count = array("q", [len(self.firsts)])
        return b"".join(array("q", part).tobytes() for part in (count, *self))

    @classmethod
    def of(cls, blob: Blob) -> RunTable:
        """The table that ``to_bytes`` made."""
        numbers = blob.read(0, _ALL).cast("q")
        count = numbers[0]
        return cls(numbers[1 : count + 1], numbers[count + 1 :][:count], numbers[2 * count + 1 :])


def find_levels(data: memoryview, limit: int, number: int) -> RunTable:
    """The runs of *number* levels of at most *limit*, with the ranks of those that are *limit*. Raises Corrupt."""
    return _find(_Finder(data, limit.bit_length(), limit), number)


def find_runs(data: memoryview, width: int, number: int) -> RunTable:
    """The runs in which *number* values of *width* bits lie, without ranks. Raises Corrupt."""
    if not 0 <= width <= _MAX_WIDTH:
        raise Corrupt(f"Parquet values of {width} bits")
    return _find(_Finder(data, width, None), number)


def _find(finder: _Finder, number: int) -> RunTable:
    try:
        while finder.done < number:
            finder.step(number)
    except IndexError:
        raise Corrupt(f"Parquet data has {finder.done} values instead of {number}") from None
    return RunTable(finder.firsts, finder.words, finder.ranks)


class _Finder:
    """How far a search for runs has come."""

    __slots__ = ("_at", "_data", "_limit", "_rank", "_width", "done", "firsts", "ranks", "words")

    def __init__(self, data: memoryview, width: int, limit: int | None) -> None:
        self._data, self._width, self._limit = data, width, limit
        self.firsts, self.words, self.ranks = array("q"), array("q"), array("q")
        self.done = self._rank = self._at = 0

    def step(self, number: int) -> None:
        """Find the next run, of which no more count than make *number* in all. Raises Corrupt, IndexError."""
        head, at = varint(self._data, self._at)
        length = head >> 1
        if head & 1 and self._width:
            self._packed(min(8 * length, number - self.done), at)
            self._at = at + length * self._width
        else:
            size = -(-self._width // 8)
            word = int.from_bytes(self._data[at : at + size], "little")
            self._at = at + size
            if self._at > len(self._data):
                raise IndexError
            if word >> self._width:
                raise Corrupt(f"a Parquet value of {self._width} bits is {word}")
            self._add(word, min(length * (8 if head & 1 else 1), number - self.done))

    def _packed(self, number: int, at: int) -> None:
        """Take in *number* packed values in runs that are short enough to unpack one for a single value."""
        if (len(self._data) - at) * 8 < number * self._width:
            raise IndexError
        for first in range(0, number, _MAX_PACKED):
            self._add(~(at + first * self._width // 8), min(_MAX_PACKED, number - first))

    def _add(self, word: int, length: int) -> None:
        if not length:
            return
        self.firsts.append(self.done)
        self.words.append(word)
        self.done += length
        if self._limit is None:
            return
        self.ranks.append(self._rank)
        values = (word,) if word >= 0 else unpack(self._data[~word:], self._width, length)
        if max(values) > self._limit:
            raise Corrupt(f"a Parquet level of {max(values)}, more than {self._limit}")
        self._rank += values.count(self._limit) * (length if word >= 0 else 1)


def unpack(data: memoryview, width: int, number: int) -> Sequence[int]:
    """The first *number* of the packed values in *data*, which must have as many. Bytes where they are short enough."""
    data = data[: -(-number * width // 8)]
    if width == 8:
        return bytes(data)
    if width in (1, 2, 4):
        return b"".join(map(_unpacked(width).__getitem__, data))[:number]
    mask, shifts = (1 << width) - 1, range(0, 8 * width, width)
    values: list[int] = []
    for at in range(0, len(data), width):  # in which eight values lie
        group = int.from_bytes(data[at : at + width], "little")
        values += [group >> shift & mask for shift in shifts]
    return bytes(values[:number]) if width < 8 else values[:number]


@lru_cache
def _unpacked(width: int) -> list[bytes]:
    """What is packed in each byte."""
    mask, shifts = (1 << width) - 1, range(0, 8, width)
    return [bytes(byte >> shift & mask for shift in shifts) for byte in range(256)]


class Runs:
    """*total* values of *width* bits in *data*, of which *table* tells where they lie."""

    __slots__ = ("_data", "_firsts", "_ranks", "_total", "_width", "_words")

    def __init__(self, data: Blob, width: int, total: int, table: RunTable) -> None:
        self._data, self._width, self._total = data, width, total
        self._firsts, self._words, self._ranks = table

    def __getitem__(self, index: int) -> int:
        run = self._run(index)
        word = self._words[run]
        if word >= 0:
            return word
        byte, bit = divmod((index - self._firsts[run]) * self._width, 8)
        size = -(-(bit + self._width) // 8)
        data = read_exactly(self._data, ~word + byte, size, "a packed Parquet value")
        return int.from_bytes(data, "little") >> bit & (1 << self._width) - 1

    def rank(self, stop: int, counted: int) -> int:
        """How many of the values before *stop* are *counted*, the limit that ``find_levels`` was given."""
        if not stop:
            return 0
        run = self._run(stop - 1)
        word, rank, length = self._words[run], self._ranks[run], stop - self._firsts[run]
        if word >= 0:
            return rank + (length if word == counted else 0)
        return rank + self._packed(run)[:length].count(counted)

    def span(self, start: int, stop: int) -> Sequence[int]:
        """The values from *start* to *stop*; bytes where they are short enough."""
        parts: list[Sequence[int]] = []
        while start < stop:
            run = self._run(start)
            first, word = self._firsts[run], self._words[run]
            end = min(stop, self._end(run))
            if word < 0:
                parts.append(self._packed(run)[start - first : end - first])
            else:
                parts.append((bytes((word,)) if self._width <= 8 else [word]) * (end - start))
            start = end
        if self._width <= 8:
            return b"".join(map(bytes, parts))
        return [value for part in parts for value in part]

    def zeros(self) -> Iterator[int]:
        """The numbers of the values that are 0."""
        for run, (first, word) in enumerate(zip(self._firsts, self._words, strict=True)):
            if word == 0:
                yield from range(first, self._end(run))
            elif word < 0:
                numbers = range(first, self._end(run))
                yield from compress(numbers, map((0).__eq__, self._packed(run)))

    def _run(self, index: int) -> int:
        if not 0 <= index < self._total:
            raise IndexError(index)
        return bisect_right(self._firsts, index) - 1

    def _end(self, run: int) -> int:
        return self._firsts[run + 1] if run + 1 < len(self._firsts) else self._total

    def _packed(self, run: int) -> Sequence[int]:
        number = self._end(run) - self._firsts[run]
        size = -(-number * self._width // 8)
        data = read_exactly(self._data, ~self._words[run], size, "packed Parquet values")
        return unpack(data, self._width, number)
