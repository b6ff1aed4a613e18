from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from shardfs.blob import Bytes, Slice, Stored, stored_at
from shardfs.errors import Corrupt, ShardfsError, TooLarge
from shardfs.formats.litdata.arrow_rows import ArrowShard, arrow_file
from shardfs.formats.shared import columns as _columns
from shardfs.formats.shared.offsets import OffsetTable
from shardfs.model import Encoded, Plain, Scalar
from tests.fakes import FakeServices, SlowBlob
from tests.litdata_files import arrow_chunk, chunk, contents

ROWS: list[dict[str, Any]] = [
    {
        "text": "grün" * number if number % 3 else None,
        "raw": bytes(number),
        "n": number - 5,
        "x": math.nan if number == 1 else number / 4,
        "ok": number % 2 == 0 if number % 5 else None,
        "never": None,
        "tags": ["t"] * (number % 4),
        "meta": {"id": number, "deep": [{"a": None}, {"a": b"\0"}]} if number % 7 else None,
    }
    for number in range(30)
]


def shard(data: bytes, count: int = len(ROWS)) -> ArrowShard:
    return opened(Bytes(data), count)


def opened(blob: Any, count: int = len(ROWS)) -> ArrowShard:
    file = arrow_file(OffsetTable.of(blob, count))
    assert file is not None
    return ArrowShard(file, count, FakeServices(), costly=False)


def stored(value: Any) -> bytes:
    """The content of the field that stands for *value*."""
    match value:
        case bool():
            return bytes([value])
        case int():
            return struct.pack("<q", value)
        case float():
            return struct.pack("<d", value)
        case str():
            return value.encode()
        case bytes():
            return value
    text = json.dumps(value, separators=(",", ":"), default=lambda _: "AA==")
    return text.encode() + b"\n"


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}], ids=["plain", "zstd"])
@pytest.mark.parametrize("step", [256, 30, 8, 1])
def test_rows_are_records_and_columns_fields(step: int, options: dict[str, Any]) -> None:
    rows = shard(arrow_chunk(ROWS, step, **options))
    assert list(rows.columns) == list(ROWS[0])
    assert len(rows) == 30
    for index, row in enumerate(ROWS):
        there = {name: stored(value) for name, value in row.items() if value is not None}
        assert contents(rows, index) == there


def test_kinds() -> None:
    fields = shard(arrow_chunk(ROWS)).fields(2)
    assert {field.name: field.kind for field in fields} == {
        "text": Plain(".txt"),
        "raw": Encoded(),
        "n": Scalar("<i8"),
        "x": Scalar("<f8"),
        "ok": Scalar("|b1"),
        "tags": Plain(".json"),
        "meta": Plain(".json"),
    }


class StoredBytes(Bytes, Stored):
    __slots__ = ()


def test_text_and_bytes_are_slices_of_the_file() -> None:
    data = arrow_chunk([{"raw": b"needle", "n": 123456789}])
    raw, number = opened(StoredBytes(data), 1).fields(0)
    assert stored_at(raw.data) == data.index(b"needle")
    assert stored_at(number.data) == data.index(struct.pack("<q", 123456789))


def test_a_value_costs_no_more_than_its_own_bytes() -> None:
    blob = SlowBlob(arrow_chunk([{"raw": bytes(100_000)}] * 50))
    rows = opened(blob, 50)
    rows.fields(0)
    blob.reads.clear()
    (field,) = rows.fields(40)
    assert field.data.size() == 100_000
    assert blob.reads == [(blob.reads[0][0], 8)]  # two offsets


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_rows(compression: str) -> None:
    assert contents(shard(arrow_chunk(ROWS, compression=compression)), 1)["n"] == stored(-4)


def relabelled(data: bytes, rows: int, count: int) -> bytes:
    """A chunk of *rows* rows that says it has *count*."""
    return chunk(*[b""] * count) + data[4 + 4 * (rows + 1) :]


def test_batches_of_unequal_length_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="says it holds 31 records, but has 3 batches of 10"):
        shard(relabelled(arrow_chunk(ROWS, 10), 30, 31), 31)
    with pytest.raises(Corrupt, match="holds 10 rows instead of 8"):
        shard(relabelled(arrow_chunk(ROWS, 10), 30, 28), 28).fields(27)
    with pytest.raises(Corrupt, match="but has 0 batches of 0"):
        shard(relabelled(arrow_chunk(ROWS[:0]), 0, 30))


# --- what is no chunk of rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        chunk(),
        chunk(b"", b""),
        chunk(b"a", b""),
        chunk(b"", b"a"),
        chunk(b"x" + struct.pack("<I8s", 5, b"LDARW01\0")),
        chunk(b"", b"") + struct.pack("<I8s", 0, b"LDARW01\0"),
        chunk(b"", b"") + b"ab" + struct.pack("<I8s", 3, b"LDARW01\0"),
        chunk(b"", b"") + b"abc" + struct.pack("<I8s", 3, b"LDARW02\0"),
    ],
)
def test_other_chunks_are_not_taken_for_rows(data: bytes) -> None:
    assert arrow_file(OffsetTable.of(Bytes(data), None)) is None


def test_the_end_of_a_chunk_is_read_only_where_its_records_are_empty() -> None:
    blob = SlowBlob(chunk(b"a" * 1000, b"b"))
    assert arrow_file(OffsetTable.of(blob, None)) is None
    assert max(offset for offset, _ in blob.reads) < 16


# --- damage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "step"), [({}, 3), ({"compression": "zstd"}, 13)], ids=["plain", "zstd"]
)
@pytest.mark.parametrize("value", [0x01, 0xFF])
def test_no_changed_byte_does_more_than_fail(
    value: int, options: dict[str, Any], step: int
) -> None:
    whole = arrow_chunk(ROWS[:5], 2, **options)
    start, failures = whole.index(b"ARROW1"), 0
    for at in range(start, len(whole) - 12, step):
        data = bytearray(whole)
        data[at] = value
        try:
            rows = shard(bytes(data), 5)
            for index in range(5):
                contents(rows, index)
        except ShardfsError:
            failures += 1
    assert failures


def test_a_list_that_claims_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_columns, "_MAX_COST", 48)
    rows = shard(arrow_chunk([{"v": [None] * 2}, {"v": [None] * 3}]), 2)
    assert contents(rows, 0) == {"v": b"[null,null]\n"}
    with pytest.raises(TooLarge, match="more than 48 bytes"):
        contents(rows, 1)


def test_a_file_that_is_cut_short_is_corrupt() -> None:
    whole = arrow_chunk(ROWS)
    table = OffsetTable.of(Bytes(whole), None)
    file = arrow_file(table)
    assert file is not None
    for length in (0, 1, 9, 10, file.length // 2, file.length - 1):
        with pytest.raises(Corrupt):
            ArrowShard(Slice(file, 0, length), 30, FakeServices(), costly=False)
