"""Datasets of Parquet files: the files of a folder, and those that LitData's index names."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from shardfs.errors import Corrupt, OutsideSource, ShardfsError, Unreadable
from shardfs.formats.parquet.dataset import Parquet
from shardfs.formats.parquet.litdata import LitDataParquet
from tests.fakes import FakeServices, MemoryStore
from tests.parquet_files import files, written

ROWS = written(pa.table({"v": [1, 2, 3]}))
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)


def test_files_are_shards_without_their_suffix() -> None:
    store = MemoryStore({"a.parquet": ROWS, "B.PARQUET": ROWS, "c.gpq": ROWS})
    dataset = Parquet.open(store, list(store.files), FakeServices())
    assert [ref.name for ref in dataset.shards] == ["B", "a", "c"]
    assert all(len(dataset.open_shard(number)) == 3 for number in range(3))


def test_a_table_of_media_shows_these() -> None:
    table = pa.table({"file_name": ["a.jpg", "missing.jpg"], "text": ["one", "two"]})
    store = MemoryStore({"metadata.parquet": written(table), "a.jpg": JPEG})
    shard = Parquet.open(store, ["metadata.parquet"], FakeServices()).open_shard(0)
    assert files(shard, 0) == [("image.jpg", JPEG), ("text.txt", b"one")]
    with pytest.raises(Corrupt):
        files(shard, 1)


def index_of(*chunks: dict[str, Any], loader: str = "ParquetLoader") -> bytes:
    config = {"item_loader": loader, "data_format": ["int64"], "data_spec": None}
    return json.dumps({"chunks": list(chunks), "config": config}).encode()


def chunk(name: str, rows: int = 3) -> dict[str, Any]:
    return {"filename": name, "chunk_size": rows, "chunk_bytes": len(ROWS), "dim": None}


def opened(index: bytes, **more: bytes) -> tuple[Any, FakeServices]:
    store = MemoryStore({"index.json": index, "a.parquet": ROWS, "sub/b.parquet": ROWS, **more})
    services = FakeServices()
    assert LitDataParquet.detect(store, ["index.json", "a.parquet"])
    return LitDataParquet.open(store, ["index.json", "a.parquet"], services), services


def test_an_index_tells_the_order() -> None:
    dataset, services = opened(index_of(chunk("sub/b.parquet"), chunk("a.parquet")))
    assert [(ref.name, ref.file) for ref in dataset.shards] == [
        ("sub/b", "sub/b.parquet"),
        ("a", "a.parquet"),
    ]
    assert dataset.owns("sub/b.parquet")
    assert not dataset.owns("index.json")
    assert files(dataset.open_shard(1), 2) == [("v.txt", b"3\n")]
    assert services.reports == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../a.parquet", OutsideSource),
        ("/a.parquet", OutsideSource),
        ("missing.parquet", Unreadable),
        ("a.parquet/b.parquet", Unreadable),
    ],
)
def test_a_file_that_is_not_there_harms_no_other(name: str, kind: type[ShardfsError]) -> None:
    dataset, _ = opened(index_of(chunk(name), chunk("a.parquet")))
    with pytest.raises(kind):
        dataset.open_shard(0)
    assert len(dataset.open_shard(1)) == 3


def test_another_number_of_rows_than_the_index_says_is_reported() -> None:
    dataset, services = opened(index_of(chunk("a.parquet", rows=4)))
    assert len(dataset.open_shard(0)) == 3
    assert "has 3 rows" in str(services.reports[0])


@pytest.mark.parametrize(
    "index", [b"", b"[]", b"{}", b'{"config": 1}', index_of(loader="TokensLoader")]
)
def test_other_indexes_are_left_to_others(index: bytes) -> None:
    store = MemoryStore({"index.json": index})
    assert not LitDataParquet.detect(store, ["index.json"])
    assert not LitDataParquet.detect(store, [])


def test_a_damaged_index_says_so() -> None:
    with pytest.raises(Corrupt, match=r"index\.json"):
        opened(index_of({"filename": 1}))
