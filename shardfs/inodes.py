"""Inode numbers by arithmetic: a number says which node it is, so nothing is kept per node.

Three spaces share the 63 bits that are safe in every program:

    folders and their files   0 | ...... folder number + 1 ......   (root = 1; below 2**42)
    inside shards             0 | shard + 1: 20 | record + 1: 32 | field + 1: 10
    everything else           1 | kind: 2 | number: 60

A zero in the record or field part stands for the directory above it. Record slots from 2**31 up are folders
inside a shard (groups of ``--fanout``, fields of ``--layout field``, folders in WebDataset keys).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NewType

Ino = NewType("Ino", int)

ROOT = Ino(1)
MAX_SHARDS = (1 << 20) - 1
INNER = 1 << 31
"""The first record slot that is a folder inside a shard, not a record."""
MAX_RECORDS = INNER - 1
MAX_FIELDS = (1 << 10) - 8
CONTROL_FIELD = (1 << 10) - 2
"""The field number of a record's `.shardfs.json`."""
DAMAGED_FIELD = (1 << 10) - 3
"""The field number of the file that stands for a record that cannot be read, where records have no folder."""

_SPECIAL = 1 << 62
_KIND_SHIFT = 60
_FIRST_SHARD = 1 << 42


class Special(IntEnum):
    """Kinds of nodes outside of folders and shards."""

    FILE = 0  # a file that passes through: folder number << 32 | position in the folder
    LINK = 1  # .shardfs/by-index/N
    CONTROL = 2  # .shardfs and what is in it


def folder_ino(folder: int) -> Ino:
    return Ino(folder + 1)


def shard_ino(shard: int, record: int = -1, field: int = -1) -> Ino:
    """The number of a shard, of one of its records or inner folders, or of a record's field."""
    return Ino((shard + 1) << 42 | (record + 1) << 10 | (field + 1))


def special_ino(kind: Special, number: int) -> Ino:
    return Ino(_SPECIAL | kind << _KIND_SHIFT | number)


def is_special(ino: Ino) -> bool:
    return ino >= _SPECIAL


def is_folder(ino: Ino) -> bool:
    return ino < _FIRST_SHARD


def split_special(ino: Ino) -> tuple[Special, int]:
    return Special((ino >> _KIND_SHIFT) & 3), ino & ((1 << _KIND_SHIFT) - 1)


def split_folder(ino: Ino) -> int:
    return ino - 1


def split_shard(ino: Ino) -> tuple[int, int, int]:
    """(shard, record, field), -1 where the number stands for the directory above."""
    return (ino >> 42) - 1, ((ino >> 10) & 0xFFFFFFFF) - 1, (ino & 0x3FF) - 1
