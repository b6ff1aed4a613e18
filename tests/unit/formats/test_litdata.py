from __future__ import annotations

import gc
import json
import struct
import weakref
from typing import Any

import pytest
import zstandard

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, ShardfsError, Unreadable, Unsupported
from shardfs.formats.litdata.chunk import ChunkOpener
from shardfs.formats.litdata.dataset import LitData, LitDataset
from shardfs.formats.litdata.index import Chunk, parse_index
from shardfs.model import Encoded
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices, MemoryStore, SlowBlob
from tests.litdata_files import (
    arrow_chunk,
    chunk,
    contents,
    entry,
    framed,
    index,
    record,
)

ROWS = [record(b"text %d" % number, struct.pack("<q", number)) for number in range(4)]
PLAIN = chunk(*ROWS)


def dataset(
    files: dict[str, bytes], services: FakeServices | None = None, names: list[str] | None = None
) -> LitDataset:
    store = MemoryStore(files)
    found = LitData.open(store, names or list(files), services or FakeServices())
    assert isinstance(found, LitDataset)
    return found


def one(data: bytes, file: str = "chunk-0-0.bin", size: int = 0, **config: Any) -> LitDataset:
    return dataset({"index.json": index(entry(file, 4, size or len(data)), **config), file: data})


def texts(found: LitDataset, shard: int = 0) -> list[bytes]:
    opened = found.open_shard(shard)
    return [contents(opened, number)["a"] for number in range(len(opened))]


EXPECTED = [b"text 0", b"text 1", b"text 2", b"text 3"]


# --- layouts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "config", "costly"),
    [
        (PLAIN, {}, False),
        (framed(*ROWS, step=3), {"compression": "zstd", "compression_level": "batch"}, True),
        (framed(*ROWS, step=3), {}, True),
        # what some versions write with level "batch" all the same
        (PLAIN, {"compression": "zstd", "compression_level": "batch"}, False),
        (
            chunk(*map(zstandard.compress, ROWS)),
            {"compression": "zstd", "compression_level": "sample"},
            True,
        ),
        (PLAIN, {"compression": "zstd", "compression_level": "sample"}, True),
        (arrow_chunk([{"a": f"text {number}"} for number in range(4)]), {}, False),
        (arrow_chunk([{"a": f"text {number}"} for number in range(4)]), {"ipc_compression": "zstd"}, True),
    ],
)  # fmt: skip
def test_the_bytes_of_a_chunk_decide_its_layout(
    data: bytes, config: dict[str, Any], costly: bool
) -> None:
    found = one(data, **config)
    assert texts(found) == EXPECTED
    assert found.open_shard(0).costly == costly


class Tracked(Bytes):
    """Bytes of which a test can see when they are let go."""


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        framed(*ROWS, step=3),
        chunk(*map(zstandard.compress, ROWS)),
        zstandard.compress(PLAIN),
        arrow_chunk([{"a": "text", "b": [1]}] * 4, compression="zstd"),
    ],
    ids=["plain", "batch", "sample", "whole", "arrow"],
)
def test_a_shard_that_is_no_longer_used_lets_go_of_its_file_at_once(data: bytes) -> None:
    config = parse_index(index(compression="zstd", compression_level="sample")).config
    blob = Tracked(data)
    alive = weakref.ref(blob)
    shard = ChunkOpener(config, FakeServices()).open(blob, Chunk("c", "c", 4, len(PLAIN)))
    contents(shard, 3)
    gc.disable()
    try:
        del shard, blob
        assert alive() is None
    finally:
        gc.enable()


def test_layouts_mix_within_a_dataset() -> None:
    chunks = [PLAIN, framed(*ROWS, step=2), arrow_chunk([{"a": "row"}] * 4)]
    files = {f"chunk-0-{number}.bin": data for number, data in enumerate(chunks)}
    entries = [entry(file, 4, len(data)) for file, data in files.items()]
    found = dataset({"index.json": index(*entries), **files})
    assert [texts(found, shard)[0] for shard in range(3)] == [b"text 0", b"text 0", b"row"]


@pytest.mark.parametrize("file", ["chunk-0-0.zstd.bin", "chunk-0-0.zstd:19.bin"])
def test_whole_chunks_may_be_compressed(file: str) -> None:
    found = one(zstandard.compress(PLAIN), file, len(PLAIN), compression="zstd")
    assert texts(found) == EXPECTED
    assert found.shards[0].name == "chunk-0-0"
    assert found.open_shard(0).costly


def test_a_compressed_chunk_that_is_larger_than_the_index_says_is_corrupt() -> None:
    packed = zstandard.compress(PLAIN)
    found = one(packed, "chunk-0-0.zstd.bin", len(PLAIN) - 1, compression="zstd")
    with pytest.raises(Corrupt):
        texts(found)


