"""JSON: JSON Lines, and documents where the user or the source names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from shardfs.formats.shared.json_values import value_end
from shardfs.formats.text.files import TextFile, TextFormat
from shardfs.formats.text.json_shard import open_json

if TYPE_CHECKING:
    from shardfs.model import Shard


_BOM, _SPACE = b"\xef\xbb\xbf", " \t\r\n"
_FIRST_KEY = re.compile(r'\{\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:', re.DOTALL)
# An object of which the end is not in so many bytes may be one all the same.
_LONG = 4096


class Jsonl(TextFormat):
    """The format `jsonl`."""

    name: ClassVar[str] = "jsonl"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        return open_json(file, lines=True)


def begins_lines(head: bytes) -> bool:
    """Whether text begins with an object after which another comes, or nothing: JSON Lines, if not by name."""
    text = _text(head)
    if not text.startswith("{"):
        return False
    try:
        end = value_end(text, 0)
    except (ValueError, RecursionError):  # no JSON, or not all of it
        return len(head) >= _LONG and _FIRST_KEY.match(text) is not None
    rest = text[end:].lstrip(_SPACE)
    return rest.startswith("{") or (not rest and "\n" not in text[:end])


def begins_document(head: bytes) -> bool:
    """Whether text begins with a document: an array of objects, or one object over several lines."""
    text = _text(head)
    is_array = text.startswith("[")
    begin = len(text) - len(text[1:].lstrip(_SPACE)) if is_array else 0
    if not text.startswith("{", begin):
        return False
    try:
        rest = text[value_end(text, begin) :].lstrip(_SPACE)
    except (ValueError, RecursionError):
        return is_array and len(head) >= _LONG and _FIRST_KEY.match(text, begin) is not None
    return rest.startswith((",", "]")) if is_array else not rest


def _text(head: bytes) -> str:
    return head.removeprefix(_BOM).decode("latin-1").lstrip(_SPACE)


class Json(TextFormat):
    """The format `json`: an array, an object, or lines by the name of a document."""

    name: ClassVar[str] = "json"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        return open_json(file, lines=False)
