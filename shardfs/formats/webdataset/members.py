"""The members of a tar archive by record: a compact table, read from a blob as it is asked for.

Groups are the records, in the order in which their keys appear, and behind them the folders that hold members
without a key. In native byte order, since a table never leaves its machine:

    header | u32 (end of members, end of key) of each group, (0, 0) before them
    u32 (block, size, end of rest) of each member by group, (0, 0, 0) before them
    u32 slots of a hash table of records: number + 1, 0 for none | keys | rests | extras | faults, JSON

A *rest* is what the key leaves of a name: the field, or the file name. Ends of members, keys and rests are counted
from the beginning of their section. A size with its highest bit set is a place in the extras: what is sparse,
damaged, or too large or far for 32 bits.
"""

from __future__ import annotations

import json
import struct
from array import array
from hashlib import blake2s
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.blob import may_wait, read_exactly
from shardfs.errors import Corrupt, TooLarge, WouldBlock
from shardfs.formats.webdataset.header import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob

LAYOUT = "tar members 3"
"""The name of this layout: to be counted up when bytes or meaning of a table change."""

HEADER = struct.Struct("=8sIIII?16sQQQQ")
MAGIC = b"shardtar"
GROUP, ROW, EXTRA = struct.Struct("=II"), struct.Struct("=III"), struct.Struct("=BQQI")
SPECIAL = 1 << 31
# What an extra is: a member out of the reach of 32 bits; a sparse one with its parts; a broken one with the reason.
FAR, SPARSE, BROKEN = 0, 1, 2

# The most members of a record or folder: half a kilobyte each while they are looked at.
_MAX_TOGETHER = 1 << 20
# So many take longer to look at than others should wait.
_MANY = 1 << 12
_SLOTS_READ = 16
_COLUMNS_READ = 1 << 14


class Keys(Protocol):
    """Distinct keys as they are packed; see ``KeySet``."""

    text: bytearray
    ends: array[int]
    slots: array[int]

    def __len__(self) -> int: ...


class Stored(NamedTuple):
    """A member of a group.

    Attributes:
        rest: what the key leaves of its name.
        offset: where its data begins in the archive.
        size: bytes of the file.
        parts: of a sparse file, offset and length of each part.
        problem: why its bytes can't be read, "" where they can.
    """

    rest: bytes
    offset: int
    size: int
    parts: array[int] | None = None
    problem: str = ""


def key_hash(key: bytes, seed: bytes) -> int:
    """32 bits that nobody can foresee who does not know *seed*: archives must not choose where keys collide."""
    return int.from_bytes(blake2s(key, digest_size=4, key=seed).digest(), "little")


def pack_extra(kind: int, offset: int, size: int, payload: bytes = b"") -> bytes:
    return EXTRA.pack(kind, offset, size, len(payload)) + payload


def pack_table(
    *,
    records: Keys,
    folders: Keys,
    lasts: array[int],
    rows: array[int],
    rests: bytearray,
    extras: bytearray,
    faults: Sequence[tuple[str, int]],
    nested: bool,
    seed: bytes,
) -> bytes:
    """A table of members in order of their groups, *lasts* being the end of each group. Raises TooLarge."""
    shift, size = len(records.text), len(records.text) + len(folders.text)
    if size >= 1 << 32:
        raise TooLarge("has more than 4 GiB of names")
    said = json.dumps(faults).encode("ascii")
    content = BytesIO()  # which gives its bytes away without a copy
    count, slots = len(rows) // 3, len(records.slots)
    head = (MAGIC, len(records), len(folders), count, slots, nested, seed)
    content.write(HEADER.pack(*head, size, len(rests), len(extras), len(said)))
    groups = array("I", bytes(GROUP.size * (len(lasts) + 1)))
    groups[2::2] = lasts
    groups[3::2] = records.ends[1:] + array("I", [shift + end for end in folders.ends[1:]])
    content.write(groups)
    del groups  # a million records are 8 MB
    for numbers in (array("I", [0, 0, 0]), rows, records.slots):
        content.write(numbers)
    for text in (records.text, folders.text, rests, extras, said):
        content.write(text)
    return content.getvalue()


