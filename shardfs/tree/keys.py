"""The folders above the records of a shard: none, groups of so many, or those in the keys themselves.

Numbers are those of ``inodes``: a folder is SHARD_ROOT or INNER + n. What stands in it is found by name or listed
from a cookie on, and nothing is kept per record but what nested keys demand.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, NamedTuple, Protocol

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
        """The record whose files stand directly in *folder*."""
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
            key = self._shard.key
            for record in range(start, len(self._shard)):
                yield Item(record + 1, file_name(key(record)), record)

    def find(self, folder: int, name: str, /) -> int | None:
        if folder != SHARD_ROOT:
            return None
        record = self._shard.find(_part(name))
        if record is None and _is_short(name):
            record = next((i.record for i in self.children(folder, 0) if i.name == name), None)
        return record

    def own_record(self, folder: int, /) -> int | None:
        return len(self._shard) if folder == SHARD_ROOT and self._shard.loose else None

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
    """Keys with folders in them, as WebDataset has. Takes eight bytes a record, and some more a folder."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._paths = [""]
        self._numbers = {"": 0}
        # What stands in each folder, in order of first appearance: records, and folders as -number.
        self._children = [array("q")]
        # Records whose files stand directly in a folder: those whose key is also a folder of other keys.
        self._own: dict[int, int] = {}
        for record in range(len(shard)):
            self._children[self._number(shard.key(record).rpartition("/")[0])].append(record)
        for number, path in enumerate(self._paths):
            twin = shard.find(path) if number else None
            if twin is not None:
                self._own[number] = twin
                self._children[self._numbers[path.rpartition("/")[0]]].remove(twin)
        for record in range(len(shard), len(shard) + shard.loose):
            self._own[self._number(shard.key(record))] = record

    def _number(self, path: str) -> int:
        """The number of the folder *path*, made with those above it where it is new."""
        number = self._numbers.get(path)
        if number is None:
            parent = self._number(path.rpartition("/")[0])
            number = self._numbers[path] = len(self._paths)
            self._paths.append(path)
            self._children.append(array("q"))
            self._children[parent].append(-number)
        return number

    def children(self, folder: int, start: int, /) -> Iterator[Item]:
        children = self._children[_number(folder)]
        for position in range(start, len(children)):
            child = children[position]
            if child < 0:
                place, path = INNER - child, self._paths[-child]
            else:
                place, path = child, self._shard.key(child)
            yield Item(position + 1, file_name(path.rpartition("/")[2]), place)

    def find(self, folder: int, name: str, /) -> int | None:
        number = _number(folder)
        path = f"{self._paths[number]}/{_part(name)}" if number else _part(name)
        inner = self._numbers.get(path)
        if inner:
            return INNER + inner
        record = self._shard.find(path)
        if record is None and _is_short(name):
            record = next((i.record for i in self.children(folder, 0) if i.name == name), None)
        return record

    def own_record(self, folder: int, /) -> int | None:
        return self._own.get(_number(folder))

    def path(self, record: int, /) -> str:
        return "/".join(file_name(part) for part in self._shard.key(record).split("/"))


def _number(folder: int) -> int:
    return 0 if folder == SHARD_ROOT else folder - INNER
