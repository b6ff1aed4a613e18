"""A shard as JSON Lines: a line a record, made in order and as far as somebody reads."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any

from shardfs.errors import ShardfsError, Unreadable
from shardfs.views.values import json_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from shardfs.blob import Blob
    from shardfs.tree.records import OpenShard, ShownField

RECORDS = "records.jsonl"
"""What the file of all records of a shard is called."""

VERSION = 1
"""Part of the key under which lines are kept: to be counted up when they come out otherwise than before."""


def record_object(
    shard: OpenShard, path: str, record: int, fields: Collection[str] = ()
) -> dict[str, Any]:
    """What stands for a record: `{"key": ..., "index": ..., "fields": {...}}`; nulls as null, media by their file.

    What is damaged has an ``error`` in its place. *path* is the shard's, from the top of the tree. Only *fields* are
    looked at, if there are any.

    Raises:
        Unreadable: another try may go better.
    """
    found: dict[str, Any] = {"key": shard.shard.key(record), "index": record, "fields": {}}
    try:
        shown = shard.record(record, fields)
    except Unreadable:
        raise
    except ShardfsError as error:
        return {**found, "error": error.message}
    values = dict.fromkeys(name for name in shard.columns if not fields or name in fields)
    for each in shown:
        if values.get(each.field.name) is None:  # of two fields of one name the first
            values[each.field.name] = _value(each, partial(file_path, shard, path, record, each))
    return {**found, "fields": values}


def file_path(shard: OpenShard, path: str, record: int, shown: ShownField, number: int) -> str:
    """Where the *number*-th file of a field stands, from the top of the tree; *path* is the shard's."""
    files = enumerate(shard.files(record))
    places = [position for position, file in files if file.column == shown.field.name]
    return f"{path}/{shard.layout.place(record, places[number])}"


def _value(shown: ShownField, file_of: Callable[[int], str]) -> Any:
    def refer(number: int) -> dict[str, Any]:
        return {"file": file_of(number), "bytes": shown.files[number].blob.size()}

    try:
        return json_value(shown.field, refer)
    except Unreadable:
        raise
    except ShardfsError as error:
        return {"file": file_of(0) if shown.files else None, "error": error.message}


def line(found: dict[str, Any]) -> bytes:
    """An object as a line of JSON Lines. `NaN` and `Infinity` where they occur, as Python and pyarrow read them."""
    try:
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=_base64)
    except (ValueError, RecursionError):
        damage = {name: found[name] for name in ("key", "index")}
        return line({**damage, "fields": {}, "error": "can't be shown as JSON"})
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _base64(value: bytes | memoryview) -> str:
    return b64encode(value).decode("ascii")


class RecordLines:
    """The lines of a shard as what a codec makes: they are made, kept and bounded as decompressed bytes are."""

    damage: tuple[type[Exception], ...] = ()

    def __init__(self, open_shard: Callable[[], OpenShard], path: str) -> None:
        self._open_shard, self._path = open_shard, path

    def stream(self, _: Blob, _window: int, /) -> LineStream:
        return LineStream(self._lines())

    def content_size(self, _: Blob, /) -> None:
        return None

    def _lines(self) -> Iterator[bytes]:
        shard, record = self._open_shard(), 0
        while shard.shard.has(record):
            yield line(record_object(shard, self._path, record))
            record += 1


class LineStream:
    """Lines as bytes in order."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._rest = lines, memoryview(b"")

    def readinto1(self, target: memoryview, /) -> int:
        count = 0
        while count < len(target):
            if not self._rest:
                more = next(self._lines, b"")
                if not more:
                    break
                self._rest = memoryview(more)
            step = min(len(self._rest), len(target) - count)
            target[count : count + step] = self._rest[:step]
            self._rest, count = self._rest[step:], count + step
        return count
