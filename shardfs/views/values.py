"""Fields as values: what a program wants that counts or searches, where a person wants a file.

Scalars, text and JSON are values of Python and of JSON; whatever a program opens (pictures, sounds, arrays, pickles) is
referred to by its file. One function a kind, as for files (``present``).
"""

from __future__ import annotations

import json
import struct
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from shardfs.blob import read_all
from shardfs.errors import Corrupt
from shardfs.model import Array, Encoded, Field, Items, Plain, Rendered, Scalar
from shardfs.names import split_extension
from shardfs.numbers import scalar_text
from shardfs.views.sniff import extension_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.model import File

TEXT, JSON = ".txt", ".json"

# What webdataset decodes as a whole number (webdataset/autodecode.py).
_INTEGERS = frozenset((".cls", ".cls2", ".class", ".count", ".index", ".inx", ".id"))


class Refer(Protocol):
    """What stands for a file of the field: the *number*-th of those that show it."""

    def __call__(self, number: int, /) -> Any: ...


def json_value(field: Field, refer: Refer) -> Any:
    """The value of *field* as ``json.dumps`` takes it; dates, decimals and the like as the text of their file.

    Raises a ShardfsError where the field can't be read.
    """
    return _value(field, refer, _READERS_OF_JSON)


def python_value(field: Field, refer: Refer) -> Any:
    """The value of *field* as a program in Python has it; text where Python's type is too narrow for it.

    Bytes are a file whatever they hold, so that the values of a field are of one type.

    Raises a ShardfsError where the field can't be read.
    """
    return _value(field, refer, _READERS_OF_PYTHON)


def is_text(field: Field, file: File) -> bool:
    """Whether *file*, which shows *field*, is text, a number or JSON."""
    if field.filename is None:
        return file.extension in (TEXT, JSON)
    form = _form(field)
    return form in (TEXT, JSON) or form in _INTEGERS


def _value(field: Field, refer: Refer, typed: dict[str, Callable[[str], Any]]) -> Any:
    kind, data = field.kind, field.data
    if isinstance(kind, Items):
        spans = enumerate(span is not None for span in kind.spans)
        places = iter(range(len(kind.spans)))
        return [refer(next(places)) if there else None for _, there in spans]
    if isinstance(kind, Scalar):
        return _number(kind.dtype, bytes(read_all(data)), refer, is_json=typed is _READERS_OF_JSON)
    if isinstance(kind, Rendered):
        return _rendered(kind, data, typed)
    if isinstance(kind, Array) and typed is _READERS_OF_PYTHON:
        return _array(kind, data, refer)
    if typed is _READERS_OF_PYTHON and isinstance(kind, Encoded) and field.filename is None:
        return refer(0)
    form = _form(field)
    if form == TEXT:
        return _text(read_all(data), refer)
    if form == JSON:
        return _json(read_all(data), refer)
    if form in _INTEGERS:
        text = _text(read_all(data), refer)
        return _whole(text) if isinstance(text, str) else text
    return refer(0)


def _form(field: Field) -> str:
    """TEXT, JSON, one of the integers, or another extension."""
    kind = field.kind
    if isinstance(kind, Plain):
        return kind.suffix
    if not isinstance(kind, Encoded):
        return ""
    if field.filename is None:
        return extension_of(field.data, kind.suffix, kind.hint)
    named, content = split_extension(field.filename)[1].lower(), extension_of(field.data)
    if named == JSON or named in _INTEGERS:
        return named
    if not field.data.size():  # an empty caption, but no empty picture
        return TEXT if named in ("", TEXT, ".text") else named
    return TEXT if content in (TEXT, JSON) else content


def _text(data: memoryview, refer: Refer) -> Any:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return refer(0)


def _json(data: memoryview, refer: Refer) -> Any:
    """The value of a JSON text; what is called so and is none is text."""
    text = _text(data, refer)
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _whole(text: str) -> int | str:
    plain = text.strip()
    digits = plain.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
    return int(plain) if is_number else text


# --- numbers -----------------------------------------------------------------------------------------------

_FLOATS = {"2": "e", "4": "f", "8": "d"}


def _number(dtype: str, data: bytes, refer: Refer, *, is_json: bool) -> Any:
    """The number in *data*; for JSON in the shortest text that reads back the same in its own width."""
    text = scalar_text(dtype, data)
    if text is None:
        return refer(0)
    match dtype[1]:
        case "b":
            return text == "true"
        case "i" | "u":
            return int(text)
        case "f" if is_json:
            return float(text)
        case "f":
            order = ">" if dtype[0] == ">" else "<"
            return struct.unpack(order + _FLOATS[dtype[2:]], data)[0]
    return text if is_json else complex(text)


def _array(kind: Array, data: Blob, refer: Refer) -> Any:
    """A NumPy array; where NumPy is not installed, has no such type, or the bytes are no such array, the file."""
    try:
        import numpy as np  # here, since few need it

        elements = np.frombuffer(read_all(data)[kind.skip :], kind.dtype)
        return elements.reshape(kind.shape)
    except (ImportError, TypeError, ValueError):
        return refer(0)


def _rendered(kind: Rendered, data: Blob, typed: dict[str, Callable[[str], Any]]) -> Any:
    content = kind.render(read_all(data))
    if kind.suffix == JSON:
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Corrupt("is no JSON that can be read") from error
    text = content.decode("utf-8", "surrogateescape")
    if kind.logical == "str":
        return text
    text = text.removesuffix("\n")
    read = typed.get(kind.logical)
    if read is None:
        return text
    try:
        return read(text)
    except (ValueError, ArithmeticError):  # beyond what Python's type can hold
        return text


def _json_number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _label(text: str) -> int:
    """The number of a class; its name stands in what is known of the field."""
    return int(text.partition("\t")[0])


def _timestamp(text: str) -> datetime:
    """Raises ValueError where it has nanoseconds, or a year beyond those of datetime."""
    clock, dot, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    fraction = f".{rest[:digits]:0<6}" if dot else ""
    if digits > 6:
        raise ValueError(text)
    return datetime.fromisoformat(clock + fraction + rest[digits:])


def _time(text: str) -> time:
    return _timestamp(f"1970-01-01T{text}").time()


def _date(text: str) -> date | datetime:
    return _timestamp(text) if "T" in text else date.fromisoformat(text)


def _duration(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    seconds = Decimal(text.lstrip("-")[2:-1])
    microseconds = seconds * 10**6
    if microseconds != int(microseconds):
        raise ValueError(text)
    return sign * timedelta(microseconds=int(microseconds))


_READERS_OF_JSON: dict[str, Callable[[str], Any]] = {"number": _json_number, "class label": _label}
_READERS_OF_PYTHON: dict[str, Callable[[str], Any]] = {
    **_READERS_OF_JSON,
    "decimal": Decimal,
    "timestamp": _timestamp,
    "date": _date,
    "time": _time,
    "duration": _duration,
    "arrow.uuid": UUID,
}
