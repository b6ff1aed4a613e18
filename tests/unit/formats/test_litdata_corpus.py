"""Every field of the datasets in tests/data/litdata, which LitData wrote, against what is known of them."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import TYPE_CHECKING, Any

import pytest

import tests
from shardfs.blob import read_all
from shardfs.errors import NoKey, OutsideSource, ShardfsError, Unreadable
from shardfs.formats.litdata.dataset import LitData
from shardfs.model import Array, Encoded, Field, Items, Kind, Pixels, Plain, Rendered, Scalar
from shardfs.options import Options
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices

if TYPE_CHECKING:
    from shardfs.model import Dataset, Shard

DATA = tests.DATA / "litdata"
TRUTHS: dict[str, dict[str, Any]] = {
    str(path.relative_to(DATA)).removesuffix(".truth.json"): json.loads(path.read_text())
    for path in DATA.rglob("*.truth.json")
}
PARQUET = "parquet_index"
CASES = sorted(case for case in TRUTHS if "expect" not in TRUTHS[case] and case != PARQUET)
ENCRYPTED = [case for case in CASES if "password" in TRUTHS[case]]
DAMAGED = sorted(
    case
    for case, truth in TRUTHS.items()
    if truth.get("expect", {}).get("mount") in ("ok", "either")
)
NUMBERS = {"<i8": "<q", "<f8": "<d", "|b1": "?"}


def sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def open_case(case: str, **options: Any) -> Dataset:
    store = LocalStore(str(DATA / case))
    names = [entry.name for entry in store.list() if not entry.is_dir]
    assert LitData.detect(store, names)
    return LitData.open(store, names, FakeServices(Options(**options)))


def key_of(truth: dict[str, Any]) -> dict[str, Any]:
    key = truth.get("key_file")
    return {"password": truth["password"], "key_file": DATA / key} if key else {}


def plain_value(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) and set(value) == {"float"} else value


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def check_content(kind: Kind, data: memoryview, truth: dict[str, Any]) -> None:
    match kind:
        case Scalar(dtype):
            (number,) = struct.unpack(NUMBERS[dtype], data)
            assert same(number, plain_value(truth["value"]))
        case Array(dtype, shape, skip):
            letter, width = dtype[1], int(dtype[2:])
            assert len(data) == skip + width * math.prod(shape)
            if "array_sha256" not in truth:
                return
            assert list(shape) == truth["shape"]
            names = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
            assert truth["dtype"] == names[letter] + (str(8 * width) if letter != "b" else "")
            assert sha256(data[skip:]) == truth["array_sha256"]
        case Items(_, spans):
            parts = [
                {"size": size, "sha256": sha256(data[at : at + size])}
                for at, size in filter(None, spans)
            ]
            assert parts == truth["parts"]
        case Rendered(".json", render):
            assert json.loads(render(data)) == truth["value"]
        case Plain(".json"):
            assert json.loads(bytes(data)) == truth["value"]
        case Plain(suffix):
            assert suffix == truth["ext"]
        case Pixels():
            if "pixels_sha256" in truth:
                assert sha256(data[12 + len(truth["mode"]) :]) == truth["pixels_sha256"]
        case _:
            assert isinstance(kind, Encoded)
            assert truth["logical"].partition(":")[0] not in ("int", "float", "str", "pickle")


def check_field(field: Field, truth: dict[str, Any]) -> None:
    data, kind = read_all(field.data), field.kind
    assert field.name == (".".join(map(str, truth["path"])) or "data")
    assert field.data.size() == len(data)
    if truth["stored_sha256"]:
        assert len(data) == truth["stored_size"]
        assert sha256(data) == truth["stored_sha256"]
    check_content(kind, data, truth)
    assert ("parts" in truth) == isinstance(kind, Items)
    assert (truth["ext"] == ".npy") == isinstance(kind, Array)
    assert (truth["logical"] == "pil") == isinstance(kind, Pixels)
    assert (truth["logical"] in ("int", "float", "bool")) == isinstance(kind, Scalar)


def check_record(shard: Shard, record: dict[str, Any]) -> None:
    fields = shard.fields(record["key"])
    truths = [truth for truth in record["fields"] if not truth.get("null")]
    assert len(fields) == len(truths)
    for field, truth in zip(fields, truths, strict=True):
        check_field(field, truth)


def test_the_corpus_is_there() -> None:
    assert (len(CASES), len(ENCRYPTED), len(DAMAGED)) == (30, 2, 16)


@pytest.mark.parametrize("case", CASES)
def test_every_field_is_what_was_written(case: str) -> None:
    truth = TRUTHS[case]
    dataset = open_case(case, **key_of(truth))
    assert [ref.file for ref in dataset.shards] == [shard["name"] for shard in truth["shards"]]
    for index, expected in enumerate(truth["shards"]):
        shard = dataset.open_shard(index)
        assert len(shard) == dataset.shards[index].records == expected["num_records"]
        for record in expected["records"]:
            check_record(shard, record)
    assert dataset.info()["records"] == truth["num_records"]


@pytest.mark.parametrize("case", ENCRYPTED)
@pytest.mark.parametrize("options", [{}, {"password": "wrong"}], ids=["no key", "no salt"])
def test_without_the_key_there_are_names_and_nothing_else(
    case: str, options: dict[str, Any]
) -> None:
    dataset = open_case(case, **options)
    for index, expected in enumerate(TRUTHS[case]["shards"]):
        shard = dataset.open_shard(index)
        assert len(shard) == expected["num_records"]
        for record in expected["records"]:
            fields = shard.fields(record["key"])
            assert [field.name for field in fields] == [field["name"] for field in record["fields"]]
            for field in fields:
                with pytest.raises(NoKey, match=r"is encrypted .*missing: .*--key-file"):
                    read_all(field.data)
                with pytest.raises(NoKey):
                    field.data.size()


@pytest.mark.parametrize("case", ENCRYPTED)
def test_a_wrong_password_opens_nothing(case: str) -> None:
    shard = open_case(case, **key_of(TRUTHS[case]) | {"password": "wrong"}).open_shard(0)
    (field, *_) = shard.fields(0)
    with pytest.raises(NoKey, match="the password or the key file is wrong"):
        read_all(field.data)


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_stays_local(case: str) -> None:
    truth, dataset = TRUTHS[case], open_case(case)
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
        phantoms = truth["expect"].get("phantom_records_must_not_exist", {}).get(rule["name"])
        if phantoms:
            assert len(dataset.open_shard(index)) <= min(phantoms)


def test_records_that_the_chunk_has_and_the_index_counts_wrongly_are_readable() -> None:
    shard = open_case("damaged/chunk_size_too_big").open_shard(0)
    assert len(shard) == 6
    for record in TRUTHS["damaged/chunk_size_too_big"]["shards"][0]["records"]:
        check_record(shard, record)


def test_a_file_name_that_leads_outside_is_a_shard_that_cannot_be_opened() -> None:
    dataset = open_case("damaged/filename_dotdot")
    assert dataset.shards[0].name == "filename_dotdot.outside"
    with pytest.raises(OutsideSource, match="leads outside"):
        dataset.open_shard(0)


def test_a_missing_chunk_is_a_shard_that_cannot_be_opened() -> None:
    dataset = open_case("damaged/missing_chunk")
    assert dataset.shards[0].name == "chunk-0-0"
    with pytest.raises(Unreadable, match=r"index\.json tells of it, but it is missing"):
        dataset.open_shard(0)


def test_an_index_that_is_no_json_is_named() -> None:
    with pytest.raises(ShardfsError) as raised:
        open_case("damaged/index_not_json")
    assert str(raised.value).startswith("index.json: is no JSON")


def test_parquet_chunks_are_left_to_their_own_format() -> None:
    assert not LitData.detect(LocalStore(str(DATA / PARQUET)), ["index.json"])


def test_an_empty_folder_is_no_dataset() -> None:
    store = LocalStore(str(DATA / "damaged" / "empty_directory"))
    assert not LitData.detect(store, [".gitkeep"])
