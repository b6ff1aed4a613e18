"""Columns from the JSON that stands beside the golden files of apache/arrow-testing.

The format: https://arrow.apache.org/docs/format/Integration.html#json-test-data-format.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.conformance.expected import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Json = dict[str, Any]

_UNITS = {"SECOND": "s", "MILLISECOND": "ms", "MICROSECOND": "us", "NANOSECOND": "ns"}
_AS_JSON = ("union",)


def columns_of(path: Path) -> tuple[int, list[tuple[str, list[pa.Scalar], bool]]]:
    """The number of rows, and of the columns: names, values, and whether they are shown as JSON."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    reader = _Reader({part["id"]: part["data"] for part in content.get("dictionaries", [])})
    fields = content["schema"]["fields"]
    for field in fields:
        reader.learn(field)
    columns: list[tuple[str, list[pa.Scalar], bool]] = [
        (field["name"], [], field["type"]["name"] in _AS_JSON) for field in fields
    ]
    for batch in content["batches"]:
        for field, column, (_, values, _) in zip(fields, batch["columns"], columns, strict=True):
            values += reader.values(field, column)
    return sum(batch["count"] for batch in content["batches"]), columns


@dataclass
class _Reader:
    """Makes arrays of columns."""

    dictionaries: dict[int, Json]

    def __post_init__(self) -> None:
        self._fields: dict[int, Json] = {}

    def learn(self, field: Json) -> None:
        """Take note of the dictionaries of a field."""
        if "dictionary" in field:
            self._fields[field["dictionary"]["id"]] = {**field, "dictionary": None}
        for child in field.get("children", []):
            self.learn(child)

    def values(self, field: Json, column: Json) -> list[pa.Scalar]:
        """The values of a column of the table."""
        valid = column.get("VALIDITY", [1] * column["count"])
        if field["type"]["name"] != "union":
            array = self.array(field, column)
            return list(map(plain, array))
        children = self._children(field, column)
        codes = field["type"]["typeIds"]
        offsets = column.get("OFFSET") or range(column["count"])
        return [
            plain(children[codes.index(code)][offset]) if there else pa.NULL
            for code, offset, there in zip(column["TYPE_ID"], offsets, valid, strict=True)
        ]

    def array(self, field: Json, column: Json) -> pa.Array:
        """Any column, or a part of one."""
        if field.get("dictionary"):
            indices = _integers(field["dictionary"]["indexType"], column)
            number = field["dictionary"]["id"]
            (data,) = self.dictionaries[number]["columns"]
            return pa.DictionaryArray.from_arrays(indices, self.array(self._fields[number], data))
        kind = field["type"]["name"]
        if kind in _LEAVES:
            array = _LEAVES[kind](field["type"], column)
            is_uuid = {"key": "ARROW:extension:name", "value": "arrow.uuid"} in field.get(
                "metadata", []
            )
            return pa.ExtensionArray.from_storage(pa.uuid(), array) if is_uuid else array
        return self._nested(kind, field, column)

    def _nested(self, kind: str, field: Json, column: Json) -> pa.Array:
        valid = column.get("VALIDITY", [1] * column["count"])
        nulls = pa.array([not bit for bit in valid], pa.bool_())
        children = self._children(field, column)
        offsets = [int(offset) for offset in column.get("OFFSET", [])]
        if kind == "struct":
            fields = [
                pa.field(child["name"], array.type)
                for child, array in zip(field["children"], children, strict=True)
            ]
            if not fields:
                return pa.array([{}] * column["count"], pa.struct([]), mask=nulls.to_numpy(False))
            return pa.StructArray.from_arrays(children, fields=fields, mask=nulls)
        if kind == "runendencoded":
            return pa.RunEndEncodedArray.from_arrays(*children)
        (items,) = children
        if kind == "fixedsizelist":
            return pa.FixedSizeListArray.from_arrays(items, field["type"]["listSize"], mask=nulls)
        if kind in ("listview", "largelistview"):
            form = pa.ListViewArray if kind == "listview" else pa.LargeListViewArray
            sizes = [int(size) for size in column["SIZE"]]
            return form.from_arrays(offsets, sizes, items, mask=nulls)
        if kind == "map":
            keys, values = items.field(0), items.field(1)
            at = pa.array(offsets, pa.int32())
            return pa.MapArray.from_arrays(at, keys, values, mask=nulls)
        form, at = {
            "list": (pa.ListArray, pa.int32()),
            "largelist": (pa.LargeListArray, pa.int64()),
        }[kind]
        return form.from_arrays(pa.array(offsets, at), items, mask=nulls)

    def _children(self, field: Json, column: Json) -> list[pa.Array]:
        pairs = zip(field.get("children", []), column.get("children", []), strict=True)
        return [self.array(*pair) for pair in pairs]


