"""The parsers of LitData against what wrote their input, and against any input at all."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, ShardfsError
from shardfs.formats.litdata.chunk import ChunkOpener
from shardfs.formats.litdata.index import Chunk, Config, Leaf, parse_config, parse_index
from shardfs.formats.litdata.json_leaf import render
from shardfs.formats.litdata.leaves import leaf_type, width
from shardfs.formats.litdata.readers import count_leaves
from shardfs.formats.litdata.records import FrameRecords, TableRecords
from shardfs.formats.litdata.spec import leaf_names
from shardfs.formats.litdata.temporal import TemporalReader
from shardfs.formats.shared.arrow.flatbuffer import Table
from shardfs.formats.shared.arrow.ipc import IpcFile
from shardfs.formats.shared.columns import Budget
from shardfs.formats.shared.offsets import OffsetTable
from shardfs.model import Array, Plain
from tests.fakes import FakeServices
from tests.litdata_files import LEAF, chunk, content, entry, framed, index, record, spec

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
edits = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4)


def edited(data: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(data)
    for at, value in changes:
        changed[at % len(data)] = value
    return bytes(changed[: len(data) - cut % len(data)] if cut % 3 == 0 else changed)


# --- where records lie -------------------------------------------------------------------------------------


@given(rows=st.lists(st.binary(max_size=40), max_size=12), step=st.integers(1, 5))
def test_records_are_what_was_written(rows: list[bytes], step: int) -> None:
    table = TableRecords(OffsetTable.of(Bytes(chunk(*rows)), None))
    frames = FrameRecords(Bytes(framed(*rows, step=step)), len(rows), FakeServices())
    for records in (table, frames):
        assert [content(records.record(number)) for number in range(len(records))] == rows


LEAVES = Config(tuple(Leaf(name, "str", leaf_type("str")) for name in "ab"))


@given(
    rows=st.lists(
        st.tuples(st.binary(max_size=20), st.binary(max_size=20)), min_size=1, max_size=6
    ),
    layout=st.sampled_from(["classic", "frames"]),
    changes=edits,
    cut=st.integers(0, 300),
)
def test_a_damaged_chunk_fails_or_hands_out_whole_fields_of_records(
    rows: list[tuple[bytes, bytes]], layout: str, changes: list[tuple[int, int]], cut: int
) -> None:
    stored = [record(*row) for row in rows]
    data = chunk(*stored) if layout == "classic" else framed(*stored, step=2)
    for config in (LEAVES, Config()):
        opener = ChunkOpener(config, FakeServices())
        blob = Bytes(edited(data, changes, cut))
        try:
            shard = opener.open(blob, Chunk("c", "c", len(rows), len(data)))
        except ShardfsError:
            continue
        assert len(shard) <= len(rows)
        for number in range(len(shard)):
            try:
                fields = shard.fields(number)
                lengths = [len(content(field.data)) for field in fields]
            except ShardfsError:
                continue
            assert lengths == [field.data.size() for field in fields]
            assert sum(lengths) <= sum(map(len, stored))


@given(head=st.binary(max_size=60), size=st.integers(0, 400))
def test_leaves_are_counted_as_the_sizes_say(head: bytes, size: int) -> None:
    count = count_leaves(memoryview(head), size)
    fits = [
        number
        for number in range(1, len(head) // 4 + 1)
        if 4 * number + sum(struct.unpack_from(f"<{number}I", head)) == size
    ]
    assert fits == ([] if count is None else [count])


# --- what is in the index ----------------------------------------------------------------------------------

keys = st.text(max_size=4) | st.integers() | st.booleans() | st.none()


def container(children: list[dict[str, Any]], names: list[Any] | None) -> dict[str, Any]:
    if names is None:
        return {"type": "builtins.list", "context": "null", "children_spec": children}
    context = json.dumps(names[: len(children)])
    return {"type": "builtins.dict", "context": context, "children_spec": children}


specs = st.recursive(
    st.just(LEAF),
    lambda inner: st.builds(
        container,
        st.lists(inner, max_size=4),
        st.none() | st.lists(keys, min_size=4, max_size=4),
    ),
    max_leaves=12,
)


def paths(node: dict[str, Any]) -> list[list[str]]:
    if node["type"] is None:
        return [[]]
    names = json.loads(node["context"]) or range(len(node["children_spec"]))
    return [
        [name if isinstance(name, str) else json.dumps(name), *path]
        for name, child in zip(names, node["children_spec"], strict=True)
        for path in paths(child)
    ]


@given(root=specs)
def test_leaves_are_named_by_their_paths(root: dict[str, Any]) -> None:
    assert list(leaf_names(spec(root))) == [
        ".".join(path) if path else "data" for path in paths(root)
    ]


@given(text=values.map(json.dumps) | specs.map(spec) | st.text())
def test_any_text_is_a_spec_or_corrupt(text: str) -> None:
    try:
        names = leaf_names(text)
    except ShardfsError:
        return
    assert all(isinstance(name, str) for name in names)


CONFIG_KEYS = st.sampled_from(
    (
        *("compression", "compression_level", "ipc_compression", "data_format", "data_spec"),
        *("encryption", "item_loader", "temporal_schema"),
    )
)


@given(
    config=st.dictionaries(CONFIG_KEYS, values),
    loader=st.sampled_from([None, "TemporalArrayLoader"]),
)
def test_any_config_is_one_or_refused(config: dict[str, Any], loader: str | None) -> None:
    try:
        found = parse_config(config | ({"item_loader": loader} if loader else {}))
    except ShardfsError:
        return
    assert found.leaves is not None


@given(changes=edits)
def test_a_damaged_index_is_one_or_refused(changes: list[tuple[int, int]]) -> None:
    text = index(entry("chunk-0-0.bin", 3, 99), entry("chunk-0-1.bin", 3, 99, dim=4))
    try:
        found = parse_index(edited(text, changes, 1))
    except ShardfsError:
        return
    assert all(chunk.records is not None for chunk in found.chunks)


# --- leaves ------------------------------------------------------------------------------------------------


def tagged(value: Any) -> bytes:
    """As LitData's ``_nested_dumps`` stores a value, with every tag where it fits."""
    match value:
        case None:
            return b"\x0b"
        case bool():
            return bytes([10, value])
        case int():
            return b"\x08" + struct.pack("<q", value)
        case float():
            return b"\x09" + struct.pack("<d", value)
        case str():
            return b"\x07" + text_of(value)
        case dict():
            pairs = (text_of(key) + tagged(item) for key, item in value.items())
            return b"\x05" + struct.pack("<I", len(value)) + b"".join(pairs)
    kinds = {type(item) for item in value}
    count = struct.pack("<I", len(value))
    if kinds <= {str}:
        return b"\x01" + count + b"".join(map(text_of, value))
    for kind, tag, code in ((int, 2, "q"), (float, 3, "d"), (bool, 4, "?")):
        if kinds == {kind}:
            return bytes([tag]) + count + struct.pack(f"<{len(value)}{code}", *value)
    if kinds == {dict} and value[0] and len({tuple(item) for item in value}) == 1:
        flat = not any(isinstance(cell, (list, dict)) for item in value for cell in item.values())
        return b"\x06" + count + rows_of(value) if flat else b"\x00" + text_of(json.dumps(value))
    return b"\x00" + text_of(json.dumps(value))


