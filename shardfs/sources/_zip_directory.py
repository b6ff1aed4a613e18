"""The central directory of a zip file: where it lies, and what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt
from shardfs.sources._zip_records import (
    END64_SIZE,
    END_SIZE,
    ENTRY_MAGIC,
    LOCATOR_SIZE,
    MAX_COMMENT,
    ends,
    parse_end64,
    parse_entry,
    parse_locator,
)
from shardfs.sources._zip_table import TableBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.sources._zip_records import End, Member

# Name, extra fields and comment of an entry have at most 64 KiB each.
_WINDOW = 1 << 20
# Stands for offsets that can't be: no file is that long.
_NOWHERE = 1 << 63


class Directory(NamedTuple):
    """A central directory: its bytes are [start, start + size).

    *shift* is what must be added to the offsets that stand in it, where something was put before the zip.
    """

    start: int
    size: int
    shift: int


def build_table(blob: Blob) -> bytes:
    """The table of all members. Raises Corrupt, Unsupported."""
    builder = TableBuilder()
    for member in members(blob, find_directory(blob)):
        builder.add(member)
    return builder.finish()


def find_directory(blob: Blob) -> Directory:
    """Where the central directory lies. Raises Corrupt where there is none."""
    size = blob.size()
    begin = max(size - END_SIZE - MAX_COMMENT, 0)
    for position, end in ends(bytes(blob.read(begin, size - begin))):
        found = _directory(blob, begin + position, end)
        if found is not None:
            return found
    raise Corrupt("no zip file: it has no central directory, or is cut")


def _directory(blob: Blob, at: int, end: End) -> Directory | None:
    """The directory that ends with the record at *at*; None where it isn't there."""
    stop = at
    if end.is_large:
        stop, end = _end64(blob, at) or (at, end)
    if not end.size:
        return Directory(stop, 0, 0) if not end.entries else None
    # Where it should be: right before its end, whatever was put before the zip. Else where it says.
    for start in (stop - end.size, end.offset):
        fits = start >= 0 and end.size <= stop - start
        if fits and bytes(blob.read(start, len(ENTRY_MAGIC))) == ENTRY_MAGIC:
            return Directory(start, end.size, start - end.offset)
    return None


def _end64(blob: Blob, at: int) -> tuple[int, End] | None:
    """(position, record) of the zip64 end record by the locator before the end record at *at*."""
    place = at - LOCATOR_SIZE
    offset = parse_locator(blob.read(place, LOCATOR_SIZE)) if place >= 0 else None
    if offset is None:
        return None
    for position in (offset, place - END64_SIZE):
        if 0 <= position <= place - END64_SIZE:
            end = parse_end64(blob.read(position, END64_SIZE))
            if end is not None:
                return position, end
    return None


def members(blob: Blob, directory: Directory) -> Iterator[Member]:
    """All entries, with offsets in *blob*. Raises Corrupt at one that is damaged."""
    at, shift = directory.start, directory.shift
    stop = at + directory.size
    while at < stop:
        window = bytes(read_exactly(blob, at, min(_WINDOW, stop - at), "central directory"))
        place = 0
        while place < len(window):
            parsed = parse_entry(window, place)
            if parsed is None:
                break
            member, place = parsed
            if shift:
                offset = member.offset + shift
                member = member._replace(offset=offset if 0 <= offset < _NOWHERE else _NOWHERE)
            yield member
        if not place:  # a window holds any entry that is whole
            raise Corrupt("an entry of the central directory is cut")
        at += place
