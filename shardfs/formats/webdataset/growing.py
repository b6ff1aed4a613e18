"""The table of a tar archive's members while the archive is scanned.

Some 16 bytes a member and 16 a key beside the names, in arrays, since a million members are nothing special. One
thread adds; others may look at the same time.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from shardfs.errors import TooLarge
from shardfs.formats.webdataset.header import BLOCK
from shardfs.formats.webdataset.keys import link_target, normal, place
from shardfs.formats.webdataset.members import (
    BROKEN,
    FAR,
    SPARSE,
    SPECIAL,
    Stored,
    key_hash,
    pack_extra,
    pack_table,
)

if TYPE_CHECKING:
    from shardfs.formats.webdataset.keys import Place
    from shardfs.formats.webdataset.scan import Member

_U32 = 1 << 32
# Guesses at what is out of all proportion: bytes for the parts of sparse files, links that lead to members behind
# them, members that are looked at to find what links lead to, links that lead to links.
_MAX_PARTS = 64 << 20
_MAX_PENDING = 1 << 18
_MAX_STEPS = 1 << 22
_MAX_CHAIN = 8
_MAX_FAULTS = 1000
# Members of a record that are looked through for one before all are known.
_MAX_EARLY = 1000


class KeySet:
    """Distinct keys, numbered in order of first appearance.

    Attributes:
        text: all keys, one after another.
        ends: where each key ends in *text*, behind a 0.
        slots: the hash table: number + 1, 0 for none.
    """

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self.text, self.ends = bytearray(), array("I", [0])
        self._hashes = array("I")
        self.slots = array("I", [0]) * 64

    def __len__(self) -> int:
        return len(self._hashes)

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.text[self.ends[number] : self.ends[number + 1]])

    def find(self, key: bytes) -> int | None:
        return self._look(key, key_hash(key, self._seed))[0]

    def add(self, key: bytes) -> int:
        """The number of *key*, be it new or known. Raises TooLarge."""
        known = key_hash(key, self._seed)
        found, slot = self._look(key, known)
        if found is not None:
            return found
        if len(self.text) + len(key) >= _U32:
            raise TooLarge("has more than 4 GiB of names")
        self.text += key
        self.ends.append(len(self.text))
        self._hashes.append(known)
        self.slots[slot] = number = len(self._hashes)
        if 2 * number > len(self.slots):
            self._grow()
        return number - 1

    def _look(self, key: bytes, known: int) -> tuple[int | None, int]:
        """(number, slot) of *key*; where it is not there, (None, the free slot for it)."""
        slots = self.slots
        mask = len(slots) - 1
        slot = known & mask
        while number := slots[slot]:
            if self._hashes[number - 1] == known and self[number - 1] == key:
                return number - 1, slot
            slot = (slot + 1) & mask
        return None, slot

    def _grow(self) -> None:
        slots = array("I", [0]) * (2 * len(self.slots))
        mask = len(slots) - 1
        for number, known in enumerate(self._hashes, 1):
            slot = known & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = number
        self.slots = slots


class Groups:
    """Groups of members: the keys, and of each its last member + 1."""

    def __init__(self, seed: bytes) -> None:
        self.keys, self.lasts = KeySet(seed), array("I")
        self._latest: tuple[bytes | None, int] = None, 0

    def append(self, key: bytes, member: int) -> int:
        """Put *member* last in the group *key*; the one before it there + 1, 0 if it is the first."""
        latest, group = self._latest
        if key != latest:  # which spares most members the hash
            group = self.keys.add(key)
            self._latest = key, group
        if group == len(self.lasts):
            self.lasts.append(member + 1)
            return 0
        before = self.lasts[group]
        self.lasts[group] = member + 1
        return before


class GrowingTable:
    """Members by record and folder, as they come.

    Args:
        seed: for the hashes of keys.
        capacity: the most members that are taken.
    """

    def __init__(self, seed: bytes, capacity: int) -> None:
        self._seed, self._capacity = seed, capacity
        self._records, self._folders = Groups(seed), Groups(seed)
        # Of each member, the one before it in its group + 1, 0 for none; its block, size and end of rest.
        self._before, self._rows = array("I"), array("I")
        self._rests, self._extras = bytearray(), bytearray()
        self._in_order = True
        self._nested = False
        self._pending: list[tuple[Place, bytes]] = []
        self._steps = self._dropped = 0
        self._faults: list[tuple[str, int]] = []

    def __len__(self) -> int:
        """How many records there are so far."""
        return len(self._records.lasts)

    def key(self, record: int) -> bytes:
        """The key of a record. Raises IndexError."""
        return self._records.keys[record]

    def find(self, key: bytes) -> int | None:
        """The number of the record with that key."""
        found = self._records.keys.find(key)
        return found if found is not None and found < len(self) else None

    def members(self, record: int) -> list[Stored]:
        """The members of a record that were found so far, in order, up to one out of the ordinary."""
        numbers: list[int] = []
        last, known = self._records.lasts[record], len(self._rows) // 3
        while last and len(numbers) < _MAX_EARLY:
            numbers.append(last - 1)
            last = self._before[last - 1]
        found = []
        for number in reversed(numbers):
            block, size = (
                self._rows[3 * number : 3 * number + 2] if number < known else (0, SPECIAL)
            )
            if size >= SPECIAL:
                break
            found.append(Stored(bytes(self._rest(number)), block * BLOCK, size))
        return [] if last else found

    def note(self, message: str, offset: int) -> None:
        """Keep a fault for those who will see the table later."""
        if len(self._faults) < _MAX_FAULTS:
            self._faults.append((message, offset))

    # --- adding ---

    def add(self, member: Member) -> bool:
        """Take a member in; False where it is a link that leads to none of those before. Raises TooLarge."""
        name, link, is_hard, offset, size, where_parts, problem = member
        where = place(name)
        if link is None:
            block, rest = divmod(offset, BLOCK)
            if rest or block >= _U32 or size >= SPECIAL or where_parts or problem:
                block, size = 0, self._special_member(member)
            self._append(where, block, size)
            return True
        target = normal(link) if is_hard else link_target(name, link)
        if target is None:
            return False
        if self._append_link(where, target):
            return True
        if not is_hard:
            if len(self._pending) < _MAX_PENDING:
                self._pending.append((where, target))
            else:
                self._dropped += 1
        return False

    def break_last(self, problem: str) -> None:
        """Note why the last member can't be read."""
        self._rows[-2] = self._special(BROKEN, 0, 0, problem.encode("utf-8", "replace"))

    def finish(self) -> None:
        """Take in the links that lead to members behind them. Raises TooLarge where not all could be followed."""
        for _ in range(_MAX_CHAIN):
            before = len(self._pending)
            self._pending = [link for link in self._pending if not self._append_link(*link)]
            if len(self._pending) == before:
                break
        if self._dropped:
            raise TooLarge(f"{self._dropped} links were not followed: there are too many")

    def _append(self, where: Place, block: int, size: int) -> None:
        number = len(self._before)
        if number >= self._capacity or len(self._rests) + len(where.rest) >= _U32:
            raise TooLarge(f"only the first {number} members are shown")
        groups = self._records if where.has_key else self._folders
        before = groups.append(where.folder, number)
        if not before:
            self._in_order &= where.has_key
            self._nested |= b"/" in where.folder or bool(where.folder and not where.has_key)
        elif before != number:
            self._in_order = False
        self._before.append(before)
        self._rests += where.rest
        self._rows.extend((block, size, len(self._rests)))

    def _special_member(self, member: Member) -> int:
        """What stands for the size of a member out of the ordinary."""
        if member.problem:
            problem = member.problem.encode("utf-8", "replace")
            return self._special(BROKEN, 0, 0, problem)
        if member.map is None:
            return self._special(FAR, member.offset, member.size)
        parts = member.map.parts.tobytes()
        if len(self._extras) + len(parts) > _MAX_PARTS:
            return self._special(BROKEN, 0, 0, b"too many parts of sparse files")
        return self._special(SPARSE, member.offset + member.map.skip, member.map.size, parts)

    def _special(self, kind: int, offset: int, size: int, payload: bytes = b"") -> int:
        at = len(self._extras)
        if at >= SPECIAL:
            raise TooLarge("has more than 2 GiB of members out of the ordinary")
        self._extras += pack_extra(kind, offset, size, payload)
        return SPECIAL + at

    # --- links ---

    def _append_link(self, where: Place, target: bytes) -> bool:
        """Show the member *target* under another name; False where it is not there (yet)."""
        number = self._member(target)
        if number is None:
            return False
        self._append(where, self._rows[3 * number], self._rows[3 * number + 1])
        return True

    def _member(self, path: bytes) -> int | None:
        """The last member at *path*."""
        folder, slash, base = path.rpartition(b"/")
        stem, dot, rest = base.partition(b".")
        found = None
        if stem and dot:
            found = self._in_group(self._records, folder + slash + stem, rest)
        return self._in_group(self._folders, folder, base) if found is None else found

    def _in_group(self, groups: Groups, key: bytes, rest: bytes) -> int | None:
        group = groups.keys.find(key)
        last = 0 if group is None else groups.lasts[group]
        while last:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                self._dropped += 1
                break
            if self._rest(last - 1) == rest:
                return last - 1
            last = self._before[last - 1]
        return None

    def _rest(self, number: int) -> bytearray:
        begin = self._rows[3 * number - 1] if number else 0
        return self._rests[begin : self._rows[3 * number + 2]]

    # --- packing ---

    def pack(self) -> bytes:
        """The finished table, as ``MemberTable`` reads it. Raises TooLarge."""
        rows, rests, lasts = self._rows, self._rests, self._records.lasts
        if not self._in_order:
            rows, rests, lasts = self._sorted()
        return pack_table(
            records=self._records.keys,
            folders=self._folders.keys,
            lasts=lasts,
            rows=rows,
            rests=rests,
            extras=self._extras,
            faults=self._faults,
            nested=self._nested,
            seed=self._seed,
        )

    def _sorted(self) -> tuple[array[int], bytearray, array[int]]:
        """(rows, rests, ends of groups) with the members of a group beside one another."""
        rows, rests, ends = array("I"), bytearray(), array("I")
        for groups in (self._records, self._folders):
            for last in groups.lasts:
                members = []
                while last:
                    members.append(last - 1)
                    last = self._before[last - 1]
                for number in reversed(members):
                    rests += self._rest(number)
                    rows.extend((*self._rows[3 * number : 3 * number + 2], len(rests)))
                ends.append(len(rows) // 3)
        return rows, rests, ends