def text_of(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def rows_of(rows: list[dict[str, Any]]) -> bytes:
    cells = {7: 0x11, 8: 0x12, 9: 0x13, 10: 0x14, 11: 0x10}
    stored = [tagged(row[key]) for row in rows for key in rows[0]]
    head = struct.pack("<I", len(rows[0])) + b"".join(map(text_of, rows[0]))
    return head + b"".join(bytes([cells[cell[0]]]) + cell[1:] for cell in stored)


nested = st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4)
records = st.integers(1, 3).flatmap(
    lambda count: st.lists(
        st.fixed_dictionaries({f"k{number}": scalars for number in range(count)}), max_size=4
    )
)


@given(value=nested | records)
def test_json_leaves_read_back(value: Any) -> None:
    shown = render(memoryview(tagged(value)))
    assert json.loads(shown) == value
    assert shown == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@given(
    leaf=st.binary(max_size=60) | st.builds(edited, nested.map(tagged), edits, st.integers(0, 99))
)
def test_any_json_leaf_is_json_or_corrupt(leaf: bytes) -> None:
    try:
        shown = render(memoryview(leaf))
    except Corrupt:
        return
    if leaf and leaf[0] <= 0x20:
        json.loads(shown)


@given(
    name=st.sampled_from(["numpy", "tensor", "no_header_numpy:9", "jpeg_array"]),
    head=st.lists(st.integers(0, 20) | st.integers(0, 0xFFFFFFFF), max_size=6),
    order=st.sampled_from("<>"),
    rest=st.integers(0, 200),
)
def test_an_array_fills_its_leaf_or_is_opaque(
    name: str, head: list[int], order: str, rest: int
) -> None:
    leaf = struct.pack(f"{order}{len(head)}I", *head) + bytes(rest)
    kind = leaf_type(name).kind(Bytes(leaf))
    if isinstance(kind, Array):
        assert kind.skip + width(kind.dtype) * math.prod(kind.shape) == len(leaf)
    elif name != "jpeg_array":
        assert kind == Plain(".bin")


