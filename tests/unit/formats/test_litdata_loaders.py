"""Datasets for other loaders than the usual one: tokens, arrays over time."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.litdata.dataset import LitData
from shardfs.model import Array
from shardfs.options import Options
from tests.fakes import FakeServices, MemoryStore, SlowBlob
from tests.litdata_files import LEAF, chunk, content, contents, entry, index, record, spec

if TYPE_CHECKING:
    from shardfs.model import Dataset, Field

TOKENS: dict[str, Any] = {
    "item_loader": "TokensLoader",
    "data_format": ["no_header_numpy:5"],
    "data_spec": spec(LEAF),
}


def dataset(files: dict[str, bytes], services: FakeServices | None = None) -> Dataset:
    return LitData.open(MemoryStore(files), list(files), services or FakeServices())


DOCUMENTS = [struct.pack(f"<{count}H", *range(count)) for count in (3, 0, 5)]


def tokens(block: int, dim: int | None = 8, data: bytes = chunk(*DOCUMENTS)) -> Dataset:
    files = {"index.json": index(entry("t.bin", 3, 9, dim=dim), **TOKENS), "t.bin": data}
    return dataset(files, FakeServices(Options(block_size=block)))


def fields(found: Dataset) -> list[Field]:
    shard = found.open_shard(0)
    return [field for number in range(len(shard)) for field in shard.fields(number)]


def test_documents_of_tokens() -> None:
    found = fields(tokens(0))
    assert [field.kind for field in found] == [Array("<u2", (count,)) for count in (3, 0, 5)]
    assert [content(field.data) for field in found] == DOCUMENTS
    assert {field.name for field in found} == {"data"}


@pytest.mark.parametrize(("block", "count"), [(1, 8), (3, 2), (4, 2), (8, 1), (9, 0)])
@pytest.mark.parametrize("dim", [8, None])
def test_blocks_of_tokens(block: int, count: int, dim: int | None) -> None:
    opened = tokens(block, dim)
    found = fields(opened)
    assert [field.kind for field in found] == [Array("<u2", (block,))] * count
    stream = b"".join(DOCUMENTS)
    assert b"".join(content(field.data) for field in found) == stream[: 2 * block * count]
    assert opened.shards[0].records == (None if dim is None else count)


def test_an_index_that_tells_of_other_tokens_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="tells of 9 tokens"):
        tokens(2, dim=9).open_shard(0)


def test_a_block_size_does_not_matter_to_other_datasets() -> None:
    files = {"index.json": index(entry("c.bin", 1, 5)), "c.bin": chunk(record(b"text", bytes(8)))}
    shard = dataset(files, FakeServices(Options(block_size=2))).open_shard(0)
    assert contents(shard, 0) == {"a": b"text", "b": bytes(8)}


class Huge(SlowBlob):
    """A chunk of more than 4 GiB, most of which is not there."""

    def size(self) -> int:
        return 5 << 30


def test_documents_beyond_what_offsets_can_tell_are_not_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore({"index.json": index(entry("t.bin", 3, 9), **TOKENS)})
    found = LitData.open(store, ["index.json"], FakeServices())
    monkeypatch.setattr(store, "open", lambda _: Huge(chunk(*DOCUMENTS)))
    with pytest.raises(Unsupported, match="more than 4 GiB"):
        found.open_shard(0)


def test_temporal_records() -> None:
    schema = {
        "version": 1,
        "fields": {"t": {"dtype": "<i2", "shape": []}, "ok": {"dtype": "|b1", "shape": []}},
        "field_order": ["t", "ok"],
        "groups": [["ok", "t"]],
    }
    data = chunk(struct.pack("<I", 2) + struct.pack("<?xh?xh", True, 1, False, 2))
    config = {
        "item_loader": "TemporalArrayLoader",
        "data_format": ["bytes"],
        "data_spec": spec(LEAF),
    }
    found = dataset(
        {
            "index.json": index(entry("c.bin", 1, 5), temporal_schema=schema, **config),
            "c.bin": data,
        }
    )
    shard = found.open_shard(0)
    assert shard.columns == ("t", "ok")
    assert contents(shard, 0) == {"t": struct.pack("<2h", 1, 2), "ok": b"\x01\x00"}
