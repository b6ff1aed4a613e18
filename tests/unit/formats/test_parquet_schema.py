"""Schemas of Parquet files, also as old writers left them, which no library writes any more."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest

from shardfs.blob import read_all
from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.parquet.schema import Node, nodes_of, parse_elements
from shardfs.formats.parquet.thrift import read_struct
from shardfs.formats.shared.arrow.types import ArrowField, DataType, Type
from tests import thrift
from tests.parquet_files import (
    BYTE_ARRAY,
    INT32,
    LIST,
    MAP,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Made,
    element,
    files,
    levels,
    made,
    opened,
    page,
    read_back,
    root,
    texts,
    written,
)

Parts = list[dict[int, Any]]


def ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def shown(data: bytes) -> list[Any]:
    """What the only JSON file of each record says, None where there is none."""
    shard = opened(data)
    found = [files(shard, row) for row in range(len(shard))]
    return [json.loads(some[0][1]) if some else None for some in found]


# [7, 8], null or [], [9]
REPETITIONS, VALUES = [0, 1, 0, 0], ints(7, 8, 9)


def lists(schema: Parts, definitions: list[int]) -> bytes:
    body = levels(REPETITIONS) + levels(definitions) + VALUES
    return made([root(1), *schema], [(3, [Made(page(body, 4), 4, INT32)])])


LISTS = {
    "three levels": (
        [
            element("v", OPTIONAL, children=1, converted=LIST),
            element("list", REPEATED, children=1),
            element("element", OPTIONAL, type=INT32),
        ],
        [3, 3, 1, 3],
    ),
    "items that are never null": (
        [
            element("v", OPTIONAL, children=1, converted=LIST),
            element("bag", REPEATED, children=1),
            element("array_element", REQUIRED, type=INT32),
        ],
        [2, 2, 1, 2],
    ),
    "two levels": (
        [
            element("v", OPTIONAL, children=1, converted=LIST),
            element("element", REPEATED, type=INT32),
        ],
        [2, 2, 1, 2],
    ),
    "no group around": ([element("v", REPEATED, type=INT32)], [1, 1, 0, 1]),
}
STRUCTS = {
    "a group that is no list by itself": (
        [element("v", REPEATED, children=1), element("x", REQUIRED, type=INT32)],
        [1, 1, 0, 1],
    ),
    "an item by the name of array": (
        [
            element("v", OPTIONAL, children=1, converted=LIST),
            element("array", REPEATED, children=1),
            element("x", OPTIONAL, type=INT32),
        ],
        [3, 3, 1, 3],
    ),
    "an item by the name of its list": (
        [
            element("v", OPTIONAL, children=1, converted=LIST),
            element("v_tuple", REPEATED, children=1),
            element("x", OPTIONAL, type=INT32),
        ],
        [3, 3, 1, 3],
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    data = lists(*LISTS[name])
    assert shown(data) == read_back(data)["v"].to_pylist() == [[7, 8], [], [9]]


@pytest.mark.parametrize("name", STRUCTS)
def test_lists_of_structs(name: str) -> None:
    data = lists(*STRUCTS[name])
    wanted = [[{"x": 7}, {"x": 8}], [], [{"x": 9}]]
    assert shown(data) == read_back(data)["v"].to_pylist() == wanted


def test_a_list_of_structs_in_two_levels() -> None:
    schema = [
        root(1),
        element("v", OPTIONAL, children=1, converted=LIST),
        element("pair", REPEATED, children=2),
        element("x", OPTIONAL, type=INT32),
        element("y", REQUIRED, type=INT32),
    ]
    x = page(levels(REPETITIONS) + levels([3, 2, 0, 3]) + ints(7, 9), 4)
    y = page(levels(REPETITIONS) + levels([2, 2, 0, 2]) + VALUES, 4)
    data = made(schema, [(3, [Made(x, 4, INT32), Made(y, 4, INT32)])])
    wanted = [[{"x": 7, "y": 7}, {"x": None, "y": 8}], None, [{"x": 9, "y": 9}]]
    assert shown(data) == read_back(data)["v"].to_pylist() == wanted


def test_a_map_without_values_is_a_list_of_its_keys() -> None:
    schema = [
        root(1),
        element("v", OPTIONAL, children=1, converted=MAP),
        element("key_value", REPEATED, children=1),
        element("key", REQUIRED, type=BYTE_ARRAY, converted=0),
    ]
    body = levels([0, 1, 0]) + levels([2, 2, 0]) + texts(b"a", b"b")
    data = made(schema, [(2, [Made(page(body, 3), 3)])])
    assert shown(data) == read_back(data)["v"].to_pylist() == [["a", "b"], None]


def parsed(elements: Parts) -> Any:
    return parse_elements([read_struct(thrift.struct(part))[0] for part in elements])


@pytest.mark.parametrize(
    "elements",
    [
        [],
        [root(2), element("v", type=INT32)],
        [root(1 << 30)],
        [root(-1)],
        [root(1)] * 500,
        [root(1), element("v", type=7, length=-1)],
    ],
)
def test_damaged_schemas(elements: Parts) -> None:
    with pytest.raises(Corrupt):
        parsed(elements)


def test_schemas_that_are_not_read() -> None:
    with pytest.raises(Unsupported):
        parsed([root(1 << 14), *[element("v", type=1)] * (1 << 14)])


def test_columns_of_one_name_and_of_any_name() -> None:
    names = ["v", "v", "", "a/b", ".", "v"]
    table = pa.table([pa.array([number]) for number in range(6)], names=names)
    shard = opened(written(table))
    assert list(shard.columns) == ["v", "", "a/b", "."]
    assert [(f.name, f.data.size()) for f in shard.fields(0)] == [(name, 8) for name in names]
    assert [content for _, content in files(shard, 0)] == [b"%d\n" % n for n in range(6)]


INT_64 = ArrowField("v", DataType(Type.INT, "<i8", 8))


@pytest.mark.parametrize(
    ("elements", "type_"),
    [
        ([element("v", type=INT32)], INT_64.type),
        ([element("v", type=INT32)], DataType(Type.FLOAT, "<f4", 4)),
        ([element("v", type=BYTE_ARRAY)], DataType(Type.FIXED_BINARY, size=4)),
        ([element("v", type=7, length=3)], DataType(Type.FLOAT, "<f2", 2)),
        ([element("v", type=INT32)], DataType(Type.LIST, children=(INT_64,))),
        ([element("v", type=INT32)], DataType(Type.STRUCT, children=(INT_64,))),
        ([element("v", REPEATED, type=INT32)], INT_64.type),
        ([element("v", children=1), element("x", type=2)], INT_64.type),
        ([element("v", children=1), element("x", type=2)], DataType(Type.LIST, children=(INT_64,))),
        ([element("v", children=1), element("x", type=2)], DataType(Type.STRUCT)),
    ],
)
def test_a_column_that_is_not_what_arrow_says_harms_no_other(
    elements: Parts, type_: DataType
) -> None:
    schema = parsed([root(2), *elements, element("w", type=2)])
    wrong, right = nodes_of(schema, [ArrowField("v", type_), INT_64], typed=True)
    assert isinstance(wrong, Corrupt)
    assert isinstance(right, Node)
    assert right.leaves[0].number == sum(1 for part in elements if 1 in part)


def test_as_many_columns_as_arrow_says() -> None:
    with pytest.raises(Corrupt):
        nodes_of(parsed([root(1), element("w", type=2)]), [INT_64, INT_64], typed=True)


NUMBER = Made(page(ints(5), 1), 1, INT32)


@pytest.mark.parametrize(
    "odd",
    {
        "a number that should be text": element("v", type=INT32, converted=0),
        "a stored type of the future": element("v", type=8),
        "a decimal of too many digits": {
            **element("v", type=INT32, converted=5),
            8: thrift.I32(100),
        },
    }.items(),
    ids=lambda pair: pair[0],
)
def test_a_type_that_nobody_knows_harms_no_other_column(odd: tuple[str, dict[int, Any]]) -> None:
    shard = opened(made([root(2), odd[1], element("w", type=INT32)], [(1, [NUMBER, NUMBER])]))
    unknown, known = shard.fields(0)
    with pytest.raises(Unsupported, match="'v'"):
        read_all(unknown.data)
    assert bytes(read_all(known.data)) == ints(5)


def test_keys_of_maps_that_say_they_may_be_null() -> None:
    schema = [
        root(1),
        element("v", OPTIONAL, children=1, converted=MAP),
        element("map", REPEATED, children=2),
        element("key", OPTIONAL, type=INT32),
        element("value", OPTIONAL, type=INT32),
    ]
    part = Made(page(levels([0]) + levels([3]) + ints(5), 1), 1, INT32)
    assert files(opened(made(schema, [(1, [part, part])])), 0) == [("v.json", b"[[5,5]]\n")]


def test_groups_of_nothing_are_left_out() -> None:
    schema = [
        root(2),
        element("v", OPTIONAL, children=1),
        element("inner", OPTIONAL, children=0),
        element("w", children=2),
        element("x", type=INT32),
        element("inner", children=0),
    ]
    assert files(opened(made(schema, [(1, [NUMBER])])), 0) == [("w.json", b'{"x":5}\n')]


def test_intervals() -> None:
    schema = [root(1), element("v", type=7, length=12, converted=21)]
    parts = struct.pack("<3I", 1, 2, 3500) + struct.pack("<3I", 0, 0, 0) + b"\xff" * 12
    shard = opened(made(schema, [(3, [Made(page(parts, 3), 3, 7)])]))
    assert [files(shard, row) for row in range(3)] == [
        [("v.txt", b"P1M2DT3.5S\n")],
        [("v.txt", b"PT0S\n")],
        [("v.txt", b"P4294967295M4294967295DT4294967.295S\n")],
    ]
