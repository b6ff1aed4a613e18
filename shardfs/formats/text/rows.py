"""Where the rows of a text file begin: found by one pass over it, and looked up from then on.

The pass notes a *mark* about every 64 KiB: the number of a row and its offset. Rows between two marks are found
again by a look at these bytes, so that what is kept comes to 1/4096 of the file at most, however short its rows.
A row reaches to where the next one begins.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.blob import Bytes, Slice, read_all, read_exactly
from shardfs.errors import Corrupt
from shardfs.formats.shared.recent import Recent
from shardfs.model import number_width
from shardfs.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.blob import Blob

LAYOUT = 1
"""Part of the key of every kept table: to be counted up when a table means something else than before."""

PIECE = 256 << 10
"""Bytes that are looked at together."""
_BETWEEN_MARKS = 64 << 10
# Tables up to this size are held in memory: a few hundred shards may be open, and descriptors are scarce.
_SMALL = 64 << 10
# So many marks have all rows behind them held.
_WINDOWS = 16
# How often a pass begins again behind a row that would swallow all that follows it. A guess.
_MAX_RESUMED = 8

# rows, end of the data, digits of a row's name, bytes of the fault, marks
_HEAD = struct.Struct("<QQIIQ")


def before_damage(blob: Blob, at: int, length: int) -> bytes:
    """The bytes from *at* as far as they can be read: none where damage begins."""
    while length:
        try:
            return bytes(blob.read(at, length))
        except Corrupt:
            length //= 2
    return b""


class Finder(Protocol):
    """Finds where rows begin, in data that comes in order and begins where a row may begin."""

    @property
    def between(self) -> bool:
        """Whether the next row has not begun yet."""
        ...

    @property
    def fault(self) -> str:
        """Why nothing can be found any more, "" while all is well."""
        ...

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        """The offsets of the rows that begin in *data*, which lies at *at*, or did before, if only *data* shows it.

        Without data, nothing more comes for now.
        """
        ...

    def finish(self) -> tuple[int, Finder] | None:
        """Take note of the end; where to go on after all, and with what, or None."""
        ...


class Without:
    """Finds what another finder does, less what begins at *left_out*."""

    def __init__(self, finder: Callable[[], Finder], left_out: frozenset[int]) -> None:
        self._finder, self._left_out = finder(), left_out

    @property
    def between(self) -> bool:
        return self._finder.between

    @property
    def fault(self) -> str:
        return self._finder.fault

    def feed(self, data: bytes, at: int, /) -> Sequence[int]:
        return [start for start in self._finder.feed(data, at) if start not in self._left_out]

    def finish(self) -> tuple[int, Finder] | None:
        again = self._finder.finish()
        if again is None:
            return None
        at, finder = again
        return at, Without(lambda: finder, self._left_out)


class Numbers(Protocol):
    """Numbers in ascending order."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Table:
    """Where rows begin.

    Attributes:
        count: how many rows there are.
        end: where the last one ends.
        digits: in the names of the rows.
        fault: why the last row can't be read, and there may have been more; "" where all is well.
        numbers: of each mark, the number of the row; the first is 0.
        offsets: of each mark, where that row begins.
    """

    count: int
    end: int
    digits: int
    fault: str
    numbers: Numbers
    offsets: Numbers

    @classmethod
    def load(cls, blob: Blob) -> Table:
        """The table in *blob*, as ``Scan.pack`` made it; marks are read when they are needed. Raises Corrupt.

        u64 rows | u64 end | u32 digits | u32 bytes of the fault | u64 marks
        u64 number of each mark | u64 offset of each mark | fault, UTF-8
        """
        head = read_exactly(blob, 0, _HEAD.size, "table")
        count, end, digits, length, marks = _HEAD.unpack(head)
        size = 8 * marks
        if blob.size() != _HEAD.size + 2 * size + length:
            raise Corrupt(f"no table of {marks} marks has {blob.size()} bytes")
        if blob.size() <= _SMALL:
            blob = Bytes(read_all(blob))
        fault = str(read_exactly(blob, _HEAD.size + 2 * size, length, "table"), "utf-8", "replace")
        numbers, offsets = (Slice(blob, _HEAD.size + at, size) for at in (0, size))
        return cls(count, end, digits, fault, _Numbers(numbers), _Numbers(offsets))