def test_a_compressed_chunk_that_is_smaller_than_the_index_says_shows_the_records_it_has() -> None:
    packed = zstandard.compress(PLAIN)
    found = one(packed, "chunk-0-0.zstd.bin", len(PLAIN) + 1, compression="zstd")
    assert texts(found) == EXPECTED


# --- the index ---------------------------------------------------------------------------------------------


def test_shards_are_in_the_order_of_the_index_and_have_the_stamps_of_their_files() -> None:
    entries = [entry("chunk-10-0.bin", 4, 5), entry("chunk-2-0.bin", 3, 5)]
    found = dataset(
        {"index.json": index(*entries), "chunk-10-0.bin": PLAIN, "chunk-2-0.bin": PLAIN}
    )
    assert [(ref.name, ref.file, ref.records) for ref in found.shards] == [
        ("chunk-10-0", "chunk-10-0.bin", 4),
        ("chunk-2-0", "chunk-2-0.bin", 3),
    ]
    assert {(ref.version, ref.mtime_ns) for ref in found.shards} == {(f"v{len(PLAIN)}", 1)}


def test_opening_reads_the_index_and_nothing_else() -> None:
    entries = [entry(f"chunk-0-{number}.bin", 4, 5) for number in range(100)]
    files = {"index.json": index(*entries)} | {row["filename"]: PLAIN for row in entries}
    store = MemoryStore(files)
    LitData.open(store, list(files), FakeServices())
    assert store.opened == ["index.json"]


def test_a_shard_opens_by_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = SlowBlob(chunk(*[record(bytes(1000), bytes(8))] * 1000))
    store = MemoryStore({"index.json": index(entry("chunk-0-0.bin", 1000, blob.size()))})
    found = LitData.open(store, ["index.json"], FakeServices())
    monkeypatch.setattr(store, "open", lambda _: blob)
    assert len(found.open_shard(0)) == 1000
    assert sum(length for _, length in blob.reads) < 64


def test_a_file_that_a_reader_decompressed_stands_in_for_the_missing_one() -> None:
    entries = [entry("chunk-0-0.zstd.bin", 4, len(PLAIN))]
    found = dataset({"index.json": index(*entries, compression="zstd"), "chunk-0-0.bin": PLAIN})
    assert found.shards[0].file == "chunk-0-0.bin"
    assert texts(found) == EXPECTED
    assert not found.open_shard(0).costly


def test_the_indexed_file_wins_over_the_decompressed_one() -> None:
    files = {"chunk-0-0.zstd.bin": zstandard.compress(PLAIN), "chunk-0-0.bin": b"unfinished"}
    entries = [entry("chunk-0-0.zstd.bin", 4, len(PLAIN))]
    found = dataset({"index.json": index(*entries, compression="zstd"), **files})
    assert texts(found) == EXPECTED
    assert found.owns("chunk-0-0.bin")


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        ("chunk-0-0.bin", True),
        ("chunk-0-0.bin.cnt", True),
        ("chunk-0-0.bin.cnt.lock", True),
        ("chunk-0-0.bin.decompress.lock", True),
        ("chunk-0-0.bin.tmp.123", True),
        ("index.json.tmp", True),
        ("0.index.json", True),
        ("12-index.json", True),
        (".checkpoints", True),
        (".checkpoints/checkpoint-0.json", True),
        ("keys", True),
        ("keys/shard-00000.parquet", True),
        ("keys.parquet", True),
        ("3.keys.parquet", True),
        ("3-keys.parquet", True),
        ("index.json", False),
        ("README.md", False),
        ("chunk-0-1.bin", False),
        ("sub/x.lock", False),
        ("keys/data.parquet", False),
        ("my-index.json", False),
    ],
)
def test_chunks_and_leftovers_are_not_shown_as_files(path: str, owned: bool) -> None:
    whole = json.loads(index(entry("chunk-0-0.bin", 4, 5))) | {"keys": {"num_shards": 1}}
    found = dataset({"index.json": json.dumps(whole).encode(), "chunk-0-0.bin": PLAIN})
    assert found.owns(path) == owned


def test_a_folder_of_keys_is_the_datasets_only_if_the_index_says_so() -> None:
    assert not one(PLAIN).owns("keys")


def test_more_records_than_the_index_tells_of_are_corrupt() -> None:
    found = dataset({"index.json": index(entry("c.bin", 3, 5)), "c.bin": PLAIN})
    with pytest.raises(Corrupt, match="says it holds 4 records, but the index says 3"):
        found.open_shard(0)


def test_a_missing_chunk_is_unreadable() -> None:
    found = dataset({"index.json": index(entry("c.bin", 3, 5))})
    assert found.shards[0].version == ""
    with pytest.raises(Unreadable, match="missing"):
        found.open_shard(0)


