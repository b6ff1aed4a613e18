"""Batches of Arrow data: where the buffers of their columns lie, and numbers and bits in these.

The layout: https://arrow.apache.org/docs/format/Columnar.html, and format/Message.fbs in Arrow's repository.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from shardfs.blob import Blob, Slice, read_exactly
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.shared.arrow.message import V4
from shardfs.formats.shared.arrow.swap import Swapped, widths_of
from shardfs.formats.shared.arrow.types import BINARIES, TEXTS, VIEWS, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.shared.arrow.message import Message
    from shardfs.formats.shared.arrow.types import ArrowField
    from shardfs.model import Services

_PAIR = struct.Struct("<qq")
_BUFFERS = (
    {Type.UNKNOWN: 0, Type.NULL: 0, Type.RUN_ENDS: 0, Type.STRUCT: 1, Type.FIXED_LIST: 1}
    | dict.fromkeys((BINARIES | TEXTS) - VIEWS - {Type.FIXED_BINARY}, 3)
    | dict.fromkeys((Type.LIST_VIEW, Type.LARGE_LIST_VIEW), 3)
)
"""How many buffers a type has; 2 where it is not here. Views have more, as many as each batch says."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a column, or a part of a nested one, stands in every batch of a schema.

    Attributes:
        node: which of the nodes is its own.
        buffer: the first of its buffers, but for those that columns before it may have beyond what is usual; of
            unions the one in front of the codes, since older ones have the bits of nulls there.
        views: how many columns of views stand before it.
        unions: how many unions, itself among them.
        nulls: how many columns of nothing but nulls.
        unknown: how many columns of unknown types.
    """

    field: ArrowField
    node: int
    buffer: int
    views: int
    unions: int
    nulls: int
    unknown: int
    children: tuple[Layout, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the batches of a schema are laid out.

    Attributes:
        buffers: how many there are of columns of known types, but for the additional ones.
        unions, nulls, unknown: how many columns are of such types.
        is_big: whether numbers are those of a big-endian machine.
    """

    columns: tuple[Layout, ...]
    buffers: int
    unions: int
    nulls: int
    unknown: int
    is_big: bool


