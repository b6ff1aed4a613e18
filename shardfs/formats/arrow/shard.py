"""Arrow streams and files as shards: rows are records, columns fields."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.arrow.feather import FeatherTable, is_feather
from shardfs.formats.shared.arrow.batches import VERSION, Ending, RowIndex, index_any
from shardfs.formats.shared.arrow.ipc import IpcTable
from shardfs.formats.shared.arrow.message import is_file
from shardfs.formats.shared.arrow.type_names import schema_info
from shardfs.formats.shared.arrow.types import Type
from shardfs.formats.shared.columns import row_fields
from shardfs.formats.shared.features import columns_of
from shardfs.model import NumberedKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.arrow.types import Schema
    from shardfs.model import Field, FieldInfo, Services, Shard
    from shardfs.stores import Entry, Store

Table = IpcTable | FeatherTable
# The longest mark at the end of a stream.
_END = 8


def open_table(store: Store, entry: Entry, services: Services) -> Table:
    """The Arrow data in a file. Raises Corrupt, Unsupported."""
    blob = store.open(entry.path)
    if is_feather(blob):
        return FeatherTable(blob, services)
    index = RowIndex(services.remember(store, entry, VERSION, partial(index_any, blob)))
    table = IpcTable(blob, services, index)
    fault = _fault(index, blob)
    if fault:
        services.report(Corrupt(fault).at(entry.path))
    return table


def _fault(index: RowIndex, blob: Blob) -> str:
    """What is wrong with the end of a stream, "" where nothing is."""
    if index.ending == Ending.MARK:
        rest = 0 if is_file(blob) else blob.size() - index.stop - _END
        return f"has {rest} bytes behind its end, which are not read" if rest > 0 else ""
    if index.ending == Ending.NO_MARK:
        return f"has no mark at its end: there may have been more than {index.rows} records"
    if index.stop > blob.size():
        return f"ends at byte {blob.size()}, inside a batch of records that should reach to {index.stop}"
    return f"is damaged at byte {index.stop}: records from {index.rows} on are lost"


class TableShard(NumberedKeys):
    """The rows of a table."""

    def __init__(
        self, table: Table, features: Callable[[], Mapping[str, Any]], services: Services
    ) -> None:
        """*features* finds those that count where the schema has none."""
        self._table, self._services = table, services
        self._columns = columns_of(table.schema, features)
        self.columns: Sequence[str] = tuple(dict.fromkeys(c.name for c in self._columns))
        try:
            self.costly = len(table) > 0 and table.batch(0).packed
        except (Corrupt, Unsupported):  # its records say so
            self.costly = False

    def __len__(self) -> int:
        return self._table.rows

    def schema(self) -> Sequence[FieldInfo]:
        return schema_info(self._table.schema)

    def fields(self, index: int, /) -> Sequence[Field]:
        number, row = self._table.locate(index)
        return row_fields(self._columns, self._table.batch(number).cells, row, self._services)

    def close(self) -> None:
        """Nothing is held open but by the blobs."""


def is_mapping(schema: Schema) -> bool:
    """Whether a table holds nothing but numbers of rows in others: what shuffle, select and sort leave behind."""
    return [field.name for field in schema.fields] == ["indices"] and (
        schema.fields[0].type.type is Type.INT and schema.fields[0].type.dtype == "<u8"
    )


class MappedShard(NumberedKeys):
    """Rows of several tables in the order that a mapping tells: logical rows."""

    def __init__(self, mappings: Sequence[Table], tables: Sequence[Shard]) -> None:
        """Take the rows of *tables*, numbered from the first to the last of them. Raises Corrupt."""
        if not all(is_mapping(mapping.schema) for mapping in mappings):
            raise Corrupt("an indices mapping with other columns than `indices`")
        self._mappings, self._tables = mappings, tables
        self._ends = list(accumulate(mapping.rows for mapping in mappings))
        self._table_ends = list(accumulate(len(table) for table in tables))
        names = (name for table in tables for name in table.columns)
        self.columns: Sequence[str] = tuple(dict.fromkeys(names))
        self.costly = any(table.costly for table in tables)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def schema(self) -> Sequence[FieldInfo]:
        known = {info.name: info for table in self._tables for info in table.schema()}
        return tuple(known.values())

    def fields(self, index: int, /) -> Sequence[Field]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        number, at = _split(self._ends, index)
        mapping = self._mappings[number]
        batch, at = mapping.locate(at)
        stored = mapping.batch(batch).cells(0).stored(at)
        physical = int.from_bytes(stored.read(0, stored.size()), "little")
        if not self._table_ends or physical >= self._table_ends[-1]:
            raise Corrupt(f"stands for row {physical} of {self._table_ends[-1:]}")
        table, row = _split(self._table_ends, physical)
        return self._tables[table].fields(row)

    def close(self) -> None:
        """Nothing is held open but by the blobs."""


def _split(ends: Sequence[int], index: int) -> tuple[int, int]:
    """(part, number in it) of a thing where parts follow one another and *ends* count what is in them."""
    part = bisect_right(ends, index)
    return part, index - (ends[part - 1] if part else 0)
