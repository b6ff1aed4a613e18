"""CSV and TSV: tables of text, with the names of the columns in the first row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import Slice
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.shared.offsets import MAX_ITEMS
from shardfs.formats.text.csv_rows import CsvRows, cells, sniff, unquoted
from shardfs.formats.text.files import MAX_ROW, RowShard, TextFile, TextFormat
from shardfs.formats.text.rows import before_damage
from shardfs.model import Field, Plain, Rendered
from shardfs.names import from_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.text.rows import Rows, Text
    from shardfs.model import Shard

_TAB = "\t"
# What is looked at to see by what cells are separated, and at once to find the first row. A guess.
_SAMPLE = 64 << 10

_TEXT = Plain(".txt")


class Csv(TextFormat):
    """The format `csv`."""

    name: ClassVar[str] = "csv"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        tabbed = tuple(suffix for suffix in cls.suffixes() if suffix.startswith(".tsv"))
        is_tabbed = file.entry.name.lower().endswith(tabbed)
        delimiter = _TAB if is_tabbed else _sniffed(file)
        mark = delimiter.encode()
        header, begin = _header(file, mark)
        names = [from_bytes(name) for name in header]
        finder = partial(CsvRows, mark)
        text = file.text(finder, begin=begin, fields=len(names))
        return CsvShard(text, file.rows(text, f"csv {delimiter}", by_line=False), names, mark)


def _sniffed(file: TextFile) -> str:
    """The delimiter by what the file begins with."""
    sample = before_damage(file.blob, file.begin, _SAMPLE)
    if len(sample) == _SAMPLE:  # the last line is not all there
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    return sniff(sample.decode("latin-1"))


def _header(file: TextFile, delimiter: bytes) -> tuple[list[bytes], int]:
    """The cells of the first row, and where the second one begins. Raises Corrupt, TooLarge."""
    blob, at, starts, finder = file.blob, file.begin, list[int](), CsvRows(delimiter)
    while len(starts) < 2:
        if at - file.begin > MAX_ROW:
            raise TooLarge(f"a first row of more than {MAX_ROW} bytes")
        data = before_damage(blob, at, _SAMPLE)
        if not data:
            starts.append(at)
            break
        starts += finder.feed(data, at)
        at += len(data)
    if len(starts) < 2:
        return [], at
    row = bytes(blob.read(starts[0], starts[1] - starts[0]))
    names = []
    for cell in cells(row, delimiter):
        content = row[cell.begin : cell.end]
        names.append(unquoted(content) if cell.quoted else content)
        if len(names) > MAX_ITEMS:
            raise TooLarge(f"a table of more than {MAX_ITEMS} columns")
    return names, starts[1]


def _unquoted(cell: memoryview) -> bytes:
    return unquoted(bytes(cell))


_QUOTED = Rendered(".txt", _unquoted, "str")


class CsvShard(RowShard):
    """Records that are rows of cells. A row with fewer cells than there are columns lacks the others."""

    def __init__(self, text: Text, rows: Rows, columns: Sequence[str], delimiter: bytes) -> None:
        super().__init__(text, rows)
        self.columns, self._delimiter = columns, delimiter

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, row = self.row(index)
        found = []
        for number, cell in enumerate(cells(row, self._delimiter)):
            size = cell.end - cell.begin
            if number < len(self.columns):
                kind = _QUOTED if cell.quoted else _TEXT
                blob = Slice(self._blob, begin + cell.begin, size)
                found.append(Field(self.columns[number], kind, blob))
            elif size:
                raise Corrupt(f"at byte {begin}: more cells than the {len(self.columns)} columns")
        return found
