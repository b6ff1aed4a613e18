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
from shardfs.formats.shared.arrow.types import BINARIES, TEXTS, VIEWS, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.shared.arrow.message import Message
    from shardfs.formats.shared.arrow.types import ArrowField
    from shardfs.model import Services

_PAIR = struct.Struct("<qq")
_CODECS = ("lz4", "zstd")
_BUFFERS = (
    {Type.NULL: 0, Type.RUN_ENDS: 0, Type.STRUCT: 1, Type.FIXED_LIST: 1}
    | dict.fromkeys((BINARIES | TEXTS) - VIEWS - {Type.FIXED_BINARY}, 3)
    | dict.fromkeys((Type.LIST_VIEW, Type.LARGE_LIST_VIEW), 3)
)
"""How many buffers a type has; 2 where it is not here. Views have more, as many as each batch says."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a column, or a part of a nested one, stands in every batch of a schema.

    Attributes:
        node: which of the nodes is its own.
        buffer: the first of its buffers, but for those that views before it have beyond two.
        views: how many columns of views stand before it.
    """

    field: ArrowField
    node: int
    buffer: int
    views: int
    children: tuple[Layout, ...]


def lay_out(fields: Sequence[ArrowField]) -> tuple[Layout, ...]:
    """The layouts of the columns of a batch."""
    node = buffer = views = 0

    def place(field: ArrowField) -> Layout:
        nonlocal node, buffer, views
        here, kind = (node, buffer, views), field.type.type
        node += 1
        if field.dictionary is not None:
            buffer += 2
            return Layout(field, *here, ())
        is_sparse = kind is Type.UNION and field.type.unit == "sparse"
        buffer += 1 if is_sparse else _BUFFERS.get(kind, 2)
        views += kind in VIEWS
        return Layout(field, *here, tuple(place(child) for child in field.type.children))

    return tuple(place(field) for field in fields)


class Body:
    """The nodes and buffers of a batch. Of a buffer no more is read than is asked for; a packed one is the unit."""

    def __init__(self, blob: Blob, message: Message, services: Services) -> None:
        """Take *message*, of a batch or dictionary, and what lies behind it in *blob*. Raises Corrupt, Unsupported."""
        if message.end > blob.size():
            raise Corrupt(
                f"ends at byte {blob.size()}, inside a batch that should reach to {message.end}"
            )
        batch = message.batch
        self._blob, self._start, self._length = blob, message.body, message.length
        self._services = services
        self.rows = batch.number(0, "q")
        self._nodes, self._buffers = batch.structs(1, _PAIR), batch.structs(2, _PAIR)
        self._parts = batch.numbers(4, "q")
        if min(self._parts, default=0) < 0:
            raise Corrupt("an Arrow batch of views with less than no buffers")
        self._shifts = tuple(accumulate(self._parts, initial=0))
        self.codec = ""
        compression = batch.table(3)
        if compression is not None:
            number = compression.number(0, "b")
            if not 0 <= number < len(_CODECS) or compression.number(1, "b"):
                raise Unsupported(f"Arrow data in an unknown compression ({number})")
            self.codec = _CODECS[number]
        self._opened: dict[int, Blob] = {}

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
        if layout.views >= len(self._shifts):
            raise Corrupt("an Arrow batch that does not tell the buffers of its views")
        index = layout.buffer + number + self._shifts[layout.views]
        # A second blob that another thread made at the same time is thrown away, so that all share one decompression.
        found = self._opened.get(index)
        return self._opened.setdefault(index, self._open(index)) if found is None else found

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
