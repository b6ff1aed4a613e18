"""Whether a file holds what a truth file says of its field; with no help from shardfs."""

from __future__ import annotations

import base64
import contextlib
import datetime
import decimal
import hashlib
import io
import json
import math
import re
import struct
from typing import Any

import numpy as np
from PIL import Image

from tests.pillow import LACKING

Field = dict[str, Any]

SCALARS = re.compile(
    r"u?int\d*|float\d*|double|halffloat|bool|decimal.*|date.*|time.*|duration.*|real|number"
    r"|str_(int|float|decimal)|ClassLabel"
)
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# What safetensors calls the types that .npy lacks.
TENSORS = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
COMPRESSION, STRIP_OFFSETS, STRIP_SIZES = 259, 273, 279


def digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def difference(data: bytes, extension: str, field: Field) -> str:
    """What is wrong with the content of a file, "" where nothing is."""
    stored = field.get("stored_sha256")
    if stored and digest(data) == stored:
        return ""
    if "member" in field:
        return "other bytes than stored" if stored else ""
    if extension == ".safetensors":
        return _tensor(data, field)
    if extension == ".npy":
        return _array(data, field)
    if "pixels_sha256" in field:
        return _picture(data, field)
    if extension == ".json":
        return _json(data, field)
    if extension == ".txt" and SCALARS.fullmatch(str(field.get("logical"))):
        return _scalar(data, field)
    if stored:
        return f"{len(data)} other bytes than the {field['stored_size']} stored"
    value = field.get("value")
    if isinstance(value, str):
        return "" if data.decode() == value else f"{data[:60]!r} instead of {value!r}"
    return _scalar(data, field) if extension == ".txt" and value is not None else ""


# --- arrays and pictures ---


def _array(data: bytes, field: Field) -> str:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if not field.get("array_sha256"):
        return ""
    if list(array.shape) != list(field["shape"]):
        return f"shape {array.shape} instead of {field['shape']}"
    with contextlib.suppress(TypeError):  # names that numpy does not have
        wanted = np.dtype(field["dtype"]) if field.get("dtype") else array.dtype
        if field["dtype"] != "float" and array.dtype.newbyteorder("=") != wanted.newbyteorder("="):
            return f"elements of {array.dtype} instead of {field['dtype']}"
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    return "" if digest(little.tobytes()) == field["array_sha256"] else "other elements"


def _tensor(data: bytes, field: Field) -> str:
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    ((_, tensor),) = head.items()
    begin, end = tensor["data_offsets"]
    if (tensor["dtype"], tensor["shape"]) != (TENSORS[field["dtype"]], field["shape"]):
        return f"a tensor of {tensor['dtype']} {tensor['shape']}"
    elements = data[8 + length + begin : 8 + length + end]
    whole = end == len(data) - 8 - length
    return "" if whole and digest(elements) == field["array_sha256"] else "other elements"


def pixels(data: bytes, mode: str = "") -> tuple[Image.Image, bytes]:
    """An opened TIFF of raw pixels of *mode*, and its pixels as they lie in the file."""
    image = Image.open(io.BytesIO(data))
    if mode not in LACKING:
        image.load()
    tags: Any = image.tag_v2  # type: ignore[attr-defined]
    if image.format != "TIFF" or tags.get(COMPRESSION) != 1:
        raise ValueError(f"a {image.format} that is no plain TIFF")
    strips = zip(tags[STRIP_OFFSETS], tags[STRIP_SIZES], strict=True)
    return image, b"".join(data[at : at + size] for at, size in strips)


def _picture(data: bytes, field: Field) -> str:
    image, raw = pixels(data, field["mode"])
    if image.size != (field["width"], field["height"]):
        return f"a picture of {image.size}"
    return "" if digest(raw) == field["pixels_sha256"] else f"other {field['mode']} pixels"


def item_difference(data: bytes, item: Field) -> str:
    """What is wrong with one of several values: its bytes, or a TIFF around the pixels of a raw picture."""
    if digest(data) == item["sha256"]:
        return ""
    image, raw = pixels(data)
    head = struct.pack("<3I", *image.size, len(image.mode)) + image.mode.encode()
    return "" if digest(head + raw) == item["sha256"] else "other bytes than stored"


# --- numbers, times and JSON ---


def _scalar(data: bytes, field: Field) -> str:
    text = data.decode()
    if text.count("\n") != 1 or not text.endswith("\n"):
        return f"{text!r} is not one line"
    # Arrow's float has four bytes, Python's has eight.
    dtype = str(field.get("dtype") or field.get("logical") or "").replace("float64", "double")
    value = field.get("value")
    if "dtype" not in field and dtype == "float":
        dtype = "double"
    if field.get("label_name") is not None:
        return "" if text == f"{value}\t{field['label_name']}\n" else f"{text!r} for a label"
    good = value is None or _same_text(text[:-1], value, dtype)
    return "" if good else f"{text[:60]!r} instead of {value!r}"


