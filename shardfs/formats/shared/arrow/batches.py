"""Where the batches of an Arrow stream or file lie and which rows they hold: found out once, and kept.

The index is bytes, so that it can lie on disk and be read where it is needed: ``head | batches | dictionaries``.
"""

from __future__ import annotations

import contextlib
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from shardfs.blob import expect, read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.message import (
    GLANCE,
    Header,
    is_file,
    message_of,
    read_footer,
    read_message,
    read_schema,
)

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.message import Footer, Message
    from shardfs.formats.shared.arrow.types import Schema

VERSION = "arrow rows 2"
"""Names the layout of the index."""

# batches, dictionaries, where reading ended, how, whether by the footer
_HEAD = struct.Struct("<5Q")
# offset, the number of rows up to its end
_BATCH = struct.Struct("<QQ")
# number, offset, how many batches come before it, whether it adds to the one before
_DICTIONARY = struct.Struct("<qQQQ")
_U64 = struct.Struct("<Q")

MAX_ROWS = 1 << 32
"""More rows than inode numbers have room for, and more than a few bytes should claim."""
# An index of as many batches is held in memory (256 KiB), so that finding a row costs no reads.
_MOST_HELD = 1 << 14
# Kept in memory while a shard is open. Files have a few; streams may change one before each batch.
_MAX_DICTIONARIES = 1 << 20


class Ending(IntEnum):
    """How the reading of a stream ended."""

    MARK = 0
    NO_MARK = 1  # where a message could begin: as it should be, or cut there
    DAMAGE = 2


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """A message with a dictionary; *before*: how many batches of records come before it."""

    number: int
    offset: int
    before: int
    adds: bool

    @classmethod
    def of(cls, offset: int, message: Message, before: int) -> DictionaryPlace:
        """The place of the dictionary that *message* holds."""
        header = message.header
        return cls(header.number(0, "q"), offset, before, bool(header.number(2, "B")))


