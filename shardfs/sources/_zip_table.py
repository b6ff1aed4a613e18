"""The members of a zip as a tree of folders, in one flat byte string that is searched as it lies.

    u64 rows of the root, which come first | u64 rows in all | rows | names

Rows of a folder lie together in byte order of their names. In the row of a folder, *offset* and *size* are the number
of its first row and how many it has.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_exactly
from shardfs.errors import Unsupported
from shardfs.names import from_bytes, split_extension, to_bytes
from shardfs.sources._zip_records import dos_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.sources._zip_records import Member

# Part of the key under which a table is remembered: to be counted up when it comes out otherwise than before.
VERSION = 1

FILE, LINK, FOLDER = 0, 1, 2
ENCRYPTED, END_MARK, DOS_TIME = 1, 2, 4

_HEAD = struct.Struct("<2Q")
# Name (offset and length), then what a Row holds.
_ROW = struct.Struct("<QIBBHIQQQq")
_NAME, _REST = struct.Struct("<QI"), struct.Struct("<BBHIQQQq")
# A guess: more of them than anybody has, few enough for the memory that sorting them takes.
_MAX_MEMBERS = 1 << 23
# Deeper folders are spelt in the name, since a path that long could not be opened.
_MAX_DEPTH = 128
_BATCH = 4096
_SPECIAL = (b"", b".", b"..")


class Row(NamedTuple):
    """A file or folder; *time* is in seconds since 1970, or as MS-DOS writes it where the flags say so."""

    name: bytes
    type: int
    flags: int
    method: int
    crc: int
    stored: int
    size: int
    offset: int
    time: int


class Table:
    """Looks up paths in such a byte string."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        count, rows = _HEAD.unpack(read_exactly(blob, 0, _HEAD.size, "table"))
        self._names = _HEAD.size + rows * _ROW.size
        self._root = Row(b"", FOLDER, 0, 0, 0, 0, count, 0, 0)

    def find(self, parts: Sequence[bytes]) -> Row | None:
        """What stands at a path."""
        row: Row | None = self._root
        for part in parts:
            if row is None or row.type != FOLDER:
                return None
            row = self._child(row, part)
        return row

    def children(self, folder: Row) -> Iterator[Row]:
        """What stands in a folder, in byte order of the names."""
        for first in range(folder.offset, folder.offset + folder.size, _BATCH):
            rows = self._read(first, min(_BATCH, folder.offset + folder.size - first))
            # Names lie in the order of their rows, so that they can be read at once, too.
            begin, end = rows[0][0], rows[-1][0] + rows[-1][1]
            names = read_exactly(self._blob, self._names + begin, end - begin, "table")
            for offset, length, *rest in rows:
                start = offset - begin
                yield Row(bytes(names[start : start + length]), *rest)

    def _child(self, folder: Row, name: bytes) -> Row | None:
        low, high = folder.offset, folder.offset + folder.size
        while low < high:
            middle = (low + high) // 2
            ((offset, length, *rest),) = self._read(middle, 1)
            found = bytes(read_exactly(self._blob, self._names + offset, length, "table"))
            if found == name:
                return Row(found, *rest)
            low, high = (middle + 1, high) if found < name else (low, middle)
        return None

    def _read(self, first: int, count: int) -> list[tuple[int, ...]]:
        start = _HEAD.size + first * _ROW.size
        return list(_ROW.iter_unpack(read_exactly(self._blob, start, count * _ROW.size, "table")))


