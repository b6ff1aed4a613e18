"""Every field of the datasets in tests/data/mds, which mosaicml-streaming wrote, against what is known of them."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import pytest

import tests
from shardfs.blob import read_all
from shardfs.errors import ShardfsError
from shardfs.formats.mds.dataset import Mds
from shardfs.model import (
    Array,
    Dataset,
    Encoded,
    Field,
    Items,
    Kind,
    Pixels,
    Plain,
    Rendered,
    Scalar,
    Shard,
)
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices

DATA = tests.DATA / "mds"
TRUTHS = {
    path.name.removesuffix(".truth.json"): json.loads(path.read_text())
    for path in DATA.rglob("*.truth.json")
}
CASES = sorted(case for case, truth in TRUTHS.items() if "expect" not in truth)
DAMAGED = sorted(
    case
    for case, truth in TRUTHS.items()
    if truth.get("expect", {}).get("mount") in ("ok", "either")
)
FORMATS = {"|u1": "B", "|i1": "b", "<u2": "<H", "<i2": "<h", "<f2": "<e", "<u4": "<I", "<i4": "<i"}
FORMATS |= {"<f4": "<f", "<u8": "<Q", "<i8": "<q", "<f8": "<d"}


def sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def open_case(case: str) -> Dataset:
    store = LocalStore(str(DATA / case))
    names = [entry.name for entry in store.list() if not entry.is_dir]
    assert Mds.detect(store, names)
    return Mds.open(store, names, FakeServices())


def extension(kind: Kind) -> str | None:
    """The extension that a kind leads to, None where the content decides."""
    match kind:
        case Plain(suffix) | Rendered(suffix):
            return suffix
        case Encoded(suffix):
            return suffix or None
        case Items(item):
            return extension(item)
        case Array():
            return ".npy"
        case Pixels():
            return ".tif"
    return ".txt"


def plain_value(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) and set(value) == {"float"} else value


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def check_value(text: bytes, value: Any) -> None:
    """The content of a text file against a value."""
    if isinstance(value, str):
        assert text.decode() == value
    elif isinstance(value, float):
        assert same(float(text), value)
        assert text.endswith(b"\n")
    else:
        assert text == b"%d\n" % value


def check_field(field: Field, truth: dict[str, Any]) -> None:
    data, kind = read_all(field.data), field.kind
    assert field.name == truth["name"]
    if truth["stored_sha256"]:
        assert sha256(data) == truth["stored_sha256"]
    if truth.get("damaged"):
        assert kind == Plain(".bin")
        return
    assert extension(kind) in (None, truth["ext"], *truth.get("ext_ok", []))
    match kind:
        case Scalar(dtype):
            (number,) = struct.unpack(FORMATS[dtype], data)
            assert same(number, plain_value(truth["value"]))
        case Array(dtype, shape, skip):
            assert list(shape) == truth["shape"]
            assert dtype[1:] == f"{truth['dtype'][0]}{int(truth['dtype'].lstrip('uintfloa')) // 8}"
            assert sha256(data[skip:]) == truth["array_sha256"]
        case Items(_, spans):
            parts = [
                {"size": size, "sha256": sha256(data[at : at + size])}
                for at, size in filter(None, spans)
            ]
            assert parts == truth["parts"]
        case Rendered(_, render):
            check_value(render(data), plain_value(truth["value"]))
    assert ("parts" in truth) == isinstance(kind, Items)
    assert ("array_sha256" in truth) == isinstance(kind, Array)
    assert ("pixels_sha256" in truth) == isinstance(kind, Pixels)


def check_record(shard: Shard, record: dict[str, Any]) -> None:
    fields = shard.fields(record["key"])
    assert [field.name for field in fields] == [field["name"] for field in record["fields"]]
    for field, truth in zip(fields, record["fields"], strict=True):
        check_field(field, truth)


@pytest.mark.parametrize("case", CASES)
def test_every_field_is_what_was_written(case: str) -> None:
    truth, dataset = TRUTHS[case], open_case(case)
    assert [ref.file for ref in dataset.shards] == [shard["name"] for shard in truth["shards"]]
    for index, expected in enumerate(truth["shards"]):
        shard = dataset.open_shard(index)
        assert len(shard) == dataset.shards[index].records == expected["num_records"]
        for record in expected["records"]:
            check_record(shard, record)
    assert dataset.info()["records"] == truth["num_records"]


def test_the_corpus_is_there() -> None:
    assert len(CASES) == 18
    assert len(DAMAGED) == 13


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_stays_local(case: str) -> None:
    truth, dataset = TRUTHS[case], open_case(f"damaged/{case}")
    assert len(dataset.shards) == len(truth["shards"])
    for index, rule in enumerate(truth["expect"]["shards"]):
        records = {record["key"]: record for record in truth["shards"][index]["records"]}
        for key in rule["ok"]:
            check_record(dataset.open_shard(index), records[key])
        for key in rule["fail"]:
            with pytest.raises(ShardfsError):
                check_record(dataset.open_shard(index), records[key])
        for key in rule["either"]:
            try:
                check_record(dataset.open_shard(index), records[key])
            except ShardfsError:
                continue
    for index, expected in enumerate(truth["shards"]):
        phantoms = truth["expect"].get("phantom_records_must_not_exist", {}).get(expected["name"])
        if phantoms:
            assert len(dataset.open_shard(index)) <= min(phantoms)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("index_not_json", "index.json: is an HTML page"),
        ("version_3", "index.json: has version 3; only version 2 can be read"),
    ],
)
def test_a_dataset_that_cannot_be_opened_says_why(case: str, message: str) -> None:
    with pytest.raises(ShardfsError) as raised:
        open_case(f"damaged/{case}")
    assert message in str(raised.value)


def test_an_empty_folder_is_no_dataset() -> None:
    store = LocalStore(str(DATA / "damaged" / "empty_directory"))
    assert not Mds.detect(store, [".gitkeep"])