class _Numbers:
    """The u64 in a blob."""

    __slots__ = ("_blob",)

    def __init__(self, blob: Blob) -> None:
        self._blob = blob

    def __len__(self) -> int:
        return self._blob.size() // 8

    def __getitem__(self, index: int, /) -> int:
        if index < 0:
            index += len(self)
        return int.from_bytes(read_exactly(self._blob, 8 * index, 8, "table"), sys.byteorder)


@dataclass(frozen=True, slots=True)
class Text:
    """Data with rows in it.

    Attributes:
        blob: the data.
        size: its length, None where that is not known before all of it was read.
        begin: where the first row may begin.
        finder: makes what finds rows, from the beginning of one.
        limit: the most rows that are taken.
        is_part: whether more rows than that are no fault.
    """

    blob: Blob
    size: int | None
    begin: int
    finder: Callable[[], Finder]
    limit: int
    is_part: bool = False


class Scan:
    """A pass over a text, which may stop anywhere and go on. One thread goes on; others may look at the same time.

    Attributes are those of a ``Table``, as far as the pass has come.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._finder = text.finder()
        self.numbers, self.offsets = array("Q"), array("Q")
        self.count, self.end, self.fault = 0, text.begin, ""
        self._next_mark = 0
        self._resumed = 0

    def step(self) -> bool:
        """Look at the next piece; whether the end was reached."""
        blob = self._text.blob
        try:
            # Nothing is the end or damage, and only damage raises.
            data = before_damage(blob, self.end, PIECE) or bytes(blob.read(self.end, 1))
        except Corrupt as error:
            return self._break(error.message)
        starts, room = self._finder.feed(data, self.end), self._text.limit - self.count
        self._take(starts[:room])
        self.end += len(data)
        if len(starts) > room:
            if not self._text.is_part:
                self.fault = f"more than {self.count} rows: the rest is not shown"
            return True
        if self._finder.fault:
            return self._break(self._finder.fault)
        is_last = not data or self.end == self._text.size
        return self._finish() if is_last else False

    def pack(self, digits: int) -> bytes:
        """What was found, as ``Table.load`` reads it."""
        fault = self.fault.encode("utf-8", "replace")
        head = _HEAD.pack(self.count, self.end, digits, len(fault), len(self.numbers))
        return b"".join([head, self.numbers.tobytes(), self.offsets.tobytes(), fault])

    def _take(self, starts: Sequence[int]) -> None:
        at = bisect_left(starts, self._next_mark)
        while at < len(starts):
            self.offsets.append(starts[at])
            self.numbers.append(self.count + at)  # last: others look for it
            self._next_mark = starts[at] + _BETWEEN_MARKS
            at = bisect_left(starts, self._next_mark, at)
        self.count += len(starts)

    def _finish(self) -> bool:
        self._flush()
        again = self._finder.finish()
        if self._finder.fault:
            return self._break(self._finder.fault)
        if again is None or self._resumed == _MAX_RESUMED:
            return True
        self._resumed += 1
        self.end, self._finder = again
        self._next_mark = 0  # the row before, of which the end can't be found, ends at a mark
        return False

    def _flush(self) -> None:
        """Take what the finder held back."""
        self._take(self._finder.feed(b"", self.end)[: self._text.limit - self.count])

    def _break(self, fault: str) -> bool:
        """End with a row that can't be read."""
        self._flush()
        self.fault = fault
        if self._finder.between:
            self._next_mark = 0  # it is found by its mark, since there is nothing to find
            self._take([self.end])
        return True


class Window(NamedTuple):
    """Rows side by side: the number of the first one, where they begin, and where the last one ends."""

    first: int
    starts: Sequence[int]
    end: int


