"""The values in pages and dictionaries of a Parquet file, found without decoding those before them."""

from __future__ import annotations

import struct
from array import array
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from shardfs.blob import Blob, Bytes, Slice, expect, is_far, read_all, read_exactly
from shardfs.errors import Corrupt
from shardfs.formats.parquet.convert import Physical
from shardfs.formats.parquet.delta import as_plain
from shardfs.formats.parquet.runs import Runs, RunTable, find_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.formats.parquet.schema import Leaf
    from shardfs.model import Services

_PLAIN, _RLE = 0, 3
_DICTIONARY = (2, 8)
_LENGTH = struct.Struct("<I")
# How much is read at once to find the lengths of values: only that where they lie far from one another, more and
# more where they don't. A guess.
_LEAST, _FAR = _LENGTH.size, 4 << 10
LOOK = 64 << 10
"""The most that is read at once to find them, or gone through beyond the wanted one: for the price of the call."""


class Values(Protocol):
    """The values of a page that are no nulls, by number. Immutable and thread-safe."""

    def stored(self, number: int, /) -> Blob:
        """The bytes of a value as Arrow has them."""
        ...

    def run(self, start: int, stop: int, /) -> Blob:
        """The bytes of numbers or truth values, one behind the other."""
        ...


def open_values(
    data: Blob,
    encoding: int,
    leaf: Leaf,
    count: int,
    dictionary: Callable[[], Plain | None],
    services: Services,
) -> Values:
    """The *count* values that a page has in *data*. Raises Corrupt."""
    if encoding == _PLAIN:
        return Plain(data, leaf, count, services)
    if encoding in _DICTIONARY:
        entries = dictionary()
        if entries is None:
            raise Corrupt("a Parquet page of a dictionary that is not there")
        return Indexed(data, entries, count, services)
    if encoding == _RLE and leaf.physical is Physical.BOOLEAN:
        return RunBools(data, count, services)
    limit = services.options.max_chunk_size
    plain = services.derive(lambda: as_plain(encoding, read_all(data), leaf, count, limit))
    return Plain(plain, leaf, count, services)


