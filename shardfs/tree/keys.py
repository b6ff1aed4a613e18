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
from shardfs.names import escape, shorten, to_bytes
from shardfs.tree.inodes import FOLDER, INNER, SHARD_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.model import Shard


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

    def find(self, folder: int, name: str, /) -> int | None: ...

    def own_record(self, folder: int, /) -> int | None:
        """The record whose files stand directly in *folder*: itself, if it is one."""
        ...

    def path(self, record: int, /) -> str:
        """Where a record stands in the shard's folder."""
        ...


def file_name(part: str) -> str:
    """The file name for a part of a key."""
    return shorten(escape(part))


def _part(name: str) -> str:
    """The part of a key that *name* stands for, unless it was shortened."""
    return {"%2E": ".", "%2E%2E": ".."}.get(name, name)


def _is_short(name: str) -> bool:
    """Whether *name* may be a shortened one, which can't be turned back: rare enough for a look at all of them."""
    return re.search(r"~[0-9a-f]{8}$", name) is not None and len(to_bytes(name)) > 200


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
        if folder != SHARD_ROOT:
            return None
        record = self._shard.find(_part(name))
        if record is None and _is_short(name):
            record = next((i.record for i in self.children(folder, 0) if i.name == name), None)
        return record

    def own_record(self, folder: int, /) -> int | None:
        if folder == SHARD_ROOT:
            return len(self._shard) if self._shard.loose else None
        return folder if folder < INNER else None

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
        first = name.partition("-")[0]
        if folder == SHARD_ROOT and first.isascii() and first.isdigit():
            group = int(first) // self._fanout
            if group * self._fanout < len(self._shard) and self._group(group) == name:
                return INNER + group
        record = super().find(SHARD_ROOT, name)
        inside = record is not None and record // self._fanout == folder - INNER
        return record if folder == SHARD_ROOT or inside else None

    def path(self, record: int, /) -> str:
        return f"{self._group(record // self._fanout)}/{super().path(record)}"

    def _group(self, group: int) -> str:
        count = len(self._shard)
        first, width = group * self._fanout, number_width(count)
        return f"{first:0{width}d}-{min(first + self._fanout, count) - 1:0{width}d}"


class NestedKeys:
    """Keys with folders in them, as WebDataset has. Takes eight bytes a record, and some more a folder.

    Keys are taken in as far as somebody lists or looks for a folder, so that a shard whose keys are still being
    found shows what there is. A key may be a folder of other keys, too: whichever came first gives the place, and
    the files of the one stand beside the children of the other.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._paths = [""]
        self._numbers = {"": 0}
        # What stands in each folder, in order of first appearance: records, and folders as -number.
        self._children = [array("q")]
        # Folders below a record that came before them, and records that came after the folder of their name.
        self._below: dict[int, int] = {}
        self._own: dict[int, int] = {}
        self._taken = 0
        self._lock = threading.Lock()

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        if SHARD_ROOT < folder < INNER:
            self._take_all()  # only then is it known whether there is a folder of its name
        number, position = self._number(folder), start
        while number is not None and (
            position < len(self._children[number]) or self._take(position, number)
        ):
            child = self._children[number][position]
            if child < 0:
                place, path = INNER - child, self._paths[-child]
            else:
                place, path = child, self._shard.key(child)
            position += 1
            yield Item(position, file_name(path.rpartition("/")[2]), place)

    def find(self, folder: int, name: str, /) -> int | None:
        path = self._path_below(folder) + _part(name)
        inner = self._numbers.get(path)
        if inner:
            return INNER + inner
        record = self._shard.find(path)
        if record is not None:
            return record
        while path not in self._numbers and self._take_one():
            pass
        if path in self._numbers:
            return INNER + self._numbers[path]
        if _is_short(name):
            return next((i.record for i in self.children(folder, 0) if i.name == name), None)
        return None

    def own_record(self, folder: int, /) -> int | None:
        if SHARD_ROOT < folder < INNER:
            return folder
        self._take_all()
        return self._own.get(folder - INNER if folder >= INNER else 0)

    def path(self, record: int, /) -> str:
        return "/".join(file_name(part) for part in self._shard.key(record).split("/"))

    def _number(self, folder: int) -> int | None:
        """The number of a folder, None for a record that is none."""
        if folder == SHARD_ROOT:
            return 0
        return folder - INNER if folder >= INNER else self._below.get(folder)

    def _path_below(self, folder: int) -> str:
        """What comes before the names in a folder."""
        if folder == SHARD_ROOT:
            return ""
        return (self._paths[folder - INNER] if folder >= INNER else self._shard.key(folder)) + "/"

    def _take(self, position: int, number: int) -> bool:
        """Take keys in until the folder has a child at *position*; whether it has."""
        while position >= len(self._children[number]):
            if not self._take_one():
                return False
        return True

    def _take_all(self) -> None:
        while self._take_one():
            pass

    def _take_one(self) -> bool:
        """Take the next key in; False where there is none."""
        with self._lock:
            record = self._taken
            if self._shard.has(record):
                self._place(record, self._shard.key(record))
            elif record < len(self._shard) + self._shard.loose:
                self._own[self._made(self._shard.key(record))] = record
            else:
                return False
            self._taken += 1
            return True

    def _place(self, record: int, key: str) -> None:
        if key in self._numbers:
            self._own[self._numbers[key]] = record
        else:
            self._children[self._made(key.rpartition("/")[0])].append(record)

    def _known_record(self, key: str) -> int | None:
        """The record with that key, as far as it was found."""
        with contextlib.suppress(WouldBlock), no_wait():
            return self._shard.find(key)
        return None

    def _made(self, path: str) -> int:
        """The number of the folder *path*, made with those above it where it is new."""
        number = self._numbers.get(path)
        if number is None:
            parent = self._made(path.rpartition("/")[0])
            number = self._numbers[path] = len(self._paths)
            self._paths.append(path)
            self._children.append(array("q"))
            twin = self._known_record(path)
            if twin is not None and twin < self._taken:
                self._below[twin] = number
            else:
                self._children[parent].append(-number)
        return number
