"""Every field of the Parquet files in tests/data, which `datasets` and pyarrow wrote, as the tree shows it."""

from __future__ import annotations

import hashlib
import io
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import tests
from shardfs.errors import Corrupt
from shardfs.formats.litdata.dataset import LitData
from shardfs.formats.parquet.dataset import Parquet
from shardfs.formats.parquet.litdata import LitDataParquet
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices
from tests.parquet_files import files

HUB, LITDATA = tests.DATA / "huggingface", tests.DATA / "litdata"
CASES = sorted(path.name.removesuffix(".truth.json") for path in HUB.glob("parquet_*.truth.json"))
INDEX = "parquet_index"


def truth_of(path: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path.parent / f"{path.name}.truth.json").read_text())
    return found


def opened(path: Any, format_: Any = Parquet) -> Any:
    store = LocalStore(str(path))
    names = [entry.name for entry in store.list() if not entry.is_dir]
    assert format_.detect(store, names)
    return format_.open(store, names, FakeServices())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def close(found: Any, wanted: Any) -> bool:
    """Whether JSON is the same, but for the last digits of floats."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-3)
    return type(found) is type(wanted) and found == wanted


def check_text(text: str, field: dict[str, Any]) -> None:
    """A number, a date or the like, on a line."""
    value = field["value"]
    assert text.endswith("\n")
    text = text[:-1]
    if "label_name" in field:
        assert text == f"{value}\t{field['label_name']}"
    elif isinstance(value, float):
        assert math.isclose(float(text), value, rel_tol=1e-3)
    elif isinstance(value, bool):
        assert text == str(value).lower()
    elif isinstance(value, dict) and "$decimal" in value:
        assert Decimal(text) == Decimal(value["$decimal"])
    elif isinstance(value, dict) and "$us" in value:
        sign = "-" if text.startswith("-") else ""
        assert Decimal(sign + text.strip("-PTS")) * 10**6 == value["$us"]
    elif isinstance(value, dict) and "$iso" in value:
        assert text.rstrip("0").rstrip(".") == value["$iso"].rstrip("0").rstrip(".")
    else:
        special = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
        assert text == special.get(value, str(value))


def check(field: dict[str, Any], name: str, data: bytes) -> None:
    assert name in {field["name"] + ext for ext in (field.get("ext_any") or [field["ext"]])}
    if field["stored_sha256"]:
        assert sha256(data) == field["stored_sha256"]
    elif name.endswith(".npy"):
        array = np.load(io.BytesIO(data))
        assert list(array.shape) == field["shape"]
        assert sha256(array.tobytes()) == field["array_sha256"]
    elif name.endswith(".json"):
        assert close(json.loads(data), field["value"])
    else:
        check_text(data.decode(), field)


def check_record(truth: dict[str, Any], shown: list[tuple[str, bytes]]) -> None:
    rest = list(shown)
    for field in truth["fields"]:
        if field.get("null") or field.get("null_bytes"):
            continue
        if "parts" in field:
            for number, part in enumerate(field["parts"]):
                name, data = rest.pop(0)
                assert name.startswith(f"{field['name']}.{number}.")
                assert (len(data), sha256(data)) == (part["size"], part["sha256"])
        else:
            check(field, *rest.pop(0))
    assert not rest


def check_shards(dataset: Any, truth: dict[str, Any]) -> None:
    refs = {ref.file: number for number, ref in enumerate(dataset.shards)}
    for wanted in truth["shards"]:
        number = refs[wanted["name"]]
        if wanted.get("expected_error"):
            with pytest.raises(Corrupt):
                dataset.open_shard(number)
            continue
        shard = dataset.open_shard(number)
        assert len(shard) == wanted["num_records"]
        for record in wanted["records"]:
            check_record(record, files(shard, int(record["key"])))


@pytest.mark.parametrize("case", [*CASES, "bad_parquet_magic", "bad_parquet_truncated"])
def test_every_field_is_what_was_written(case: str) -> None:
    check_shards(opened(HUB / case), truth_of(HUB / case))


def test_parquet_files_of_a_litdata_index_are_in_its_order() -> None:
    truth, dataset = truth_of(LITDATA / INDEX), opened(LITDATA / INDEX, LitDataParquet)
    assert [ref.file for ref in dataset.shards] == [shard["name"] for shard in truth["shards"]]
    assert [ref.records for ref in dataset.shards] == [6, 5]
    check_shards(dataset, truth)


def test_an_index_is_of_parquet_files_or_of_chunks() -> None:
    for case, is_parquet in ((INDEX, True), ("plain_dict", False)):
        store = LocalStore(str(LITDATA / case))
        names = [entry.name for entry in store.list()]
        assert LitDataParquet.detect(store, names) == is_parquet
        assert LitData.detect(store, names) == (not is_parquet)
