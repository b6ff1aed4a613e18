from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shardfs.blob import Bytes, Slice, no_wait, read_all
from shardfs.errors import Corrupt, TooLarge, Unsupported, WouldBlock
from shardfs.formats.arrow.shard import TableShard
from shardfs.formats.shared import columns as _columns
from shardfs.formats.shared.arrow import batches as _arrow_index
from shardfs.formats.shared.arrow import types as _arrow_types
from shardfs.formats.shared.arrow.batches import (
    Ending,
    RowIndex,
    index_any,
    index_file,
    index_stream,
)
from shardfs.formats.shared.arrow.ipc import IpcFile, IpcTable
from shardfs.formats.shared.arrow.message import read_footer, schema_of
from shardfs.formats.shared.arrow.types import Type
from shardfs.formats.shared.columns import Budget
from tests.arrow_files import encoded, opened, shown, values
from tests.fakes import FakeServices, SlowBlob

TABLE = pa.table({"n": range(10), "text": [f"text {n}" for n in range(10)]})
LONG = "a text that is too long to stand in a view"

# --- types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None], pa.int8()),
        pa.array([1, None], pa.uint64()),
        pa.array([0.5, None], pa.float16()),
        pa.array([True, None]),
        pa.array(["a", None], pa.large_string()),
        pa.array(["", "twelve bytes", LONG, None, LONG[1:]], pa.string_view()),
        pa.array([b"a", None], pa.large_binary()),
        pa.array([["a", None], None], pa.large_list(pa.string())),
        pa.array([[LONG], [], None, [LONG, "b"]], pa.list_view(pa.string_view())),
        pa.array([{"a": LONG, "b": "x"}, None], pa.struct({"a": pa.string_view(), "b": pa.string_view()})),
        pa.array([{}, None], pa.struct([])),
        pa.array([[True, None, False] * 5, None]),
        pa.array([[[1], [], [2, 3]], None]),
        pa.array([[None, None], None]),
        pa.array([[], [], None], pa.list_(pa.string())),
        pa.array([[[], []], None], pa.list_(pa.list_(pa.int8(), 0), 2)),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([["a"], None, ["b", "a"]], pa.list_(pa.dictionary(pa.uint8(), pa.large_string()))),
        pc.run_end_encode(pa.array([1, 1, 1, None, None, 7])),
        pc.run_end_encode(pa.array(["a", "b", "b"]), run_end_type=pa.int16()),
        pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, None]), pa.array("abc")]),
        pa.UnionArray.from_dense(
            pa.array([0, 5, 0], pa.int8()),
            pa.array([1, 0, 0], pa.int32()),
            [pa.array([1, 2]), pa.array([[7]])],
            type_codes=[0, 5],
        ),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array([{"a": 1}, {"a": None}])),
        pa.DictionaryArray.from_arrays(
            pa.array([1, 0]), pa.array([["x"], ["y", "x"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))
        ),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_types(array: pa.Array, compression: str | None) -> None:
    expected = array.to_pylist()
    for file in (False, True):
        data = encoded(pa.table({"v": array, "w": array}), file=file, compression=compression)
        assert values(data, 0) == values(data, 1) == expected
        cells = opened(data).batch(0).cells(0)
        assert [cells.is_null(row) for row in range(len(array))] == [v is None for v in expected]


def test_dictionaries_and_runs_are_what_they_hold() -> None:
    assert shown(pa.array(["a", "b", None]).dictionary_encode(), 1) == {".txt": b"b"}
    assert shown(pa.array(["a", "b", None]).dictionary_encode(), 2) == {}
    assert shown(pc.run_end_encode(pa.array([5, 5, None])), 1) == {".txt": b"5\n"}
    assert shown(pc.run_end_encode(pa.array([5, 5, None])), 2) == {}
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    assert shown(nulls, 1) == {}
    structs = pa.DictionaryArray.from_arrays(
        pa.array([0]), pa.array([{"bytes": b"x", "path": "y"}])
    )
    assert list(shown(structs)) == [".json"]
    unions = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["x"])])
    assert shown(unions) == {".json": b'"x"\n'}


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("legacy", [False, True])
def test_data_of_old_versions(file: bool, legacy: bool) -> None:
    options = {"use_legacy_format": legacy, "metadata_version": pa.ipc.MetadataVersion.V4}
    data = encoded(TABLE, file=file, step=3, **options)
    assert values(data, 1) == TABLE["text"].to_pylist()


# --- where things lie --------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [0, 100])
def test_rows_are_found_in_batches_of_any_length(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_arrow_index, "_MOST_HELD", held)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        for start, stop in ((0, 3), (3, 3), (3, 4), (4, 10), (10, 10)):
            writer.write_batch(
                TABLE.slice(start, stop - start).combine_chunks().to_batches()[0]
                if stop > start
                else pa.RecordBatch.from_pylist([], TABLE.schema)
            )
    stream = opened(sink.getvalue().to_pybytes())
    assert len(stream) == 5
    places = [(0, 0), (0, 1), (0, 2), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)]
    for rows in (range(10), reversed(range(10))):
        for row in rows:
            assert stream.locate(row) == places[row]
    for row in (-1, 10):
        with pytest.raises(IndexError):
            stream.locate(row)


