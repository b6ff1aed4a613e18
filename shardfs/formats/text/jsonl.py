"""JSON: JSON Lines, and documents where the user or the source names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.formats.text.files import TextFile, TextFormat
from shardfs.formats.text.json_shard import open_json

if TYPE_CHECKING:
    from shardfs.model import Shard


class Jsonl(TextFormat):
    """The format `jsonl`."""

    name: ClassVar[str] = "jsonl"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        return open_json(file, lines=True)


class Json(TextFormat):
    """The format `json`: an array, an object, or lines by the name of a document."""

    name: ClassVar[str] = "json"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        return open_json(file, lines=False)