def test_info_is_fit_for_json() -> None:
    found = one(PLAIN, encryption={"algorithm": "rsa", "level": "sample"})
    info = json.loads(json.dumps(found.info()))
    assert (info["records"], info["shards"]) == (4, 1)
    assert info["fields"] == [{"name": "a", "type": "str"}, {"name": "b", "type": "int"}]
    assert info["encryption"] == "rsa (sample)"


def test_an_unknown_encryption_is_refused() -> None:
    with pytest.raises(Unsupported):
        one(PLAIN, encryption={"algorithm": "rot13", "level": "sample"})


# --- detection ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"index.json": index()}, True),
        ({"index.json": b'{"chunks": 5}'}, True),
        ({"index.json": b'{"shards": [], "version": 2}'}, False),
        ({"index.json": b"no json"}, False),
        ({"index.json": b"no json", "chunk-0-0.bin": b""}, True),
        ({"chunk-0-0.bin": b""}, True),
        ({"chunk-0-0-u12.zstd:3.bin": b""}, True),
        ({"chunk-a-0.bin": b""}, False),
        ({"other.bin": b"", "README.md": b""}, False),
        ({}, False),
    ],
)
def test_what_is_a_dataset(files: dict[str, bytes], expected: bool) -> None:
    assert LitData.detect(MemoryStore(files), list(files)) == expected


@pytest.mark.parametrize("text", [b"no json", b'{"chunks": 5}', b'{"chunks": []}', b"[]"])
def test_a_damaged_index_is_named(text: bytes) -> None:
    with pytest.raises(ShardfsError) as raised:
        dataset({"index.json": text, "chunk-0-0.bin": PLAIN})
    assert str(raised.value).startswith("index.json: ")


# --- chunks without an index -------------------------------------------------------------------------------


def test_a_chunk_without_an_index_has_numbered_fields() -> None:
    services = FakeServices()
    found = dataset({"chunk-0-0.bin": PLAIN, "README.md": b""}, services)
    assert [(ref.name, ref.records) for ref in found.shards] == [("chunk-0-0", None)]
    shard = found.open_shard(0)
    assert shard.columns == ("0", "1")
    assert contents(shard, 2) == {"0": b"text 2", "1": struct.pack("<q", 2)}
    assert {field.kind for field in shard.fields(2)} == {Encoded()}
    (report,) = services.reports
    assert str(report) == (
        "chunk-0-0.bin is shown without names and types of fields: there is no index.json beside it"
    )


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("chunk-0-0.zstd.bin", zstandard.compress(PLAIN)),
        ("chunk-0-0.bin", framed(*ROWS, step=3)),
        ("chunk-0-0.bin", chunk(*map(zstandard.compress, ROWS))),
    ],
)
def test_compression_is_seen_without_an_index(file: str, data: bytes) -> None:
    shard = dataset({file: data}).open_shard(0)
    assert [contents(shard, number)["0"] for number in range(len(shard))] == EXPECTED


def test_arrow_rows_have_names_without_an_index() -> None:
    shard = dataset({"chunk-0-0.bin": arrow_chunk([{"a": "row"}])}).open_shard(0)
    assert contents(shard, 0) == {"a": b"row"}


def test_a_file_that_is_no_chunk_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        dataset({"chunk-0-0.bin": b"gAAAAABtoken"}).open_shard(0)


def test_a_chunk_that_was_named_alone_is_read_by_the_index_beside_it() -> None:
    files = {
        "index.json": index(entry("chunk-0-0.bin", 4, 5), entry("chunk-0-1.zstd.bin", 4, 5)),
        **dict.fromkeys(("chunk-0-0.bin", "chunk-0-1.bin", "chunk-0-2.bin"), PLAIN),
    }
    services = FakeServices()
    found = dataset(files, services, ["chunk-0-2.bin", "chunk-0-1.bin"])
    assert [(ref.name, ref.records) for ref in found.shards] == [
        ("chunk-0-2", None),
        ("chunk-0-1", 4),
    ]
    assert [texts(found, shard) for shard in (0, 1)] == [EXPECTED, EXPECTED]
    assert not services.reports


def test_a_damaged_index_beside_a_chunk_is_reported() -> None:
    services = FakeServices()
    found = dataset({"index.json": b"{", "chunk-0-0.bin": PLAIN}, services, ["chunk-0-0.bin"])
    assert contents(found.open_shard(0), 0)["0"] == b"text 0"
    assert "index.json: is no JSON" in str(services.reports[0])


def test_it_reads_a_folder(tmp_path: Any) -> None:
    (tmp_path / "index.json").write_bytes(index(entry("c.bin", 4, len(PLAIN))))
    (tmp_path / "c.bin").write_bytes(PLAIN)
    found = LitData.open(LocalStore(str(tmp_path)), ["index.json"], FakeServices())
    assert isinstance(found, LitDataset)
    assert texts(found) == EXPECTED
    assert found.shards[0].mtime_ns == (tmp_path / "c.bin").stat().st_mtime_ns
