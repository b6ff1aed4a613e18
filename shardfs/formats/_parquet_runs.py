"""Parquet's RLE and bit-packing hybrid, in which levels, dictionary indices and truth values are stored.

Only where the runs lie is worked out beforehand: any value is then found without decoding those before it.
https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt
from shardfs.formats._parquet_thrift import varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob

# The longest run of packed values that is kept as one, so that few have to be unpacked to find or count some.
_MAX_PACKED = 128
_MAX_WIDTH = 32


class RunTable(NamedTuple):
    """Where runs lie: what ``Runs`` is made of.

    Attributes:
        firsts: the number of the first value of each run.
        words: a value that is repeated, or ~ the place of packed values in the data.
        ranks: how many values before each run equal the one that is counted.
    """

    firsts: Sequence[int]
    words: Sequence[int]
    ranks: Sequence[int]


def find_runs(data: memoryview, width: int, count: int, counted: int | None = None) -> RunTable:
    """The runs in which *count* values of *width* bits lie, and how often the value *counted* is in them.

    Raises:
        Corrupt: there are fewer values, or one that is wider.
    """
    if not 0 <= width <= _MAX_WIDTH:
        raise Corrupt(f"Parquet values of {width} bits")
    finder = _Finder(data, width, counted)
    try:
        while finder.done < count:
            finder.step(count)
    except IndexError:
        raise Corrupt(f"Parquet data has {finder.done} values instead of {count}") from None
    return RunTable(finder.firsts, finder.words, finder.ranks)


class _Finder:
    """How far a search for runs has come."""

    __slots__ = ("_at", "_counted", "_data", "_rank", "_width", "done", "firsts", "ranks", "words")

    def __init__(self, data: memoryview, width: int, counted: int | None) -> None:
        self._data, self._width, self._counted = data, width, counted
        self.firsts, self.words, self.ranks = array("q"), array("q"), array("q")
        self.done = self._rank = self._at = 0

    def step(self, count: int) -> None:
        """Find the next run. Raises Corrupt, IndexError."""
        head, at = varint(self._data, self._at)
        length = head >> 1
        if head & 1 and self._width:
            self._packed(min(8 * length, count - self.done), at)
            self._at = at + length * self._width
        else:
            size = -(-self._width // 8)
            word = int.from_bytes(self._data[at : at + size], "little")
            self._at = at + size
            if self._at > len(self._data):
                raise IndexError
            if word >> self._width:
                raise Corrupt(f"a Parquet value of {self._width} bits is {word}")
            self._add(word, min(length * (8 if head & 1 else 1), count - self.done))

    def _packed(self, count: int, at: int) -> None:
        """Take in *count* packed values in runs that are short enough to unpack one for a single value."""
        if (len(self._data) - at) * 8 < count * self._width:
            raise IndexError
        for first in range(0, count, _MAX_PACKED):
            self._add(~(at + first * self._width // 8), min(_MAX_PACKED, count - first))

    def _add(self, word: int, length: int) -> None:
        if not length:
            return
        self.firsts.append(self.done)
        self.words.append(word)
        self.done += length
        if self._counted is None:
            return
        self.ranks.append(self._rank)
        if word == self._counted:
            self._rank += length
        elif word < 0:
            self._rank += unpack(self._data[~word:], self._width, length).count(self._counted)


def unpack(data: memoryview, width: int, count: int) -> list[int]:
    """The first *count* of the packed values in *data*, which must have as many."""
    mask = (1 << width) - 1
    shifts = range(0, 8 * width, width)
    values: list[int] = []
    for at in range(0, -(-count // 8) * width, width):
        group = int.from_bytes(data[at : at + width], "little")
        values += [group >> shift & mask for shift in shifts]
    return values[:count]


class Runs:
    """Values of *width* bits in *data*, of which *table* tells where they lie."""

    __slots__ = ("_data", "_firsts", "_ranks", "_width", "_words", "count")

    def __init__(self, data: Blob, width: int, count: int, table: RunTable) -> None:
        self._data, self._width, self.count = data, width, count
        self._firsts, self._words, self._ranks = table

    def __getitem__(self, index: int) -> int:
        run = self._run(index)
        word = self._words[run]
        return word if word >= 0 else self._packed(run)[index - self._firsts[run]]

    def rank(self, stop: int, counted: int) -> int:
        """How many of the values before *stop* are *counted*, which is the value that ``find_runs`` counted."""
        if not stop:
            return 0
        run = self._run(stop - 1)
        word, rank, length = self._words[run], self._ranks[run], stop - self._firsts[run]
        if word >= 0:
            return rank + (length if word == counted else 0)
        return rank + self._packed(run)[:length].count(counted)

    def span(self, start: int, stop: int) -> list[int]:
        """The values from *start* to *stop*."""
        values: list[int] = []
        while start < stop:
            run = self._run(start)
            first, word = self._firsts[run], self._words[run]
            end = min(stop, self._end(run))
            if word >= 0:
                values += [word] * (end - start)
            else:
                values += self._packed(run)[start - first : end - first]
            start = end
        return values

    def zeros(self) -> Iterator[int]:
        """The numbers of the values that are 0."""
        for run, (first, word) in enumerate(zip(self._firsts, self._words, strict=True)):
            if word == 0:
                yield from range(first, self._end(run))
            elif word < 0:
                yield from (first + at for at, value in enumerate(self._packed(run)) if not value)

    def _run(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return bisect_right(self._firsts, index) - 1

    def _end(self, run: int) -> int:
        return self._firsts[run + 1] if run + 1 < len(self._firsts) else self.count

    def _packed(self, run: int) -> list[int]:
        count = self._end(run) - self._firsts[run]
        size = -(-count * self._width // 8)
        data = read_exactly(self._data, ~self._words[run], size, "packed Parquet values")
        return unpack(data, self._width, count)
