from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from shardfs.blob import read_all
from shardfs.errors import Corrupt, OutsideSource, Unreadable
from shardfs.formats.arrow.dataset import Arrow
from tests.arrow_files import encoded
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from shardfs.model import Dataset, Shard


def rows(start: int, stop: int) -> bytes:
    return encoded(pa.table({"id": range(start, stop)}), step=2)


def indices(*numbers: int) -> bytes:
    return encoded(pa.table({"indices": pa.array(numbers, pa.uint64())}), step=2)


def state(*names: object, mapping: object = None) -> bytes:
    files = [{"filename": name} for name in names]
    mapped = None if mapping is None else [{"filename": name} for name in mapping]  # type: ignore[attr-defined]
    return json.dumps({"_data_files": files, "_indices_data_files": mapped}).encode()


def dataset(
    files: dict[str, bytes], services: FakeServices | None = None, store: MemoryStore | None = None
) -> Dataset:
    store = store or MemoryStore(files)
    names = [name for name in files if "/" not in name]
    assert Arrow.detect(store, names)
    return Arrow.open(store, names, services or FakeServices())


def ids(shard: Shard) -> list[int]:
    return [
        int.from_bytes(read_all(shard.fields(index)[0].data), "little")
        for index in range(len(shard))
    ]


def named(found: Dataset) -> list[str]:
    return [ref.name for ref in found.shards]


# --- files -------------------------------------------------------------------------------------------------


def test_each_file_is_a_shard() -> None:
    files = {
        "b.arrow": rows(0, 3),
        "A.FEATHER": encoded(pa.table({"id": [7]}), file=True, compression="lz4"),
        "c.ipc": rows(3, 4),
        "README.md": b"",
    }
    found = dataset(files)
    assert named(found) == ["A", "b", "c"]
    assert [ids(found.open_shard(number)) for number in range(3)] == [[7], [0, 1, 2], [3]]
    assert [found.open_shard(number).costly for number in range(3)] == [True, False, False]
    assert [found.owns(name) for name in files] == [True, True, True, False]
    assert found.info() == {"shards": 3}


def test_records_and_columns() -> None:
    data = encoded(pa.table({"a": [1, None], "b": ["x", "y"], "c": pa.nulls(2)}))
    shard = dataset({"x.arrow": data}).open_shard(0)
    assert list(shard.columns) == ["a", "b", "c"]
    assert shard.key(1) == "000001"
    assert [[field.name for field in shard.fields(row)] for row in range(2)] == [["a", "b"], ["b"]]
    with pytest.raises(IndexError):
        shard.fields(2)


def test_what_is_no_arrow_data_is_an_error_of_its_shard() -> None:
    found = dataset({"a.arrow": b"nonsense", "b.feather": b"FEA1....", "c.arrow": rows(0, 1)})
    with pytest.raises(Corrupt):
        found.open_shard(0)
    with pytest.raises(Corrupt, match="does not end in FEA1"):
        found.open_shard(1)
    assert ids(found.open_shard(2)) == [0]


def test_a_batch_that_is_cut_is_an_error_of_its_records() -> None:
    services = FakeServices()
    shard = dataset({"a.arrow": rows(0, 4)[:-20]}, services).open_shard(0)
    assert len(shard) == 4
    assert [ids_of(shard, row) for row in (0, 1)] == [0, 1]
    for row in (2, 3):
        with pytest.raises(Corrupt, match="inside a batch"):
            shard.fields(row)
    (report,) = services.reports
    assert str(report).startswith("a.arrow: ends at byte")


def ids_of(shard: Shard, row: int) -> int:
    return int.from_bytes(read_all(shard.fields(row)[0].data), "little")


def test_a_first_batch_that_is_cut_does_not_hide_the_shard() -> None:
    shard = dataset({"a.arrow": rows(0, 2)[:-20]}).open_shard(0)
    assert (len(shard), shard.costly) == (2, False)