class Plain:
    """Values one behind the other, with their lengths in front of them where these differ."""

    def __init__(self, data: Blob, leaf: Leaf, count: int, services: Services) -> None:
        self._data, self._leaf, self.count = data, leaf, count
        self._starts: Starts | None = None
        if leaf.physical is Physical.BYTE_ARRAY:
            self._starts = Starts(data, count, services)

    def stored(self, number: int, /) -> Blob:
        if not 0 <= number < self.count:
            raise Corrupt(f"value {number} of a Parquet page of {self.count}")
        if self._starts is not None:
            return self._value(*self._starts.find(number))
        if self._leaf.physical is Physical.BOOLEAN:
            byte = read_exactly(self._data, number // 8, 1, "a Parquet page")[0]
            return Bytes(bytes((byte >> number % 8 & 1,)))
        return self._value(number * self._leaf.width, self._leaf.width)

    def run(self, start: int, stop: int, /) -> Blob:
        width, size = self._leaf.width, self._leaf.size
        if not width or self._leaf.convert is not None:
            return Bytes(b"".join(read_all(self.stored(number)) for number in range(start, stop)))
        whole = self._slice(start * width, (stop - start) * width)
        if size == width:
            return whole
        data = bytes(read_all(whole))
        return Bytes(b"".join(data[at : at + size] for at in range(0, len(data), width)))

    def _value(self, start: int, length: int) -> Blob:
        value = self._slice(start, length)
        if self._leaf.convert is not None:
            return Bytes(self._leaf.convert(read_all(value)))
        # Of an integer of fewer bits than it is stored in, the lower bytes are all.
        return Slice(self._data, start, self._leaf.size) if self._leaf.size else value

    def _slice(self, start: int, length: int) -> Slice:
        if start + length > self._data.size():
            raise Corrupt(f"{length} bytes at {start} of a Parquet page of {self._data.size()}")
        return Slice(self._data, start, length)


class Indexed:
    """Values that stand in a dictionary: first how many bits the numbers of its entries have, then these."""

    def __init__(self, data: Blob, dictionary: Plain, count: int, services: Services) -> None:
        self._data, self._dictionary, self._count = data, dictionary, count
        self._table = services.derive(partial(_entry_runs, data, count))

    def stored(self, number: int, /) -> Blob:
        return self._dictionary.stored(self._runs()[number])

    def run(self, start: int, stop: int, /) -> Blob:
        entries = self._runs().span(start, stop)
        values = {entry: bytes(read_all(self._dictionary.stored(entry))) for entry in set(entries)}
        return Bytes(b"".join(map(values.__getitem__, entries)))

    def _runs(self) -> Runs:
        width = read_exactly(self._data, 0, 1, "a Parquet page")[0]
        data = Slice(self._data, 1, self._data.size() - 1)
        return Runs(data, width, self._count, RunTable.of(self._table))


def _entry_runs(data: Blob, count: int) -> bytes:
    stored = read_exactly(data, 0, data.size(), "a Parquet page")
    if not stored:
        raise Corrupt("a Parquet page of a dictionary without the numbers of its entries")
    return find_runs(stored[1:], stored[0], count).to_bytes()


class RunBools:
    """Truth values as runs, behind the length of these."""

    def __init__(self, data: Blob, count: int, services: Services) -> None:
        self._runs_of = Slice(data, _LENGTH.size, max(data.size() - _LENGTH.size, 0))
        self._count = count
        self._table = services.derive(partial(_bool_runs, self._runs_of, count))

    def stored(self, number: int, /) -> Blob:
        return self.run(number, number + 1)

    def run(self, start: int, stop: int, /) -> Blob:
        runs = Runs(self._runs_of, 1, self._count, RunTable.of(self._table))
        return Bytes(bytes(runs.span(start, stop)))


def _bool_runs(data: Blob, count: int) -> bytes:
    return find_runs(read_all(data), 1, count).to_bytes()


class Starts:
    """Where *count* values begin, each behind its length, held under the memory budget.

    In a file that is far away they are found from the first one on, as far as somebody asks, in runs of as many as
    mostly lie in one look; else all at once.
    """

    def __init__(self, data: Blob, count: int, services: Services) -> None:
        self._data, self._count, self._services = data, count, services
        self._runs: list[Blob] = []
        self._lock = Lock()

    def find(self, number: int) -> tuple[int, int]:
        """(start, length) of a value. Raises Corrupt."""
        size = self._data.size()
        if self._count * _LENGTH.size > size:
            raise Corrupt(f"{self._count} texts in a Parquet page of {size} bytes")
        each = max(self._count * LOOK // size, 1) if is_far(self._data) else self._count
        run, at = divmod(number, each)
        while run >= (known := len(self._runs)):
            count = min(each, self._count - known * each)
            walk = partial(
                find_starts,
                self._data,
                self._begin(known, each),
                count,
                is_dense=LOOK // _FAR < each < self._count,
            )
            # Two numbers take less room than what would make them again.
            made = self._services.derive(walk) if each > 1 else Bytes(walk())
            with self._lock:
                if known == len(self._runs):
                    self._runs.append(made)
        try:
            start, following = self._runs[run].read(8 * at, 16).cast("q")
        except Corrupt:  # which may be behind this value
            found = find_starts(self._data, self._begin(run, each), at + 1)
            start, following = memoryview(found)[8 * at :].cast("q")
        return start, following - _LENGTH.size - start

    def _begin(self, run: int, each: int) -> int:
        """Where the length of the first value of a run lies."""
        return self._runs[run - 1].read(8 * each, 8).cast("q")[0] - _LENGTH.size if run else 0


def find_starts(data: Blob, at: int, count: int, *, is_dense: bool = False) -> bytes:
    """Where each of *count* values begins behind its length, as i64, and where one more would. Raises Corrupt.

    The length of the first one lies at *at*; *is_dense*: the others are expected near it.
    """
    size = data.size()
    starts = array("q")
    window, begin, reach = memoryview(b""), at, LOOK if is_dense else _LEAST
    for _ in range(count):
        if at + _LENGTH.size > begin + len(window):
            skipped = at - begin - len(window)
            reach = min(reach * 4, LOOK) if skipped < _FAR else _LEAST
            if skipped > LOOK:  # no more than this is wanted there
                expect(data, [(at, reach)])
            begin, window = at, data.read(at, reach)
            if len(window) < _LENGTH.size:
                raise Corrupt(
                    f"the lengths of texts lead to {at} in a Parquet page of {size} bytes"
                )
        (length,) = _LENGTH.unpack_from(window, at - begin)
        at += _LENGTH.size
        starts.append(at)
        at += length
    if at > size:
        raise Corrupt(f"the lengths of texts lead to {at} in a Parquet page of {size} bytes")
    starts.append(at + _LENGTH.size)
    return starts.tobytes()
