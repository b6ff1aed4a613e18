"""LitData chunks whose records are rows of an Arrow file, as all that hold nothing but JSON's types are since 0.2.74.

Such a chunk has a table in which all records are empty, an Arrow IPC file, its length and a mark. Source:
``append_arrow_row_footer`` in ``litdata/streaming/item_loader.py`` 0.2.76.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from shardfs.blob import Slice
from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.ipc import IpcFile
from shardfs.formats.shared.arrow.type_names import schema_info
from shardfs.formats.shared.columns import Column, Json, row_fields
from shardfs.formats.shared.features import form_of
from shardfs.formats.shared.offsets import read_u32
from shardfs.model import NumberedKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.shared.offsets import OffsetTable
    from shardfs.model import Field, FieldInfo, Services

_FOOTER = struct.Struct("<I8s")
_MAGIC = b"LDARW01\0"
_U32 = 4


def arrow_file(table: OffsetTable) -> Slice | None:
    """The Arrow file of a chunk that begins with *table*; None where its records are in the chunk itself."""
    # The end of the chunk is the last thing to look at, since it may have to be decompressed for that.
    if not table.count or any(_offset(table, index) != table.end for index in (0, 1, table.count)):
        return None
    blob = table.blob
    end = blob.size() - _FOOTER.size
    if end <= table.end:
        return None
    length, magic = _FOOTER.unpack(blob.read(end, _FOOTER.size))
    if magic != _MAGIC or not 0 < length <= end - table.end:
        return None
    return Slice(blob, end - length, length)


def _offset(table: OffsetTable, index: int) -> int:
    return read_u32(table.blob, _U32 * (index + 1), "an offset table")


class ArrowShard(NumberedKeys):
    """Rows as records, columns as fields."""

    __slots__ = ("_columns", "_count", "_file", "_services", "_step", "columns", "costly")

    def __init__(self, blob: Slice, count: int, services: Services, *, costly: bool) -> None:
        self._file, self._services = IpcFile(blob, services), services
        self._count, self.costly = count, costly
        self._columns = tuple(
            Column(field.name, Json() if field.type.children else form_of(field))
            for field in self._file.schema.fields
        )
        self.columns = tuple(dict.fromkeys(column.name for column in self._columns))
        # All batches but the last have the same length, 256 so far.
        self._step = self._file.batch(0).rows if len(self._file) else 0
        if self._step <= 0 or len(self._file) != -(-count // self._step):
            raise Corrupt(
                f"says it holds {count} records, but has {len(self._file)} batches of {self._step}"
            )

    def __len__(self) -> int:
        return self._count

    def schema(self) -> Sequence[FieldInfo]:
        return schema_info(self._file.schema)

    def fields(self, index: int, /) -> Sequence[Field]:
        if not 0 <= index < self._count:
            raise IndexError(index)
        number, row = divmod(index, self._step)
        batch = self._file.batch(number)
        expected = min(self._step, self._count - number * self._step)
        if batch.rows != expected:
            raise Corrupt(f"batch {number} holds {batch.rows} rows instead of {expected}")
        return row_fields(self._columns, batch.cells, row, self._services)

    def close(self) -> None:
        """Nothing is held open but by the blobs."""