def test_faults_are_reported() -> None:
    whole = rows(0, 4)
    second = whole.index(b"\xff\xff\xff\xff", whole.index(b"\xff\xff\xff\xff", 8) + 8)
    for data, words in (
        (whole, ""),
        (whole[:second], "has no mark at its end: there may have been more than 2 records"),
        (whole[: second + 9], "is damaged at byte"),
        (whole[:-20], "inside a batch of records"),
        (whole + whole, f"has {len(whole)} bytes behind its end, which are not read"),
    ):
        services = FakeServices()
        dataset({"a.arrow": data}, services).open_shard(0)
        assert [words in str(report) for report in services.reports] == ([True] if words else [])


def test_a_column_that_is_damaged_is_one_field() -> None:
    text = pa.table({"id": [5], "t": ["x" * 300], "u": ["fine"]})
    data = encoded(text)
    offsets = data.index((300).to_bytes(4, "little"))
    data = data[:offsets] + b"\xff\xff\xff\x7f" + data[offsets + 4 :]
    fields = dataset({"a.arrow": data}).open_shard(0).fields(0)
    assert [field.name for field in fields] == ["id", "t", "u"]
    assert bytes(read_all(fields[2].data)) == b"fine"
    with pytest.raises(Corrupt):
        fields[1].data.size()


LABEL = {"_type": "ClassLabel", "names": ["zero"]}


def test_features_of_a_description_beside_the_files() -> None:
    info = json.dumps({"features": {"id": LABEL}}).encode()
    shard = dataset({"a.arrow": rows(0, 1), "dataset_info.json": info}).open_shard(0)
    (field,) = shard.fields(0)
    assert field.kind.render(read_all(field.data)) == b"0\tzero\n"  # type: ignore[attr-defined]


def test_a_description_that_is_damaged_is_reported_and_no_more() -> None:
    services = FakeServices()
    files = {"a.arrow": rows(0, 1), "dataset_info.json": b"{"}
    assert ids(dataset(files, services).open_shard(0)) == [0]
    assert [str(error).partition(":")[0] for error in services.reports] == ["dataset_info.json"]


# --- the cache of `datasets` -------------------------------------------------------------------------------


def test_what_transforms_and_writers_leave_behind_is_not_shown() -> None:
    files = {
        "x-train.arrow": rows(0, 1),
        "cache-0123456789abcdef.arrow": rows(1, 2),
        "cache-0123456789abcdee.arrow": indices(0),
        "cache-0123456789abcded_00001_of_00004.arrow": indices(0),
        "cache-0123456789abcdec.arrow": b"damaged",
        "x-train-00000-of-NNNNN.arrow": rows(2, 3),
        "indices.arrow": indices(5),
    }
    found = dataset(files)
    assert named(found) == [
        "cache-0123456789abcdec",
        "cache-0123456789abcdef",
        "indices",
        "x-train",
    ]
    assert all(found.owns(name) for name in files)


# --- save_to_disk ------------------------------------------------------------------------------------------


def test_shards_are_those_of_the_state_in_its_order() -> None:
    files = {
        "state.json": state("b.arrow", "sub/a.arrow"),
        "b.arrow": rows(0, 2),
        "sub/a.arrow": rows(2, 3),
        "stale.arrow": rows(9, 10),
        "cache-0123456789abcdef.arrow": rows(9, 10),
        "dataset_info.json": json.dumps({"features": {"id": LABEL}}).encode(),
    }
    found = dataset(files)
    assert named(found) == ["b", "sub/a"]
    assert [ids(found.open_shard(number)) for number in range(2)] == [[0, 1], [2]]
    owned = [name for name in files if found.owns(name)]
    assert owned == ["b.arrow", "sub/a.arrow", "stale.arrow", "cache-0123456789abcdef.arrow"]
    assert found.info() == {"shards": 2, "features": {"id": LABEL}}