def _same_text(text: str, value: Any, dtype: str) -> bool:
    if isinstance(value, dict):
        return _same_special(text, value, dtype)
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int) and "float" not in dtype and dtype != "double":
        return text == str(value)
    if isinstance(value, str):
        if value in WORDS:
            return text == str(WORDS[value])
        with contextlib.suppress(ValueError):
            return _moment(text) == _moment(value)
        with contextlib.suppress(decimal.InvalidOperation):
            return decimal.Decimal(text) == decimal.Decimal(value)
        return text == value
    return _same_float(text, float(value), dtype)


def _same_float(text: str, value: float, dtype: str) -> bool:
    """The same number in its own width, in no more digits than it takes."""
    kind = next((k for name, k in _WIDTHS.items() if re.search(name, dtype)), "float64")
    got, wanted = (np.dtype(kind).type(each) for each in (text, value))
    if math.isnan(value):
        return text == "nan"
    plain = np.format_float_positional(wanted, trim="0")
    same_sign = bool(np.signbit(got)) == (math.copysign(1, value) < 0)
    return bool(got == wanted) and same_sign and len(text) <= max(len(str(wanted)), len(plain))


_WIDTHS = {"float16|half": "float16", "float32|^float$": "float32"}


def _same_special(text: str, value: dict[str, Any], dtype: str) -> bool:
    """Values that JSON has no form for, as the README beside the truth files lists them."""
    (kind, wanted), *_ = value.items()
    match kind:
        case "float":
            return _same_float(text, float(wanted), dtype)
        case "$bytes":
            return digest(base64.b64decode(text, validate=True)) == str(value["$sha256"])
        case "$decimal":
            return decimal.Decimal(text) == decimal.Decimal(wanted)
        case "$iso":
            return _moment(text) == _moment(wanted)
        case "$us":
            return _duration(text) == int(wanted) * 1000
        case "$ns" if dtype.startswith("duration"):
            return _duration(text) == int(wanted)
        case "$ns":
            return _same_nanoseconds(text, wanted, dtype)
        case "$uuid":
            return text == str(wanted)
    raise ValueError(f"a truth of {value}")


def _duration(text: str) -> int:
    """The nanoseconds of an ISO 8601 duration."""
    form = r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?"
    match = re.fullmatch(form, text)
    if match is None:
        raise ValueError(text)
    units = zip(match.groups()[1:], (86400, 3600, 60, 1), strict=True)
    seconds = sum(decimal.Decimal(number or 0) * unit for number, unit in units)
    return int(seconds * 10**9) * (-1 if match[1] else 1)


def _moment(text: str) -> tuple[str, str]:
    """A date or time in one spelling, and the digits of its fraction. Raises ValueError."""
    form = r"(-?\d{4,6}-\d\d-\d\d)?[T ]?(\d\d:\d\d:\d\d)?(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?"
    match = re.fullmatch(form, text)
    if match is None or not (match[1] or match[2]):
        raise ValueError(text)
    zone = {"Z": "+00:00"}.get(match[4], match[4] or "")
    return f"{match[1]} {match[2]} {zone}", (match[3] or "").rstrip("0")


def _same_nanoseconds(text: str, wanted: int, dtype: str) -> bool:
    seconds, rest = divmod(wanted, 10**9)
    zone = re.search(r"tz=([+-])(\d\d):(\d\d)", dtype)
    shift = int(f"{zone[1]}1") * (int(zone[2]) * 60 + int(zone[3])) * 60 if zone else 0
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds + shift)
    spelled = f"{moment.isoformat()}.{rest:09d}"
    spelled += zone[0].removeprefix("tz=") if zone else "Z" if "tz=UTC" in dtype else ""
    spelled = spelled.partition("T")[2] if dtype.startswith("time64") else spelled
    return _moment(text) == _moment(spelled)


def _json(data: bytes, field: Field) -> str:
    got = json.loads(data)
    outside = re.sub(rb'"(\\.|[^"\\])*"', b"", data)
    if not data.endswith(b"\n") or re.search(rb"\s", outside[:-1]):
        return f"JSON {data[:60]!r} is not compact, or not one line"
    value = field.get("value")
    if isinstance(value, str) and field.get("stored_sha256") and field.get("logical") != "str":
        value = json.loads(value)
    same = value is None or _same_json(got, value, str(field.get("dtype") or ""))
    return "" if same else f"JSON {data[:80]!r} instead of {str(value)[:80]!r}"


def _same_json(got: Any, value: Any, dtype: str) -> bool:
    if isinstance(value, dict) and next(iter(value), "") in ("float", *_SPECIAL):
        if "float" in value:
            return isinstance(got, float) and _same_float(str(got), float(value["float"]), "")
        return isinstance(got, str) and _same_special(got, value, dtype)
    if value in WORDS if isinstance(value, str) else False:
        return got == value or str(got) == str(WORDS[value])
    if isinstance(value, list):
        pairs = zip(got, value, strict=False)
        return len(got) == len(value) and all(_same_json(g, v, dtype) for g, v in pairs)
    if isinstance(value, dict):
        same_keys = isinstance(got, dict) and list(got) == list(value)
        return same_keys and all(_same_json(got[key], value[key], dtype) for key in value)
    if isinstance(value, float) and isinstance(got, (int, float)):
        return got == value or _same_float(repr(got), value, dtype)
    return type(got) is type(value) and bool(got == value)


_SPECIAL = ("$bytes", "$decimal", "$iso", "$us", "$ns", "$uuid")
