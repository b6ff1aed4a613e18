"""A tar archive as a shard: scanned once, as far as somebody waits for, and never again while its table is kept."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardfs.blob import Broken, Bytes, Slice, read_all
from shardfs.errors import Corrupt, TooLarge, WouldBlock
from shardfs.formats.shared.paged import Paged
from shardfs.formats.webdataset.growing import GrowingTable
from shardfs.formats.webdataset.indexes import Checked, Part
from shardfs.formats.webdataset.members import MemberTable
from shardfs.formats.webdataset.scan import TarReader
from shardfs.formats.webdataset.sparse import Sparse
from shardfs.model import Encoded, Field, FieldInfo
from shardfs.names import from_bytes, to_bytes
from shardfs.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.webdataset.members import Stored

# Members are files that have their names; what their bytes are is not asked.
_STORED = Encoded()
# How long the scan goes on before those who wait for it look how far it has come. A guess.
_TURN = 0.005
# Records that tell what fields there are. A guess: a field that none of them has is a rare one.
_FIRST_RECORDS = 16
# Tables up to this size are held in memory: a few hundred shards may be open, and descriptors are scarce.
_SMALL = 64 << 10


@dataclass(frozen=True, slots=True)
class Archive:
    """What a shard is made of.

    Attributes:
        blob: the archive, uncompressed.
        size: its length where that is known without reading all of it.
        capacity: the most members that it may have.
        by_index: whether its table was made by an index, so that no header was seen yet.
        keep: stores the bytes that a function makes, and gives them back.
        report: takes what is wrong with the archive, and the offset.
    """

    blob: Blob
    size: int | None
    capacity: int
    by_index: bool
    keep: Callable[[Callable[[], bytes]], Blob]
    report: Callable[[str, int], None]


class Scan:
    """A scan of an archive into a table, which may stop anywhere and go on."""

    def __init__(self, archive: Archive, seed: bytes) -> None:
        self.table = GrowingTable(seed, archive.capacity)
        self._reader = TarReader(archive.blob, archive.size, self._note)
        self._report = archive.report
        self._shown = False

    def run(self, seconds: float) -> bool:
        """Go on for a while; whether the end was reached."""
        deadline = time.monotonic() + seconds
        try:
            while (member := self._reader.next()) is not None:
                self._shown = self.table.add(member)
                if time.monotonic() > deadline:
                    return False
            if self._reader.cut and self._shown:
                self.table.break_last(self._reader.cut)
            self.table.finish()
        except TooLarge as error:
            self._note(error.message, self._reader.at)
        return True

    def _note(self, message: str, offset: int) -> None:
        self.table.note(message, offset)
        self._report(message, offset)


class TarShard:
    """The records of an archive. Whoever waits for what was not found yet scans on; the others wait for them."""

    costly = False  # sizes stand in the table

    def __init__(self, archive: Archive, table: MemberTable | None) -> None:
        """Take *table* as that of the archive, or make it where it is None."""
        self._archive = archive
        self._seed = os.urandom(16)
        # What is known so far. It is the scan's own while that goes on, and the finished table from then on.
        self._known: GrowingTable | MemberTable
        self._scan: Scan | None = None
        if table is None:
            self._scan = Scan(archive, self._seed)
            self._known = self._scan.table
        else:
            self._known = table
        self._content: bytes | None = None
        self._turns = Turns()

    # --- records ---

    @property
    def columns(self) -> Sequence[str]:
        return [from_bytes(rest) for rest in dict.fromkeys(self._all().rests())]

    def schema(self) -> Sequence[FieldInfo]:
        """The fields of the first records while others are still being found."""
        table = self._when(lambda table: len(table) > _FIRST_RECORDS)
        if isinstance(table, MemberTable):
            return [FieldInfo(name) for name in self.columns]
        members = (member for n in range(_FIRST_RECORDS) for member in table.members(n))
        return [FieldInfo(from_bytes(rest)) for rest in dict.fromkeys(m.rest for m in members)]

    @property
    def nested(self) -> bool:
        return not isinstance(self._known, MemberTable) or self._known.nested

    @property
    def capacity(self) -> int:
        table = self._known
        if isinstance(table, MemberTable):
            return table.records + table.folders
        return self._archive.capacity

    @property
    def loose(self) -> int:
        return self._all().folders

    def __len__(self) -> int:
        return self._all().records

    def has(self, index: int, /) -> bool:
        return 0 <= index < len(self._when(lambda table: index < len(table)))

    def key(self, index: int, /) -> str:
        return from_bytes(self._when(lambda table: index < len(table)).key(index))

    def find(self, key: str, /) -> int | None:
        name = to_bytes(key)
        return self._when(lambda table: table.find(name) is not None).find(name)

    def fields(self, index: int, /) -> Sequence[Field]:
        table = self._all()
        members, above = table.members(index), self.key(index)
        if index < table.records:
            above += "."
        elif above:
            above += "/"
        return [self._field(above, member) for member in members]

    def early(self, index: int, name: str, /) -> Sequence[Field] | None:
        key = self.key(index)
        rest = to_bytes(name.removeprefix(key.rpartition("/")[2] + "."))
        table = self._when(lambda t: any(member.rest == rest for member in t.members(index)))
        if isinstance(table, MemberTable):
            return None
        return [self._field(key + ".", member) for member in table.members(index)]

    def close(self) -> None:
        """Do nothing: nothing but blobs is held."""

    def _field(self, above: str, member: Stored) -> Field:
        rest, archive = from_bytes(member.rest), self._archive
        path = above + rest
        name = path.rpartition("/")[2]
        blob: Blob
        if member.problem:
            blob = Broken(Corrupt(member.problem))
        elif member.parts is not None:
            blob = Sparse(archive.blob, member.offset, member.size, member.parts)
        elif archive.by_index:
            blob = Checked(archive.blob, Part(to_bytes(path), member.offset, member.size))
        else:
            blob = Slice(archive.blob, member.offset, member.size)
        return Field(rest, _STORED, blob, filename=name)

    # --- scanning ---

    def _all(self) -> MemberTable:
        """The table, once all is known."""
        table = self._when(lambda _: False)
        if not isinstance(table, MemberTable):
            raise WouldBlock
        return table

    def _when(self, ready: Callable[[GrowingTable], bool]) -> GrowingTable | MemberTable:
        """What is known once that is enough, which all that there is must be."""

        def is_there() -> bool:
            table = self._known
            return isinstance(table, MemberTable) or ready(table)

        self._turns.until(is_there, self._scan_on)
        return self._known

    def _scan_on(self) -> None:
        if self._scan is not None and self._scan.run(_TURN):
            self._content = content = self._scan.table.pack()
            try:
                self._known = held(self._archive.keep(self._build))
            except Corrupt:  # what was kept is damaged, and can't be replaced
                self._known = MemberTable(Bytes(content))
            self._scan = self._content = None

    def _build(self) -> bytes:
        """The packed table: just now packed, or made anew where it was kept in memory and had to go."""
        content, self._content = self._content, None
        if content is None:
            scan = Scan(self._archive, self._seed)
            while not scan.run(math.inf):
                pass
            content = scan.table.pack()
        return content


def held(blob: Blob) -> MemberTable:
    """The table in *blob*. Raises Corrupt where there is none."""
    return MemberTable(Bytes(read_all(blob)) if blob.size() <= _SMALL else Paged(blob))