def test_no_rows() -> None:
    for data in (encoded(TABLE.slice(0, 0)), encoded(TABLE.slice(0, 0), file=True)):
        stream = opened(data)
        assert (stream.index.rows, stream.index.ending) == (0, Ending.MARK)


def test_a_value_costs_no_more_than_its_own_bytes() -> None:
    blob = SlowBlob(encoded(pa.table({"raw": [bytes(100_000)] * 50, "n": range(50)}), step=10))
    stream = opened(blob)
    stream.batch(4).cells(0)
    blob.reads.clear()
    stored = stream.batch(4).cells(0).stored(7)
    assert stored.size() == 100_000
    assert [length for _, length in blob.reads] == [8]  # two offsets
    blob.reads.clear()
    assert stream.batch(4).cells(1).stored(3).size() == 8
    assert blob.reads == []


def test_nothing_waits_where_nobody_may() -> None:
    stream = opened(SlowBlob(encoded(TABLE)))
    with no_wait(), pytest.raises(WouldBlock):
        stream.batch(0)


def test_the_index_is_the_same_for_a_stream_and_the_file_around_it() -> None:
    data = Bytes(encoded(TABLE, file=True, step=4))
    from_footer = RowIndex(Bytes(index_file(data, read_footer(data))))
    walked = RowIndex(Bytes(index_stream(data)))
    assert list(from_footer.offsets) == list(walked.offsets)
    assert list(from_footer.ends) == list(walked.ends) == [4, 8, 10]


def test_a_file_with_dictionaries_that_grow() -> None:
    schema = pa.schema([("v", pa.dictionary(pa.int8(), pa.string()))])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for words in (["a"], ["a", "b"], ["a", "b", "c"]):
            indices = pa.array([len(words) - 1], pa.int8())
            array = pa.DictionaryArray.from_arrays(indices, pa.array(words))
            writer.write_batch(pa.record_batch([array], schema))
    data = bytes(sink.getvalue().to_pybytes())
    assert values(data) == ["a", "b", "c"]
    file = IpcFile(Bytes(data), FakeServices())
    assert [file.batch(n).cells(0).values(0, 1, Budget()) for n in range(3)] == [
        ["a"],
        ["b"],
        ["c"],
    ]


# --- damage ------------------------------------------------------------------------------------------------


def test_a_stream_that_is_cut() -> None:
    data = encoded(TABLE, step=4)
    offsets = list(opened(data).index.offsets)
    cut = offsets[2] + 100  # inside of the header
    stream = opened(data[:cut])
    assert (stream.index.rows, stream.index.ending, stream.index.stop) == (
        8,
        Ending.DAMAGE,
        offsets[2],
    )
    assert values(data[:cut], 1) == TABLE["text"].to_pylist()[:8]
    stream = opened(data[: len(data) - 20])  # inside of the body
    assert (stream.index.rows, stream.index.ending) == (10, Ending.DAMAGE)
    assert stream.index.stop > len(data) - 20
    assert stream.batch(1).rows == 4
    with pytest.raises(Corrupt, match="inside a batch that should reach to"):
        stream.batch(2)
    stream = opened(data[: offsets[2]])  # between two
    assert (stream.index.rows, stream.index.ending) == (8, Ending.NO_MARK)


def test_a_file_that_is_cut_is_the_stream_that_it_was() -> None:
    data = encoded(TABLE, file=True, step=4)
    for length in (len(data) - 1, len(data) - 50):
        assert values(data[:length], 1) == TABLE["text"].to_pylist()


@pytest.mark.parametrize("length", [0, 1, 4, 7, 8, 20])
def test_no_schema_is_corrupt(length: int) -> None:
    for data in (encoded(TABLE), encoded(TABLE, file=True)):
        with pytest.raises(Corrupt):
            opened(data[:length])


def test_a_batch_that_is_not_as_long_as_its_columns_is_corrupt() -> None:
    one, two = (pa.table({"n": pa.array(range(count), pa.int8())}) for count in (6, 7))
    data = bytearray(encoded(two))
    other = encoded(one)
    assert len(data) == len(other)
    # of all bytes that differ, the first is the number of rows: the column has another one then
    at = next(at for at in range(len(data)) if data[at] != other[at])
    data[at] = other[at]
    with pytest.raises(Corrupt, match=r"of (6|7) rows with a column of (6|7)"):
        opened(bytes(data)).batch(0).cells(0)


def test_more_rows_than_can_be_shown_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arrow_index, "MAX_ROWS", 9)
    stream = opened(encoded(TABLE, step=4))
    assert (stream.index.rows, stream.index.ending) == (8, Ending.DAMAGE)