def test_an_empty_dataset_has_no_shards() -> None:
    assert named(dataset({"state.json": state()})) == []


@pytest.mark.parametrize("name", ["../x.arrow", "/etc/passwd", "a/../../x.arrow", "..", ""])
def test_names_that_lead_outside_are_refused(name: str) -> None:
    found = dataset({"state.json": state(name)})
    with pytest.raises(OutsideSource, match="leads outside"):
        found.open_shard(0)


@pytest.mark.parametrize("name", ["gone.arrow", "state.json/x.arrow"])
def test_a_file_that_is_missing_is_an_error_of_its_shard(name: str) -> None:
    found = dataset({"state.json": state(name, "a.arrow"), "a.arrow": rows(0, 1)})
    assert named(found) == [name.removesuffix(".arrow"), "a"]
    with pytest.raises(Unreadable, match="it is missing"):
        found.open_shard(0)
    assert ids(found.open_shard(1)) == [0]


@pytest.mark.parametrize(
    "content",
    [{"_data_files": 1}, {"_data_files": [1]}, {"_data_files": [{}]}, {"_data_files": [{"filename": 1}]}],
)  # fmt: skip
def test_a_state_that_is_none_is_corrupt(content: Any) -> None:
    with pytest.raises(Corrupt, match=r"^state\.json: "):
        dataset({"state.json": json.dumps(content).encode()})


def test_states_of_other_programs_are_not_taken_for_one() -> None:
    for content in (b"{}", b"[]", b"{", b"\xff"):
        store = MemoryStore({"state.json": content})
        assert not Arrow.detect(store, ["state.json"])
    store = MemoryStore({"state.json": b"{"})
    assert Arrow.detect(store, ["state.json", "dataset_info.json"])


# --- indices mappings --------------------------------------------------------------------------------------


def test_a_mapping_gives_the_logical_rows_as_one_shard() -> None:
    files = {
        "state.json": state("dataset.arrow", "more.arrow", mapping=["indices.arrow", "i2.arrow"]),
        "dataset.arrow": rows(10, 13),
        "more.arrow": rows(20, 22),
        "indices.arrow": indices(4, 0, 0, 3),
        "i2.arrow": indices(2),
    }
    found = dataset(files)
    assert named(found) == ["dataset"]
    assert found.shards[0].file == "dataset.arrow"
    shard = found.open_shard(0)
    assert ids(shard) == [21, 10, 10, 20, 12]
    assert list(shard.columns) == ["id"]
    assert not shard.costly
    assert all(found.owns(name) for name in files if name != "state.json")
    for row in (-1, 5):
        with pytest.raises(IndexError):
            shard.fields(row)


def test_a_mapping_that_leads_outside_of_the_rows_is_an_error_of_that_record() -> None:
    files = {
        "state.json": state("dataset.arrow", mapping=["indices.arrow"]),
        "dataset.arrow": rows(0, 2),
        "indices.arrow": indices(1, 2, 2**64 - 1),
    }
    shard = dataset(files).open_shard(0)
    assert ids_of(shard, 0) == 1
    for row in (1, 2):
        with pytest.raises(Corrupt, match="stands for row"):
            shard.fields(row)


def test_a_mapping_of_nothing() -> None:
    files = {
        "state.json": state("dataset.arrow", mapping=["indices.arrow"]),
        "dataset.arrow": rows(0, 2),
        "indices.arrow": indices(),
    }
    assert len(dataset(files).open_shard(0)) == 0
    del files["dataset.arrow"]
    files |= {"state.json": state(mapping=["indices.arrow"]), "indices.arrow": indices(0)}
    assert named(dataset(files)) == []


def test_a_mapping_with_other_columns_is_corrupt() -> None:
    files = {
        "state.json": state("dataset.arrow", mapping=["dataset.arrow"]),
        "dataset.arrow": rows(0, 2),
    }
    with pytest.raises(Corrupt, match="other columns than"):
        dataset(files).open_shard(0)
