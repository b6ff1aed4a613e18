from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shardfs
from shardfs.errors import Corrupt, ShardfsError, UsageError
from shardfs.model import Plain
from shardfs.tree.batches import Tables
from tests import DATA
from tests.fakes import FakeShard
from tests.unit.tree.test_layouts import opened

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes import Record

HUGGINGFACE = DATA / "huggingface"


def table(*records: Record | ShardfsError, media: Any = "reference", notes: list[str] | None = None,
          fields: tuple[str, ...] = ("a", "b"), kind: Plain | None = None) -> pa.Table:  # fmt: skip
    shard = opened(FakeShard(records, kind=kind or Plain(".json")))
    told = notes if notes is not None else []
    return (
        Tables(fields, media, lambda error: told.append(str(error))).read([("s", shard)]).read_all()
    )


def test_types_are_those_of_the_first_records() -> None:
    found = table({"a": b"1", "b": b"true"}, {"b": b"false"})
    assert found.schema == pa.schema([("a", pa.int64()), ("b", pa.bool_())])
    assert found.to_pydict() == {"a": [1, None], "b": [True, False]}


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        ([b"1", b"1.5"], pa.float64(), [1.0, 1.5]),
        ([b"18446744073709551615"], pa.uint64(), [2**64 - 1]),
        ([b"99999999999999999999999"], pa.uint64(), [None]),
        ([b'"x"', b"1"], pa.string(), ["x", "1"]),
        ([b'{"x":[1]}', b'{"y":"\xc3\xa9"}'], pa.string(), ['{"x":[1]}', '{"y":"é"}']),
        ([b"[1,2]"], pa.string(), ["[1,2]"]),
        ([], pa.string(), []),
    ],
)
def test_what_a_column_becomes(cells: list[bytes], kind: pa.DataType, values: list[Any]) -> None:
    found = table(*({"a": cell} for cell in cells), fields=("a",))
    assert (found.schema.field("a").type, found["a"].to_pylist()) == (kind, values)


def test_what_does_not_fit_later_is_null_and_told() -> None:
    notes: list[str] = []
    rows: list[Record] = [*[{"a": b"1"}] * 1500, {"a": b'"x"'}, {"a": b"2"}]
    found = table(*rows, fields=("a",), notes=notes)
    assert found["a"].to_pylist()[-2:] == [None, 2]
    assert found.num_rows == 1502
    assert notes == ["the field a is int64, but str in some records, which are null in the table"]


def test_damage_is_null_and_told() -> None:
    notes: list[str] = []
    bad = Corrupt("is damaged")
    found = table({"a": b"1", "b": bad}, bad, {"a": b"3", "b": b"4"}, notes=notes)
    assert found.to_pydict() == {"a": [1, None, 3], "b": [None, None, 4]}
    assert notes == ["s: record 0: b: is damaged", "s: record 1: is damaged"]


def test_media_are_references_or_bytes() -> None:
    rows: list[Record] = [{"a": b"12"}, {}]
    found = table(*rows, fields=("a",), kind=Plain(".bin"))
    assert found["a"].to_pylist() == [{"file": "s/000000/a.bin", "bytes": 2}, None]
    found = table(*rows, fields=("a",), kind=Plain(".bin"), media="bytes")
    assert found["a"].to_pylist() == [b"12", None]


@pytest.mark.parametrize("name", ["parquet_scalars_nulls", "parquet_images_hf"])
def test_scalars_of_parquet_are_as_pyarrow_has_them(name: str, tmp_path: Path) -> None:
    with shardfs.open(HUGGINGFACE / name, cache_dir=tmp_path) as dataset:
        found = dataset.arrow().read_all()
    expected = pa.concat_tables(
        [pq.read_table(path) for path in sorted((HUGGINGFACE / name).glob("*.parquet"))]
    )
    plain = [f.name for f in expected.schema if not pa.types.is_nested(f.type)
             and not pa.types.is_large_binary(f.type) and not pa.types.is_binary(f.type)]  # fmt: skip
    assert plain
    for column in plain:
        for ours, theirs in zip(
            found[column].to_pylist(), expected[column].to_pylist(), strict=True
        ):
            assert ours == theirs or ours != ours, column


def test_the_table_is_taken_by_duckdb_polars_and_pandas(tmp_path: Path) -> None:
    with shardfs.open(DATA / "litdata" / "plain_dict", cache_dir=tmp_path) as dataset:
        records = dataset.arrow(["label", "caption"])
        with duckdb.connect() as database:
            database.register("records", records)
            query = "select count(*) from records where label > 0"
            ((count,),) = database.execute(query).fetchall()
        labels = [record["label"] for record in dataset]
        assert count == sum(label > 0 for label in labels)
        frame = pl.from_arrow(dataset.arrow(["label"]))
        assert isinstance(frame, pl.DataFrame)
        assert frame["label"].to_list() == labels
        assert list(dataset.arrow().read_pandas()["label"]) == labels
        assert isinstance(dataset.arrow().read_pandas(), pd.DataFrame)
        images = dataset.arrow(["image"], media="bytes").read_all()["image"].to_pylist()
        assert images == [record["image"].read() for record in dataset]
        assert io.BytesIO(images[0]).read(2) == b"\xff\xd8"
        with pytest.raises(UsageError, match="has no field lable"):
            dataset.arrow(["lable"])
