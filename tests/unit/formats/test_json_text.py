"""JSON text looked at without making values of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.shared import json_values as _json_text
from shardfs.formats.shared.json_values import NESTED, NUMBER, STRING, kind_of, members, value_end

if TYPE_CHECKING:
    from shardfs.model import Rendered


def shown(kind: Rendered, token: str) -> str:
    return kind.render(memoryview(token.encode())).decode()


def test_members_are_in_order_and_where_they_stand() -> None:
    text = ' { "a" : 1 , "b\\u0021":[ 1,{"c":"}"} ] ,"a":null } '
    found, end = members(text)
    assert [(m.name, text[m.begin : m.end]) for m in found] == [
        *(("a", "1"), ("b!", '[ 1,{"c":"}"} ]'), ("a", "null"))
    ]
    assert text[end:] == " "
    assert members("{}") == ([], 2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{"a":1 "b":2}', "{1:2}"),
        *('{"a":01}', '{"a":tru}', '{"a":[1,}', "{'a':1}", '{"a":"\n"}', '{"\xff":1}'),
    ],
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        members(text)


def test_depth_is_bounded() -> None:
    with pytest.raises((RecursionError, ValueError)):
        value_end("[" * 1_000_000, 0)


def test_members_are_bounded() -> None:
    text = json.dumps(dict.fromkeys(map(str, range(70_000))))
    with pytest.raises(TooLarge, match="65536"):
        members(text)
    assert len(members(text, limit=70_000)[0]) == 70_000


@pytest.mark.parametrize("text", ['[1, "]", [2], {"a": "\\"}"}] ', '{"a": ["}"]},'])
def test_large_values_end_where_their_brackets_do(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    end = value_end(text, 0)
    monkeypatch.setattr(_json_text, "MAX_PARSED", 4)
    assert value_end(text, 0) == end == len(text) - 1
    with pytest.raises(ValueError, match="missing"):
        value_end(text[: end - 1], 0)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        *(("1", "1"), ("-0", "0"), ("1.50", "1.5"), ("1e5", "1e5"), ("100000.0", "100000.0")),
        *(("1.0", "1.0"), ("-0.0", "-0.0"), ("1E400", "1E400"), ("0.1000000000000000055", "0.1")),
        *(("true", "true"), ("false", "false"), ("NaN", "nan"), ("-Infinity", "-inf")),
        ("9" * 5000, "9" * 5000),
        ("0." + "3" * 500, "0." + "3" * 500),
    ],
)
def test_numbers(token: str, text: str) -> None:
    assert shown(NUMBER, token) == text + "\n"


def test_strings_are_what_they_stand_for() -> None:
    assert shown(STRING, '"a\\n\\u00e9\\ud83d\\ude00"') == "a\né😀"
    assert shown(STRING, '"\\ud800"') == "\\ud800"
    with pytest.raises(Corrupt, match="UTF-8"):
        STRING.render(memoryview(b'"\xff"'))


def test_nested_values_are_compact() -> None:
    assert shown(NESTED, '{ "a b" : [1, NaN, "\\u00e9"] }') == '{"a b":[1,NaN,"é"]}\n'
    with pytest.raises(Corrupt):
        NESTED.render(memoryview(b'["\xff"]'))


def test_large_nested_values_lose_only_their_white_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_text, "MAX_PARSED", 4)
    assert shown(NESTED, '{ "a \\" b" :\n[1.0, NaN] }') == '{"a \\" b":[1.0,NaN]}\n'


def test_a_null_has_no_kind() -> None:
    assert [kind_of(first) for first in '"{[n1tN'] == [
        *(STRING, NESTED, NESTED, None, NUMBER, NUMBER, NUMBER)
    ]
