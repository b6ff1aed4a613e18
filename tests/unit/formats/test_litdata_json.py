from __future__ import annotations

import json
import struct

import pytest

from shardfs.errors import Corrupt
from shardfs.formats.litdata.json_leaf import render


def u32(number: int) -> bytes:
    return struct.pack("<I", number)


def text(value: str) -> bytes:
    return u32(len(value.encode())) + value.encode()


ROWS = b"\x06" + u32(2) + u32(2) + text("n") + text("x")
CELLS = b"\x12" + struct.pack("<q", -1) + b"\x13" + struct.pack("<d", 0.5)


@pytest.mark.parametrize(
    ("leaf", "shown"),
    [
        (b"\x00" + text('{"a": [1, "b c"]}'), '{"a":[1,"b c"]}'),
        (b"\x01" + u32(0), "[]"),
        (b"\x01" + u32(2) + text("a") + text("ü"), '["a","ü"]'),
        (b"\x02" + u32(2) + struct.pack("<qq", -1, 1 << 62), f"[-1,{1 << 62}]"),
        (b"\x03" + u32(2) + struct.pack("<dd", 0.1, float("nan")), "[0.1,NaN]"),
        (b"\x04" + u32(2) + b"\x01\x00", "[true,false]"),
        (b"\x05" + u32(2) + text("a") + b"\x0b" + text("b") + b"\x0a\x01", '{"a":null,"b":true}'),
        (b"\x05" + u32(0), "{}"),
        (ROWS + CELLS + b"\x10\x11" + text("s"), '[{"n":-1,"x":0.5},{"n":null,"x":"s"}]'),
        (b"\x06" + u32(1) + u32(1) + text("k") + b"\x14\x01", '[{"k":true}]'),
        (b"\x07" + text("a"), '"a"'),
        (b"\x08" + struct.pack("<q", -5), "-5"),
        (b"\x09" + struct.pack("<d", float("-inf")), "-Infinity"),
        (b"\x0a\x00", "false"),
        (b"\x0b", "null"),
    ],
)
def test_the_binary_form_becomes_compact_json(leaf: bytes, shown: str) -> None:
    assert render(memoryview(leaf)) == shown.encode() + b"\n"


@pytest.mark.parametrize("leaf", [b'{"a": 1}', b"[1, 2]\n", b'"x"'])
def test_text_stays_as_it_is(leaf: bytes) -> None:
    assert render(memoryview(leaf)) == leaf


@pytest.mark.parametrize(
    "leaf",
    [
        b"\x0c",  # unknown tag
        b"\x01",  # no count
        b"\x01" + u32(1) + u32(9) + b"short",
        b"\x02" + u32(0xFFFFFFFF) + bytes(8),
        b"\x05" + u32(0xFFFFFFFF) + text("a") + b"\x0b",
        b"\x06" + u32(0xFFFFFFFF) + u32(0),  # rows that take no bytes
        ROWS + b"\x15",  # unknown cell
        b"\x07" + u32(1) + b"\xff",  # no UTF-8
        b"\x00" + text("{"),
        b"\x0b\x0b",  # more than one value
    ],
)
def test_damage_is_corrupt(leaf: bytes) -> None:
    with pytest.raises(Corrupt):
        render(memoryview(leaf))


def test_depth_is_bounded() -> None:
    nested = (b"\x05" + u32(1) + text("")) * 1000 + b"\x0b"
    with pytest.raises(Corrupt, match="too deeply"):
        render(memoryview(nested))


def test_depth_in_text_is_bounded() -> None:
    with pytest.raises(Corrupt):
        render(memoryview(b"\x00" + text("[" * 100_000)))


def test_values_may_nest_as_deep_as_people_write_them() -> None:
    leaf = (b"\x05" + u32(1) + text("k")) * 50 + b"\x0b"
    value = json.loads(render(memoryview(leaf)))
    for _ in range(50):
        value = value["k"]
    assert value is None
