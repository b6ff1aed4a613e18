from __future__ import annotations

import json
import math
from typing import Any

import pytest

from shardfs.errors import Corrupt
from shardfs.formats.shared.jsontext import (
    compact,
    member,
    natural,
    optional,
    parse,
    parse_object,
    shown,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is no JSON: line 1, column 1 is not as it must be"),
        (b"{", "is no JSON: line 1, column 2 is not as it must be"),
        (b'{\n "a": x}', "is no JSON: line 2, column 7 is not as it must be"),
        (b'{"a": "\xff"}', "is no JSON: is no UTF-8 text at byte 7"),
        (b"\xff\xfe\x00", "is no JSON"),
        (b"[" * 100_000, "is JSON that is nested too deeply to be read"),
        (b"1" * 5000, "is JSON with a number of too many digits"),
    ],
)
def test_what_is_no_json_is_corrupt(text: bytes, words: str) -> None:
    with pytest.raises(Corrupt, match=f"^{words}"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"), [("5", "5"), ("[1]", "a list"), ("null", "null"), ('"x"', '"x"')]
)
def test_an_object_is_an_object(text: str, said: str) -> None:
    with pytest.raises(Corrupt, match=f"the whole should be an object, but is {said}"):
        parse_object(text)


def test_a_member_is_there_and_of_its_kind() -> None:
    assert member({"a": 1}, "a", int) == 1
    with pytest.raises(Corrupt, match="has no b"):
        member({"a": 1}, "b", int)
    with pytest.raises(Corrupt, match="a should be a text, but is 1"):
        member({"a": 1}, "a", str)
    with pytest.raises(Corrupt, match="a should be a whole number, but is true"):
        member({"a": True}, "a", int)


def test_an_optional_member_may_be_missing_or_null_but_not_of_another_kind() -> None:
    assert optional({}, "a", str) is None
    assert optional({"a": None}, "a", str) is None
    assert optional({"a": ""}, "a", str) == ""
    with pytest.raises(Corrupt, match="a should be a text, but is an object"):
        optional({"a": {}}, "a", str)


def test_a_natural_number_has_limits() -> None:
    assert natural(7, 7, "n") == 7
    for value in (-1, 8):
        with pytest.raises(Corrupt, match=f"n is {value}"):
            natural(value, 7, "n")


@pytest.mark.parametrize(
    "value", ["x" * 1000, 10**5000, ["x"] * 1000, "a\nb"], ids=["text", "number", "list", "lines"]
)
def test_a_value_in_a_message_is_short_and_on_one_line(value: object) -> None:
    assert len(shown(value)) < 70
    assert "\n" not in shown(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
        ("grün", '"grün"'),
        ([math.nan, math.inf, -math.inf], "[NaN,Infinity,-Infinity]"),
        ({"raw": b"\0\xff"}, '{"raw":"AP8="}'),
        (memoryview(b"abc"), '"YWJj"'),
        ("\ud800", '"\\ud800"'),
        ([], "[]"),
    ],
)
def test_compact_json(value: object, text: str) -> None:
    assert compact(value) == text.encode() + b"\n"


def test_compact_json_reads_back() -> None:
    value = {"a": ["\ud800", "\u2028", "\\", 0.1, 1e300]}
    assert json.loads(compact(value)) == value


def test_a_value_that_is_nested_too_deeply_is_corrupt() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Corrupt, match="is nested too deeply to be shown"):
        compact(value)
