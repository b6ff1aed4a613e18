"""Records as a table of Arrow: batches of a schema that the first records tell."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import pyarrow as pa

from shardfs.blob import read_all
from shardfs.errors import ShardfsError, Unreadable, Unsupported
from shardfs.model import Array
from shardfs.tree.lines import file_path
from shardfs.views.values import json_value, python_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.tree.records import OpenShard, ShownField

Media = Literal["reference", "bytes"]

# Records of a batch, and those that tell the schema. A guess: what a query engine takes at a time.
_BATCH = 1024
# A batch ends early at so many bytes of media.
_BATCH_BYTES = 32 << 20

_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_REFERENCE = pa.struct([("file", pa.string()), ("bytes", pa.int64())])
_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    date: pa.date32(),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    UUID: pa.string(),
    dict: pa.string(),
    complex: pa.string(),
}


class Referred:
    """What stands for a file among the values of a record, until its type is known."""

    __slots__ = ("blob", "path")

    def __init__(self, path: Callable[[], str], blob: Blob) -> None:
        self.path, self.blob = path, blob


class Tables:
    """Makes batches of records. JSON is text, since its parts differ from record to record; what is damaged is null.

    Args:
        fields: the columns, in order.
        media: whether files are where they are and how large, or what is in them.
        note: is told of what is damaged.
    """

    def __init__(
        self, fields: Sequence[str], media: Media, note: Callable[[ShardfsError], None]
    ) -> None:
        self._fields, self._media, self._note = fields, media, note
        self._only = frozenset(fields)

    def read(self, shards: Iterable[tuple[str, OpenShard]]) -> pa.RecordBatchReader:
        """A table of all records of *shards*, (path, shard) each, which are opened when their turn comes."""
        rows = self._batches(shards)
        first = next(rows, [])
        schema = self._schema(first)
        tables = (self._batch(some, schema) for some in self._with(first, rows))
        return pa.RecordBatchReader.from_batches(schema, tables)

    @staticmethod
    def _with(
        first: list[dict[str, Any]], rest: Iterator[list[dict[str, Any]]]
    ) -> Iterator[list[dict[str, Any]]]:
        if first:
            yield first
        yield from rest

    def _batches(self, shards: Iterable[tuple[str, OpenShard]]) -> Iterator[list[dict[str, Any]]]:
        rows: list[dict[str, Any]] = []
        size = 0
        for path, shard in shards:
            record = 0
            while shard.shard.has(record):
                rows.append(self._row(path, shard, record))
                size += self._weight(rows[-1])
                record += 1
                if len(rows) >= _BATCH or size >= _BATCH_BYTES:
                    yield rows
                    rows, size = [], 0
        if rows:
            yield rows

    def _weight(self, row: dict[str, Any]) -> int:
        if self._media == "reference":
            return 0
        return sum(v.blob.size() for v in row.values() if isinstance(v, Referred))

    def _row(self, path: str, shard: OpenShard, record: int) -> dict[str, Any]:
        """The values of a record that are there."""
        values: dict[str, Any] = {}
        try:
            for shown in shard.record(record, self._only):
                if shown.field.name not in values:
                    values[shown.field.name] = self._value(path, shard, record, shown)
        except Unreadable:
            raise
        except ShardfsError as error:
            self._note(error.at(shard.ref.file or path, f"record {record}"))
        return values

    def _value(self, path: str, shard: OpenShard, record: int, shown: ShownField) -> Any:
        def refer(number: int) -> Referred:
            where = partial(file_path, shard, path, record, shown, number)
            return Referred(where, shown.files[number].blob)

        read = json_value if isinstance(shown.field.kind, Array) else python_value
        try:
            return read(shown.field, refer)
        except Unreadable:
            raise
        except ShardfsError as error:
            self._note(error.at(shard.ref.file or path, f"record {record}", shown.field.name))
            return None

    # --- types ---

    def _schema(self, rows: Sequence[dict[str, Any]]) -> pa.Schema:
        return pa.schema(
            (name, self._type([row.get(name) for row in rows])) for name in self._fields
        )

    def _type(self, values: Sequence[Any]) -> pa.DataType:
        """The type of a column, by the values in its first rows; text where nothing tells or they differ."""
        kinds = {type(value) for value in values if value is not None}
        if kinds == {Referred}:
            return pa.large_binary() if self._media == "bytes" else _REFERENCE
        if kinds == {list}:
            items = {type(item) for value in values if value for item in value}
            if items <= {Referred, type(None)} and items:
                return pa.list_(pa.large_binary() if self._media == "bytes" else _REFERENCE)
        if kinds == {datetime}:
            aware = {value.tzinfo is not None for value in values if value is not None}
            return pa.timestamp("us", "UTC") if aware == {True} else pa.timestamp("us")
        if kinds == {Decimal}:
            known = pa.array(values).type  # columns of decimals have one scale
            wide = pa.types.is_decimal256(known)
            return pa.decimal256(76, known.scale) if wide else pa.decimal128(38, known.scale)
        if kinds == {int, float}:
            return pa.float64()
        if kinds == {int} and max(value for value in values if value is not None) >= 1 << 63:
            return pa.uint64()
        return _TYPES.get(kinds.pop(), pa.string()) if len(kinds) == 1 else pa.string()

    def _batch(self, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
        arrays = []
        for column in schema:
            values = [self._stored(row.get(column.name), column.type) for row in rows]
            try:
                arrays.append(pa.array(values, column.type))
            except _MISFITS:
                arrays.append(pa.array(self._fitting(values, column), column.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fitting(self, values: Sequence[Any], column: pa.Field) -> Iterator[Any]:
        """*values*, null in place of those that aren't of the type which the first records have."""
        for value in values:
            try:
                pa.array([value], column.type)
                yield value
            except _MISFITS:
                self._note(
                    Unsupported(
                        f"the field {column.name} is {column.type}, but {type(value).__name__}"
                        " in some records, which are null in the table"
                    )
                )
                yield None

    def _stored(self, value: Any, kind: pa.DataType) -> Any:
        """*value* as the column takes it."""
        if isinstance(value, Referred):
            if self._media == "bytes":
                return bytes(read_all(value.blob))
            return {"file": value.path(), "bytes": value.blob.size()}
        if isinstance(value, list) and pa.types.is_list(kind):
            return [self._stored(item, kind.value_type) for item in value]
        if pa.types.is_string(kind) and value is not None and not isinstance(value, str):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        return value
