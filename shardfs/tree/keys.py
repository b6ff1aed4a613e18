"""The folders above the records of a shard: none, groups of so many, or those in the keys themselves.

Numbers are those of ``inodes``: a folder is SHARD_ROOT or INNER + n. What stands in it is found by name or listed
from a cookie on, and nothing is kept per record but what nested keys demand.
"""

from __future__ import annotations

import contextlib
import re
import threading
from array import array
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.blob import may_wait, no_wait
from shardfs.errors import WouldBlock
from shardfs.model import number_width
from shardfs.names import NAME_MAX, escape, shorten, to_bytes, unescape
from shardfs.tree.inodes import FOLDER, INNER, SHARD_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.model import Shard


# Keys or records that are looked at in one go where nobody may wait; a guess that comes to a few milliseconds.
AT_ONCE = 1024
# Shortened names are nearly as long as names may be; an extension that was put behind one makes little of that.
_SHORT = 200


class Item(NamedTuple):
    """What stands in a folder: where a listing goes on behind it, its name, and its place."""

    cookie: int
    name: str
    record: int
    field: int = FOLDER


class Keys(Protocol):
    """The folders above the records."""

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        """Records and folders directly in *folder*, from the cookie *start* on."""
        ...

    def find(self, folder: int, name: str, /) -> int | None:
        """The record or folder *name* in *folder*."""
        ...

    def record(self, folder: int, name: str, /) -> int | None:
        """The record *name* in *folder*."""
        ...

    def inner(self, folder: int, name: str, /) -> int | None:
        """The folder *name* in *folder*."""
        ...

    def own_records(self, folder: int, /) -> Sequence[int]:
        """The records whose files stand directly in *folder*: itself, if it is one, and loose files."""
        ...

    def path(self, record: int, /) -> str:
        """Where a record stands in the shard's folder."""
        ...


def file_name(part: str) -> str:
    """The file name for a part of a key."""
    return shorten(escape(part))


def spellings(name: str) -> list[str]:
    """What a key may be that became the file name *name*, unless it was shortened."""
    return list(dict.fromkeys((unescape(name), name)))


def is_short(name: str) -> bool:
    """Whether *name* may be a shortened one, which can't be turned back: rare enough for a look at all of them."""
    return len(to_bytes(name)) > _SHORT and re.search(r"~[0-9a-f]{8}(~|\.|$)", name) is not None