def test_more_dictionaries_than_can_be_held_are_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_arrow_index, "_MAX_DICTIONARIES", 1)
    words = pa.array(["a"]).dictionary_encode()
    assert values(encoded(pa.table({"v": words}))) == ["a"]
    with pytest.raises(Unsupported, match="more than 1 Arrow dictionaries"):
        opened(encoded(pa.table({"v": words, "w": words})))


def test_an_index_that_is_cut_is_corrupt() -> None:
    index = index_any(Bytes(encoded(TABLE)))
    for length in (0, len(index) - 1):
        with pytest.raises(Corrupt):
            RowIndex(Slice(Bytes(index), 0, length))


# --- values that come to more than they take ---------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[None] * 100]),
        pa.array([{"a": "x" * 2000}]),
        pa.array([["x" * 20] * 100], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([[{"v": b"x" * 20}] * 50], pa.list_(pa.struct([("v", pa.binary_view())]))),
        pa.array([[["x"] * 50, None]], pa.list_(pa.list_(pa.string()))),
        pa.array([[(str(n), n) for n in range(60)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[1] * 100], pa.list_(pa.timestamp("s"))),
    ],
    ids=lambda array: str(array.type),
)
def test_json_is_bounded(array: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(pa.table({"v": array}))
    monkeypatch.setattr(_columns, "_MAX_COST", 1500)
    cells = opened(data).batch(0).cells(0)
    with pytest.raises(TooLarge, match="comes to more than 1500 bytes"):
        cells.values(0, 1, Budget())
    monkeypatch.setattr(_columns, "_MAX_COST", 15_000)
    assert cells.values(0, 1, Budget())


# --- schemas -----------------------------------------------------------------------------------------------


def test_a_schema_that_pyarrow_serialized() -> None:
    fields: list[Any] = [
        pa.field("a", pa.timestamp("us", "Europe/Paris"), metadata={"k": "v"}),
        pa.field("b", pa.decimal256(40, -3)),
        pa.field("c", pa.list_(pa.float16(), 3)),
        pa.field("d", pa.dictionary(pa.uint16(), pa.date64())),
    ]
    metadata = {"huggingface": "{}", b"\xff": b"\xfe"}
    schema = schema_of(pa.schema(fields, metadata=metadata).serialize().to_pybytes())
    assert schema.metadata == {"huggingface": "{}", "\udcff": "\udcfe"}
    a, b, c, d = schema.fields
    assert (a.name, a.type.type, a.type.unit, a.type.zone, a.type.size) == (
        ("a", Type.TIMESTAMP, "us", "Europe/Paris", 8)
    )
    assert a.metadata == {"k": "v"}
    assert (b.type.type, b.type.size, b.type.scale) == (Type.DECIMAL, 32, -3)
    assert (c.type.type, c.type.size, c.type.children[0].type.dtype) == (Type.FIXED_LIST, 3, "<f2")
    assert d.indices is not None
    assert (d.type.unit, d.dictionary, d.indices.dtype) == ("ms", 0, "<u2")


def test_names_need_be_no_utf8() -> None:
    data = TABLE.schema.serialize().to_pybytes().replace(b"text", b"te\xfft")
    assert [field.name for field in schema_of(data).fields] == ["n", "te\udcfft"]


def test_schemas_that_are_too_deep_or_wide_are_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_arrow_types, "_MAX_FIELDS", 1 << 14)
    deep = pa.int8()
    for _ in range(66):
        deep = pa.struct([("v", deep)])
    wide = pa.struct([(str(n), pa.null()) for n in range(1 << 14)])
    for type_ in (deep, wide):
        with pytest.raises(Unsupported, match="more than 64 levels or 16384 columns"):
            schema_of(pa.schema([("v", type_)]).serialize().to_pybytes())


def test_a_stream_without_an_index_is_read_through() -> None:
    stream = opened(encoded(TABLE, step=3))
    assert stream.index.rows == 10
    assert bytes(read_all(stream.batch(3).cells(1).stored(0))) == b"text 9"


class Tracked(Bytes):
    """Bytes of which a weak reference tells when they are gone."""

    __slots__ = ("__weakref__",)


def test_a_shard_that_is_no_longer_used_lets_go_of_its_file_at_once() -> None:
    nested = pa.array([["a"], ["b"]] * 5, pa.list_(pa.dictionary(pa.int8(), pa.string())))
    blob = Tracked(encoded(TABLE.append_column("d", nested), step=4, compression="zstd"))
    alive, services = weakref.ref(blob), FakeServices()
    index = RowIndex(Bytes(index_any(blob)))
    shard = TableShard(IpcTable(blob, services, index), dict, services)
    assert [len(read_all(field.data)) for field in shard.fields(9)] == [8, 6, 6]
    gc.disable()
    try:
        del shard, blob
        assert alive() is None
    finally:
        gc.enable()
