"""Variants: what their bytes mean, and that no bytes do harm."""

from __future__ import annotations

import contextlib
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.formats.shared.columns import Budget
from shardfs.formats.shared.jsontext import compact
from shardfs.formats.shared.variant import read_names, read_value

NAMES = ["a", "b", "é"]
ONE = bytes((3 << 2, 1))
"""The number 1."""


def metadata(*names: str) -> bytes:
    texts = [name.encode() for name in names]
    ends = [0, *(sum(map(len, texts[: n + 1])) for n in range(len(texts)))]
    return bytes((1, len(names), *ends)) + b"".join(texts)


def value(data: bytes) -> Any:
    return read_value(memoryview(data), NAMES, Budget())


def primitive(kind: int, content: bytes = b"") -> bytes:
    return bytes((kind << 2,)) + content


def array(*items: bytes) -> bytes:
    ends = [sum(map(len, items[:n])) for n in range(len(items) + 1)]
    return bytes((3, len(items), *ends)) + b"".join(items)


def test_names() -> None:
    assert list(read_names(memoryview(metadata(*NAMES)))) == NAMES


VALUES: list[tuple[bytes, Any]] = [
    (primitive(0), None),
    (primitive(1), True),
    (primitive(2), False),
    (primitive(3, b"\xff"), -1),
    (primitive(4, struct.pack("<h", -300)), -300),
    (primitive(5, struct.pack("<i", 1 << 30)), 1 << 30),
    (primitive(6, struct.pack("<q", -(1 << 62))), -(1 << 62)),
    (primitive(7, struct.pack("<d", 0.1)), 0.1),
    (primitive(14, struct.pack("<f", 0.1)), 0.1),
    (primitive(8, b"\x02" + struct.pack("<i", -1234)), -12.34),
    (primitive(9, b"\x09" + struct.pack("<q", 1)), 1e-9),
    (primitive(10, b"\x01" + ((10**30) + 1).to_bytes(16, "little")), "1" + "0" * 29 + ".1"),
    (primitive(11, struct.pack("<i", -1)), "1969-12-31"),
    (primitive(12, struct.pack("<q", 1500000)), "1970-01-01T00:00:01.5+00:00"),
    (primitive(13, struct.pack("<q", 0)), "1970-01-01T00:00:00"),
    (primitive(15, b"\x02\0\0\0\xff\x00"), memoryview(b"\xff\x00")),
    (primitive(16, b"\x02\0\0\0hi"), "hi"),
    (primitive(17, struct.pack("<q", 3_600_000_000)), "01:00:00"),
    (primitive(18, struct.pack("<q", 1)), "1970-01-01T00:00:00.000000001+00:00"),
    (primitive(19, struct.pack("<q", 1)), "1970-01-01T00:00:00.000000001"),
    (primitive(20, UUID(int=7).bytes), str(UUID(int=7))),
    (b"\x09hi", "hi"),
    (array(), []),
    (array(ONE, b"\x09hi", array(ONE)), [1, "hi", [1]]),
    # the members in another order than their names
    (bytes((2, 2, 0, 2, 3, 0, 5)) + b"\x09hi" + ONE, {"a": 1, "é": "hi"}),
]


@pytest.mark.parametrize(
    ("data", "wanted"),
    VALUES,
    ids=lambda part: repr(bytes(part) if isinstance(part, memoryview) else part)[:40],
)
def test_values(data: bytes, wanted: Any) -> None:
    found = value(data)
    assert (type(found), found) == (type(wanted), wanted)
    assert compact(found)


@pytest.mark.parametrize(
    "data",
    {
        "nothing": b"",
        "a number that ends early": primitive(6, b"1"),
        "a text that ends early": primitive(16, b"\xff\xff\xff\xffhi"),
        "no UTF-8": b"\x05\xff",
        "a member without a name": bytes((2, 1, 9, 0, 2)) + ONE,
        "two members in one place": bytes((2, 2, 0, 1, 0, 0, 2)) + ONE,
        "items outside": bytes((3, 1, 0, 200)),
        "items that end before they begin": bytes((3, 2, 2, 0, 2)) + ONE,
        "no time of a day": primitive(17, struct.pack("<q", -1)),
        "nested too deeply": bytes((3, 1, 0, 255)) * 200,
    }.items(),
    ids=lambda pair: pair[0],
)
def test_damage(data: tuple[str, bytes]) -> None:
    with pytest.raises(Corrupt):
        value(data[1])


def test_what_is_not_known() -> None:
    with pytest.raises(Unsupported, match="type 30"):
        value(primitive(30))
    with pytest.raises(Unsupported, match="version 2"):
        read_names(memoryview(b"\x02\x00\x00"))


@given(st.binary(max_size=40) | st.sampled_from([data for data, _ in VALUES]), st.data())
def test_any_bytes_are_a_value_or_damage(content: bytes, data: st.DataObject) -> None:
    changed = bytearray(content)
    if changed:
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ShardfsError):
        compact(value(bytes(changed)))
    with contextlib.suppress(ShardfsError):
        read_names(memoryview(bytes(changed)))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5, max_value=10**30))
def test_decimals_lose_no_digit(number: Decimal) -> None:
    scaled = int(number.scaleb(5))
    if -(1 << 127) <= scaled < 1 << 127:
        found = value(primitive(10, b"\x05" + scaled.to_bytes(16, "little", signed=True)))
        assert Decimal(str(found)) == Decimal(scaled).scaleb(-5)
