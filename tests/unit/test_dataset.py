from __future__ import annotations

import errno
import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shardfs
from shardfs.dataset import Dataset, Media, Record, Shard
from shardfs.errors import Corrupt, NotFound, ShardfsError, UsageError
from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAIN = DATA / "litdata" / "plain_dict"
SOURCES = [
    "litdata/plain_dict",
    "litdata/zstd_batch",
    "mds/all_encodings",
    "webdataset/json-sidecar",
    "webdataset/nested-dir-keys",
    "webdataset/zst-multi-frame",
    "huggingface/parquet_images_hf",
    "huggingface/disk_datasetdict",
    "huggingface/jsonl_compressed",
    "huggingface/csv_quotes",
]


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Dataset]:
    with shardfs.open(PLAIN, cache_dir=tmp_path) as dataset:
        yield dataset


def test_records_are_reached_by_number_and_path(plain: Dataset) -> None:
    assert len(plain) == 14
    assert [len(shard) for shard in plain.shards] == [9, 5]
    record = plain[9]
    assert (record.path, record.key, record.index) == ("chunk-0-1/000000", "000000", 0)
    assert plain["chunk-0-1/000000"]["label"] == record["label"] == plain[-5]["label"]
    assert [r["label"] for r in plain] == [plain[n]["label"] for n in range(14)]
    for wrong in (14, -15):
        with pytest.raises(IndexError):
            plain[wrong]
    for lacking in ("chunk-0-1/000005", "chunk-0-9/000000", "chunk-0-1", ""):
        with pytest.raises(KeyError):
            plain[lacking]


def test_fields_have_the_types_of_the_format(plain: Dataset) -> None:
    assert plain.fields == {"image": "jpeg", "label": "int", "caption": "str"}


def test_values_and_media(plain: Dataset) -> None:
    record = plain[0]
    assert list(record) == ["image", "label", "caption"]
    assert (record["label"], record["caption"][:13]) == (-3, "A red bicycle")
    image = record["image"]
    assert isinstance(image, Media)
    assert (image.path, image.extension) == ("chunk-0-0/000000/image.jpg", ".jpg")
    content = image.read()
    assert len(content) == image.size
    assert content == bytes((plain.tree.root / image.path).read())
    assert image.read(2, 5) == content[2:7]
    assert image.read(image.size + 1) == b""
    with pytest.raises(KeyError):
        record["images"]


def test_shards_are_sequences(plain: Dataset) -> None:
    first, second = plain.shards
    assert [r.index for r in first[2:8:3]] == [2, 5]
    assert first[-1].index == 8
    assert first["000003"]["label"] == first[3]["label"]
    assert len(list(second)) == len(second) == 5
    with pytest.raises(IndexError):
        first[9]
    with pytest.raises(KeyError):
        first["9"]


def test_only_what_is_asked_for(plain: Dataset) -> None:
    record = next(plain.records(fields=["caption"]))
    assert dict(record) == {"caption": plain[0]["caption"]}
    assert list(record.as_json()["fields"]) == ["caption"]
    with pytest.raises(UsageError, match="has no field captoin; there are image, label, caption"):
        next(plain.records(fields=["captoin"]))
    with shardfs.open(PLAIN, columns=["label"], disk_cache=False) as chosen:
        assert list(chosen[0]) == ["label"]
        with pytest.raises(KeyError):
            chosen[0]["caption"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_format_gives_records_whose_media_are_the_files_of_the_tree(
    name: str, tmp_path: Path
) -> None:
    with shardfs.open(DATA / name, cache_dir=tmp_path) as dataset:
        records = list(dataset)
        assert len(records) == len(dataset) > 0
        for record in records[:40]:
            assert (dataset.tree.root / record.path).is_dir
            for media in every_media(record):
                assert media.read() == bytes((dataset.tree.root / media.path).read())


def every_media(record: Record) -> Iterator[Media]:
    for value in record.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Media):
                yield item


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("layout", ["record", "flat", "field"])
def test_the_lines_of_a_shard_lead_to_its_files(name: str, layout: str, tmp_path: Path) -> None:
    with shardfs.open(DATA / name, cache_dir=tmp_path, layout=layout) as dataset:
        root = dataset.tree.root
        for shard in dataset.shards:
            node = root / shard.path / ".shardfs" / "records.jsonl"
            lines = bytes(node.read()).splitlines()
            assert sum(len(each) + 1 for each in lines) == node.size
            assert [json.loads(each)["index"] for each in lines] == list(range(len(shard)))
            for each in islice(lines, 20):
                for file in every_file(json.loads(each)["fields"]):
                    assert (root / file["file"]).size == file["bytes"]


