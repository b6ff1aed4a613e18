"""Feather files of version 1, as pyarrow writes them to this day."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import feather

from shardfs.blob import Bytes, read_all
from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.formats.arrow.feather import FeatherTable
from shardfs.formats.arrow.shard import TableShard
from shardfs.formats.shared.columns import Budget
from shardfs.views.present import Presenter
from tests.arrow_made import Number, flatbuffer
from tests.fakes import FakeServices

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
COLUMNS = {
    **{name: pa.array([1, None, 100], getattr(pa, name)()) for name in NUMBERS},
    "float32": pa.array([1.5, None, -0.25], pa.float32()),
    "float64": pa.array([1.5, None, -0.25]),
    "bool": pa.array([True, None, False]),
    "text": pa.array(["a", None, "grün"]),
    "large_text": pa.array(["a", None, "grün"], pa.large_string()),
    "data": pa.array([b"\xff", None, b""]),
    "large_data": pa.array([b"\xff", None, b""], pa.large_binary()),
    "date": pa.array([dt.date(2020, 1, 2), None, dt.date(1, 1, 1)]),
    "time": pa.array([1, None, 2000], pa.time32("ms")),
    "moment": pa.array([1, None, -1], pa.timestamp("us")),
    "zoned": pa.array([1, None, -1], pa.timestamp("s", "UTC")),
    "word": pa.array(["x", None, "y"]).dictionary_encode(),
    "last": pa.array([7, 8, 9]),
}
TEXTS = {
    "date": ["2020-01-02", None, "0001-01-01"],
    "time": ["00:00:00.001", None, "00:00:02"],
    "moment": ["1970-01-01T00:00:00.000001", None, "1969-12-31T23:59:59.999999"],
    "zoned": ["1970-01-01T00:00:01+00:00", None, "1969-12-31T23:59:59+00:00"],
}


def written(path: Path, table: pa.Table) -> bytes:
    feather.write_feather(table, path, version=1)
    return path.read_bytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("feather") / "a.feather", pa.table(COLUMNS))


def opened(data: bytes) -> FeatherTable:
    return FeatherTable(Bytes(data), FakeServices())


def test_values_are_those_that_were_written(data: bytes) -> None:
    table = opened(data)
    assert [field.name for field in table.schema.fields] == list(COLUMNS)
    for number, (name, array) in enumerate(COLUMNS.items()):
        found: list[Any] = list(table.batch(0).cells(number).values(0, 3, Budget()))
        assert found == TEXTS.get(name, array.to_pylist()), name


def test_rows_are_records(data: bytes) -> None:
    services = FakeServices()
    shard = TableShard(opened(data), dict, services)
    assert (len(shard), shard.costly) == (3, False)
    files = Presenter(services.memory, raw=False).files(shard.fields(1))
    assert [(file.stem + file.extension, bytes(read_all(file.blob))) for file in files] == [
        ("last.txt", b"8\n")
    ]
    with pytest.raises(IndexError):
        shard.fields(3)


def test_no_rows(tmp_path: Path) -> None:
    assert opened(written(tmp_path / "a.feather", pa.table(COLUMNS).slice(0, 0))).rows == 0


def test_a_file_that_is_cut_is_corrupt(data: bytes) -> None:
    for length in (4, 11, len(data) // 2, len(data) - 1):
        with pytest.raises(Corrupt):
            opened(data[:length])


def footer(version: int = 2, rows: int = 1, kind: int = 1, length: int = 1) -> bytes:
    array = {0: Number("b", kind), 2: Number("q", 8), 3: Number("q", length), 5: Number("q", 8)}
    table = {1: Number("q", rows), 2: [{0: "v", 1: array}], 3: Number("i", version)}
    end = flatbuffer(table)
    return b"FEA1" + bytes(4) + b"\x05" + bytes(7) + end + len(end).to_bytes(4, "little") + b"FEA1"


def test_what_is_told_is_checked() -> None:
    assert opened(footer()).batch(0).cells(0).values(0, 1, Budget()) == (5,)
    with pytest.raises(Unsupported, match="Feather of 2016"):
        opened(footer(version=1))
    with pytest.raises(Unsupported, match="type 99"):
        opened(footer(kind=99)).batch(0).cells(0)
    for rows in (-1, 1 << 40):
        with pytest.raises(Corrupt, match="rows"):
            opened(footer(rows=rows))
    with pytest.raises(Corrupt, match="of 1 rows with a column of 2"):
        opened(footer(length=2)).batch(0).cells(0)
    with pytest.raises(Corrupt):
        opened(footer(length=-1))


def test_damaged_files_fail_or_have_values(data: bytes) -> None:
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        services = FakeServices()
        try:
            shard = TableShard(opened(bytes(damaged)), dict, services)
            files = Presenter(services.memory, raw=False).files(shard.fields(0))
        except (ShardfsError, IndexError):
            continue
        for file in files:
            try:
                assert len(read_all(file.blob)) == file.blob.size()
            except ShardfsError:
                continue