class MemberTable:
    """A finished table. Thread-safe; holds nothing but its header."""

    def __init__(self, blob: Blob) -> None:
        """Take *blob* for a table. Raises Corrupt where it is none."""
        head = HEADER.unpack(read_exactly(blob, 0, HEADER.size, "table of members"))
        magic, records, folders, members, slots, nested, seed, *lengths = head
        self.records = int(records)
        """How many records there are."""
        self.folders = int(folders)
        """How many folders hold members without a key."""
        self.nested = bool(nested)
        """Whether anything stands in a folder."""
        sizes = (
            GROUP.size * (self.records + self.folders + 1),
            ROW.size * (members + 1),
            4 * slots,
            *lengths,
        )
        places = [HEADER.size]
        for size in sizes:
            places.append(places[-1] + size)
        if magic != MAGIC or places[-1] != blob.size():
            raise Corrupt("is no table of members")
        self._blob, self._slot_count, self._seed = blob, int(slots), seed
        self._groups, self._rows, self._slots, self._keys, self._rests = places[:5]
        self._extras, self._faults, self._end = places[5:]

    def __len__(self) -> int:
        return self.records

    def key(self, group: int) -> bytes:
        """The key of a record, or the path of a folder."""
        (_, begin), (_, end) = self._bounds(group)
        return bytes(self._read(self._keys + begin, end - begin))

    def find(self, key: bytes) -> int | None:
        """The number of the record with that key."""
        mask = self._slot_count - 1
        slot = key_hash(key, self._seed) & mask
        for _ in range(0, self._slot_count, _SLOTS_READ):
            count = min(_SLOTS_READ, self._slot_count - slot)
            for number in self._read(self._slots + 4 * slot, 4 * count).cast("I"):
                if not number:
                    return None
                if self.key(number - 1) == key:
                    return int(number) - 1
            slot = (slot + count) & mask
        return None

    def members(self, group: int) -> list[Stored]:
        """The members of a group in the order of the archive. Raises TooLarge."""
        (first, _), (last, _) = self._bounds(group)
        if last - first > _MAX_TOGETHER:
            raise TooLarge(f"{last - first} members are more than can be shown together")
        if last - first > _MANY and not may_wait():
            raise WouldBlock
        rows = self._read(self._rows + ROW.size * first, ROW.size * (last - first + 1)).cast("I")
        begin = rows[2]
        rests = bytes(self._read(self._rests + begin, rows[-1] - begin))
        found, start = [], 0
        for at in range(3, len(rows), 3):
            block, size, end = rows[at : at + 3]
            rest, start = rests[start : end - begin], end - begin
            if size < SPECIAL:
                found.append(Stored(rest, block * BLOCK, size))
            else:
                found.append(self._special(rest, size - SPECIAL))
        return found

    def rests(self) -> Iterator[bytes]:
        """What the keys leave of the names of all members of records, by record."""
        last, _ = GROUP.unpack(self._read(self._groups + GROUP.size * self.records, GROUP.size))
        for first in range(0, last, _COLUMNS_READ):
            count = min(_COLUMNS_READ, last - first)
            place = self._rows + ROW.size * first
            ends = self._read(place, ROW.size * (count + 1)).cast("I")[2::3].tolist()
            text = bytes(self._read(self._rests + ends[0], ends[-1] - ends[0]))
            for begin, end in pairwise(ends):
                yield text[begin - ends[0] : end - ends[0]]

    def faults(self) -> list[tuple[str, int]]:
        """What was found to be wrong with the archive, and the offsets."""
        text = bytes(self._read(self._faults, self._end - self._faults))
        return [(str(message), int(offset)) for message, offset in json.loads(text)]

    def _bounds(self, group: int) -> Iterator[tuple[int, int]]:
        """(member, place in the keys) at which a group begins, and the same for its end."""
        if not 0 <= group < self.records + self.folders:
            raise IndexError(group)
        return GROUP.iter_unpack(self._read(self._groups + GROUP.size * group, 2 * GROUP.size))

    def _special(self, rest: bytes, place: int) -> Stored:
        kind, offset, size, length = EXTRA.unpack(self._read(self._extras + place, EXTRA.size))
        payload = self._read(self._extras + place + EXTRA.size, length)
        if kind == SPARSE:
            return Stored(rest, offset, size, array("Q", bytes(payload)))
        if kind == BROKEN:
            return Stored(rest, offset, size, None, bytes(payload).decode("utf-8", "replace"))
        return Stored(rest, offset, size)

    def _read(self, offset: int, length: int) -> memoryview:
        return read_exactly(self._blob, offset, length, "table of members")
