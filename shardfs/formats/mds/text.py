"""Shards of text lines: JSON objects, or values with a separator between them (CSV, TSV, XSV).

Where the lines begin is in a second file, the meta file: ``u32 n | u32 offsets[n + 1] | config text``. Every line
includes the newline text at its end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import Broken, Slice, read_all
from shardfs.errors import Corrupt, json_fault
from shardfs.formats.shared.json_values import kind_of, members, space_end
from shardfs.formats.shared.offsets import OffsetTable
from shardfs.model import Field, Kind, NumberedKeys, Plain
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.blob import Blob

    Splitter = Callable[[bytes], Sequence["Cell"]]
    """Finds the values in a line. Raises Corrupt."""

_TEXT = Plain(".txt")
_NESTED = Plain(".json")


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


def objects(newline: str) -> Splitter:
    """What splits the lines of a JSON shard."""
    return partial(split_object, to_bytes(newline))


def split_object(newline: bytes, line: bytes) -> list[Cell]:
    """The members of a JSON object."""
    text = line[: _text_end(line, newline)].decode("latin-1")
    try:
        found, end = members(text)
    except (ValueError, RecursionError) as error:
        raise Corrupt(json_fault(error)) from error
    if space_end(text, end) != len(text):
        raise Corrupt(f"is no JSON object (more behind it at byte {end})")
    return [Cell(name, _kind(text[begin]), begin, end) for name, begin, end in found]


def _kind(first: str) -> Kind | None:
    """What the value is that begins with that character: objects and arrays are text, as the writer left it."""
    return _NESTED if first in "{[" else kind_of(first)


def _text_end(line: bytes, newline: bytes) -> int:
    if not line.endswith(newline):
        raise Corrupt("does not end in the newline text of the shard")
    return len(line) - len(newline)
