"""Whether the files of a field hold a value that pyarrow read; with no help from shardfs.

Numbers, times and JSON are compared as values, so that only these count and not how they are written; text and bytes
are compared as they are. What the forms are: docs/tree.md.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
_DAY = 86400
_NEAR_LAST = 253_000_000_000
_AROUND = (pa.DictionaryScalar, pa.ExtensionScalar, pa.RunEndEncodedScalar, pa.UnionScalar)


class Different(Exception):
    """The content of a file is another value."""


def is_text(type_: pa.DataType) -> bool:
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def is_binary(type_: pa.DataType) -> bool:
    views = pt.is_binary_view(type_)
    return bool(views or pt.is_binary(type_) or pt.is_large_binary(type_) or _is_fixed(type_))


def _is_fixed(type_: pa.DataType) -> bool:
    return bool(pt.is_fixed_size_binary(type_)) and not pt.is_decimal(type_)


def is_list(type_: pa.DataType) -> bool:
    kinds = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view)
    return any(kind(type_) for kind in kinds) or bool(pt.is_large_list_view(type_))


def plain(value: pa.Scalar) -> pa.Scalar:
    """A value without what stands around it: dictionaries and the types that extend others."""
    while isinstance(value, _AROUND):
        if isinstance(value, pa.UuidScalar):
            break
        value = pa.NULL if value.value is None else value.value
    return value


def is_items(value: pa.Scalar) -> bool:
    """Whether each item is a file of its own: lists of byte strings and of media."""
    return is_list(value.type) and _is_file(value.type.value_type)


def _is_file(type_: pa.DataType) -> bool:
    return is_binary(type_) or is_media(type_)


def is_media(type_: pa.DataType) -> bool:
    """Whether it is a file: its bytes, and a path that is only a name."""
    if not pt.is_struct(type_) or type_.num_fields != 2:
        return False
    kinds = {field.name: field.type for field in type_}
    return (
        kinds.keys() == {"bytes", "path"} and is_binary(kinds["bytes"]) and is_text(kinds["path"])
    )


def check(value: pa.Scalar, name: str, data: bytes) -> None:
    """Compare the content *data* of a file *name* with a value. Raises Different."""
    type_ = value.type
    if is_media(type_):
        check(value["bytes"], name, data)
    elif is_text(type_) or is_binary(type_):
        content = value.as_buffer().to_pybytes() if value.as_buffer() is not None else b""
        _same(data, content, content)
    elif name.endswith(".npy"):
        array = np.load(io.BytesIO(data), allow_pickle=False)
        compare(value, array.tolist())
    elif _is_nested(type_):
        compare(value, json.loads(data))
    else:
        text = data.decode()
        _same(text[-1:], "\n", text)
        _compare_text(value, text[:-1])


def _is_nested(type_: pa.DataType) -> bool:
    return bool(pt.is_struct(type_) or pt.is_map(type_) or is_list(type_))


def _same(found: object, wanted: object, value: object) -> None:
    if found != wanted:
        raise Different(f"{found!r:.120} instead of {value!r:.120}")


def compare(value: pa.Scalar, found: Any) -> None:
    """Compare a value with one of JSON. Raises Different."""
    value = plain(value)
    type_ = value.type
    if not value.is_valid:
        _same(found, None, None)
    elif pt.is_struct(type_):
        _struct(value, found)
    elif pt.is_map(type_) or is_list(type_):
        items = list(value.values)
        if not isinstance(found, list) or len(found) != len(items):
            raise Different(f"{found!r:.120} instead of {len(items)} items")
        for item, part in zip(items, found, strict=True):
            if pt.is_map(type_):
                compare(item[0], part[0])
                compare(item[1], part[1])
            else:
                compare(item, part)
    elif is_binary(type_):
        content = value.as_buffer().to_pybytes() if value.as_buffer() is not None else b""
        _same(base64.b64decode(found, validate=True), content, content)
    elif pt.is_floating(type_) or pt.is_integer(type_) or pt.is_boolean(type_):
        _same(isinstance(found, bool), bool(pt.is_boolean(type_)), value)
        _compare_text(value, str(found).lower())
    else:
        _same(isinstance(found, str), True, value)
        _compare_text(value, found)


def _struct(value: pa.Scalar, found: Any) -> None:
    names = [value.type.field(number).name for number in range(value.type.num_fields)]
    if not isinstance(found, dict) or (len(set(names)) == len(names) and list(found) != names):
        raise Different(f"{found!r:.120} instead of members {names}")
    for number, part in enumerate(found.values()):
        compare(value[number], part)


def _compare_text(value: pa.Scalar, text: str) -> None:
    """Compare a value that is no bytes and not nested with its text. Raises Different."""
    type_ = value.type
    if is_text(type_):
        _same(text, value.as_py(), value.as_py())
    elif pt.is_boolean(type_):
        _same(text, str(value.as_py()).lower(), value)
    elif pt.is_integer(type_):
        _same(text, str(value.as_py()), value)
    elif pt.is_floating(type_):
        _float(value.as_py(), text, _FLOATS[type_.bit_width])
    elif pt.is_decimal(type_):
        wanted: Decimal = value.as_py()
        _same((Decimal(text), Decimal(text).as_tuple().exponent), (wanted, -type_.scale), wanted)
    elif isinstance(value, pa.UuidScalar):
        _same(UUID(text), value.as_py(), value)
    elif pt.is_interval(type_):
        _same(_interval(text), tuple(value.as_py()), value)
    else:
        _same(text, moment(value), moment(value))


def _float(value: float, text: str, kind: Any) -> None:
    found, wanted = kind(text), kind(value)
    if math.isnan(value):
        _same(text, "nan", value)
    else:
        _same((found, bool(np.signbit(found))), (wanted, bool(np.signbit(wanted))), value)


def _interval(text: str) -> tuple[int, int, int]:
    """Months, days and nanoseconds."""
    match = re.fullmatch(r"P(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(-?[\d.]+)S)?", text)
    if match is None:
        raise Different(f"{text!r} is no interval")
    months, days, seconds = match.groups()
    return int(months or 0), int(days or 0), int(Decimal(seconds or 0) * 10**9)


# --- times -------------------------------------------------------------------------------------------------


def moment(value: pa.Scalar) -> str:
    """The text of a date, time or duration, as ISO 8601 has it."""
    type_, number = value.type, value.value
    if pt.is_date32(type_):
        return _iso(number, "D")
    if pt.is_date64(type_):
        return _stamp(number, "ms", None).removesuffix("T00:00:00")
    if pt.is_time(type_):
        text = _stamp(number, type_.unit, None)
        return "24:00:00" if text == "1970-01-02T00:00:00" else text.partition("T")[2]
    if pt.is_duration(type_):
        seconds = Decimal(abs(number)) / (10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[type_.unit])
        text = f"{seconds:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{'-' if number < 0 else ''}PT{text}S"
    if pt.is_timestamp(type_):
        return _stamp(number, type_.unit, type_.tz)
    raise Different(f"a value of {type_}, which this program does not know")


def _stamp(number: int, unit: str, zone: str | None) -> str:
    tail = ""
    if zone is not None:
        shift = _shift(number, unit, zone)
        number += shift * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
        sign, (minutes, seconds) = "-" if shift < 0 else "+", divmod(abs(shift), 60)
        tail = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
        tail += f":{seconds:02d}" if seconds else ""
    # numpy takes the least number of nanoseconds for none
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    seconds, rest = divmod(number, 10**digits)
    return _iso(seconds, "s") + (f".{rest:0{digits}d}".rstrip("0") if rest else "") + tail


def _iso(number: int, unit: Any) -> str:
    text = str(np.datetime64(number, unit))
    year, dash, rest = text[1:].partition("-")
    return f"-{year:0>4}{dash}{rest}" if text.startswith("-") else text


def _shift(number: int, unit: str, zone: str) -> int:
    """Seconds from UTC."""
    fixed = re.fullmatch(r"([+-])(\d\d):(\d\d)", zone)
    if fixed is not None:
        return int(f"{fixed[1]}1") * (int(fixed[2]) * 3600 + int(fixed[3]) * 60)
    if zone == "UTC":
        return 0
    seconds = number // 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    # the calendar of datetime ends, but repeats after 400 years; before the first of clocks nothing changes
    seconds = max(seconds - 146_097 * _DAY if seconds > _NEAR_LAST else seconds, -_NEAR_LAST // 8)
    there = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    offset = there.astimezone(ZoneInfo(zone)).utcoffset()
    return round(offset.total_seconds()) if offset else 0


def contents(values: Sequence[pa.Scalar]) -> list[pa.Scalar]:
    """The items of a list that have files: nulls have none."""
    files = [plain(value) for value in values]
    return [f for f in files if f.is_valid and not (is_media(f.type) and not f["bytes"].is_valid)]