def _masked(column: Json, values: Sequence[Any]) -> list[Any]:
    valid = column.get("VALIDITY", [1] * column["count"])
    return [value if there else None for value, there in zip(values, valid, strict=True)]


def _integers(type_: Json, column: Json) -> pa.Array:
    form = getattr(pa, f"{'' if type_['isSigned'] else 'u'}int{type_['bitWidth']}")()
    return pa.array(_masked(column, [int(value) for value in column["DATA"]]), form)


def _floats(type_: Json, column: Json) -> pa.Array:
    form = {"HALF": pa.float16(), "SINGLE": pa.float32(), "DOUBLE": pa.float64()}
    return pa.array(_masked(column, column["DATA"]), form[type_["precision"]])


def _decimals(type_: Json, column: Json) -> pa.Array:
    bits = type_.get("bitWidth", 128)
    form = getattr(pa, f"decimal{bits}")(type_["precision"], type_["scale"])
    # by their bytes, since some have more digits than their type says
    values = [int(value).to_bytes(bits // 8, "little", signed=True) for value in column["DATA"]]
    return pa.array(_masked(column, values), pa.binary(bits // 8)).view(form)


def _moments(type_: Json, column: Json) -> pa.Array:
    unit = _UNITS.get(type_.get("unit", ""), "")
    form = {
        "date": lambda: pa.date32() if type_["unit"] == "DAY" else pa.date64(),
        "time": lambda: pa.time32(unit) if type_["bitWidth"] == 32 else pa.time64(unit),
        "timestamp": lambda: pa.timestamp(unit, type_.get("timezone")),
        "duration": lambda: pa.duration(unit),
    }[type_["name"]]()
    values = _masked(column, [int(value) for value in column["DATA"]])
    return pa.array(values, pa.int32() if form.bit_width == 32 else pa.int64()).view(form)


def _intervals(_: Json, column: Json) -> pa.Array:
    values = []
    for value in column["DATA"]:
        parts = {"months": value} if isinstance(value, int) else value
        rest = parts.get("nanoseconds", 0) + parts.get("milliseconds", 0) * 10**6
        values.append(pa.MonthDayNano([parts.get("months", 0), parts.get("days", 0), rest]))
    return pa.array(_masked(column, values), pa.month_day_nano_interval())


def _views(type_: Json, column: Json) -> pa.Array:
    is_text = type_["name"] == "utf8view"
    buffers = [bytes.fromhex(buffer) for buffer in column["VARIADIC_DATA_BUFFERS"]]
    values: list[bytes] = []
    for view in column["VIEWS"]:
        if "INLINED" in view:
            inlined = view["INLINED"]
            values.append(inlined.encode() if is_text else bytes.fromhex(inlined))
        else:
            start = view["OFFSET"]
            values.append(buffers[view["BUFFER_INDEX"]][start : start + view["SIZE"]])
    return pa.array(_masked(column, values), pa.binary()).cast(
        pa.string() if is_text else pa.binary()
    )


def _texts(_: Json, column: Json) -> pa.Array:
    return pa.array(_masked(column, column["DATA"]), pa.string())


def _binaries(type_: Json, column: Json) -> pa.Array:
    values = [bytes.fromhex(value) for value in column["DATA"]]
    return pa.array(_masked(column, values), pa.binary(type_.get("byteWidth", -1)))


_LEAVES: dict[str, Callable[[Json, Json], pa.Array]] = {
    "null": lambda _, column: pa.nulls(column["count"]),
    "bool": lambda _, column: pa.array(_masked(column, list(map(bool, column["DATA"])))),
    "int": _integers,
    "floatingpoint": _floats,
    "decimal": _decimals,
    "utf8": _texts,
    "largeutf8": _texts,
    "binary": _binaries,
    "largebinary": _binaries,
    "fixedsizebinary": _binaries,
    "utf8view": _views,
    "binaryview": _views,
    "interval": _intervals,
    **dict.fromkeys(("date", "time", "timestamp", "duration"), _moments),
}
