"""Inode numbers by arithmetic: a number says which node it is, so nothing is kept per node.

Three spaces share the 63 bits that are safe in every program:

    folders and their files   0 | ...... folder number + 1 ......   (root = 1; below 2**42)
    inside shards             0 | shard number + 1: 20 | place in the shard, mixed with the shard's number: 42
    everything else           1 | kind: 2 | number: 60; of a file: folder: 28 | position, mixed with the folder: 32

A place is ``record + 1 | field + 1``, a zero standing for the folder above. How the 42 bits are shared out depends
on how many records the shard has (``Places``). Records from ``INNER`` up are folders inside a shard: the groups of
``--fanout``, the columns of ``--layout field``, the folders in WebDataset keys.

The kernel's table of inodes hashes the low bits well, those above the 42nd hardly at all (fs/inode.c, ``hash``):
without the mixing, what has one place in each of 100,000 shards would be one long chain.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NewType

Ino = NewType("Ino", int)

ROOT = Ino(1)
MAX_SHARDS = (1 << 20) - 1
INNER = 1 << 41
"""The first record number that is a folder inside a shard, not a record."""
SHARD_ROOT = -1
"""The record number that stands for the shard's own folder."""
FOLDER = -1
"""The field number that stands for the record's own folder."""
CONTROL = -2
"""The field number of a record's `.shardfs.json`."""
DAMAGED = -3
"""The field number of the file that stands for an unreadable record in layouts without record folders."""

_PLACE_BITS = 42
_SPECIAL = 1 << 62
_KIND_SHIFT = 60
_FIRST_SHARD = 1 << _PLACE_BITS
_POSITION_BITS = 32
# 2**64 divided by the golden ratio. It is odd, so that neighbours differ in their low bits, and spreads them over all.
_MIX = 0x9E3779B97F4A7C15


class Special(IntEnum):
    """Kinds of nodes outside of folders and shards."""

    FILE = 0  # a file that passes through
    LINK = 1  # .shardfs/by-index/N
    CONTROL = 2  # .shardfs and what is in it
    ROOM = 3  # .shardfs in a shard's folder, and what is in it


class Places:
    """How the places in a shard of *records* records are numbered: few records leave room for many fields."""

    __slots__ = ("_field_bits", "max_fields")

    def __init__(self, records: int) -> None:
        self._field_bits = _PLACE_BITS - 1 - (records + 1).bit_length()
        self.max_fields = (1 << self._field_bits) - 4

    def pack(self, record: int, field: int) -> int:
        if record >= INNER:
            return record
        if field <= CONTROL:  # from the top of the field numbers down
            field += 1 << self._field_bits
        return (record + 1) << self._field_bits | (field + 1)

    def unpack(self, place: int) -> tuple[int, int]:
        """(record, field)."""
        if place >= INNER:
            return place, FOLDER
        record, field = place >> self._field_bits, (place & ((1 << self._field_bits) - 1)) - 1
        return record - 1, field if field < self.max_fields else field - (1 << self._field_bits)


def folder_ino(folder: int) -> Ino:
    return Ino(folder + 1)


def shard_ino(shard: int, place: int = 0) -> Ino:
    """The number of a shard's folder, or of a place in it."""
    return Ino((shard + 1) << _PLACE_BITS | _mixed(place, shard, _PLACE_BITS))


def file_ino(folder: int, position: int) -> Ino:
    """The number of a file that passes through: the *position*-th in the folder of that number."""
    return special_ino(
        Special.FILE, folder << _POSITION_BITS | _mixed(position, folder, _POSITION_BITS)
    )


def special_ino(kind: Special, number: int) -> Ino:
    return Ino(_SPECIAL | kind << _KIND_SHIFT | number)


def is_special(ino: Ino) -> bool:
    return ino >= _SPECIAL


def is_folder(ino: Ino) -> bool:
    return ino < _FIRST_SHARD


def split_special(ino: Ino) -> tuple[Special, int]:
    """(kind, number)."""
    return Special((ino >> _KIND_SHIFT) & 3), ino & ((1 << _KIND_SHIFT) - 1)


def is_shard(ino: Ino) -> bool:
    """Whether it is a shard's own folder."""
    return not is_special(ino) and not is_folder(ino) and not split_shard(ino)[1]


def split_folder(ino: Ino) -> int:
    return ino - 1


def split_shard(ino: Ino) -> tuple[int, int]:
    """(shard, place)."""
    shard = (ino >> _PLACE_BITS) - 1
    return shard, _mixed(ino & (_FIRST_SHARD - 1), shard, _PLACE_BITS)


def split_file(ino: Ino) -> tuple[int, int]:
    """(folder, position)."""
    _, number = split_special(ino)
    folder = number >> _POSITION_BITS
    return folder, _mixed(number & ((1 << _POSITION_BITS) - 1), folder, _POSITION_BITS)


def _mixed(number: int, other: int, bits: int) -> int:
    """The lowest *bits* of *number* mixed with *other*; the same again unmixes them."""
    return number ^ (other * _MIX & ((1 << bits) - 1))