class PlainKeys:
    """Records directly in the shard's folder."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        if folder == SHARD_ROOT:
            shard, record = self._shard, start
            while shard.has(record):
                yield Item(record + 1, file_name(shard.key(record)), record)
                record += 1

    def find(self, folder: int, name: str, /) -> int | None:
        return self.record(folder, name)

    def record(self, folder: int, name: str, /) -> int | None:
        if folder != SHARD_ROOT:
            return None
        for key in spellings(name):
            record = self._shard.find(key)
            if record is not None:
                return record
        if is_short(name):
            return next(
                (i.record for i in PlainKeys.children(self, folder, 0) if i.name == name), None
            )
        return None

    def inner(self, folder: int, name: str, /) -> int | None:
        return None

    def own_records(self, folder: int, /) -> Sequence[int]:
        if folder == SHARD_ROOT and self._shard.loose:
            return range(len(self._shard), len(self._shard) + self._shard.loose)
        return [folder] if SHARD_ROOT < folder < INNER else []

    def path(self, record: int, /) -> str:
        return file_name(self._shard.key(record))


class GroupedKeys(PlainKeys):
    """Records in groups of so many, for programs that choke on huge folders.

    A record is found without its group, too.
    """

    def __init__(self, shard: Shard, fanout: int) -> None:
        super().__init__(shard)
        self._fanout = fanout

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        count = len(self._shard)
        if folder == SHARD_ROOT:
            for group in range(start, -(-count // self._fanout)):
                yield Item(group + 1, self._group(group), INNER + group)
        elif folder >= INNER:
            first = (folder - INNER) * self._fanout
            for record in range(first + start, min(first + self._fanout, count)):
                yield Item(record - first + 1, file_name(self._shard.key(record)), record)

    def find(self, folder: int, name: str, /) -> int | None:
        group = self.inner(folder, name)
        return self.record(folder, name) if group is None else group

    def record(self, folder: int, name: str, /) -> int | None:
        record = super().record(SHARD_ROOT, name)
        inside = record is not None and record // self._fanout == folder - INNER
        return record if folder == SHARD_ROOT or inside else None

    def inner(self, folder: int, name: str, /) -> int | None:
        first = name.partition("-")[0]
        if folder == SHARD_ROOT and first.isascii() and first.isdigit() and len(name) <= NAME_MAX:
            group = int(first) // self._fanout
            if group * self._fanout < len(self._shard) and self._group(group) == name:
                return INNER + group
        return None

    def path(self, record: int, /) -> str:
        return f"{self._group(record // self._fanout)}/{super().path(record)}"

    def _group(self, group: int) -> str:
        count = len(self._shard)
        first, width = group * self._fanout, number_width(count)
        return f"{first:0{width}d}-{min(first + self._fanout, count) - 1:0{width}d}"


class Folders:
    """Folders by path, numbered in the order in which they are made; 0 is the top.

    Each knows its name and the folder above, so that deep ones take no more memory than others.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._names, self._above = [""], array("q", [0])

    def __len__(self) -> int:
        return len(self._names)

    def find(self, path: str) -> int | None:
        number: int | None = 0
        for name in path.split("/") if path else ():
            number = self._numbers.get((number or 0, name))
            if number is None:
                break
        return number

    def name(self, number: int) -> str:
        return self._names[number]

    def path(self, number: int) -> str:
        names = []
        while number:
            names.append(self._names[number])
            number = self._above[number]
        return "/".join(reversed(names))

    def add(self, above: int, name: str) -> int:
        number = len(self._names)
        self._names.append(name)
        self._above.append(above)
        self._numbers[above, name] = number  # last: others look for it without a lock
        return number


