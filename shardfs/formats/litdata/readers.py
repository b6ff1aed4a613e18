"""What is in the records of a LitData chunk: fields, by the leaves that the index declares or by a guess."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

from shardfs.blob import Slice, clip
from shardfs.errors import Corrupt
from shardfs.formats.litdata.leaves import LeafType
from shardfs.formats.litdata.spec import SINGLE
from shardfs.model import Encoded, Field, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.formats.litdata.records import Records

_U32 = 4


class Reader(Protocol):
    """Takes records apart."""

    @property
    def declared(self) -> Sequence[tuple[str, Kind]]:
        """(name, kind) of the fields as far as they are known without a record."""
        ...

    def fields(self, record: Blob, /) -> Sequence[Field]:
        """The fields of a record. Raises Corrupt."""
        ...


# Read along with the sizes of a record's leaves: small leaves and the heads of others cost no read of their own then,
# and a page of a file costs about as much as its first bytes.
_AHEAD = 4096


class PyTreeReader:
    """``u32 size[leaves] | leaf 0 | leaf 1 ...``: what PyTreeLoader, the default, reads."""

    def __init__(self, leaves: Sequence[tuple[str, LeafType]]) -> None:
        self._leaves, self._sizes = leaves, struct.Struct(f"<{len(leaves)}I")
        self.declared: tuple[tuple[str, Kind], ...] = tuple(
            (name, leaf.declared) for name, leaf in leaves
        )

    def fields(self, record: Blob, /) -> Sequence[Field]:
        head = record.read(0, self._sizes.size + _AHEAD)
        sizes, at = leaf_sizes(head, self._sizes, record.size()), self._sizes.size
        fields = []
        for (name, leaf), size in zip(self._leaves, sizes, strict=True):
            data = Near(record, at, size, head[at : at + size])
            fields.append(Field(name, leaf.kind(data), data))
            at += size
        return fields


class WholeReader:
    """A record that is one leaf, without its size: tokens, and records of which nothing is known."""

    def __init__(self, name: str, leaf: LeafType) -> None:
        self._name, self._leaf = name, leaf
        self.declared: tuple[tuple[str, Kind], ...] = ((name, leaf.declared),)

    def fields(self, record: Blob, /) -> Sequence[Field]:
        return [Field(self._name, self._leaf.kind(record), record)]


def leaf_sizes(head: memoryview, form: struct.Struct, size: int) -> tuple[int, ...]:
    """The sizes of the leaves of a record of *size* bytes that begins with *head*.

    Raises:
        Corrupt: they do not come to the size of the record.
    """
    if len(head) < form.size:
        raise Corrupt(f"has {size} bytes, too few for the sizes of its fields")
    sizes: tuple[int, ...] = form.unpack_from(head)
    if form.size + sum(sizes) != size:
        raise Corrupt(f"has {size} bytes, but its fields come to {form.size + sum(sizes)}")
    return sizes


class Near(Slice):
    """A part of a blob of which the first bytes are at hand already."""

    __slots__ = ("_near",)

    def __init__(self, parent: Blob, start: int, length: int, near: memoryview) -> None:
        super().__init__(parent, start, length)
        self._near = near

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self.length)
        if stop <= len(self._near):
            return self._near[start:stop]
        return super().read(start, stop - start)


# --- records of which no index tells -----------------------------------------------------------------------

_SAMPLES = 8
_MAX_LEAVES = 1000


def guess_reader(records: Records) -> Reader:
    """A reader for records of unknown leaves, by a look at the first ones.

    The leaves are called by their positions; where none are to be seen, the whole record is one.
    """
    counts = set()
    for index in range(min(len(records), _SAMPLES)):
        try:
            record = records.record(index)
            counts.add(count_leaves(record.read(0, _U32 * _MAX_LEAVES), record.size()))
        except Corrupt:
            continue
    unknown = LeafType(Encoded())
    count = counts.pop() if len(counts) == 1 else None
    if count is None:
        return WholeReader(SINGLE, unknown)
    return PyTreeReader([(str(position), unknown) for position in range(count)])


def count_leaves(head: memoryview, size: int) -> int | None:
    """How many leaves a record of *size* bytes has that begins with *head*: as many as make their sizes fit."""
    total = 0
    for count, (leaf,) in enumerate(struct.iter_unpack("<I", head[: len(head) // _U32 * _U32]), 1):
        total += _U32 + leaf
        if total >= size:
            return count if total == size else None
    return None
