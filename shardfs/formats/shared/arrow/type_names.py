"""What Arrow's types are called, as pyarrow writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.formats.shared.arrow.types import Type
from shardfs.model import FieldInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.shared.arrow.types import ArrowField, DataType, Schema

_NAMES = {
    Type.TEXT: "string",
    Type.LARGE_TEXT: "large_string",
    Type.TEXT_VIEW: "string_view",
    Type.BINARY: "binary",
    Type.LARGE_BINARY: "large_binary",
    Type.BINARY_VIEW: "binary_view",
    Type.FIXED_LIST: "fixed_size_list",
    Type.RUN_ENDS: "run_end_encoded",
}
_NUMBERS = {"f2": "halffloat", "f4": "float", "f8": "double", "b1": "bool"}
_MOST = 200


def schema_info(schema: Schema) -> Sequence[FieldInfo]:
    """The columns of a table, each once."""
    infos = (FieldInfo(f.name, _short(_field_type(f)), f.nullable) for f in schema.fields)
    return tuple({info.name: info for info in infos}.values())


def _short(name: str) -> str:
    return name if len(name) <= _MOST else f"{name[:_MOST]}..."


def _field_type(field: ArrowField) -> str:
    """A type by the name of its extension, if it has one; with that of its indices where it has a dictionary."""
    name = field.extension or type_name(field.type)
    if field.indices is not None:
        name = f"dictionary<values={name}, indices={type_name(field.indices)}>"
    return name


def type_name(kind: DataType) -> str:
    """What a type is called."""
    if kind.unsupported:
        return "unsupported"
    if kind.type is Type.INT:
        return f"{'u' if 'u' in kind.dtype + kind.unit else ''}int{8 * kind.size}"
    if kind.type in (Type.FLOAT, Type.BOOL):
        return _NUMBERS[kind.dtype.lstrip("<|>")]
    name = _NAMES.get(kind.type, kind.type.name.lower())
    if kind.children:
        parts = ", ".join(f"{child.name}: {_field_type(child)}" for child in kind.children)
        length = f"[{kind.size}]" if kind.type is Type.FIXED_LIST else ""
        return f"{name}<{parts}>{length}"
    if kind.type is Type.FIXED_BINARY:
        return f"fixed_size_binary[{kind.size}]"
    if kind.type is Type.DECIMAL:
        return f"decimal{8 * kind.size}(scale={kind.scale})"
    if kind.type in (Type.DATE, Type.TIME):
        return f"{name}{8 * kind.size}[{kind.unit}]"
    if kind.unit:
        zone = f", tz={kind.zone}" if kind.zone else ""
        return f"{name}[{kind.unit}{zone}]"
    return name
