"""What the records of a zip file say (PKWARE APPNOTE 6.3.10): pure functions over bytes."""

from __future__ import annotations

import struct
import time
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

END_SIZE = 22
MAX_COMMENT = 0xFFFF
LOCATOR_SIZE = 20
END64_SIZE = 56
ENTRY_SIZE = 46
LOCAL_SIZE = 30

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\5\6"
_LOCATOR = struct.Struct("<4sLQL")
_LOCATOR_MAGIC = b"PK\6\7"
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_MAGIC = b"PK\6\6"
_ENTRY = struct.Struct("<4s4H4L5H2L")
ENTRY_MAGIC = b"PK\1\2"
_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_MAGIC = b"PK\3\4"
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF

_ENCRYPTED, _UTF8, _END_MARK = 0x1, 0x800, 0x2
_ZIP64_EXTRA, _TIME_EXTRA, _NAME_EXTRA = 0x0001, 0x5455, 0x7075
# "Version made by", high byte.
_UNIX, _WITH_BACKSLASHES = 3, frozenset([0, 10, 11, 14])
_LINK_MODE, _MODE_MASK = 0o120000, 0o170000

_KNOWN_TIMES = 1 << 12


class End(NamedTuple):
    """The end of the central directory: *entries* in *size* bytes, said to begin at *offset*."""

    entries: int
    size: int
    offset: int

    @property
    def is_large(self) -> bool:
        """Whether the numbers may stand in the zip64 record instead."""
        return self.entries == _MAX16 or _MAX32 in (self.size, self.offset)


def ends(tail: bytes) -> Iterator[tuple[int, End]]:
    """(position in *tail*, record) of all that look like the end, the likeliest first.

    *tail* is the end of the file. A comment may hold what looks like a record, too: the record whose comment
    reaches to the very end is meant, the first one if there are two, then the last of the others.
    """
    exact: list[tuple[int, End]] = []
    other: list[tuple[int, End]] = []
    at = tail.find(_END_MAGIC)
    while 0 <= at <= len(tail) - END_SIZE:
        _, disk, _, _, count, size, offset, comment = _END.unpack_from(tail, at)
        found = exact if at + END_SIZE + comment == len(tail) else other
        if disk in (0, _MAX16):
            found.append((at, End(count, size, offset)))
        at = tail.find(_END_MAGIC, at + 1)
    candidates = [*exact, *reversed(other)]
    # One without entries may be anything.
    candidates.sort(key=lambda one: one[1].entries == 0)
    return iter(candidates)


def parse_locator(data: bytes | memoryview) -> int | None:
    """Where the zip64 end record is said to begin, None where *data* are no locator."""
    if len(data) < LOCATOR_SIZE:
        return None
    magic, _, offset, _ = _LOCATOR.unpack_from(data)
    return int(offset) if magic == _LOCATOR_MAGIC else None


def parse_end64(data: bytes | memoryview) -> End | None:
    """The zip64 end record, None where *data* are none."""
    if len(data) < END64_SIZE:
        return None
    magic, _, _, _, _, _, _, count, size, offset = _END64.unpack_from(data)
    return End(count, size, offset) if magic == _END64_MAGIC else None


class Member(NamedTuple):
    """An entry of the central directory.

    Attributes:
        name: its path, as UTF-8 or undecodable bytes, with `/` between parts.
        has_end_mark: whether LZMA data say where they end.
        stored: bytes as they are stored.
        offset: of its local header, as it is said.
        mtime: seconds since 1970, None where only *clock* tells.
        clock: date and time as MS-DOS writes them, see ``dos_time``.
    """

    name: bytes
    is_link: bool
    is_encrypted: bool
    has_end_mark: bool
    method: int
    crc: int
    stored: int
    size: int
    offset: int
    mtime: int | None
    clock: int


def parse_entry(data: bytes, at: int) -> tuple[Member, int] | None:
    """(member, where the next entry begins); None where *data* ends inside the entry. Raises Corrupt."""
    begin = at + ENTRY_SIZE
    if begin > len(data):
        return None
    fields = _ENTRY.unpack_from(data, at)
    magic, made, _, flags, method, clock, crc, stored, size, length, extra, comment = fields[:12]
    mode, offset = fields[14:]
    if magic != ENTRY_MAGIC:
        raise Corrupt("no entry of the central directory where one should be")
    stop = begin + length + extra
    if stop + comment > len(data):
        return None
    name, system, mtime = data[begin : begin + length], made >> 8, None
    extras = dict(_extras(data[begin + length : stop])) if extra else {}
    if extras:
        size, stored, offset = _large(extras.get(_ZIP64_EXTRA, b""), size, stored, offset)
        mtime = _mtime(extras.get(_TIME_EXTRA, b""))
    if not (flags & _UTF8 or name.isascii()):
        name = _unicode_name(name, extras.get(_NAME_EXTRA, b""))
    if system in _WITH_BACKSLASHES and b"/" not in name:
        name = name.replace(b"\\", b"/")
    member = Member(
        name,
        system == _UNIX and mode >> 16 & _MODE_MASK == _LINK_MODE,
        bool(flags & _ENCRYPTED),
        bool(flags & _END_MARK),
        *(method, crc, stored, size, offset, mtime, clock),
    )
    return member, stop + comment


def parse_local(data: bytes | memoryview) -> int:
    """How far behind its beginning a local header's data begin. Raises Corrupt."""
    if len(data) < LOCAL_SIZE or bytes(data[:4]) != _LOCAL_MAGIC:
        raise Corrupt("no local header where one should be")
    name, extra = _LOCAL.unpack_from(data)[9:]
    return int(LOCAL_SIZE + name + extra)


def _extras(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        kind, length = struct.unpack_from("<2H", data, at)
        yield kind, data[at + 4 : at + 4 + length]
        at += 4 + length


def _large(extra: bytes, size: int, stored: int, offset: int) -> tuple[int, int, int]:
    """The numbers, taken from the zip64 extra field where they don't fit; it holds only those, in this order."""
    numbers = [size, stored, offset]
    at = 0
    for index, number in enumerate(numbers):
        if number == _MAX32 and at + 8 <= len(extra):
            (numbers[index],) = struct.unpack_from("<Q", extra, at)
            at += 8
    return numbers[0], numbers[1], numbers[2]


def _unicode_name(raw: bytes, extra: bytes) -> bytes:
    """A name without the UTF-8 flag: by Info-ZIP's field, as UTF-8 if it is, else in the code page of the PC."""
    if len(extra) > 5 and extra[0] == 1 and extra[1:5] == struct.pack("<L", zlib.crc32(raw)):
        return extra[5:]
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp437").encode("utf-8")
    return raw


def _mtime(extra: bytes) -> int | None:
    """Seconds since 1970 by Info-ZIP's field."""
    if len(extra) >= 5 and extra[0] & 1:
        return int(struct.unpack_from("<i", extra, 1)[0])
    return None


@lru_cache(_KNOWN_TIMES)  # members are made in runs
def dos_time(clock: int) -> int:
    """Seconds since 1970 of a local time as MS-DOS writes it, 0 for nonsense."""
    day, time_of_day = clock >> 16, clock & 0xFFFF
    date = ((day >> 9) + 1980, day >> 5 & 15, day & 31)
    hour = (time_of_day >> 11, time_of_day >> 5 & 63, (time_of_day & 31) * 2)
    if not (1 <= date[1] <= 12 and date[2] >= 1 and hour[0] < 24 and hour[1] < 60):
        return 0
    try:
        return int(time.mktime((*date, *hour, 0, 0, -1)))
    except (OverflowError, ValueError):
        return 0
