"""Arrow data of all types against what was written, and against damage."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes, read_all
from shardfs.errors import ShardfsError
from shardfs.formats.arrow.shard import TableShard
from shardfs.formats.shared.arrow.batches import RowIndex, index_any
from shardfs.formats.shared.arrow.ipc import IpcFile, IpcTable
from shardfs.formats.shared.columns import Budget
from shardfs.formats.shared.jsontext import compact
from shardfs.model import Array, Encoded, Items, Plain, Scalar
from shardfs.views.present import Presenter
from tests.arrow_big import VIEWS, big_endian, children, widths
from tests.fakes import FakeServices

# --- values and what they look like in JSON ----------------------------------------------------------------

EPOCH = dt.datetime(1970, 1, 1)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The years that Python knows, in seconds, and those that nanoseconds reach.
FIRST, LAST = -62_135_596_800, 253_402_300_799


def fraction(value: int, unit: str) -> str:
    part = Decimal(value % PER_SECOND[unit]) / PER_SECOND[unit]
    return f"{part:f}"[1:].rstrip("0") if part else ""


def timestamp(value: int, unit: str) -> str:
    seconds = value // PER_SECOND[unit]
    return (EPOCH + dt.timedelta(seconds=seconds)).isoformat() + fraction(value, unit)


def clock(value: int, unit: str) -> str:
    return timestamp(value, unit).partition("T")[2]


def duration(value: int, unit: str) -> str:
    size = abs(value)
    return f"{'-' if value < 0 else ''}PT{size // PER_SECOND[unit]}{fraction(size, unit)}S"


def interval(months: int, days: int, nanoseconds: int) -> pa.MonthDayNano:
    return pa.MonthDayNano([months, days, nanoseconds])


def interval_text(value: pa.MonthDayNano) -> str:
    months, days, nanoseconds = value
    parts = [f"{number}{letter}" for number, letter in ((months, "M"), (days, "D")) if number]
    time = duration(nanoseconds, "ns")
    if nanoseconds or not parts:
        parts.append(f"T{'-' if nanoseconds < 0 else ''}{time.partition('T')[2]}")
    return f"P{''.join(parts)}"


def base64(value: bytes) -> str:
    return b64encode(value).decode()


def same(value: Any) -> Any:
    return value


def integers(bits: int, *, signed: bool) -> Any:
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def moments(unit: str) -> Any:
    if unit == "ns":
        return st.integers(-(1 << 63), (1 << 63) - 1)
    return st.integers(FIRST * PER_SECOND[unit], LAST * PER_SECOND[unit])


def leaves() -> list[tuple[pa.DataType, Any, Any]]:
    """(type, its values, what they look like)."""
    text, binary = st.text(max_size=20), st.binary(max_size=20)
    found: list[tuple[pa.DataType, Any, Any]] = [
        (pa.null(), st.none(), same),
        (
            pa.month_day_nano_interval(),
            st.builds(interval, *[integers(31, signed=True)] * 3),
            interval_text,
        ),
        (pa.bool_(), st.booleans(), same),
        (pa.binary(3), st.binary(min_size=3, max_size=3), base64),
        (pa.date32(), st.dates(), dt.date.isoformat),
        (pa.date64(), st.dates(), dt.date.isoformat),
        (pa.float16(), st.floats(width=16), same),
        (pa.float32(), st.floats(width=32), same),
        (pa.float64(), st.floats(), same),
    ]
    found += [
        (getattr(pa, f"{'' if signed else 'u'}int{bits}")(), integers(bits, signed=signed), same)
        for bits in (8, 16, 32, 64)
        for signed in (False, True)
    ]
    found += [(type_, text, same) for type_ in (pa.string(), pa.large_string(), pa.string_view())]
    found += [
        (type_, binary, base64) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())
    ]
    for type_ in (pa.decimal32(9, 2), pa.decimal128(38, 5), pa.decimal256(76, 0)):
        limit = Decimal(10 ** min(type_.precision - type_.scale, 20) - 1)
        values = st.decimals(-limit, limit, places=type_.scale)
        found.append((type_, values, lambda value: f"{value if value else abs(value):f}"))
    for unit in PER_SECOND:
        shown = lambda value, unit=unit: timestamp(value, unit)  # noqa: E731
        found.append((pa.timestamp(unit), moments(unit), shown))
        shown = lambda value, unit=unit: timestamp(value, unit) + "+00:00"  # noqa: E731
        found.append((pa.timestamp(unit, "UTC"), moments(unit), shown))
        shown = lambda value, unit=unit: duration(value, unit)  # noqa: E731
        found.append((pa.duration(unit), integers(64, signed=True), shown))
        time = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        shown = lambda value, unit=unit: clock(value, unit)  # noqa: E731
        found.append((time, st.integers(0, 86_400 * PER_SECOND[unit] - 1), shown))
    keyed = pa.dictionary(pa.int8(), pa.string())
    return [*found, (keyed, st.sampled_from(["", "a", "grün", "b" * 20]), same)]


LEAVES = leaves()
Typed = tuple[pa.DataType, Any, Any]


def listed(inner: Typed) -> Any:
    type_, values, show = inner
    kinds = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    several = st.lists(values | st.none(), max_size=4)
    shown = lambda value: [None if item is None else show(item) for item in value]  # noqa: E731
    fixed = st.lists(values | st.none(), min_size=2, max_size=2)
    return st.sampled_from(
        [*((kind(type_), several, shown) for kind in kinds), (pa.list_(type_, 2), fixed, shown)]
    )


def structured(inner: list[Typed]) -> Typed:
    names = [f"m{number}" for number in range(len(inner))]
    type_ = pa.struct([(name, part[0]) for name, part in zip(names, inner, strict=True)])
    members = {name: part[1] | st.none() for name, part in zip(names, inner, strict=True)}
    shows = {name: part[2] for name, part in zip(names, inner, strict=True)}

    def show(value: dict[str, Any]) -> Any:
        return {key: None if item is None else shows[key](item) for key, item in value.items()}

    return type_, st.fixed_dictionaries(members), show


def mapped(inner: Typed) -> Typed:
    type_, values, show = inner
    pairs = st.lists(st.tuples(st.text(max_size=3), values | st.none()), max_size=3)

    def shown(value: list[tuple[str, Any]]) -> Any:
        return [[key, None if item is None else show(item)] for key, item in value]

    return pa.map_(pa.string(), type_), pairs, shown


typed = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        inner.flatmap(listed) | st.lists(inner, max_size=3).map(structured) | inner.map(mapped)
    ),
    max_leaves=4,
)


@st.composite
def columns(draw: st.DrawFn) -> tuple[Typed, pa.Array, list[Any]]:
    """(type, array, values)."""
    column = draw(typed)
    values = draw(st.lists(column[1] | st.none(), max_size=12))
    return column, pa.array(values, column[0]), values


def encoded(
    table: pa.Table, *, stream: bool, step: int, compression: str | None, deltas: bool = False
) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=deltas)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=step)
    return bytes(sink.getvalue().to_pybytes())


def opened(data: bytes) -> IpcTable:
    blob = Bytes(data)
    index = RowIndex(Bytes(index_any(blob)))
    return IpcTable(blob, FakeServices(), index)


def agree(got: Any, expected: Any, type_: pa.DataType) -> bool:
    """Whether two values are the same; floats in their own width."""
    if isinstance(expected, float):
        code = {"halffloat": "<e", "float": "<f"}.get(str(type_), "<d")
        return struct.pack(code, got) == struct.pack(code, expected) or (
            math.isnan(got) and math.isnan(expected)
        )
    if isinstance(expected, list):
        inner = [getattr(type_, "value_type", None)] * len(expected)
        if pa.types.is_map(type_):
            return len(got) == len(expected) and all(
                a[0] == b[0] and agree(a[1], b[1], type_.item_type)
                for a, b in zip(got, expected, strict=True)
            )
        return len(got) == len(expected) and all(map(agree, got, expected, inner))
    if isinstance(expected, dict):
        return list(got) == [field.name for field in type_] and all(
            agree(got[field.name], expected[field.name], field.type) for field in type_
        )
    return type(got) is type(expected) and bool(got == expected)


def plain(value: Any) -> Any:
    """A value as JSON brings it back."""
    return json.loads(compact(value))


@given(
    column=columns(),
    stream=st.booleans(),
    start=st.integers(0, 3),
    step=st.integers(1, 12),
    compression=st.sampled_from([None, "lz4", "zstd"]),
)
def test_values_are_those_that_were_written(
    column: tuple[Typed, pa.Array, list[Any]],
    stream: bool,
    start: int,
    step: int,
    compression: str | None,
) -> None:
    (type_, _, show), array, values = column
    table = pa.table({"v": array}).slice(start)
    data = encoded(table, stream=stream, step=step, compression=compression)
    found = opened(data)
    assert found.index.rows == len(table)
    for row, value in enumerate(values[start:]):
        number, at = found.locate(row)
        cells = found.batch(number).cells(0)
        (got,) = cells.values(at, at + 1, Budget())
        expected = None if value is None else show(value)
        assert agree(plain(got), expected, type_), (got, expected)
        assert cells.is_null(at) == (value is None)
    if not stream:
        file, rest = IpcFile(Bytes(data), FakeServices()), iter(values[start:])
        for number in range(len(file)):
            batch = file.batch(number)
            for got in batch.cells(0).values(0, batch.rows, Budget()):
                value = next(rest)
                assert agree(plain(got), None if value is None else show(value), type_)


def is_turned_by_pyarrow(type_: pa.DataType) -> bool:
    """Whether the Arrow library turns numbers of this type round."""
    if widths(type_) and VIEWS in widths(type_):
        return False
    inner = [type_.value_type] if pa.types.is_dictionary(type_) else children(type_)
    return "list_view" not in str(type_) and all(map(is_turned_by_pyarrow, inner))


@given(column=columns(), step=st.integers(1, 12))
def test_the_byte_order_makes_no_difference(
    column: tuple[Typed, pa.Array, list[Any]], step: int
) -> None:
    (type_, _, _), array, values = column
    table = pa.table({"v": array, "w": pa.array(range(len(array)), pa.int16())})
    data = encoded(table, stream=True, step=step, compression=None)
    turned = big_endian(data, table.schema)
    if is_turned_by_pyarrow(type_):
        tables = [pa.ipc.open_stream(each).read_all() for each in (data, turned)]
        one, other = [encoded(each, stream=True, step=step, compression=None) for each in tables]
        assert one == other
    shards = [TableShard(opened(each), dict, FakeServices()) for each in (data, turned)]
    presenter = Presenter(FakeServices().memory, raw=False)
    for row in range(len(values)):
        shown = [
            [(file.stem, file.extension, bytes(read_all(file.blob))) for file in found]
            for found in (presenter.files(shard.fields(row)) for shard in shards)
        ]
        assert shown[0] == shown[1]
        assert shown[0][-1] == ("w", ".txt", b"%d\n" % row)


@given(column=columns(), compression=st.sampled_from([None, "zstd"]))
def test_fields_show_what_was_written(
    column: tuple[Typed, pa.Array, list[Any]], compression: str | None
) -> None:
    (type_, _, show), array, values = column
    data = encoded(pa.table({"v": array}), stream=True, step=5, compression=compression)
    services = FakeServices()
    shard = TableShard(opened(data), dict, services)
    presenter = Presenter(services.memory, raw=False)
    assert shard.costly == (compression is not None and len(values) > 0)
    for row, value in enumerate(values):
        fields = shard.fields(row)
        if value is None:
            assert not fields
            continue
        (field,) = fields
        files = presenter.files(fields)
        contents = [bytes(read_all(file.blob)) for file in files]
        match field.kind:
            case Items():
                items = [item for item in value if item is not None]
                assert contents == items
                numbers = [at for at, item in enumerate(value) if item is not None]
                assert [file.extension.split(".")[1] for file in files] == list(map(str, numbers))
            case Encoded():
                assert contents == [value]
            case Array():
                width = int(field.kind.dtype[2:])
                assert files[0].extension == ".npy"
                assert len(contents[0]) == 128 + width * math.prod(field.kind.shape)
            case Plain(".json"):
                assert agree(json.loads(contents[0]), show(value), type_)
            case Plain(".txt"):
                assert contents == [value.encode()]
            case Scalar():
                assert contents[0].endswith(b"\n")
                text = contents[0].decode().strip()
                shown = {"true": True, "false": False}.get(text)
                got = shown if shown is not None else type(value)(text)
                assert agree(got, value, type_)
            case _:
                assert contents == [f"{show(value)}\n".encode()]


@given(
    parts=st.lists(st.lists(st.sampled_from("abcdefgh") | st.none(), max_size=5), max_size=5),
    deltas=st.booleans(),
    compression=st.sampled_from([None, "lz4"]),
)
def test_dictionaries_are_replaced_and_added_to(
    parts: list[list[str | None]], deltas: bool, compression: str | None
) -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("v", pa.dictionary(pa.int16(), pa.string()))])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas, compression=compression)
    known: list[str] = []
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for part in parts:
            words = [word for word in part if word is not None]
            if deltas:  # a dictionary that grows is told by what is new in it
                known += [word for word in dict.fromkeys(words) if word not in known]
            else:
                known = sorted(set(words), reverse=True)
            indices = pa.array([None if w is None else known.index(w) for w in part], pa.int16())
            array = pa.DictionaryArray.from_arrays(indices, pa.array(known, pa.string()))
            writer.write_batch(pa.record_batch([array], schema))
    found = opened(sink.getvalue().to_pybytes())
    got = [
        list(found.batch(n).cells(0).values(0, len(part), Budget())) for n, part in enumerate(parts)
    ]
    assert got == parts


# --- damage ------------------------------------------------------------------------------------------------


@given(
    column=columns(),
    stream=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 300),
)
def test_damaged_data_fails_or_has_values(
    column: tuple[Typed, pa.Array, list[Any]],
    stream: bool,
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    _, array, _ = column
    table = pa.table({"v": array, "w": pa.array(range(len(array)))})
    data = bytearray(encoded(table, stream=stream, step=4, compression=None))
    for at, value in changes:
        data[at % len(data)] = value
    services = FakeServices()
    presenter = Presenter(services.memory, raw=False)
    try:
        shard = TableShard(opened(bytes(data[: max(8, len(data) - cut)])), dict, services)
    except ShardfsError:
        return
    for row in range(min(len(shard), 20)):
        try:
            files = presenter.files(shard.fields(row))
        except ShardfsError:
            continue
        for file in files:
            try:
                assert len(read_all(file.blob)) == file.blob.size()
            except ShardfsError:
                continue


@given(
    data=st.binary(max_size=200), mark=st.sampled_from([b"", b"ARROW1\0\0", b"\xff\xff\xff\xff"])
)
def test_any_bytes_fail_or_have_rows(data: bytes, mark: bytes) -> None:
    with pytest.raises(ShardfsError):
        TableShard(opened(mark + data), dict, FakeServices())
