from __future__ import annotations

import json
from typing import Any

import pytest

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.litdata.spec import leaf_names
from tests.litdata_files import LEAF, mapping, spec


def node(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    return {"type": kind, "context": context, "children_spec": children}


DEFAULT = {
    "default_factory_module": "builtins",
    "default_factory_name": "int",
    "dict_context": ["k"],
}


@pytest.mark.parametrize(
    ("root", "names"),
    [
        (LEAF, ["data"]),
        (mapping("image", "label"), ["image", "label"]),
        (mapping("b", "a"), ["b", "a"]),
        (mapping("a", "m", children=[LEAF, mapping("x", "y")]), ["a", "m.x", "m.y"]),
        (mapping(1, "1", None, True, ""), ["1", "1", "null", "true", ""]),
        (node("builtins.tuple", "null", LEAF, LEAF), ["0", "1"]),
        (node("builtins.list", "null", node("builtins.tuple", "null", LEAF)), ["0.0"]),
        (node("collections.deque", "5", LEAF), ["0"]),
        (node("collections.namedtuple", "__main__.Point", LEAF, LEAF), ["0", "1"]),
        (node("collections.OrderedDict", '["z", "a"]', LEAF, LEAF), ["z", "a"]),
        (node("collections.defaultdict", DEFAULT, LEAF), ["k"]),
        (node("collections.defaultdict", json.dumps(DEFAULT), LEAF), ["k"]),
        (node("somebody.Container", "?", LEAF, LEAF), ["0", "1"]),
        (mapping("empty", "a", children=[node("builtins.list", "null"), LEAF]), ["a"]),
        (mapping(), []),
    ],
)
def test_names_are_keys_and_positions_from_the_root(root: object, names: list[str]) -> None:
    assert list(leaf_names(spec(root))) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[1]",
        "[1, 5]",
        "[1, {}, 2]",
        json.dumps([1, {"type": 5, "children_spec": []}]),
        json.dumps([1, {"type": "builtins.dict"}]),
        json.dumps([1, {"type": "builtins.list", "children_spec": 5}]),
        json.dumps([1, node("builtins.dict", '["a"]', LEAF, LEAF)]),
        json.dumps([1, node("builtins.dict", "a", LEAF)]),
        json.dumps([1, node("builtins.dict", None, LEAF)]),
        json.dumps([1, node("collections.defaultdict", {}, LEAF)]),
        json.dumps([1, node("builtins.list", "null", 5)]),
    ],
)
def test_anything_else_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        leaf_names(text)


def test_depth_is_bounded() -> None:
    deep: dict[str, Any] = LEAF
    for _ in range(150):
        deep = node("builtins.list", "null", deep)
    with pytest.raises(Corrupt, match="too deeply"):
        leaf_names(spec(deep))


def test_another_version_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="version 2"):
        leaf_names(json.dumps([2, LEAF]))