class Rows:
    """The rows of a text. Whoever waits for one that was not found yet looks on; the others wait for them.

    Thread-safe; obeys ``blob.no_wait``.
    """

    def __init__(
        self,
        text: Text,
        table: Table | None,
        *,
        keep: Callable[[bytes], Blob],
        digits: Callable[[], int | None],
        report: Callable[[str], None],
    ) -> None:
        """Take *table* as that of the text, or make it where it is None.

        *keep* stores a packed table and gives it back, *digits* foretells how many digits the largest number
        has, if it can, and *report* takes what is wrong with the text.
        """
        self._text, self._keep, self._report = text, keep, report
        self._foretold = lru_cache(1)(digits)
        self._known: Scan | Table = Scan(text) if table is None else table
        self._windows: Recent[Window] = Recent(_WINDOWS)
        self._near = Window(0, (), 0)
        self._turns = Turns()
        self._digits = table.digits if table is not None else 0
        if table is not None and table.fault:
            report(table.fault)

    def __len__(self) -> int:
        return self._when(lambda _: False).count

    def has(self, index: int) -> bool:
        """Whether there is a row of that number; waits no longer than it takes to find it."""
        if 0 <= index < self._known.count:
            return True
        return 0 <= index < self._when(lambda scan: index < scan.count).count

    @property
    def digits(self) -> int:
        """In the names of the rows: as many as the largest number has.

        That is foretold where counting would take long and there can hardly be a doubt. Where more rows come
        all the same, their names have more digits.
        """
        if not self._digits:
            self._digits = self._foretold() or number_width(len(self))
        return self._digits

    def span(self, index: int) -> tuple[int, int]:
        """(begin, end) of a row. Raises Corrupt where that can't be told."""
        known = self._when(lambda scan: bool(scan.count) and index < scan.numbers[-1])
        if not 0 <= index < known.count:
            raise IndexError(index)
        if known.fault and index == known.count - 1:
            raise Corrupt(known.fault)
        window = self._near
        place = index - window.first
        if not 0 <= place < len(window.starts):
            mark = bisect_right(known.numbers, index) - 1
            window = self._windows.get(mark, lambda mark: self._window(known, mark))
            self._near, place = window, index - window.first
        if place + 1 < len(window.starts):
            return window.starts[place], window.starts[place + 1]
        return window.starts[place], window.end

    def _window(self, known: Scan | Table, mark: int) -> Window:
        """The rows from a mark to the next one."""
        first, begin = known.numbers[mark], known.offsets[mark]
        last, end = self._mark_end(known, mark)
        if last == first + 1:
            return Window(first, [begin], end)
        finder, starts, at = self._text.finder(), array("Q"), begin
        # Behind them may be what tells them apart.
        while len(starts) < last - first and at < known.end:
            length = min(known.end - at, _BETWEEN_MARKS)
            data = read_exactly(self._text.blob, at, length, "rows")
            starts.extend(finder.feed(bytes(data), at))
            at += length
        if len(starts) < last - first:
            starts.extend(finder.feed(b"", at))
        if len(starts) < last - first:
            raise Corrupt("is not what the index cache says: use --rebuild-index")
        return Window(first, starts[: last - first], end)

    @staticmethod
    def _mark_end(known: Scan | Table, mark: int) -> tuple[int, int]:
        """(number, offset) of the next mark, or the end of all."""
        if mark + 1 < len(known.numbers):
            return known.numbers[mark + 1], known.offsets[mark + 1]
        return known.count, known.end

    def _when(self, ready: Callable[[Scan], bool]) -> Scan | Table:
        """What is known once that is enough, which all that there is must be."""

        def is_there() -> bool:
            known = self._known
            return isinstance(known, Table) or ready(known)

        self._turns.until(is_there, self._look_on)
        return self._known

    def _look_on(self) -> None:
        foretold = self._foretold()
        scan = self._known
        if isinstance(scan, Scan) and scan.step():
            packed = scan.pack(foretold or number_width(scan.count))
            self._known = Table.load(Bytes(packed))
            self._known = Table.load(self._keep(packed))
            if scan.fault:
                self._report(scan.fault)