def lay_out(fields: Sequence[ArrowField], *, is_big: bool) -> Plan:
    """The layouts of the columns of a batch."""
    node = buffer = views = unions = nulls = unknown = 0

    def place(field: ArrowField) -> Layout:
        nonlocal node, buffer, views, unions, nulls, unknown
        kind = field.type.type if field.dictionary is None else Type.INT
        unions += kind is Type.UNION
        here = (node, buffer - (kind is Type.UNION), views, unions, nulls, unknown)
        is_sparse = kind is Type.UNION and field.type.unit == "sparse"
        node += 1
        buffer += 1 if is_sparse else _BUFFERS.get(kind, 2)
        views += kind in VIEWS
        nulls += kind is Type.NULL
        unknown += kind is Type.UNKNOWN
        children = field.type.children if field.dictionary is None else ()
        return Layout(field, *here, tuple(place(child) for child in children))

    columns = tuple(place(field) for field in fields)
    return Plan(columns, buffer, unions, nulls, unknown, is_big)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parts of a batch lie.

    Attributes:
        start, length: of the bytes that all buffers are in.
        nodes: (number of values, number of nulls) of every column.
        buffers: (offset in these bytes, length).
        parts: how many buffers of data each column of views has.
        codec: how buffers are compressed, "" for not at all.
        is_old: whether it is of before Arrow 1.0.
    """

    start: int
    length: int
    rows: int
    nodes: Sequence[tuple[int, ...]]
    buffers: Sequence[tuple[int, ...]]
    parts: Sequence[int] = ()
    codec: str = ""
    is_old: bool = False


def place_of(message: Message) -> Place:
    """Where a batch or dictionary lies. Raises Corrupt, Unsupported."""
    batch = message.batch
    return Place(
        message.body,
        message.length,
        batch.number(0, "q"),
        batch.structs(1, _PAIR),
        batch.structs(2, _PAIR),
        batch.numbers(4, "q"),
        message.codec,
        message.version == V4,
    )


class Body:
    """The nodes and buffers of a batch. Of a buffer no more is read than is asked for; a packed one is the unit."""

    def __init__(self, blob: Blob, place: Place, plan: Plan, services: Services) -> None:
        """Take the batch at a *place* of *blob*. Raises Corrupt."""
        end = place.start + place.length
        if end > blob.size():
            raise Corrupt(f"ends at byte {blob.size()}, inside a batch that should reach to {end}")
        self._blob, self._start, self._length = blob, place.start, place.length
        self._services = services
        self.rows, self.codec, self.is_big = place.rows, place.codec, plan.is_big
        self._nodes, self._buffers, self._parts = place.nodes, place.buffers, place.parts
        if min(self._parts, default=0) < 0:
            raise Corrupt("an Arrow batch of views with less than no buffers")
        self._shifts = tuple(accumulate(self._parts, initial=0))
        self.has_bits_of_unions = place.is_old
        self._of_unknown = self._of_null = 0
        self._share_the_rest(plan)
        self._opened: dict[int, Blob] = {}

    def _share_the_rest(self, plan: Plan) -> None:
        """Find how many buffers such columns have of which nothing says it, if all have as many.

        They are those of unknown types, and before Arrow 0.15 those of nulls.
        """
        known = plan.buffers + self._shifts[-1] + plan.unions * self.has_bits_of_unions
        if plan.unknown:
            count, rest = divmod(len(self._buffers) - known, plan.unknown)
            self._of_unknown = -1 if rest else count
        elif plan.nulls and self.has_bits_of_unions:
            count, rest = divmod(len(self._buffers) - known, plan.nulls)
            self._of_null = 0 if rest else max(count, 0)

    def node(self, layout: Layout) -> tuple[int, int]:
        """(number of values, number of nulls)."""
        if layout.node >= len(self._nodes):
            raise Corrupt("an Arrow batch with fewer columns than its schema")
        length, nulls = self._nodes[layout.node]
        if length < 0:
            raise Corrupt(f"an Arrow column of {length} values")
        return length, nulls

    def buffer(self, layout: Layout, number: int) -> Blob:
        """The buffer *number* of a column."""
        index = self._place(layout) + number
        # A second blob that another thread made at the same time is thrown away, so that all share one decompression.
        found = self._opened.get(index)
        if found is None:
            found = self._open(index)
            widths = widths_of(layout.field, number) if self.is_big else ()
            found = self._opened.setdefault(index, Swapped(found, widths) if widths else found)
        return found

    def _place(self, layout: Layout) -> int:
        """The first of the buffers of a column."""
        if layout.views >= len(self._shifts):
            raise Corrupt("an Arrow batch that does not tell the buffers of its views")
        if layout.unknown and self._of_unknown < 0:
            raise Unsupported("an Arrow column behind others of unknown types")
        index = layout.buffer + self._shifts[layout.views] + layout.unknown * self._of_unknown
        return index + layout.unions * self.has_bits_of_unions + layout.nulls * self._of_null

    def parts(self, layout: Layout) -> int:
        """How many buffers of data a column of views has."""
        if layout.views >= len(self._parts):
            raise Corrupt("an Arrow batch that does not tell the buffers of its views")
        return self._parts[layout.views]

    def bits(self, layout: Layout, number: int, start: int, stop: int) -> Sequence[bool]:
        """Bits of a buffer."""
        first = start // 8
        data = read_exactly(self.buffer(layout, number), first, -(-stop // 8) - first, "bits")
        return [bool(data[bit // 8 - first] >> bit % 8 & 1) for bit in range(start, stop)]

    def numbers(
        self, layout: Layout, number: int, code: str, start: int, stop: int
    ) -> Sequence[Any]:
        """Numbers of a buffer, of the ``struct`` type *code*."""
        width = struct.calcsize(f"<{code}")
        data = read_exactly(
            self.buffer(layout, number), start * width, (stop - start) * width, "an Arrow buffer"
        )
        return struct.unpack(f"<{stop - start}{code}", data)

    def _open(self, index: int) -> Blob:
        if index >= len(self._buffers):
            raise Corrupt("an Arrow batch with fewer buffers than its schema")
        start, length = self._buffers[index]
        if start < 0 or length < 0 or start + length > self._length:
            raise Corrupt(f"a buffer of {length} bytes at {start} of {self._length}")
        stored = Slice(self._blob, self._start + start, length)
        if not self.codec or not length:
            return stored
        # A compressed buffer begins with its length as an i64; -1 says that the rest is as it is.
        (size,) = struct.unpack("<q", read_exactly(stored, 0, 8, "the length of an Arrow buffer"))
        rest = Slice(stored, 8, length - 8)
        if size == -1:
            return rest
        if size < 0:
            raise Corrupt(f"an Arrow buffer of {size} bytes")
        return self._services.inflate(rest, self.codec, size)
