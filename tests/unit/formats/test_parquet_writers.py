"""Small files of many writers, beside what these were given to write: tests/data/parquet/make.py."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from shardfs.blob import Bytes
from shardfs.errors import ShardfsError, Unsupported
from tests.parquet_files import files, opened

FOLDER = Path(__file__).parents[2] / "data" / "parquet"
TRUTHS = {path.name.partition(".")[0]: path for path in sorted(FOLDER.glob("*.values.json"))}


def content(value: str | dict[str, str]) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def parts(found: Any) -> Any:
    """Files by name; numbers in JSON count as such, however they are written."""
    return {
        name: json.loads(data) if name.endswith(".json") else data for name, data in found.items()
    }


def test_there_are_files() -> None:
    writers = {json.loads(path.read_text())["writer"].split()[0] for path in TRUTHS.values()}
    assert writers == {"pyspark", "fastparquet", "polars", "duckdb", "pyarrow"}
    assert {path.stem for path in FOLDER.glob("*.parquet")} == set(TRUTHS)


@pytest.mark.parametrize("name", TRUTHS)
def test_files_show_what_their_writers_were_given(name: str) -> None:
    records = json.loads(TRUTHS[name].read_text())["records"]
    shard = opened(Bytes((FOLDER / f"{name}.parquet").read_bytes()))
    assert len(shard) == len(records)
    for row, record in enumerate(records):
        wanted = {key: content(value) for key, value in record.items()}
        assert parts(dict(shown(shard, row))) == parts(wanted), row


def shown(shard: Any, row: int) -> list[tuple[str, bytes]]:
    """The files of a record, but for fields of types that are not supported."""
    found = shard.fields(row)
    for field in list(found):
        try:
            field.data.size()
        except Unsupported:
            found.remove(field)
    return files(_Row(found), 0)


class _Row:
    def __init__(self, fields: Any) -> None:
        self.fields = lambda _: fields


def test_an_integer_of_128_bits_is_an_error_that_says_so() -> None:
    shard = opened(Bytes((FOLDER / "polars_int128.parquet").read_bytes()))
    (big,) = (field for field in shard.fields(0) if field.name == "big")
    with pytest.raises(ShardfsError, match="'big'"):
        big.data.size()