class NestedKeys:
    """Keys with folders in them, as WebDataset has. Takes eight bytes a record, and some more a folder.

    Keys are taken in as far as somebody lists or looks for a folder, so that a shard whose keys are still being
    found shows what there is. A key may be the path of a folder, too. Where records are folders the two are *merged*:
    whichever came first is listed, and both show the record's files and what stands in the folder.
    """

    def __init__(self, shard: Shard, *, merged: bool) -> None:
        self._shard, self._merged = shard, merged
        self._folders = Folders()
        # What stands in each folder, in order of first appearance: records, and folders as -number.
        self._children = [array("q")]
        # Those of them that came after one of the same name.
        self._second: set[int] = set()
        # Loose files by the number of their folder.
        self._loose: dict[int, int] = {}
        self._taken = 0
        self._lock = threading.Lock()

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        number, position = self._number(folder), start
        while number is not None and (
            position < len(self._children[number]) or self._take(position, number)
        ):
            child = self._children[number][position]
            position += 1
            if self._merged and child in self._second:
                continue
            if child < 0:
                yield Item(position, file_name(self._folders.name(-child)), INNER - child)
            else:
                name = self._shard.key(child).rpartition("/")[2]
                yield Item(position, file_name(name), child)

    def find(self, folder: int, name: str, /) -> int | None:
        paths = self._spelled(folder, name)
        place = self._known(paths)
        while place is None and (taken := self._take_one()) is not None:
            if any(taken == path or taken.startswith(f"{path}/") for path in paths):
                place = self._known(paths)
        if place is None:
            place = self._known(paths)  # another thread may have taken it in
        return self._find_short(folder, name) if place is None else place

    def record(self, folder: int, name: str, /) -> int | None:
        for path in self._spelled(folder, name):
            record = self._shard.find(path)
            if record is not None:
                return record
        place = self._find_short(folder, name)
        return place if place is not None and place < INNER else None

    def inner(self, folder: int, name: str, /) -> int | None:
        for path in self._spelled(folder, name):
            number = self._folders.find(path)
            while number is None and self._take_one() is not None:
                number = self._folders.find(path)
            if number is not None:
                return INNER + number
        place = self._find_short(folder, name)
        return place if place is not None and place >= INNER else None

    def own_records(self, folder: int, /) -> Sequence[int]:
        self._take_all()
        path, number = self._path(folder), self._number(folder)
        own = [self._shard.find(path) if self._merged else None]
        if number is not None:
            own.append(self._loose.get(number))
        return [record for record in own if record is not None]

    def path(self, record: int, /) -> str:
        return "/".join(file_name(part) for part in self._shard.key(record).split("/"))

    def _number(self, folder: int) -> int | None:
        """The number of a folder, None for a record that is none."""
        if folder == SHARD_ROOT:
            return 0
        if folder >= INNER:
            return folder - INNER
        self._take_all()  # only then is it known whether there is a folder of its name
        return self._folders.find(self._shard.key(folder))

    def _path(self, folder: int) -> str:
        if folder == SHARD_ROOT:
            return ""
        return self._folders.path(folder - INNER) if folder >= INNER else self._shard.key(folder)

    def _spelled(self, folder: int, name: str) -> list[str]:
        """The paths that *name* in a folder may stand for."""
        above = "" if folder == SHARD_ROOT else self._path(folder) + "/"
        return [above + part for part in spellings(name) if part and "/" not in part]

    def _known(self, paths: Sequence[str]) -> int | None:
        """The record or folder of one of these paths, as far as keys were taken in or found."""
        for path in paths:
            number = self._folders.find(path)
            if number and not (self._merged and -number in self._second):
                return INNER + number
        return next((r for path in paths if (r := self._known_record(path)) is not None), None)

    def _known_record(self, key: str) -> int | None:
        """The record with that key, as far as keys were found: this may wait for a disk, but for no scan."""
        with no_wait():
            try:
                len(self._shard)
            except WouldBlock:  # what was found by an unfinished scan is at hand
                with contextlib.suppress(WouldBlock):
                    return self._shard.find(key)
                return None
        return self._shard.find(key)

    def _find_short(self, folder: int, name: str) -> int | None:
        if not is_short(name):
            return None
        return next((i.record for i in self.children(folder, 0) if i.name == name), None)

    def _take(self, position: int, number: int) -> bool:
        """Take keys in until the folder has a child at *position*; whether it has."""
        while position >= len(self._children[number]):
            if self._take_one() is None:
                return False
        return True

    def _take_all(self) -> None:
        while self._take_one() is not None:
            pass

    def _take_one(self) -> str | None:
        """Take the next key in and return it; None where there is none."""
        if not may_wait() and self._taken % AT_ONCE == AT_ONCE - 1:
            raise WouldBlock
        if not self._lock.acquire(blocking=may_wait()):
            raise WouldBlock  # whoever holds it may be scanning
        try:
            record, shard = self._taken, self._shard
            if shard.has(record):
                key = shard.key(record)
                self._place(record, key)
            elif record < len(shard) + shard.loose:
                key = shard.key(record)
                self._loose[self._made(key)] = record
            else:
                return None
            self._taken += 1
            return key
        finally:
            self._lock.release()

    def _place(self, record: int, key: str) -> None:
        parent = self._made(key.rpartition("/")[0])
        if self._folders.find(key) is not None:
            self._second.add(record)
        self._children[parent].append(record)

    def _made(self, path: str) -> int:
        """The number of the folder *path*, made with those above it where it is new."""
        number = self._folders.find(path)
        if number is not None:
            return number
        number, end = 0, -1
        for name in path.split("/"):
            end += 1 + len(name)
            inner = self._folders.find(path[:end])
            number = self._make(number, name, path[:end]) if inner is None else inner
        return number

    def _make(self, above: int, name: str, path: str) -> int:
        twin, number = self._known_record(path), len(self._folders)
        if twin is not None and twin < self._taken:
            self._second.add(-number)
        self._children.append(array("q"))
        self._folders.add(above, name)
        self._children[above].append(-number)  # last: others list it without the lock
        return number