dtypes = st.sampled_from(
    ["|b1", "|i1", "|u1", "<i2", ">i2", "<u4", "<f2", "<f4", "<i8", "<f8", "<c8", "<c16"]
)


@given(
    columns=st.lists(
        st.tuples(dtypes, st.lists(st.integers(1, 3), max_size=2)), min_size=1, max_size=5
    ),
    split=st.integers(0, 5),
    frames=st.integers(1, 4),
)
def test_temporal_records_are_read_like_numpy_wrote_them(
    columns: list[tuple[str, list[int]]], split: int, frames: int
) -> None:
    fields = {
        f"f{number}": {"dtype": dtype, "shape": shape, "tensor": False}
        for number, (dtype, shape) in enumerate(columns)
    }
    names = list(fields)
    groups = [group for group in (names[split:], names[:split]) if group]
    schema = {"version": 1, "fields": fields, "field_order": names, "groups": groups}
    data, expected = struct.pack("<I", frames), dict[str, bytes]()
    for group in groups:
        parts = [columns[names.index(name)] for name in group]
        row = [
            (name, dtype, tuple(shape)) for name, (dtype, shape) in zip(group, parts, strict=True)
        ]
        packed = np.zeros(frames, np.dtype(row, align=True))
        packed.view("u1")[:] = np.arange(packed.nbytes) % 2
        data += packed.tobytes()
        expected |= {name: packed[name].tobytes() for name in group}
    found = TemporalReader(schema).fields(Bytes(data))
    assert {field.name: content(field.data) for field in found} == expected


# --- Arrow files -------------------------------------------------------------------------------------------

cells = {
    "text": st.text(max_size=5),
    "raw": st.binary(max_size=5),
    "n": st.integers(-(1 << 63), (1 << 63) - 1),
    "x": st.floats(allow_nan=False),
    "ok": st.booleans(),
    "tags": st.lists(st.none() | st.text(max_size=3), max_size=4),
    "boxes": st.lists(
        st.fixed_dictionaries(
            {"a": st.none() | st.lists(st.integers(0, 9), max_size=3), "b": st.none()}
        ),
        max_size=3,
    ),
}
rows = st.lists(
    st.fixed_dictionaries({name: st.none() | cell for name, cell in cells.items()}),
    min_size=1,
    max_size=20,
)


def ipc(table: pa.Table, start: int, step: int, compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table.slice(start), max_chunksize=step)
    return bytes(sink.getvalue().to_pybytes())


def batch_values(file: IpcFile, number: int, limit: int = 100) -> list[dict[str, Any]]:
    """The rows of a batch, *limit* at most."""
    batch = file.batch(number)
    names = [field.name for field in file.schema.fields]
    columns = [
        batch.cells(column).values(0, min(batch.rows, limit), Budget())
        for column in range(len(names))
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@given(rows=rows, start=st.integers(0, 12), step=st.integers(1, 10), zipped=st.booleans())
def test_arrow_values_are_those_that_arrow_reads(
    rows: list[dict[str, Any]], start: int, step: int, zipped: bool
) -> None:
    data = ipc(pa.Table.from_pylist(rows), start, step, "zstd" if zipped else None)
    batches = pa.ipc.open_file(data).read_all().to_batches()
    file = IpcFile(Bytes(data), FakeServices())
    for number, expected in enumerate(batches):
        assert batch_values(file, number) == expected.to_pylist()


@given(rows=rows, changes=edits, cut=st.integers(0, 600))
def test_a_damaged_arrow_file_fails_or_has_values(
    rows: list[dict[str, Any]], changes: list[tuple[int, int]], cut: int
) -> None:
    data = ipc(pa.Table.from_pylist(rows), 0, 5, None)
    changes = [(len(data) - at if value % 2 else 3 * at, value) for at, value in changes]
    try:
        file = IpcFile(Bytes(edited(data, changes, cut)), FakeServices())
        for number in range(len(file)):
            batch_values(file, number, 5)
    except ShardfsError:
        return
    assert len(file)


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_flatbuffer_or_corrupt(data: bytes) -> None:
    try:
        table = Table.root(memoryview(data))
        for field in range(4):
            table.number(field, "q")
            table.table(field)
            table.text(field)
            table.tables(field)
            table.structs(field, struct.Struct("<qq"))
    except Corrupt:
        return
    assert len(data) >= 8
