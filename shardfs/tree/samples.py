"""What fields are and hold, in a few words, by a look at the first record."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from shardfs.errors import ShardfsError
from shardfs.model import Array, Encoded, FieldInfo, Items, Pixels, Plain, Rendered, Scalar
from shardfs.names import split_extension

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Kind, Shard
    from shardfs.tree.layouts import NamedFile

# Characters of a text that are shown.
_EXAMPLE = 60


def example(file: NamedFile) -> str:
    """The content of a file in a few words: of text its beginning, else the type and size."""
    extension = split_extension(file.name)[1]
    try:
        size = file.blob.size()
        if extension not in (".txt", ".json"):
            return f"{extension}, {size:,} bytes"
        text = bytes(file.blob.read(0, min(size, 4 * _EXAMPLE))).decode("utf-8", "replace").strip()
    except ShardfsError:  # which the journal has, or will have when somebody reads it
        return ""
    return text if len(text) <= _EXAMPLE else f"{text[:_EXAMPLE]}..."


def rows(fields: object, examples: Mapping[str, str]) -> list[dict[str, object]]:
    """Fields as values for JSON, whether a dataset's index or a shard told of them."""
    found = []
    for field in fields if isinstance(fields, (list, tuple)) else ():
        known = field._asdict() if isinstance(field, FieldInfo) else field
        found.append(
            {
                "name": known["name"],
                "type": known.get("type", ""),
                "nullable": known.get("nullable"),
                "example": examples.get(known["name"]),
            }
        )
    return found


def typed(shard: Shard) -> Sequence[FieldInfo]:
    """The schema of a shard; where it has no types, those that the values of the first record have."""
    schema = list(shard.schema())
    if all(info.type for info in schema):
        return schema
    kinds: dict[str, Kind] = {}
    with suppress(ShardfsError):
        if shard.has(0):
            kinds = {field.name: field.kind for field in shard.fields(0)}
    return [
        info if info.type or info.name not in kinds else info._replace(type=_type(kinds[info.name]))
        for info in schema
    ]


_TYPES = {".txt": "text", ".json": "json", ".pkl": "pickle"}


def _type(kind: Kind) -> str:
    """What a kind of values is called."""
    if isinstance(kind, (Plain, Encoded)):
        return _TYPES.get(kind.suffix) or kind.suffix.lstrip(".") or "bytes"
    if isinstance(kind, Rendered):
        return kind.logical or _TYPES.get(kind.suffix) or kind.suffix.lstrip(".")
    if isinstance(kind, Scalar):
        return kind.dtype.lstrip("<|>")
    if isinstance(kind, Array):
        return f"{kind.dtype.lstrip('<|>')}{list(kind.shape)}"
    if isinstance(kind, Items):
        return f"list<{_type(kind.kind)}>"
    return "pil" if isinstance(kind, Pixels) else ""
