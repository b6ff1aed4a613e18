"""Arrow data for tests, as pyarrow writes it, and what shardfs makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shardfs.blob import Bytes, read_all
from shardfs.formats.arrow.shard import TableShard
from shardfs.formats.shared.arrow.batches import RowIndex, index_any
from shardfs.formats.shared.arrow.ipc import IpcTable
from shardfs.formats.shared.columns import Budget
from shardfs.views.present import Presenter
from tests.fakes import FakeServices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardfs.blob import Blob


def encoded(
    table: pa.Table, *, file: bool = False, step: int | None = None, **options: Any
) -> bytes:
    """A stream or file of batches of *step* rows. *options* are those of pyarrow's ``IpcWriteOptions``."""
    sink = pa.BufferOutputStream()
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=step)
    return bytes(sink.getvalue().to_pybytes())


def opened(data: bytes | Blob) -> IpcTable:
    blob = Bytes(data) if isinstance(data, bytes) else data
    index = RowIndex(Bytes(index_any(blob)))
    return IpcTable(blob, FakeServices(), index)


def values(data: bytes, column: int = 0) -> list[Any]:
    """All values of a column."""
    stream, found = opened(data), list[Any]()
    for number in range(len(stream)):
        batch = stream.batch(number)
        found += batch.cells(column).values(0, batch.rows, Budget())
    return found


def files(
    data: bytes, row: int, features: Mapping[str, Any] | None = None, *, raw: bool = False
) -> dict[str, bytes]:
    """The files of a record, by name."""
    services = FakeServices()
    shard = TableShard(opened(data), lambda: features or {}, services)
    shown = Presenter(services.memory, raw=raw).files(shard.fields(row))
    return {file.stem + file.extension: bytes(read_all(file.blob)) for file in shown}


def shown(
    array: pa.Array, row: int = 0, feature: Mapping[str, Any] | None = None
) -> dict[str, bytes]:
    """The files that the field `v` of a record is, by what follows its name."""
    features = {"v": feature} if feature is not None else {}
    found = files(encoded(pa.table({"v": array})), row, features)
    return {name.removeprefix("v"): content for name, content in found.items()}