def every_file(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for value in fields.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and item.keys() == {"file", "bytes"}:
                yield item


def test_lines_are_not_listed_and_nothing_else_is_there(plain: Dataset) -> None:
    shard = plain.tree.root / "chunk-0-0"
    assert ".shardfs" not in [child.name for child in shard.children()]
    assert (shard / ".shardfs").is_dir
    assert list((shard / ".shardfs").children()) == []
    for wrong in (".shardfs/other", ".shardfs/records.jsonl/x", "000000/.shardfs"):
        with pytest.raises(ShardfsError):
            shard / wrong


def test_lines_are_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "chunk-0-0/.shardfs/records.jsonl"
    with shardfs.open(PLAIN, cache_dir=tmp_path) as dataset:
        first = bytes((dataset.tree.root / path).read())
    monkeypatch.setattr("shardfs.tree.lines.RecordLines.stream", None)
    with shardfs.open(PLAIN, cache_dir=tmp_path) as dataset:
        assert bytes((dataset.tree.root / path).read()) == first
    with shardfs.open(PLAIN, cache_dir=tmp_path, layout="flat") as other, pytest.raises(TypeError):
        (other.tree.root / path).read()  # its paths are others, so that it is made anew


def test_arrays_are_numpy_arrays(tmp_path: Path) -> None:
    with shardfs.open(DATA / "mds" / "all_encodings", cache_dir=tmp_path) as dataset:
        array = dataset[0]["nd_f32"]
        assert isinstance(array, np.ndarray)
        assert array.dtype == np.float32


def test_what_cannot_be_read_is_an_oserror_here_and_after_a_journey(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    with shardfs.open(tmp_path, disk_cache=False) as dataset:
        with pytest.raises(OSError, match=r"x\.parquet: ") as told:
            len(dataset.shards[0])
        again = pickle.loads(pickle.dumps(told.value))
        assert {OSError, Corrupt} <= set(type(again).__mro__)
        assert (str(again), again.errno) == (str(told.value), errno.EIO)


# --- other processes ---


def labels(shard: Shard) -> list[int]:
    return [record["label"] for record in shard]


FORKED = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
"""Python warns of what this is a test of."""


@FORKED
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_shards_go_to_other_processes(plain: Dataset, method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(labels, plain.shards)) == [labels(shard) for shard in plain.shards]


def test_a_shard_that_comes_back_is_the_same(plain: Dataset) -> None:
    again = pickle.loads(pickle.dumps(plain.shards[1]))
    assert (again.path, labels(again)) == (plain.shards[1].path, labels(plain.shards[1]))


def sum_of(dataset: Dataset) -> int:
    return sum(record["label"] for record in dataset)


@FORKED
def test_a_forked_process_goes_on_with_its_own(plain: Dataset) -> None:
    expected = sum_of(plain)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(sum_of(plain)))
    child.start()
    assert receiver.recv() == expected
    child.join()


def test_wrong_sources_and_options() -> None:
    with pytest.raises(NotFound, match="no such file or folder") as told:
        shardfs.open("/nowhere/at/all")
    assert FileNotFoundError in told.type.__mro__
    with pytest.raises(UsageError, match="captoin") as refused:
        shardfs.open(PLAIN, columns=["captoin"], disk_cache=False)
    assert ValueError in refused.type.__mro__
    with pytest.raises(TypeError):
        shardfs.open(PLAIN, no_such_option=1)
