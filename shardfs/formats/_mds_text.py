"""Shards of text lines: JSON objects, or values with a separator between them (CSV, TSV, XSV).

Where the lines begin is in a second file, the meta file: ``u32 n | u32 offsets[n + 1] | config text``. Every line
includes the newline text at its end.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Broken, Slice, read_all
from shardfs.errors import Corrupt
from shardfs.formats._table import OffsetTable
from shardfs.model import Field, Kind, NumberedKeys, Plain, Rendered
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.blob import Blob

    Splitter = Callable[[bytes], Sequence["Cell"]]
    """Finds the values in a line. Raises Corrupt."""

_TEXT = Plain(".txt")


class Cell(NamedTuple):
    """A value in a line: its bytes are those from *begin* to *end*, its *kind* is None where it is null."""

    name: str
    kind: Kind | None
    begin: int
    end: int


class TextShard(NumberedKeys):
    """A shard of lines, uncompressed."""

    def __init__(
        self,
        data: Blob,
        meta: Blob,
        columns: Sequence[str],
        split: Splitter,
        *,
        samples: int | None,
        costly: bool,
    ) -> None:
        self._data, self._split = data, split
        self.columns, self.costly = columns, costly
        self._table = OffsetTable.of(meta, samples)

    def __len__(self) -> int:
        return self._table.count

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, end = self._table.span(index, 0, self._data.size())
        line = Slice(self._data, begin, end - begin)
        cells = self._split(bytes(read_all(line)))
        fields = [
            Field(
                cell.name, cell.kind, Slice(self._data, begin + cell.begin, cell.end - cell.begin)
            )
            for cell in cells
            if cell.kind is not None
        ]
        there = {cell.name for cell in cells}
        missing = [
            Field(name, _TEXT, Broken(Corrupt(f"the line has no {name!r}")))
            for name in self.columns
            if name not in there
        ]
        return [*fields, *missing]

    def close(self) -> None:
        """Do nothing: nothing but the blobs is held."""


# --- separated values --------------------------------------------------------------------------------------


def separated(names: Sequence[str], separator: str, newline: str) -> Splitter:
    """What splits the lines of a CSV, TSV or XSV shard."""
    return partial(split_line, names, to_bytes(separator), to_bytes(newline))


def split_line(names: Sequence[str], separator: bytes, newline: bytes, line: bytes) -> list[Cell]:
    """The values of a line. Its writer knows neither quotes nor escapes: it refuses values with a separator in them."""
    text = line[: _text_end(line, newline)]
    count = text.count(separator) + 1
    if count != len(names):
        raise Corrupt(f"has {count} values for {len(names)} columns")
    cells, begin = [], 0
    for name, value in zip(names, text.split(separator), strict=True):
        cells.append(Cell(name, _TEXT, begin, begin + len(value)))
        begin += len(value) + len(separator)
    return cells


# --- JSON objects ------------------------------------------------------------------------------------------

# Numbers are left as text, since no value is made of any here.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_SPACE = re.compile(r"[ \t\n\r]*")
_WORDS = {b"NaN": b"nan", b"Infinity": b"inf", b"-Infinity": b"-inf"}


def objects(newline: str) -> Splitter:
    """What splits the lines of a JSON shard."""
    return partial(split_object, to_bytes(newline))


def split_object(newline: bytes, line: bytes) -> list[Cell]:
    """The members of a JSON object. ``NaN``, ``Infinity`` and ``-Infinity`` are numbers, as Python writes them."""
    # One character a byte, so that places in the text are places in the line; all marks of JSON are ASCII.
    text = line[: _text_end(line, newline)].decode("latin-1")
    try:
        return list(_members(text))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"is no JSON object ({error})") from error


def _members(text: str) -> Iterator[Cell]:
    at = _after("{", text, 0)
    more = text[at : at + 1] != "}"
    while more:
        key, end = _DECODER.raw_decode(text, at)
        begin = _after(":", text, end)
        _, stop = _DECODER.raw_decode(text, begin)
        if not isinstance(key, str) or text[at] != '"':
            raise ValueError(f"a key that is no text at character {at}")
        yield Cell(_loaded(text[at:end].encode("latin-1")), _kind(text[begin]), begin, stop)
        at = _space(text, stop)
        more = text[at : at + 1] == ","
        at = _space(text, at + 1) if more else at
    if _after("}", text, at) != len(text):
        raise ValueError(f"more behind the object at character {at}")


def _space(text: str, at: int) -> int:
    """Where the white space at *at* ends."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _after(mark: str, text: str, at: int) -> int:
    """What follows *mark* and the white space around it."""
    at = _space(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} at character {at}")
    return _space(text, at + 1)


def _loaded(token: bytes | memoryview) -> str:
    """The text that a JSON string stands for."""
    return str(json.loads(str(token, "utf-8")))


def _text(token: memoryview) -> bytes:
    try:
        # Half a surrogate pair, which JSON can hold and UTF-8 can't, becomes the escape that it was.
        return _loaded(token).encode("utf-8", "backslashreplace")
    except ValueError as error:
        raise Corrupt(f"is no UTF-8 text ({error})") from error


def _word(token: memoryview) -> bytes:
    """A number or truth value: as it stands, since its writer made it the shortest that reads back the same."""
    word = bytes(token)
    return _WORDS.get(word, word) + b"\n"


_STRING = Rendered(".txt", _text, "str")
_NUMBER = Rendered(".txt", _word, "number")
_NESTED = Plain(".json")


def _kind(first: str) -> Kind | None:
    """What the JSON value is that begins with that character."""
    if first == '"':
        return _STRING
    if first in "{[":
        return _NESTED
    return None if first == "n" else _NUMBER


def _text_end(line: bytes, newline: bytes) -> int:
    if not line.endswith(newline):
        raise Corrupt("does not end in the newline text of the shard")
    return len(line) - len(newline)
