"""Which form the columns of a table have: by their Arrow types, extension types, and Hugging Face's features.

Features are JSON in the schema's metadata under ``huggingface`` or in dataset_info.json, as ``features/features.py`` of
`datasets` writes them. One counts only where it fits the stored type.
"""

from __future__ import annotations

import json
import re
from math import prod
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt
from shardfs.formats.shared.arrow.types import BINARIES, BOOL_EXTENSION, LISTS, TEXTS, Type
from shardfs.formats.shared.column_text import text_reader
from shardfs.formats.shared.columns import (
    Access,
    Binary,
    Block,
    Column,
    Form,
    Json,
    Media,
    Nothing,
    Several,
    Stored,
)
from shardfs.formats.shared.jsontext import parse
from shardfs.formats.shared.shredded import Variant, is_variant
from shardfs.model import Encoded, Plain, Rendered, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.formats.shared.arrow.types import ArrowField, Schema
    from shardfs.formats.shared.column_text import Reader

_METADATA = "huggingface"
_JSON_EXTENSION = "arrow.json"
_TENSOR_EXTENSION = "arrow.fixed_shape_tensor"
_ARRAY = re.compile(r"(?:datasets\.features\.features\.)?Array\dD(?:ExtensionType)?")
_MOST_DIMENSIONS = 64


def columns_of(
    schema: Schema, otherwise: Callable[[], Mapping[str, Any]] = dict
) -> tuple[Column, ...]:
    """The columns of a table. *otherwise* gives the features, by column, where the schema has none of its own."""
    features = schema_features(schema) or otherwise()
    return tuple(
        Column(field.name, form_of(field, features.get(field.name))) for field in schema.fields
    )


def schema_features(schema: Schema) -> Mapping[str, Any]:
    """The features in the metadata of a schema; none where there are none, or nothing of use."""
    try:
        return info_features(parse(schema.metadata.get(_METADATA, "null")))
    except Corrupt:
        return {}


def info_features(described: object) -> Mapping[str, Any]:
    """The features in what the schema's metadata or a dataset_info.json holds."""
    if isinstance(described, dict) and isinstance(described.get("info"), dict):
        described = described["info"]
    features = described.get("features") if isinstance(described, dict) else None
    return features if isinstance(features, dict) else {}


def form_of(field: ArrowField, feature: object = None) -> Form:
    """How the values of a column become fields."""
    type_ = field.type
    if type_.unsupported:
        return Stored(Encoded())
    if type_.type is Type.RUN_ENDS:
        form = form_of(type_.children[1], feature)
        return form if form.access is Access.STORED else Json()
    if field.dictionary is not None and type_.children:
        return Json()
    feature = feature if isinstance(feature, dict) else {}
    if type_.type in LISTS:
        return _array(field, feature) or _list(field)
    if is_variant(field):
        return Variant(field)
    if type_.type is Type.STRUCT:
        return media(field) or Json()
    return _leaf(field, feature) or Json()


def media(field: ArrowField) -> Media | None:
    """The form of a struct of the bytes of a file and its path, as all media are stored; None for another column."""
    numbers = {child.name: number for number, child in enumerate(field.type.children)}
    if field.type.type is not Type.STRUCT or field.dictionary is not None:
        return None
    if len(field.type.children) != 2 or numbers.keys() != {"bytes", "path"}:
        return None
    kinds = {child.name: child.type.type for child in field.type.children}
    if kinds["bytes"] not in BINARIES or kinds["path"] not in TEXTS:
        return None
    return Media(numbers["bytes"], numbers["path"])


def _leaf(field: ArrowField, feature: Mapping[str, Any]) -> Form | None:
    """The form of a column that is not nested."""
    kind, dtype = field.type.type, field.type.dtype
    if kind is Type.NULL:
        return Nothing()
    if kind in TEXTS:
        is_json = field.extension == _JSON_EXTENSION or feature.get("_type") == "Json"
        return Stored(Plain(".json" if is_json else ".txt"))
    if kind is Type.INT and feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            label = _labels(names, is_signed=dtype[1] == "i")
            return Stored(Rendered(".txt", _line(label), "class label"))
    if dtype == "|i1" and field.extension == BOOL_EXTENSION:
        return Stored(Scalar("|b1"))
    if dtype:
        return Stored(Scalar(dtype))
    reader = text_reader(field)
    if reader is not None:
        logical = "number" if kind is Type.INT else field.extension or kind.name.lower()
        return Stored(Rendered(".txt", _line(reader), logical))
    return Stored(Encoded()) if kind in BINARIES else None


def _line(read: Reader) -> Callable[[memoryview], bytes]:
    return lambda data: f"{read(data)}\n".encode("utf-8", "backslashreplace")


def _labels(names: Sequence[str], *, is_signed: bool) -> Reader:
    """What makes `281<TAB>tabby` of a number; only the number where it has no name, as -1 for "not known"."""

    def read(data: memoryview) -> str:
        number = int.from_bytes(data, "little", signed=is_signed)
        return f"{number}\t{names[number]}" if 0 <= number < len(names) else str(number)

    return read


def _list(field: ArrowField) -> Form:
    item = field.type.children[0]
    files = media(item)
    if files is not None:
        return Several(files)
    is_binary = item.type.type in BINARIES and text_reader(item) is None
    return Several(Binary()) if is_binary else Json()


def _array(field: ArrowField, feature: Mapping[str, Any]) -> Block | None:
    """The form of lists that are declared as an array, or all have as many items; None of other lists."""
    lengths: list[int | None] = []
    inner = field
    while inner.type.type in LISTS and inner.dictionary is None:
        lengths.append(inner.type.size if inner.type.type is Type.FIXED_LIST else None)
        inner = inner.type.children[0]
    if not inner.type.dtype or inner.dictionary is not None or len(lengths) > _MOST_DIMENSIONS:
        return None
    shape = _declared_shape(field, feature)
    if shape is None:
        return None if None in lengths else Block(inner.type.dtype, tuple(lengths))
    whole = [size for size in shape if size is not None]
    if field.extension == _TENSOR_EXTENSION:
        fits = len(whole) == len(shape) and lengths == [prod(whole)]
        return Block(inner.type.dtype, tuple(lengths), tuple(whole)) if fits else None
    if len(shape) != len(lengths) or len(whole) < len(shape) - (shape[0] is None):
        return None
    return Block(inner.type.dtype, tuple(shape))


def _declared_shape(field: ArrowField, feature: Mapping[str, Any]) -> Sequence[int | None] | None:
    """The shape of an array, as its feature or its extension type tells; None where neither does."""
    declared: object = None
    if _ARRAY.fullmatch(str(feature.get("_type"))):
        declared = feature.get("shape")
    elif _ARRAY.fullmatch(field.extension):
        declared = _first(_loads(field.extension_metadata))
    elif field.extension == _TENSOR_EXTENSION:
        content = _loads(field.extension_metadata)
        declared = content.get("shape") if isinstance(content, dict) else None
    if not isinstance(declared, list) or not 0 < len(declared) <= _MOST_DIMENSIONS:
        return None
    fits = all(size is None or (type(size) is int and size >= 0) for size in declared)
    return declared if fits else None


def _first(values: object) -> object:
    return values[0] if isinstance(values, list) and values else None


def _loads(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
