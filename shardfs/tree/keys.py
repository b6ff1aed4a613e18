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

from shardfs.blob import no_wait
from shardfs.errors import WouldBlock
from shardfs.model import number_width
from shardfs.names import NAME_MAX, escape, shorten, to_bytes, unescape
from shardfs.tree.inodes import FOLDER, INNER, SHARD_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.model import Shard


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


class NestedKeys:
    """Keys with folders in them, as WebDataset has. Takes eight bytes a record, and some more a folder.

    Keys are taken in as far as somebody lists or looks for a folder, so that a shard whose keys are still being
    found shows what there is. A key may be the path of a folder, too. Where records are folders the two are *merged*:
    whichever came first is listed, and both show the record's files and what stands in the folder.
    """

    def __init__(self, shard: Shard, *, merged: bool) -> None:
        self._shard, self._merged = shard, merged
        self._paths = [""]
        self._numbers = {"": 0}
        # What stands in each folder, in order of first appearance: records, and folders as -number.
        self._children = [array("q")]
        # Those of them that came after one of the same name.
        self._second: set[int] = set()
        # Loose files by the path of their folder.
        self._loose: dict[str, int] = {}
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
            path = self._shard.key(child) if child >= 0 else self._paths[-child]
            place = child if child >= 0 else INNER - child
            yield Item(position, file_name(path.rpartition("/")[2]), place)

    def find(self, folder: int, name: str, /) -> int | None:
        paths = self._spelled(folder, name)
        place = self._known(paths)
        while place is None and (taken := self._take_one()) is not None:
            if any(path == taken or path in self._numbers for path in paths):
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
            while path not in self._numbers and self._take_one() is not None:
                pass
            if path in self._numbers:
                return INNER + self._numbers[path]
        place = self._find_short(folder, name)
        return place if place is not None and place >= INNER else None

    def own_records(self, folder: int, /) -> Sequence[int]:
        self._take_all()
        path = self._path(folder)
        own = [self._shard.find(path) if self._merged else None, self._loose.get(path)]
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
        return self._numbers.get(self._shard.key(folder))

    def _path(self, folder: int) -> str:
        if folder == SHARD_ROOT:
            return ""
        return self._paths[folder - INNER] if folder >= INNER else self._shard.key(folder)

    def _spelled(self, folder: int, name: str) -> list[str]:
        """The paths that *name* in a folder may stand for."""
        above = "" if folder == SHARD_ROOT else self._path(folder) + "/"
        return [above + part for part in spellings(name) if part and "/" not in part]

    def _known(self, paths: Sequence[str]) -> int | None:
        """The record or folder of one of these paths, as far as keys were taken in or found."""
        for path in paths:
            number = self._numbers.get(path)
            if number and not (self._merged and -number in self._second):
                return INNER + number
        return next((r for path in paths if (r := self._known_record(path)) is not None), None)

    def _known_record(self, key: str) -> int | None:
        with contextlib.suppress(WouldBlock), no_wait():
            return self._shard.find(key)
        return None

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
        with self._lock:
            record, shard = self._taken, self._shard
            if shard.has(record):
                key = shard.key(record)
                self._place(record, key)
            elif record < len(shard) + shard.loose:
                key = shard.key(record)
                self._made(key)
                self._loose[key] = record
            else:
                return None
            self._taken += 1
            return key

    def _place(self, record: int, key: str) -> None:
        parent = self._made(key.rpartition("/")[0])
        if key in self._numbers:
            self._second.add(record)
        self._children[parent].append(record)

    def _made(self, path: str) -> int:
        """The number of the folder *path*, made with those above it where it is new."""
        number = self._numbers.get(path)
        if number is None:
            parent, number = self._made(path.rpartition("/")[0]), len(self._paths)
            twin = self._known_record(path)
            if twin is not None and twin < self._taken:
                self._second.add(-number)
            self._paths.append(path)
            self._children.append(array("q"))
            self._children[parent].append(-number)
            self._numbers[path] = number  # last: others look for it without the lock
        return number
