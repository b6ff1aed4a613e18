"""The names of a LitData dataset's fields, from the ``data_spec`` of its index.

It is a PyTree specification as ``torch.utils._pytree.treespec_dumps`` writes it: ``[1, NODE]``, where NODE is
``{"type": ..., "context": ..., "children_spec": [NODE, ...]}`` and a node without a type is a leaf.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, Unsupported, located
from shardfs.formats.shared.jsontext import checked, member, optional, parse, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PROTOCOL = 1
_MAPPINGS = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")
# What people write by hand has a handful of levels; this much the recursion here can bear.
_MAX_DEPTH = 100

SINGLE = "data"
"""The name of a field that has none, since it is the whole record."""


def leaf_names(spec: str) -> tuple[str, ...]:
    """The names of the leaves in their order: keys and positions from the root on, joined by dots.

    Raises:
        Corrupt: it is no such specification.
        Unsupported: it has another version.
    """
    with located("data_spec"):
        whole = checked(parse(spec), list, "the whole")
        if len(whole) != 2:
            raise Corrupt(f"has {len(whole)} parts instead of 2")
        protocol, root = whole
        if protocol != _PROTOCOL:
            raise Unsupported(f"has version {shown(protocol)}; only {_PROTOCOL} can be read")
        return tuple(".".join(path) if path else SINGLE for path in _leaves(root, ()))


def _leaves(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    node = checked(node, dict, "a node")
    if len(path) > _MAX_DEPTH:
        raise Corrupt("is nested too deeply")
    kind = optional(node, "type", str)
    if kind is None:
        yield path
        return
    children = member(node, "children_spec", list)
    for key, child in zip(_keys(node, kind, len(children)), children, strict=True):
        yield from _leaves(child, (*path, key))


def _keys(node: dict[str, Any], kind: str, count: int) -> Sequence[str]:
    """What the children of a node are called: the keys of a mapping, else their positions."""
    if kind not in _MAPPINGS:
        return [str(position) for position in range(count)]
    context = node.get("context")
    if isinstance(context, str):  # JSON inside of JSON inside of JSON
        context = parse(context)
    if isinstance(context, dict):  # defaultdict
        context = context.get("dict_context")
    keys = checked(context, list, "the context of a mapping")
    if len(keys) != count:
        raise Corrupt(f"has {len(keys)} keys for {count} values")
    return [key if isinstance(key, str) else json.dumps(key) for key in keys]
