"""JSON: JSON Lines, and documents where the user or the source names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.formats._json_shard import open_json
from shardfs.formats._text_files import TextFile, TextFormat

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
