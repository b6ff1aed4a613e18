from __future__ import annotations

import bz2
import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tests
from shardfs.blob import read_all
from shardfs.errors import Corrupt, OutsideSource, Unreadable, Unsupported
from shardfs.formats.mds.dataset import Mds, MdsDataset
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.stores import Entry

DATA = tests.DATA / "mds"


@pytest.fixture
def services() -> FakeServices:
    return FakeServices()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A dataset of two shards of 5 records, ``shard.0000N.mds.zstd``."""
    return Path(shutil.copytree(DATA / "comp_zstd", tmp_path / "dataset"))


def detected(folder: Path) -> bool:
    store = LocalStore(str(folder))
    return Mds.detect(store, [entry.name for entry in store.list() if not entry.is_dir])


def opened(folder: Path, services: FakeServices, names: Sequence[str] = ()) -> MdsDataset:
    store = LocalStore(str(folder))
    found = [entry.name for entry in store.list() if not entry.is_dir]
    return Mds.open(store, names or found, services)


def captions(dataset: MdsDataset, shard: int) -> list[str]:
    records = dataset.open_shard(shard)
    return [
        bytes(read_all(records.fields(index)[0].data)).decode() for index in range(len(records))
    ]


def change_index(folder: Path, **changes: Any) -> None:
    """Give the first shard of the index other values."""
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0].update(changes)
    (folder / "index.json").write_text(json.dumps(index))


# --- recognition ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"shards": [], "version": 2}', True),
        ('{"version": 2, "shards": []}', True),
        (' {\n"version" : 2 ,\n "shards" : [', True),
        ('{"extra": 1, "shards": []}', True),
        ('{"chunks": [], "config": {}}', False),
        ('{"metadata": {}, "weight_map": {}}', False),
        ('["shards"]', False),
        ("7", False),
    ],
)
def test_an_index_is_recognised_by_its_keys(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "index.json").write_text(text)
    assert detected(tmp_path) is expected


@pytest.mark.parametrize(
    ("beside", "expected"),
    [("shard.00000.mds", True), ("shard.00000.csv.gz", True), ("a.mds", False), ("x.bin", False)],
)
def test_a_broken_index_is_one_if_shards_lie_beside_it(
    tmp_path: Path, beside: str, expected: bool
) -> None:
    (tmp_path / "index.json").write_text("<html>")
    (tmp_path / beside).touch()
    assert detected(tmp_path) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("shard.00000.mds", True), ("x.mds.br", True), ("shard.00000.json", False), ("a.txt", False)],
)
def test_shards_without_an_index_are_recognised_by_name(
    tmp_path: Path, name: str, expected: bool
) -> None:
    (tmp_path / name).touch()
    assert detected(tmp_path) is expected


def test_a_long_index_is_recognised_without_reading_it(copy: Path) -> None:
    class Watched(LocalStore):
        def open(self, path: str, /) -> Any:
            blob = super().open(path)
            inner = blob.read

            class Short:
                def size(self) -> int:
                    return blob.size()

                def read(self, offset: int, length: int, /) -> memoryview:
                    assert offset + length <= 4096
                    return inner(offset, length)

            return Short()

    assert Mds.detect(Watched(str(copy)), ["index.json"])


# --- which file of a shard ---


def test_shards_are_named_after_their_files(copy: Path, services: FakeServices) -> None:
    (copy / "shard.00001.mds.zstd").touch()
    dataset = opened(copy, services)
    first, second = dataset.shards
    assert (first.name, first.file, first.records) == ("shard.00000", "shard.00000.mds.zstd", 5)
    status = (copy / "shard.00001.mds.zstd").stat()
    assert second.mtime_ns == status.st_mtime_ns
    assert second.version == LocalStore(str(copy)).stat(second.file).version
    assert dataset.open_shard(0).costly


def raw_shard(folder: Path, services: FakeServices) -> bytes:
    """The uncompressed bytes of the first shard of *folder*."""
    blob = LocalStore(str(folder)).open("shard.00000.mds.zstd")
    size = json.loads((folder / "index.json").read_text())["shards"][0]["raw_data"]["bytes"]
    return bytes(read_all(services.inflate(blob, "zstd", size)))


def test_the_uncompressed_file_is_read_where_it_is_there(
    copy: Path, services: FakeServices
) -> None:
    expected = captions(opened(copy, services), 0)
    (copy / "shard.00000.mds").write_bytes(raw_shard(copy, services))
    (copy / "shard.00000.mds.zstd").write_bytes(b"not this one")
    dataset = opened(copy, services)
    assert [ref.file for ref in dataset.shards] == ["shard.00000.mds", "shard.00001.mds.zstd"]
    assert not dataset.open_shard(0).costly
    assert captions(dataset, 0) == expected


def test_a_half_made_uncompressed_file_is_not_read(copy: Path, services: FakeServices) -> None:
    (copy / "shard.00000.mds").write_bytes(raw_shard(copy, services)[:-1])
    dataset = opened(copy, services)
    assert dataset.shards[0].file == "shard.00000.mds.zstd"
    assert len(captions(dataset, 0)) == 5
    assert dataset.owns("shard.00000.mds")


def test_a_half_made_uncompressed_file_is_better_than_none(
    copy: Path, services: FakeServices
) -> None:
    (copy / "shard.00000.mds").write_bytes(raw_shard(copy, services)[:-1])
    (copy / "shard.00000.mds.zstd").unlink()
    shard = opened(copy, services).open_shard(0)
    assert len(shard.fields(3)) == 3
    with pytest.raises(Corrupt):
        shard.fields(4)


def test_a_missing_shard_is_listed_and_says_so(copy: Path, services: FakeServices) -> None:
    (copy / "shard.00000.mds.zstd").unlink()
    dataset = opened(copy, services)
    assert (dataset.shards[0].records, dataset.shards[0].version) == (5, "")
    assert dataset.shards[0].mtime_ns == (copy / "index.json").stat().st_mtime_ns
    with pytest.raises(Corrupt, match="not there"):
        dataset.open_shard(0)
    assert len(captions(dataset, 1)) == 5


@pytest.mark.parametrize("name", ["../outside.mds", "a/../../outside.mds", "/etc/passwd", ""])
def test_a_name_that_leads_outside_is_not_followed(
    copy: Path, services: FakeServices, name: str
) -> None:
    (copy.parent / "outside.mds").write_bytes(raw_shard(copy, services))
    change_index(copy, raw_data={"basename": name, "bytes": 1}, zip_data=None)
    dataset = opened(copy, services)
    assert dataset.shards[0].file == ""
    with pytest.raises(OutsideSource):
        dataset.open_shard(0)
    assert len(captions(dataset, 1)) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "shard 0 has version 3"),
        ({"format": "parquet"}, "unknown format"),
        ({"compression": "lz4"}, "unknown compression 'lz4'"),
    ],
)
def test_a_shard_of_an_unknown_kind_fails_alone(
    copy: Path, services: FakeServices, change: dict[str, Any], message: str
) -> None:
    change_index(copy, **change)
    dataset = opened(copy, services)
    with pytest.raises(Unsupported, match=message):
        dataset.open_shard(0)
    assert len(captions(dataset, 1)) == 5


def test_another_inflated_size_than_in_the_index_is_damage(
    copy: Path, services: FakeServices
) -> None:
    change_index(copy, raw_data={"basename": "shard.00000.mds", "bytes": 6000})
    with pytest.raises(Corrupt):
        captions(opened(copy, services), 0)


@pytest.mark.parametrize("compression", ["zstd", "gz", "br", "bz2", "snappy"])
def test_text_shards_are_compressed_with_their_meta_files(
    tmp_path: Path, services: FakeServices, compression: str
) -> None:
    def pack(data: bytes) -> bytes:
        if compression in ("gz", "bz2"):
            return gzip.compress(data) if compression == "gz" else bz2.compress(data)
        codec = pa.Codec("brotli" if compression == "br" else compression)
        return bytes(codec.compress(data))

    folder = Path(shutil.copytree(DATA / "csv_plain", tmp_path / "dataset"))
    index = json.loads((folder / "index.json").read_text())
    for shard in index["shards"]:
        shard["compression"] = compression
        for part in ("data", "meta"):
            name = shard[f"raw_{part}"]["basename"]
            data = (folder / name).read_bytes()
            packed = pack(data)
            (folder / f"{name}.{compression}").write_bytes(packed)
            (folder / name).unlink()
            shard[f"zip_{part}"] = {"basename": f"{name}.{compression}", "bytes": len(packed)}
    (folder / "index.json").write_text(json.dumps(index))
    plain, packed_ = opened(DATA / "csv_plain", services), opened(folder, services)
    assert packed_.shards[0].file == f"shard.00000.csv.{compression}"
    assert packed_.shards[0].name == "shard.00000"
    assert captions(packed_, 1) == captions(plain, 1)
    assert packed_.open_shard(0).costly


# --- without an index ---


def test_shards_without_an_index_are_read_by_their_own_config(
    copy: Path, services: FakeServices
) -> None:
    expected = captions(opened(copy, services), 0)
    (copy / "shard.00000.mds").write_bytes(raw_shard(copy, services))
    (copy / "index.json").unlink()
    dataset = opened(copy, services)
    files = ["shard.00000.mds", "shard.00001.mds.zstd"]
    assert [(ref.file, ref.records) for ref in dataset.shards] == [(name, None) for name in files]
    assert captions(dataset, 0) == expected
    assert dataset.open_shard(1).columns == ["caption", "image", "label"]
    assert len(captions(dataset, 1)) == 5
    assert dataset.info()["records"] is None
    assert dataset.owns("shard.00000.mds.zstd")
    (report,) = services.reports
    assert "no index.json" in str(report)


def test_a_lone_shard_beside_its_index_is_nothing_to_report(
    copy: Path, services: FakeServices
) -> None:
    dataset = opened(copy, services, ["shard.00001.mds.zstd"])
    assert [ref.name for ref in dataset.shards] == ["shard.00001"]
    assert len(captions(dataset, 0)) == 5
    assert not services.reports


# --- the dataset ---


def test_shards_in_sub_folders_keep_them(services: FakeServices) -> None:
    dataset = opened(DATA / "subdirs_merged", services)
    names = [ref.name for ref in dataset.shards]
    assert names == [
        f"{name}/shard.0000{i}" for name, i in zip("01122", (0, 0, 1, 0, 1), strict=True)
    ]
    assert dataset.owns("1/shard.00001.mds.zstd")
    assert not dataset.owns("1/index.json")
    assert dataset.owns("1/index.json.tmp")
    assert not dataset.owns("3/other.tmp")
    assert not dataset.owns("shard.00000.mds.zstd")


def test_what_it_owns(services: FakeServices) -> None:
    dataset = opened(DATA / "csv_plain", services)
    owned = ["shard.00000.csv", "shard.00002.csv.meta", "index.json.tmp", "x.tmp"]
    assert [dataset.owns(path) for path in owned] == [True] * 4
    assert [dataset.owns(path) for path in ("index.json", "README.md", "shard.9.csv")] == [
        False
    ] * 3


def test_a_folder_that_is_listed_once_however_many_shards_it_has(
    services: FakeServices,
) -> None:
    listed: list[str] = []

    class Watched(LocalStore):
        def list(self, prefix: str = "", /) -> Sequence[Entry]:
            listed.append(prefix)
            return super().list(prefix)

    Mds.open(Watched(str(DATA / "subdirs_merged")), ["index.json"], services)
    assert sorted(listed) == ["", "0", "1", "2"]


def test_a_folder_that_cannot_be_listed_harms_only_itself(services: FakeServices) -> None:
    class Flaky(LocalStore):
        def list(self, prefix: str = "", /) -> Sequence[Entry]:
            if prefix == "1":
                raise Unreadable("no network")
            return super().list(prefix)

    dataset = Mds.open(Flaky(str(DATA / "subdirs_merged")), ["index.json"], services)
    assert [str(error) for error in services.reports] == ["no network"]
    assert [len(dataset.open_shard(index)) for index in range(5)] == [4, 4, 1, 4, 2]


def test_a_folder_that_is_not_there_harms_only_itself(
    tmp_path: Path, services: FakeServices
) -> None:
    folder = Path(shutil.copytree(DATA / "subdirs_merged", tmp_path / "dataset"))
    shutil.rmtree(folder / "1")
    (folder / "2" / "shard.00000.mds.zstd").unlink()
    (folder / "2" / "shard.00000.mds.zstd").mkdir()
    dataset = opened(folder, services)
    for index in (1, 2, 3):
        with pytest.raises(Corrupt):
            dataset.open_shard(index)
    assert len(dataset.open_shard(4)) == 2


def test_info(services: FakeServices) -> None:
    info = opened(DATA / "comp_bz2", services).info()
    assert info == {
        "formats": ["mds"],
        "compressions": ["bz2"],
        "shards": 2,
        "records": 10,
        "fields": [
            {"name": "caption", "type": "str"},
            {"name": "image", "type": "jpeg"},
            {"name": "label", "type": "int"},
        ],
    }
    assert json.dumps(info)


def test_checksums_are_those_of_the_files_that_are_there(services: FakeServices) -> None:
    checksums = list(opened(DATA / "hashes", services).checksums())
    assert {path for path, _, _ in checksums} == {"shard.00000.mds.zstd", "shard.00001.mds.zstd"}
    assert ("shard.00000.mds.zstd", "md5", "247fb462c0ec6b1da13c053b6b833c1d") in checksums
    assert len(checksums) == 8


def test_a_dataset_without_shards(tmp_path: Path, services: FakeServices) -> None:
    (tmp_path / "index.json").write_text('{"version": 2, "shards": []}')
    dataset = opened(tmp_path, services)
    assert dataset.shards == ()
    assert dataset.info()["records"] == 0