class TableBuilder:
    """Makes such a byte string of members in their order. Memory goes to names and numbers, not to objects."""

    def __init__(self) -> None:
        # Nodes: by the folder that they stand in, their name, and what else their row holds.
        self._parents, self._rests = array("I"), bytearray()
        self._names: list[bytes] = []
        # Folders by the one above and their name; the root is number 0.
        self._folders: dict[tuple[int, bytes], int] = {}
        self._times = array("q", [0])
        self._last = b"", 0

    def add(self, member: Member) -> None:
        """Take a member in. Raises Unsupported where there are too many."""
        above, _, last = member.name.rpartition(b"/")
        if last not in _SPECIAL and above == self._last[0]:  # as most are
            self._add_file(self._last[1], last.replace(b"\0", b"%00"), member)
        elif last or not member.name:
            *folders, name = _parts(member.name) or [b"%"]
            folder = self._folder(folders)
            self._add_file(folder, name, member)
            if last not in _SPECIAL:
                self._last = above, folder
        elif folders := _parts(member.name):
            moment = dos_time(member.clock) if member.mtime is None else member.mtime
            self._times[self._folder(folders)] = moment

    def _add_file(self, folder: int, name: bytes, member: Member) -> None:
        if len(self._names) == _MAX_MEMBERS:
            raise Unsupported(f"a zip of more than {_MAX_MEMBERS} members")
        self._parents.append(folder)
        self._names.append(name)
        flags = ENCRYPTED * member.is_encrypted | END_MARK * member.has_end_mark
        moment = member.mtime
        if moment is None:
            flags, moment = flags | DOS_TIME, member.clock
        kind = LINK if member.is_link else FILE
        numbers = (member.method, member.crc, member.stored, member.size, member.offset)
        self._rests += _REST.pack(kind, flags, *numbers, moment)

    def _folder(self, parts: Sequence[bytes]) -> int:
        number = 0
        for part in parts:
            number = self._folders.setdefault((number, part), len(self._times))
            if number == len(self._times):
                self._times.append(0)
        return number

    def finish(self) -> bytes:
        """The table of all that was taken in."""
        files = len(self._names)
        for above, name in self._folders:  # in the order of their numbers
            self._parents.append(above)
            self._names.append(name)
        order = self._order()
        if self._rename(order, files):
            order = self._order()
        first, count = array("Q", [0]) * len(self._times), array("Q", [0]) * len(self._times)
        for position in range(len(order) - 1, -1, -1):
            folder = self._parents[order[position]]
            first[folder], count[folder] = position, count[folder] + 1
        rows, at = bytearray(_HEAD.pack(count[0], len(order))), 0
        for node in order:
            name = self._names[node]
            rows += _NAME.pack(at, len(name))
            if node < files:
                rows += self._rests[node * _REST.size : (node + 1) * _REST.size]
            else:
                folder = node - files + 1
                numbers = (0, count[folder], first[folder], self._times[folder])
                rows += _REST.pack(FOLDER, 0, 0, 0, *numbers)
            at += len(name)
        return b"".join([rows, *(self._names[node] for node in order)])

    def _order(self) -> list[int]:
        """Nodes by folder and name, and those of one name in their own order, a folder last."""
        parents, names = self._parents, self._names
        return sorted(range(len(names)), key=lambda node: (parents[node], names[node]))

    def _rename(self, order: Sequence[int], files: int) -> bool:
        """Give the second file of a name, or any where a folder has it, another one; whether there was any."""
        clashes = []
        for _, run in groupby(order, key=lambda node: (self._parents[node], self._names[node])):
            nodes = list(run)
            if len(nodes) > 1:
                clashes += nodes[:-1] if nodes[-1] >= files else nodes[1:]
        folders = {self._parents[node] for node in clashes}
        taken = {(p, n) for p, n in zip(self._parents, self._names, strict=True) if p in folders}
        numbers: Counter[tuple[int, bytes]] = Counter()
        for node in sorted(clashes):
            folder, name = self._parents[node], self._names[node]
            stem, extension = (to_bytes(part) for part in split_extension(from_bytes(name)))
            new = name
            while (folder, new) in taken:
                numbers[folder, name] += 1
                new = b"%b~%d%b" % (stem, numbers[folder, name], extension)
            taken.add((folder, new))
            self._names[node] = new
        return bool(clashes)


def _parts(name: bytes) -> list[bytes]:
    """The parts of a path that stays inside: `..` and NUL are spelt, empty parts and `.` dropped."""
    parts = [part.replace(b"\0", b"%00") for part in name.split(b"/") if part not in (b"", b".")]
    parts = [b"%2E%2E" if part == b".." else part for part in parts]
    if len(parts) > _MAX_DEPTH:
        parts[_MAX_DEPTH - 1 :] = [b"%2F".join(parts[_MAX_DEPTH - 1 :])]
    return parts
