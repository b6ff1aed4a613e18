"""Arrow data that no writer at hand writes: big-endian numbers, old versions, newer types, nothing but a footer."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.formats.arrow.shard import TableShard
from shardfs.formats.shared.arrow.flatbuffer import Table
from shardfs.formats.shared.arrow.type_names import schema_info
from shardfs.formats.shared.arrow.types import parse_schema
from shardfs.views.values import json_value
from tests import DATA
from tests.arrow_files import encoded, files, opened, shown, values
from tests.arrow_made import (
    BIG,
    LITTLE,
    V4,
    Body,
    Column,
    Number,
    Repeated,
    Structs,
    batch,
    dictionary,
    file,
    flatbuffer,
    floating,
    integer,
    stream,
)
from tests.fakes import FakeServices

LONG = "a text that is too long to stand in a view"
ORDERS = pytest.mark.parametrize(("order", "e"), [(LITTLE, "<"), (BIG, ">")])


def packed(form: str, *numbers: Any) -> bytes:
    return struct.pack(form, *numbers)


def agreed(columns: list[Column], body: Body, order: int, column: int = 0) -> list[Any]:
    """The values of a column in a stream, where pyarrow reads as many; the same in a file with a footer alone."""
    data = stream(columns, [batch(body)], order)
    assert pa.ipc.open_stream(data).read_all().num_rows == body.rows
    found = values(data, column)
    assert values(file(columns, [batch(body)], order=order), column) == found
    return found


# --- the other byte order ----------------------------------------------------------------------------------


@ORDERS
@pytest.mark.parametrize("code", "bBhHiIqQ")
def test_integers(order: int, e: str, code: str) -> None:
    bits = struct.calcsize(code) * 8
    column = integer("v", bits, signed=code.islower())
    numbers = [1, 2, 100, -3 if code.islower() else 3]
    body = Body(4, [(4, 0)], [b"", packed(f"{e}4{code}", *numbers)])
    assert agreed([column], body, order) == numbers
    data = stream([column], [batch(body)], order)
    assert pa.ipc.open_stream(data).read_all()["v"].to_pylist() == numbers
    assert files(data, 2) == {"v.txt": b"100\n"}


@ORDERS
@pytest.mark.parametrize(("code", "precision"), [("e", 0), ("f", 1), ("d", 2)])
def test_floats(order: int, e: str, code: str, precision: int) -> None:
    body = Body(3, [(3, 1)], [b"\x05", packed(f"{e}3{code}", 0.5, 0, -1.25)])
    assert agreed([floating("v", precision)], body, order) == [0.5, None, -1.25]


@ORDERS
def test_truth_values_and_fixed_bytes_have_no_order(order: int, e: str) -> None:
    columns = [Column("v", 6), Column("w", 15, {0: Number("i", 4)})]
    body = Body(2, [(2, 0), (2, 0)], [b"", b"\x02", b"", b"abcdefgh"])
    assert agreed(columns, body, order) == [False, True]
    assert files(stream(columns, [batch(body)], order), 1)["w.txt"] == b"efgh"


@ORDERS
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_decimals(order: int, e: str, bits: int) -> None:
    what = {0: Number("i", 9), 1: Number("i", 2), 2: Number("i", bits)}
    byteorder: Any = "big" if order else "little"
    parts = [number.to_bytes(bits // 8, byteorder, signed=True) for number in (12345, -7)]
    body = Body(2, [(2, 0)], [b"", b"".join(parts)])
    assert agreed([Column("v", 7, what)], body, order) == ["123.45", "-0.07"]


@ORDERS
def test_intervals(order: int, e: str) -> None:
    forms = [
        ("i", (14,), "P14M"),
        ("ii", (3, -1500), "P3DT-1.5S"),
        ("iiq", (1, 2, 3), "P1M2DT0.000000003S"),
    ]
    for unit, (form, parts, text) in enumerate(forms):
        column = Column("v", 11, {0: Number("h", unit)})
        body = Body(2, [(2, 0)], [b"", packed(e + form, *parts) * 2])
        assert agreed([column], body, order) == [text, text]


@ORDERS
def test_moments(order: int, e: str) -> None:
    columns = [
        Column("v", 8, {0: Number("h", 0)}),
        Column("w", 10, {0: Number("h", 3)}),
        Column("x", 9, {0: Number("h", 0), 1: Number("i", 32)}),
    ]
    buffers = [
        b"",
        packed(f"{e}i", 1),
        b"",
        packed(f"{e}q", 1_500_000_000),
        b"",
        packed(f"{e}i", 61),
    ]
    body = Body(1, [(1, 0)] * 3, buffers)
    expected = ["1970-01-02", "1970-01-01T00:00:01.5", "00:01:01"]
    assert [agreed(columns, body, order, number)[0] for number in range(3)] == expected


@ORDERS
@pytest.mark.parametrize(("kind", "code"), [(5, "i"), (20, "q")])
def test_texts_and_lists(order: int, e: str, kind: int, code: str) -> None:
    text = Column("v", kind)
    body = Body(3, [(3, 1)], [b"\x05", packed(f"{e}4{code}", 0, 2, 2, 3), b"abc"])
    assert agreed([text], body, order) == ["ab", None, "c"]
    items = Column("v", {5: 12, 20: 21}[kind], children=(integer("item", 16),))
    offsets, numbers = packed(f"{e}3{code}", 0, 2, 3), packed(f"{e}3h", 1, 2, 3)
    body = Body(2, [(2, 0), (3, 0)], [b"", offsets, b"", numbers])
    assert agreed([items], body, order) == [[1, 2], [3]]


@ORDERS
@pytest.mark.parametrize(("kind", "code"), [(25, "i"), (26, "q")])
def test_views_of_lists(order: int, e: str, kind: int, code: str) -> None:
    items = Column("v", kind, children=(integer("item", 16),))
    places = [packed(f"{e}2{code}", 1, 0), packed(f"{e}2{code}", 2, 1)]
    body = Body(2, [(2, 0), (3, 0)], [b"", *places, b"", packed(f"{e}3h", 1, 2, 3)])
    assert values(stream([items], [batch(body)], order)) == [[2, 3], [1]]


@ORDERS
def test_views_of_texts(order: int, e: str) -> None:
    data = LONG.encode()
    views = packed(f"{e}i12s", 5, b"short") + packed(f"{e}i4sii", len(data), data[:4], 0, 0)
    body = Body(2, [(2, 0)], [b"", views, data], views=[1])
    assert values(stream([Column("v", 24)], [batch(body)], order)) == ["short", LONG]


@ORDERS
def test_unions_and_runs(order: int, e: str) -> None:
    what = {0: Number("h", 1), 1: Structs("i", [(5,), (7,)])}
    union = Column("v", 14, what, (integer("a", 32), Column("b", 5)))
    offsets, numbers = packed(f"{e}3i", 0, 0, 1), packed(f"{e}2i", 10, 20)
    buffers = [b"\5\7\5", offsets, b"", numbers, b"", packed(f"{e}2i", 0, 1), b"x"]
    body = Body(3, [(3, 0), (2, 0), (1, 0)], buffers)
    assert agreed([union], body, order) == [10, "x", 20]
    runs = Column("v", 22, {}, (integer("run_ends", 32), integer("values", 16)))
    buffers = [b"", packed(f"{e}2i", 2, 3), b"", packed(f"{e}2h", 300, 400)]
    body = Body(3, [(3, 0), (2, 0), (2, 0)], buffers)
    assert values(stream([runs], [batch(body)], order)) == [300, 300, 400]


@ORDERS
def test_dictionaries(order: int, e: str) -> None:
    column = Column("v", 5, dictionary=0)
    words = dictionary(0, Body(2, [(2, 0)], [b"", packed(f"{e}3i", 0, 1, 3), b"abb"]))
    body = Body(3, [(3, 0)], [b"", packed(f"{e}3i", 1, 0, 1)])
    data = stream([column], [words, batch(body)], order)
    assert pa.ipc.open_stream(data).read_all()["v"].to_pylist() == ["bb", "a", "bb"]
    assert values(data) == ["bb", "a", "bb"]
    assert values(file([column], [batch(body)], [words], order)) == ["bb", "a", "bb"]


def test_arrays_are_of_the_order_of_all_others() -> None:
    column = Column("v", 16, {0: Number("i", 3)}, (integer("item", 32),))
    body = Body(2, [(2, 0), (6, 0)], [b"", b"", packed(">6i", *range(6))])
    found = files(stream([column], [batch(body)], BIG), 1)["v.npy"]
    assert b"'<i4'" in found
    assert found.endswith(packed("<3i", 3, 4, 5))


def test_an_unknown_byte_order_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="byte order 2"):
        opened(stream([integer("v", 8)], [], 2))


# --- old versions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
def test_unions_of_before_arrow_1_have_nulls_of_their_own(dense: bool) -> None:
    what = {0: Number("h", int(dense)), 1: Structs("i", [(0,), (1,)])}
    union = Column("v", 14, what, (integer("a", 32), Column("b", 5)))
    columns = [union, integer("w", 8)]
    numbers, texts = packed("<3i", 10, 20, 30), packed("<4i", 0, 1, 3, 6)
    offsets = [packed("<3i", 2, 1, 0)] if dense else []
    children = [b"", numbers, b"", texts, b"abbccc"]
    buffers = [b"\x05", b"\0\1\1", *offsets, *children, b"", b"\1\2\3"]
    body = Body(3, [(3, 1), (3, 0), (3, 0), (3, 0)], buffers)
    data = stream(columns, [batch(body, version=V4)], version=V4)
    assert values(data) == ([30, None, "a"] if dense else [10, None, "ccc"])
    assert values(data, 1) == [1, 2, 3]
    assert list(files(data, 1)) == ["w.txt"]


@pytest.mark.parametrize("buffers", [0, 1, 2])
def test_nulls_of_before_arrow_015_have_buffers(buffers: int) -> None:
    columns = [
        integer("a", 8),
        Column("nothing", 1),
        Column("b", 5),
        Column("more", 1),
        integer("c", 8),
    ]
    nulls, text = [b""] * buffers, [b"", packed("<3i", 0, 1, 2), b"xy"]
    body = Body(
        2, [(2, 0), (2, 2)] * 2 + [(2, 0)], [b"", b"\1\2", *nulls, *text, *nulls, b"", b"\3\4"]
    )
    data = stream(columns, [batch(body, version=V4)], version=V4)
    expected = [[1, 2], [None, None], ["x", "y"], [None, None], [3, 4]]
    assert [values(data, number) for number in range(5)] == expected


def test_the_compression_of_arrow_017_is_found() -> None:
    table = pa.table({"v": ["a" * 300] * 50})
    data = encoded(table, compression="lz4")
    message = opened(data).index.offsets[0]
    raw = pa.ipc.read_message(pa.BufferReader(data[message:]))
    assert raw.type == "record batch"
    stored = _buffers(data, message)
    body = Body(50, [(50, 0)], stored)
    old = batch(body, version=V4, metadata={"ARROW:experimental_compression": "LZ4_FRAME"})
    assert values(stream([Column("v", 5)], [old], version=V4)) == ["a" * 300] * 50
    unknown = batch(body, version=V4, metadata={"ARROW:experimental_compression": "brotli"})
    with pytest.raises(Unsupported, match="unknown compression"):
        values(stream([Column("v", 5)], [unknown], version=V4))


def _buffers(data: bytes, offset: int) -> list[bytes]:
    """The buffers of the batch at an offset, as they are stored."""
    from shardfs.formats.shared.arrow.message import Header, message_of

    message = message_of(Bytes(data), offset, Header.BATCH)
    places = message.batch.structs(2, struct.Struct("<qq"))
    return [data[message.body + at : message.body + at + length] for at, length in places]


def test_the_version_in_a_footer_may_be_missing() -> None:
    data = file([integer("v", 8)], [])
    assert opened(data.replace(struct.pack("<h", 4), bytes(2))).index.by_footer


# --- newer types, and what is too large --------------------------------------------------------------------


@pytest.mark.parametrize("buffers", [0, 1, 2, 5])
def test_a_type_that_is_not_known_leaves_its_neighbours_readable(buffers: int) -> None:
    strange = Column("strange", 99)
    columns = [integer("a", 8), strange, Column("b", 5), strange, integer("c", 8)]
    unknown = [b"????????"] * buffers
    text = [b"", packed("<3i", 0, 1, 2), b"xy"]
    body = Body(2, [(2, 0)] * 5, [b"", b"\1\2", *unknown, *text, *unknown, b"", b"\3\4"])
    data = stream(columns, [batch(body)])
    assert [values(data, number) for number in (0, 2, 4)] == [[1, 2], ["x", "y"], [3, 4]]
    with pytest.raises(Unsupported, match="type 99, which is newer"):
        values(data, 1)
    shard = TableShard(opened(data), dict, FakeServices())
    fields = shard.fields(1)
    assert [field.name for field in fields] == ["a", "strange", "b", "strange", "c"]
    for field in (fields[1], fields[3]):
        with pytest.raises(Unsupported):
            field.data.size()


def test_a_width_that_is_not_known_leaves_its_neighbours_readable() -> None:
    columns = [integer("wide", 256), integer("b", 8)]
    body = Body(2, [(2, 0), (2, 0)], [b"", bytes(64), b"", b"\3\4"])
    data = stream(columns, [batch(body)])
    assert values(data, 1) == [3, 4]
    with pytest.raises(Unsupported, match="integers of bits 256"):
        values(data, 0)


@ORDERS
@pytest.mark.parametrize("signed", [False, True])
def test_integers_of_polars_have_128_bits(order: int, e: str, signed: bool) -> None:
    number = -(1 << 100) - 5 if signed else (1 << 127) + 5
    byteorder: Any = "big" if order else "little"
    body = Body(1, [(1, 0)], [b"", number.to_bytes(16, byteorder, signed=signed)])
    data = stream([integer("v", 128, signed=signed)], [batch(body)], order)
    assert values(data) == [number]
    assert files(data, 0) == {"v.txt": f"{number}\n".encode()}
    (field,) = TableShard(opened(data), dict, FakeServices()).fields(0)
    assert json_value(field, lambda _: None) == number


def test_truth_values_that_are_bytes() -> None:
    storage = pa.array([0, 1, None, -7], pa.int8())
    array = pa.ExtensionArray.from_storage(pa.bool8(), storage)
    assert shown(array, 3) == {".txt": b"true\n"}
    assert [shown(array, row) for row in (0, 2)] == [{".txt": b"false\n"}, {}]
    listed = pa.ListArray.from_arrays([0, 4], array)
    assert shown(listed) == {".json": b"[false,true,null,true]\n"}


def test_types_have_names() -> None:
    columns = [
        integer("a", 128),
        integer("b", 128, signed=False),
        Column("c", 99),
        integer("d", 16),
    ]
    columns += [integer("e", 8, signed=False), floating("f", 0), Column("g", 6), integer("h", 512)]
    found = schema_info(opened(stream(columns, [])).schema)
    names = [
        "int128",
        "uint128",
        "unsupported",
        "int16",
        "uint8",
        "halffloat",
        "bool",
        "unsupported",
    ]
    assert [info.type for info in found] == names


def test_leaves_with_children_are_leaves() -> None:
    column = Column("v", 2, integer("", 8).what, (integer("child", 8),))
    assert values(stream([column], [batch(Body(2, [(2, 0)], [b"", b"\1\2"]))])) == [1, 2]


# --- dictionaries ------------------------------------------------------------------------------------------


def test_where_all_is_null_there_need_be_no_dictionary() -> None:
    column = Column("v", 5, dictionary=3)
    nothing = batch(Body(2, [(2, 2)], [b"\0", bytes(8)]))
    words = dictionary(3, Body(1, [(1, 0)], [b"", packed("<2i", 0, 1), b"a"]))
    later = batch(Body(1, [(1, 0)], [b"", bytes(4)]))
    assert values(stream([column], [nothing])) == [None, None]
    assert values(stream([column], [nothing, words, later])) == [None, None, "a"]
    with pytest.raises(Corrupt, match="dictionary 3 that is not there"):
        values(stream([column], [later]))


def test_dictionaries_that_replace_others_in_a_file_hold_from_there_on() -> None:
    column = Column("v", 5, dictionary=0)
    words = [
        dictionary(0, Body(1, [(1, 0)], [b"", packed("<2i", 0, 1), text])) for text in (b"a", b"b")
    ]
    one = batch(Body(1, [(1, 0)], [b"", bytes(4)]))
    inner = stream([column], [words[0], one, words[1], one])
    assert values(inner) == ["a", "b"]
    # as one that copies the messages of a stream into a file would have it
    data = b"ARROW1\0\0" + inner
    begin = len(data) - 8 - sum(map(len, (words[0], one, words[1], one)))
    places = [begin]
    for part in (words[0], one, words[1]):
        places.append(places[-1] + len(part))
    footer = _footer(column, [places[0], places[2]], [places[1], places[3]])
    assert values(data + footer) == ["a", "b"]
    with pytest.raises(Corrupt, match="which of two dictionaries"):
        opened(file([column], [one, one], words))


def _footer(column: Column, dictionaries: list[int], batches: list[int]) -> bytes:
    from tests.arrow_made import V5, schema

    blocks = [
        Structs("qi4xq", [(place, 0, 0) for place in found]) for found in (dictionaries, batches)
    ]
    footer = flatbuffer({0: Number("h", V5), 1: schema([column]), 2: blocks[0], 3: blocks[1]})
    return footer + struct.pack("<i", len(footer)) + b"ARROW1"


# --- footers and damage ------------------------------------------------------------------------------------

COLUMNS = [integer("v", 8)]
BATCHES = [batch(Body(2, [(2, 0)], [b"", bytes([number, number])])) for number in (1, 2, 3)]


def test_the_footer_counts_and_not_the_stream() -> None:
    assert values(file(COLUMNS, BATCHES)) == [1, 1, 2, 2, 3, 3]
    data = bytearray(encoded(pa.table({"v": pa.array([5, 6], pa.int8())}), file=True))
    data[8:40] = b"\xee" * 32  # in place of the schema that comes first
    assert values(bytes(data)) == [5, 6]


@pytest.mark.parametrize("name", ["plain", "zstd", "batches"])
def test_a_file_of_polars_that_is_cut_is_the_stream_in_it(name: str) -> None:
    data = (DATA / "arrow" / "polars_2" / f"{name}.arrow").read_bytes()
    expected = [values(data, column) for column in range(14)]
    cut = data[:-20]
    assert (opened(data).index.by_footer, opened(cut).index.by_footer) == (True, False)
    assert [values(cut, column) for column in range(14)] == expected
    for length in (8, 20, 60, 200):
        with pytest.raises(Corrupt):
            opened(data[:length])


def test_a_file_whose_first_batch_is_damaged_is_no_empty_folder() -> None:
    data = file(COLUMNS, BATCHES)
    data = data[:8] + b"\xee" * 12 + data[20:]
    with pytest.raises(Corrupt, match="damaged or cut at byte 8, before its first record"):
        opened(data)


def test_a_file_is_read_up_to_the_batch_that_is_damaged() -> None:
    data = file(COLUMNS, BATCHES)
    at = data.index(BATCHES[2])
    damaged = data[:at] + b"\xee" * 12 + data[at + 12 :]
    assert values(damaged) == [1, 1, 2, 2]
    index = opened(damaged).index
    assert (index.rows, index.stop) == (4, at)


def test_offsets_in_a_footer_may_be_anything() -> None:
    data = file(COLUMNS, BATCHES)
    place = struct.pack("<q", data.index(BATCHES[1]))
    for offset in (-(1 << 63), -1, len(data), (1 << 63) - 1):
        damaged = data.replace(place, struct.pack("<q", offset))
        assert values(damaged) == [1, 1]


def test_a_stream_that_is_damaged_or_cut_before_its_first_record_is_no_empty_folder() -> None:
    whole = stream(COLUMNS, BATCHES)
    begin = whole.index(BATCHES[0])
    for data in (whole[:begin], whole[: begin + 3], whole[: begin + 20]):
        with pytest.raises(Corrupt, match=f"damaged or cut at byte {begin}, before its first"):
            opened(data)
    assert opened(whole[:begin] + whole[-8:]).index.rows == 0  # which has an end
    assert values(whole[: begin + len(BATCHES[0])]) == [1, 1]


def test_damage_behind_records_leaves_these() -> None:
    whole = stream(COLUMNS, BATCHES)
    at = whole.index(BATCHES[1])
    for version in (1, 9):
        strange = batch(Body(2, [(2, 0)], [b"", b"xx"]), version=version)
        index = opened(whole[:at] + strange).index
        assert (index.rows, index.stop, index.ending) == (2, at, 2)
    with pytest.raises(Unsupported, match="version 2; 4 and 5"):
        opened(stream(COLUMNS, [batch(Body(2, [(2, 0)], [b"", b"xx"]), version=1)]))


def test_a_schema_that_tells_the_same_over_and_over_is_refused_at_once() -> None:
    pairs = Repeated({0: "k", 1: "v" * 5000}, 20_000)
    column = integer("v", 8).table()
    for fields in (
        Repeated({**column, 6: pairs}, 20_000),
        Repeated({**column, 2: Number("B", 13), 5: Repeated(column, 20_000)}, 20_000),
    ):
        data = memoryview(flatbuffer({1: fields}))
        assert len(data) < 300_000
        with pytest.raises(ShardfsError, match=r"the same over and over|more than 64 levels"):
            parse_schema(Table.root(data))


def test_what_belongs_to_no_table_ends_a_stream() -> None:
    twice = stream(COLUMNS, BATCHES[:1])[:-8] + stream([Column("w", 6)], BATCHES[1:])
    index = opened(twice).index
    assert (index.rows, index.ending) == (2, 2)


def test_offsets_of_messages_follow_one_another() -> None:
    offsets = opened(stream(COLUMNS, BATCHES)).index.offsets
    assert [b - a for a, b in pairwise(offsets)] == [len(part) for part in BATCHES[:2]]
    assert shown(pa.array(["x"])) == {".txt": b"x"}
