"""Random tables in Parquet files of all makes, against what pyarrow reads of the same files."""

from __future__ import annotations

import decimal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from shardfs.blob import read_all
from shardfs.errors import ShardfsError
from shardfs.formats.arrow.shard import TableShard
from tests import arrow_files
from tests.fakes import FakeServices
from tests.parquet_files import files, opened, read_back, written

if TYPE_CHECKING:
    from collections.abc import Callable

    Strategy = st.SearchStrategy[Any]

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

# --- types and their values --------------------------------------------------------------------------------


def whole(bits: int, *, signed: bool) -> Strategy:
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1) | st.integers(0, 3)


def leaves() -> list[tuple[pa.DataType, Strategy]]:
    text = st.text(max_size=8) | st.text("ab", max_size=40)
    binary = st.binary(max_size=8) | st.sampled_from([b"", b"\xff\xd8\xff\xe0", bytes(60)])
    day = st.integers(0, 86_399)
    found: list[tuple[pa.DataType, Strategy]] = [
        (pa.null(), st.none()),
        (pa.bool_(), st.booleans()),
        (pa.string(), text),
        (pa.large_string(), text),
        (pa.binary(), binary),
        (pa.large_binary(), binary),
        (pa.binary(5), st.binary(min_size=5, max_size=5)),
        (pa.dictionary(pa.int16(), pa.string()), text),
        (pa.dictionary(pa.int32(), pa.binary()), binary),
        (pa.date32(), st.dates()),
        (pa.date64(), st.dates()),
        (pa.time32("s"), day),
        (pa.time32("ms"), day),
        (pa.time64("us"), day),
        (pa.time64("ns"), day),
        (pa.float32(), st.floats(width=32)),
        (pa.float64(), st.floats()),
    ]
    for bits in (8, 16, 32, 64):
        found += [(getattr(pa, f"int{bits}")(), whole(bits, signed=True))]
        found += [(getattr(pa, f"uint{bits}")(), whole(bits, signed=False))]
    for unit in ("s", "ms", "us", "ns"):
        moments = st.integers(-(10**9), 10**9)  # pyarrow wraps what nanoseconds can't hold
        found += [(pa.timestamp(unit), moments), (pa.timestamp(unit, "UTC"), moments)]
        found += [(pa.duration(unit), whole(64, signed=True))]
    for digits, scale in ((7, 2), (18, 0), (30, 4), (60, 5)):
        make = pa.decimal128 if digits < 39 else pa.decimal256
        numbers = st.integers(1 - 10**digits, 10**digits - 1)
        found.append((make(digits, scale), numbers.map(shifted(scale))))
    return found


def shifted(scale: int) -> Callable[[int], decimal.Decimal]:
    return lambda number: decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=100))


def kept(values: Strategy, type_: pa.DataType, *, nulls: bool) -> Strategy:
    return values | st.none() if nulls or pa.types.is_null(type_) else values


@st.composite
def fields(draw: Any, name: str, depth: int = 0) -> tuple[pa.Field, Strategy]:
    """A field and its values."""
    forms = ("leaf", "leaf", "list", "fixed", "struct", "map", "media") if depth < 3 else ("leaf",)
    form = draw(st.sampled_from(forms))
    nulls = draw(st.booleans())
    if form == "leaf":
        type_, values = draw(st.sampled_from(leaves()))
    elif form == "media":
        type_ = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        values = st.fixed_dictionaries(
            {"bytes": st.none() | st.binary(max_size=30), "path": st.none() | st.text(max_size=5)}
        )
    elif form == "struct":
        parts = [draw(fields(name, depth + 1)) for name in "xyz"[: draw(st.integers(1, 3))]]
        type_ = pa.struct([field for field, _ in parts])
        values = st.fixed_dictionaries({field.name: inner for field, inner in parts})
    else:
        item, inner = draw(fields("element", depth + 1))
        type_, values = listed(draw, form, item, inner)
    field = pa.field(name, type_, nullable=nulls or pa.types.is_null(type_))
    return field, kept(values, type_, nulls=nulls)


def listed(draw: Any, form: str, item: pa.Field, inner: Strategy) -> tuple[pa.DataType, Strategy]:
    if form == "fixed":
        size = draw(st.integers(1, 3))
        return pa.list_(item, size), st.lists(inner, min_size=size, max_size=size)
    if form == "map":
        keys = st.text(max_size=3)
        return pa.map_(pa.string(), item.type), st.lists(st.tuples(keys, inner), max_size=3)
    make = draw(st.sampled_from([pa.list_, pa.large_list]))
    return make(item), st.lists(inner, max_size=5)


@st.composite
def tables(draw: Any) -> pa.Table:
    columns = [draw(fields(name)) for name in "ab"[: draw(st.integers(1, 2))]]
    rows = draw(st.sampled_from([0, 1, 4, 20]))
    schema = pa.schema([field for field, _ in columns])
    arrays = [
        pa.array([draw(values) for _ in range(rows)], field.type) for field, values in columns
    ]
    return pa.table(arrays, schema=schema)


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([20, 1 << 20]),
        "data_page_size": st.sampled_from([1, 100, 1 << 20]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "row_group_size": st.sampled_from([1, 7, 1000]),
        "write_batch_size": st.sampled_from([1, 3, 1000]),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "store_schema": st.booleans(),
        "use_compliant_nested_type": st.booleans(),
        "use_deprecated_int96_timestamps": st.booleans(),
        "version": st.sampled_from(["1.0", "2.6"]),
    }
)


def encoded(table: pa.Table, options: dict[str, Any]) -> bytes:
    """A file; what pyarrow does not write, or does not read again, is left out."""
    try:
        data = written(table, **options)
        assume(read_back(data).num_rows == table.num_rows)
    except (pa.ArrowException, OSError) as error:
        event(f"pyarrow: {type(error).__name__}")
        assume(False)
    return data


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(tables(), OPTIONS)
def test_files_show_what_pyarrow_reads_of_them(table: pa.Table, options: dict[str, Any]) -> None:
    data = encoded(table, options)
    stream = arrow_files.encoded(read_back(data).combine_chunks())
    wanted = TableShard(arrow_files.opened(stream), dict, FakeServices())
    shard = opened(data)
    assert len(shard) == len(wanted) == table.num_rows
    assert list(shard.columns) == list(wanted.columns)
    for row in range(len(shard)):
        assert files(shard, row) == files(wanted, row)
        assert files(shard, row, raw=True) == files(wanted, row, raw=True)


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(tables(), OPTIONS, st.data())
def test_a_file_with_a_wrong_byte_is_read_or_damaged(
    table: pa.Table, options: dict[str, Any], data: st.DataObject
) -> None:
    content = bytearray(encoded(table, options))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        shard = opened(bytes(content), max_chunk_size=1 << 24)
        rows = range(min(len(shard), 20))
    except ShardfsError:
        return
    for row in rows:
        try:
            found = shard.fields(row)
        except ShardfsError:
            continue
        for field in found:
            try:
                read_all(field.data)
            except ShardfsError:
                continue


WRITTEN = sorted(Path(__file__).parents[1].joinpath("data", "parquet").glob("*.parquet"))


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(WRITTEN), st.data())
def test_a_file_of_any_writer_with_wrong_bytes_is_read_or_damaged(
    path: Path, data: st.DataObject
) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        shard = opened(bytes(content), max_chunk_size=1 << 24)
        rows = range(min(len(shard), 20))
    except ShardfsError:
        return
    for row in rows:
        with suppress(ShardfsError):
            files(shard, row)
