"""JSON of unknown origin, checked where it comes in; and values as JSON for people."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, TypeVar

from shardfs.errors import Corrupt, json_fault
from shardfs.placeholders import HEAD, placeholder

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = TypeVar("_T")

_KINDS: dict[type, str] = {int: "a whole number", str: "a text", list: "a list", dict: "an object"}


def parse(text: bytes | str) -> Any:
    """The value of a JSON text. Raises Corrupt."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        content = text.encode("utf-8", "replace") if isinstance(text, str) else text
        raise Corrupt(placeholder(content[:HEAD]) or json_fault(error)) from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The object that a JSON text holds. Raises Corrupt."""
    return checked(parse(text), dict, "the whole")


def checked(value: object, kind: type[_T], what: str) -> _T:
    """*value*, which must be of that kind. Raises Corrupt with *what* in the message."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Corrupt(f"{what} should be {_KINDS[kind]}, but is {shown(value)}")
    return value


def member(parent: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    """The value of *key*, which must be there and of that kind. Raises Corrupt."""
    if key not in parent:
        raise Corrupt(f"has no {key}")
    return checked(parent[key], kind, key)


def optional(parent: Mapping[str, Any], key: str, kind: type[_T]) -> _T | None:
    """The value of *key*, which must be of that kind; None where it is missing or null. Raises Corrupt."""
    value = parent.get(key)
    return None if value is None else checked(value, kind, key)


def natural(value: int, limit: int, what: str) -> int:
    """*value*, which must be from 0 to *limit*. Raises Corrupt with *what* in the message."""
    if not 0 <= value <= limit:
        raise Corrupt(f"{what} is {shown(value)}")
    return value


def shown(value: object) -> str:
    """A value from JSON for a message: short, and on one line."""
    if isinstance(value, (list, dict)):
        return _KINDS[type(value)]
    if (
        isinstance(value, int) and value.bit_length() > 256
    ):  # Python refuses to print what is longer yet
        return "a huge number"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def compact(value: object) -> bytes:
    """*value* as compact JSON and a newline; bytes in it as base64, and `NaN`, `Infinity` where they occur.

    Raises:
        Corrupt: it is nested too deeply or has a number in it that is too long.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_base64)
    except (ValueError, RecursionError) as error:
        what = (
            "is nested too deeply" if isinstance(error, RecursionError) else "has too long a number"
        )
        raise Corrupt(f"{what} to be shown as JSON") from error
    # Half a surrogate pair, which JSON can hold and UTF-8 can't, becomes the escape that it was.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _base64(value: bytes | memoryview) -> str:
    return b64encode(value).decode("ascii")
