"""Pages of Parquet files made by hand: what is read of them, how much of the file that takes, and damage."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from shardfs.blob import no_wait, read_all, stored_at
from shardfs.errors import Corrupt, Unsupported, WouldBlock
from shardfs.formats.parquet import chunk as _parquet_chunk
from tests import thrift
from tests.fakes import FakeServices, SlowBlob
from tests.parquet_files import (
    BOOLEAN,
    BYTE_ARRAY,
    INT32,
    INT64,
    LIST,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    CountingBlob,
    Made,
    contents,
    dictionary,
    element,
    files,
    levels,
    made,
    opened,
    page,
    page_v2,
    read_back,
    root,
    texts,
    written,
)

TEXT = [root(1), element("v", OPTIONAL, type=BYTE_ARRAY)]
TAGS = [
    root(1),
    element("v", OPTIONAL, children=1, converted=LIST),
    element("list", REPEATED, children=1),
    element("element", OPTIONAL, type=INT32),
]


def column(*pages: bytes, values: int, rows: int | None = None, **said: Any) -> bytes:
    """A file of one nullable column of byte strings."""
    chunk = Made(b"".join(pages), values, **said)
    return made(TEXT, [(values if rows is None else rows, [chunk])])


def ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


# --- what is read ------------------------------------------------------------------------------------------


def test_pages_of_version_1_and_2_stand_side_by_side() -> None:
    first = page(levels([1, 0]) + texts(b"a"), 2)
    second = page_v2(texts(b"b"), 2, 2, definition=b"\x02\x01\x02\x00")
    data = column(first, second, values=4)
    assert contents(data) == read_back(data)["v"].to_pylist() == [b"a", None, b"b", None]


def test_a_dictionary_of_which_the_metadata_do_not_tell() -> None:
    entries = dictionary(texts(b"a", b"bc"), 2)
    indices = page(levels([1, 1, 0, 1]) + b"\x01" + b"\x02\x01\x04\x00", 4, encoding=8)
    data = column(entries, indices, values=4)
    assert contents(data) == [b"bc", b"a", None, b"a"]


def test_a_page_without_values_needs_no_dictionary_indices() -> None:
    entries = dictionary(texts(b"a"), 1)
    data = column(entries, page(levels([0, 0]), 2, encoding=8), values=2)
    assert contents(data) == [None, None]


def test_index_pages_are_passed_over() -> None:
    index = thrift.struct({1: thrift.I32(1), 2: thrift.I32(3), 3: thrift.I32(3), 6: {}}) + b"xyz"
    data = column(index, page(levels([1]) + texts(b"a"), 1), values=1)
    assert contents(data) == [b"a"]


def test_a_row_goes_on_in_the_next_pages() -> None:
    """As writers of version 1 may leave it: [1, 2, 3, 4, 5], [6], []."""
    pages = [
        page(levels([0, 1]) + levels([3, 3]) + ints(1, 2), 2),
        page(levels([1, 1]) + levels([3, 3]) + ints(3, 4), 2),
        page(levels([1, 0, 0]) + levels([3, 3, 1]) + ints(5, 6), 3),
    ]
    data = made(TAGS, [(3, [Made(b"".join(pages), 7, INT32)])])
    shown = [files(opened(data), row)[0][1] for row in range(3)]
    assert shown == [b"[1,2,3,4,5]\n", b"[6]\n", b"[]\n"]
    assert read_back(data)["v"].to_pylist() == [[1, 2, 3, 4, 5], [6], []]


def test_truth_values_of_both_encodings() -> None:
    schema = [root(1), element("v", REQUIRED, type=BOOLEAN)]
    bits = page(bytes([0b0000_0101, 0b0000_0010]), 10)
    runs = page(struct.pack("<I", 4) + b"\x06\x01\x04\x00", 5, encoding=3)
    data = made(schema, [(15, [Made(bits + runs, 15, BOOLEAN)])])
    wanted = [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]
    assert contents(data) == [bytes([value]) for value in wanted]


# --- how much is read --------------------------------------------------------------------------------------


def pictures(count: int, size: int) -> pa.Table:
    media = [
        {"bytes": b"\xff\xd8\xff" + bytes([n % 256]) * size, "path": f"{n}.jpg"}
        for n in range(count)
    ]
    return pa.table({"image": media, "label": list(range(count))})


PLAIN = {"compression": {"image.bytes": "none", "image.path": "none", "label": "snappy"}}


@pytest.mark.parametrize("index", [True, False])
def test_one_image_takes_its_bytes_and_little_more(index: bool) -> None:
    data = written(
        pictures(400, 40_000),
        use_dictionary=["label"],
        write_page_index=index,
        write_batch_size=16,
        **PLAIN,
    )
    file = CountingBlob(data)
    shard = opened(file)
    for row in (399, 7, 200):
        file.reads.clear()
        (field,) = (field for field in shard.fields(row) if field.name == "image")
        assert field.data.size() == 40_003
        assert file.total() < 64 << 10
        value = read_all(field.data)
        assert bytes(value) == b"\xff\xd8\xff" + bytes([row % 256]) * 40_000
        assert file.total() < 40_003 + (64 << 10)
        start = stored_at(field.data)
        assert start is not None
        assert data[start : start + 40_003] == bytes(value)


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_label_takes_nothing_of_the_images(compression: str) -> None:
    data = written(pictures(50, 40_000), compression=compression)
    metadata = pa.parquet.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    image = metadata.column(0)
    assert image.path_in_schema == "image.bytes"
    start = image.dictionary_page_offset or image.data_page_offset
    file = CountingBlob(data)
    shard = opened(file)
    for row in (0, 49):
        (label,) = (field for field in shard.fields(row) if field.name == "label")
        assert bytes(read_all(label.data)) == row.to_bytes(8, "little")
    assert file.total(start, start + image.total_compressed_size) == 0
    assert file.total() < 32 << 10


def test_a_column_of_long_values_that_has_no_nulls_is_not_looked_at_for_them() -> None:
    schema = [
        root(2),
        element("v", REQUIRED, type=BYTE_ARRAY),
        element("w", OPTIONAL, type=BYTE_ARRAY),
    ]
    known = Made(page(levels([1]) + texts(b"b"), 1), 1, said={12: {3: 0}, 6: 1 << 20})
    file = CountingBlob(made(schema, [(1, [Made(page(texts(b"a"), 1), 1), known])]))
    shard = opened(file)
    shard.fields(0)
    file.reads.clear()
    fields = shard.fields(0)
    assert file.reads == []
    assert [bytes(read_all(field.data)) for field in fields] == [b"a", b"b"]


def test_a_page_is_decompressed_and_no_more() -> None:
    table = pa.table({"v": [bytes([n]) * 100_000 for n in range(100)]})
    data = written(table, compression="zstd", use_dictionary=False, write_batch_size=1)
    services = FakeServices()
    shard = opened(data, services)
    assert bytes(read_all(shard.fields(60)[0].data)) == bytes([60]) * 100_000
    assert services.memory.total < 4 << 20  # of 10 MB


def test_many_rows_cost_nothing_before_they_are_looked_at() -> None:
    count = 10_000_000
    body = struct.pack("<I", 5) + thrift.varint(count << 1) + b"\0"
    schema = [root(1), element("v", OPTIONAL, type=INT64)]
    file = CountingBlob(made(schema, [(count, [Made(page(body, count), count, INT64)])]))
    shard = opened(file)
    assert len(shard) == count
    assert shard.key(count - 1) == "9999999"
    assert shard.fields(count - 1) == []


def test_pages_that_had_to_be_passed_over_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parquet_chunk, "_WORTH", 10_000)
    kept: dict[str, Any] = {}

    class Remembering(FakeServices):
        def remember(self, store: Any, entry: Any, what: str, build: Any, /) -> Any:
            kept[what] = kept.get(what) or super().remember(store, entry, what, build)
            return kept[what]

    table = pa.table({"v": [bytes([n]) * 1000 for n in range(200)]})
    data = written(
        table, compression="none", use_dictionary=False, data_page_size=1, write_batch_size=1
    )
    for first in (True, False):
        file = CountingBlob(data)
        shard = opened(file, Remembering())
        file.reads.clear()
        assert bytes(read_all(shard.fields(150)[0].data)) == bytes([150]) * 1000
        assert (len(file.reads) > 200) == first
    assert list(kept) == ["parquet pages 2 0"]


def test_nothing_is_awaited_where_that_is_forbidden() -> None:
    table = pa.table({"v": [b"abc"] * 10, "w": [[1, 2]] * 10})
    shard = opened(SlowBlob(written(table)))
    with no_wait(), pytest.raises(WouldBlock):
        [read_all(field.data) for field in shard.fields(3)]
    assert [bytes(read_all(field.data)) for field in shard.fields(3)] == [b"abc", b"[1,2]\n"]


@pytest.mark.parametrize(
    ("writer", "is_packed"),
    [
        (b"parquet-cpp version 1.5.1-SNAPSHOT", True),
        (b"parquet-cpp-arrow version 10.0.0", False),
        (b"parquet-mr version 1.10.1", False),
    ],
)
def test_values_that_compression_left_as_long_as_they_were(writer: bytes, is_packed: bool) -> None:
    values = [b"ABCDEFGHIJK"] * 2
    body, definition = texts(*values), b"\x04\x01"
    packed = bytes(pa.compress(body, codec="zstd", asbytes=True))
    assert len(packed) == len(body)
    page_ = page_v2(packed if is_packed else body, 2, 2, definition=definition)
    chunk = Made(page_, 2, said={4: thrift.I32(6)})
    assert contents(made(TEXT, [(2, [chunk])], writer=writer)) == values


# --- damage ------------------------------------------------------------------------------------------------

GOOD = page(levels([1]) + texts(b"a"), 1)


DAMAGE = {
    "no header": b"\xff" * 100,
    "no page of data": thrift.struct({1: thrift.I32(9), 2: thrift.I32(0), 3: thrift.I32(0)}),
    "more bytes than the chunk": page(levels([1]) + texts(b"b"), 1, stored=1000),
    "fewer than none": page(levels([1]) + texts(b"b"), 1, stored=-1),
    "fewer than none of decompressed ones": page(levels([1]) + texts(b"b"), 1, size=-1),
    "fewer values than none": page(levels([1]) + texts(b"b"), -1),
    "levels that end early": page(levels([]) + texts(b"b"), 1),
    "levels longer than the page": page(struct.pack("<I", 1 << 30) + b"\x02\x01", 1),
    "a level above the highest": page(levels([2]) + texts(b"b"), 1),
    "texts that end early": page(levels([1]) + struct.pack("<I", 1 << 30) + b"b", 1),
    "no texts at all": page(levels([1]), 1),
    "no dictionary": page(levels([1]) + b"\x01\x02\x00", 1, encoding=8),
    "levels of version 2 longer than the page": page_v2(b"", 1, 1, definition=b"\x02\x01")[:-2],
    "levels of version 2 that end early": page_v2(texts(b"b"), 1, 1, definition=b"\x00\x01"),
    "rows of version 2 fewer than none": page_v2(texts(b"b"), 1, -1, definition=b"\x02\x01"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_that_of_the_page_it_is_in(name: str) -> None:
    shard = opened(column(GOOD, DAMAGE[name], values=2))
    assert bytes(read_all(shard.fields(0)[0].data)) == b"a"
    with pytest.raises(Corrupt):
        [read_all(field.data) for field in shard.fields(1)]


@pytest.mark.parametrize("index", [2, 1 << 20])
def test_an_entry_that_the_dictionary_lacks(index: int) -> None:
    entries = dictionary(texts(b"a", b"bc"), 2)
    body = b"\x18" + b"\x02" + index.to_bytes(3, "little") + b"\x02\0\0\0"
    data = column(entries, page(levels([1, 1]) + body, 2, encoding=8), values=2)
    shard = opened(data)
    with pytest.raises(Corrupt):
        read_all(shard.fields(0)[0].data)
    assert bytes(read_all(shard.fields(1)[0].data)) == b"a"


@pytest.mark.parametrize("encoding", [1, 4, 10, 99])
def test_encodings_that_are_not_read(encoding: int) -> None:
    with pytest.raises(Unsupported, match=f"encoding {encoding}"):
        contents(column(page(levels([1]) + texts(b"a"), 1, encoding=encoding), values=1))


def test_levels_that_are_not_read() -> None:
    with pytest.raises(Unsupported, match="BIT_PACKED"):
        contents(column(page(b"\x80" + texts(b"a"), 1, levels=4), values=1))


def test_the_encoding_of_levels_that_are_not_stored_means_nothing() -> None:
    flat = page(levels([1]) + texts(b"a"), 1, repetition=4)
    assert contents(column(flat, values=1)) == [b"a"]
    never_null = [root(1), element("v", REQUIRED, type=BYTE_ARRAY)]
    bare = page(texts(b"a"), 1, levels=4)
    assert contents(made(never_null, [(1, [Made(bare, 1)])])) == [b"a"]


def test_rows_of_a_flat_page_of_version_2_are_its_values_whatever_it_says() -> None:
    page_ = page_v2(texts(b"b", b"c"), 2, 1, definition=b"\x04\x01")
    assert contents(column(page_, values=2)) == [b"b", b"c"]


def test_values_of_version_2_that_are_compressed_though_it_says_otherwise() -> None:
    body, definition = texts(b"b" * 100), b"\x02\x01"
    packed = bytes(pa.compress(body, codec="snappy", asbytes=True))
    page_ = page_v2(packed, 1, 1, definition=definition, size=len(definition) + len(body))
    assert contents(column(page_, values=1, said={4: thrift.I32(1)})) == [b"b" * 100]


def test_rows_that_no_page_has_are_damage() -> None:
    shard = opened(column(GOOD, values=3))
    assert bytes(read_all(shard.fields(0)[0].data)) == b"a"
    for row in (1, 2):
        with pytest.raises(Corrupt):
            [read_all(field.data) for field in shard.fields(row)]


# --- page indexes ------------------------------------------------------------------------------------------

PAGES = [
    page(levels([1] * len(part)) + texts(*part), len(part))
    for part in ((b"a", b"b"), (b"c",), (b"d",))
]
STARTS = [4, 4 + len(PAGES[0]), 4 + len(PAGES[0]) + len(PAGES[1])]


def indexed(places: list[tuple[int, int, int]], length: int | None = None) -> bytes:
    """A file of the rows a, b, c, d with an index of (offset, length, first row) of each page."""
    index = thrift.struct(
        {1: [{1: at, 2: thrift.I32(size), 3: first} for at, size, first in places]}
    )
    stored = b"".join(PAGES)
    chunk = {4: 4 + len(stored), 5: thrift.I32(len(index) if length is None else length)}
    made_of = Made(stored + index, 4, said={7: len(stored)}, chunk=chunk)
    return made(TEXT, [(4, [made_of])])


RIGHT = [
    (STARTS[0], len(PAGES[0]), 0),
    (STARTS[1], len(PAGES[1]), 2),
    (STARTS[2], len(PAGES[2]), 3),
]


def test_an_index_leads_to_the_page() -> None:
    file = CountingBlob(indexed(RIGHT))
    shard = opened(file)
    file.reads.clear()
    assert bytes(read_all(shard.fields(3)[0].data)) == b"d"
    assert STARTS[0] not in [at for at, _ in file.reads]


@pytest.mark.parametrize(
    "places",
    [
        [],
        RIGHT[::-1],
        [(0, 10, 0)],
        [RIGHT[0], (STARTS[1], 1 << 30, 2)],
        [(STARTS[0], len(PAGES[0]), 1), *RIGHT[1:]],
        [RIGHT[0], RIGHT[1], (STARTS[2], len(PAGES[2]), 2)],
        [RIGHT[0], RIGHT[1], (STARTS[2], len(PAGES[2]), 4)],
    ],
)
def test_an_index_that_cannot_be_right_is_not_used(places: list[tuple[int, int, int]]) -> None:
    assert contents(indexed(places)) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("length", [-1, 1, 1 << 30])
def test_an_index_that_cannot_be_read_is_not_used(length: int) -> None:
    assert contents(indexed(RIGHT, length)) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("firsts", [(0, 1, 3), (0, 2)])
def test_a_page_that_does_not_fit_its_index_is_damage(firsts: tuple[int, ...]) -> None:
    places = [(at, size, first) for (at, size, _), first in zip(RIGHT, firsts, strict=False)]
    shard = opened(indexed(places))
    wrong = 0
    for row, wanted in enumerate((b"a", b"b", b"c", b"d")):
        try:
            assert bytes(read_all(shard.fields(row)[0].data)) == wanted
        except Corrupt:
            wrong += 1
    assert 0 < wrong < 4


@pytest.mark.parametrize("rows", [1, 3])
def test_a_page_of_version_2_that_lies_about_its_rows_is_damage(rows: int) -> None:
    lists = page_v2(ints(1, 2), 2, rows, b"\x04\x00", b"\x04\x03")
    shard = opened(made(TAGS, [(rows, [Made(lists, 2, INT32)])]))
    for row in range(rows):
        with pytest.raises(Corrupt, match="rows, where"):
            [read_all(field.data) for field in shard.fields(row)]