class IndexWriter:
    """Puts an index together of messages in order."""

    def __init__(self, *, is_file: bool = False) -> None:
        """In a file the first dictionary of a number holds for all batches, wherever it stands."""
        self._batches, self._dictionaries = bytearray(), bytearray()
        self._rows, self._is_file, self._numbers = 0, is_file, set[int]()

    @property
    def has_batches(self) -> bool:
        """Whether there is anything that a folder could show."""
        return bool(self._batches)

    def note(self, offset: int, message: Message) -> None:
        """Take a message in."""
        if message.type == Header.BATCH:
            rows = message.batch.number(0, "q")
            if not 0 <= rows <= MAX_ROWS - self._rows:
                raise Corrupt(f"an Arrow batch of {rows} rows")
            self._rows += rows
            self._batches += _BATCH.pack(offset, self._rows)
        elif message.type != Header.DICTIONARY:
            raise Corrupt("an Arrow message that belongs to no table")
        else:
            if len(self._dictionaries) >= _MAX_DICTIONARIES * _DICTIONARY.size:
                raise Unsupported(f"more than {_MAX_DICTIONARIES} Arrow dictionaries")
            place = DictionaryPlace.of(offset, message, len(self._batches) // _BATCH.size)
            is_first = self._is_file and place.number not in self._numbers
            self._numbers.add(place.number)
            before = 0 if is_first else place.before
            self._dictionaries += _DICTIONARY.pack(place.number, offset, before, place.adds)

    def finish(self, stop: int, ending: Ending, *, by_footer: bool = False) -> bytes:
        """The index. Raises Corrupt where it ends before anything that a folder could show."""
        if ending != Ending.MARK and not self.has_batches:
            raise Corrupt(f"is damaged or cut at byte {stop}, before its first record")
        counts = len(self._batches) // _BATCH.size, len(self._dictionaries) // _DICTIONARY.size
        head = _HEAD.pack(*counts, stop, ending, by_footer)
        return head + self._batches + self._dictionaries


def index_stream(blob: Blob) -> bytes:
    """The index of a stream: a walk from message to message, as far as they can be read."""
    _, offset = read_schema(blob)
    writer, size = IndexWriter(is_file=is_file(blob)), blob.size()
    while offset < size:
        expect(blob, [(offset, GLANCE)])  # and nothing of the batch behind it
        try:
            message = read_message(blob, offset)
            if message is None:
                return writer.finish(offset, Ending.MARK)
            writer.note(offset, message)
        except (Corrupt, Unsupported) as error:
            if isinstance(error, Unsupported) and not writer.has_batches:
                raise
            return writer.finish(offset, Ending.DAMAGE)
        offset = message.end
    return writer.finish(offset, Ending.DAMAGE if offset > size else Ending.NO_MARK)


def index_file(blob: Blob, footer: Footer) -> bytes:
    """The index of a file, as far as its batches can be read; dictionaries that can't are missed by their columns."""
    writer, whole = IndexWriter(is_file=True), set[int]()
    expect(blob, ((offset, GLANCE) for offset in (*footer.dictionaries, *footer.batches)))
    for offset in footer.dictionaries:
        try:
            message = message_of(blob, offset, Header.DICTIONARY)
        except Corrupt:
            continue
        place = DictionaryPlace.of(offset, message, 0)
        if not place.adds and place.number in whole:
            raise Corrupt("a footer that does not tell which of two dictionaries a batch has")
        whole.add(place.number)
        writer.note(offset, message)
    for offset in footer.batches:
        try:
            writer.note(offset, message_of(blob, offset, Header.BATCH))
        except Corrupt:
            return writer.finish(max(offset, 0), Ending.DAMAGE, by_footer=True)
    return writer.finish(blob.size(), Ending.MARK, by_footer=True)


def index_any(blob: Blob) -> bytes:
    """The index of a stream, or of a file by its footer.

    A file whose footer is damaged or missing, or does not tell all, is read as the stream that is in it.
    """
    fault: Corrupt | None = None
    if is_file(blob):
        with contextlib.suppress(Corrupt):
            footer = read_footer(blob)
            try:
                return index_file(blob, footer)
            except Corrupt as error:
                fault = error
    try:
        return index_stream(blob)
    except Corrupt as error:
        raise fault or error from None


def schema_of_any(blob: Blob) -> Schema:
    """The schema of a stream or file. Raises Corrupt, Unsupported."""
    if is_file(blob):
        with contextlib.suppress(Corrupt):
            return read_footer(blob).schema
    return read_schema(blob)[0]


class RowIndex:
    """An index, read where it is needed.

    Attributes:
        rows: how many there are.
        offsets: of the batches.
        ends: of each batch, the number of rows up to its end.
        stop: where reading ended.
        ending: how it ended.
        by_footer: whether this is what the footer of a file told.
    """

    def __init__(self, blob: Blob) -> None:
        head = read_exactly(blob, 0, _HEAD.size, "the head of an index")
        batches, dictionaries, self.stop, self.ending, by_footer = _HEAD.unpack(head)
        self.by_footer = bool(by_footer)
        self._blob, self._batches_end = blob, _HEAD.size + batches * _BATCH.size
        if blob.size() != self._batches_end + dictionaries * _DICTIONARY.size:
            raise Corrupt("an index that is not as long as it says")
        self.offsets: Sequence[int] = Numbers(blob, _HEAD.size, _BATCH.size, batches)
        self.ends: Sequence[int] = Numbers(blob, _HEAD.size + _U64.size, _BATCH.size, batches)
        if batches <= _MOST_HELD:
            self.offsets, self.ends = array("Q", self.offsets), array("Q", self.ends)
        self.rows = self.ends[-1] if batches else 0

    def dictionaries(self) -> list[DictionaryPlace]:
        """The dictionaries in the order in which they were written."""
        size = self._blob.size() - self._batches_end
        data = read_exactly(self._blob, self._batches_end, size, "an index")
        return [
            DictionaryPlace(number, offset, before, bool(adds))
            for number, offset, before, adds in _DICTIONARY.iter_unpack(data)
        ]


class Numbers(Sequence[int]):
    """Numbers in a blob, *stride* bytes from one to the next, read one at a time, or all at once."""

    __slots__ = ("_blob", "_count", "_start", "_stride")

    def __init__(self, blob: Blob, start: int, stride: int, count: int) -> None:
        self._blob, self._start, self._stride, self._count = blob, start, stride, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if not -self._count <= index < self._count:
            raise IndexError(index)
        at = self._start + index % self._count * self._stride
        return _U64.unpack(read_exactly(self._blob, at, _U64.size, "an index"))[0]

    def __iter__(self) -> Iterator[int]:
        length = max(self._count - 1, 0) * self._stride + min(self._count, 1) * _U64.size
        data = read_exactly(self._blob, self._start, length, "an index")
        return (_U64.unpack_from(data, at)[0] for at in range(0, length, self._stride))
