"""CSV and TSV: tables of text, with the names of the columns in the first row."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import Slice
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.shared.offsets import MAX_ITEMS
from shardfs.formats.text import csv_dialect, csv_rows
from shardfs.formats.text.csv_declared import reading_of
from shardfs.formats.text.csv_dialect import Dialect, DialectRows
from shardfs.formats.text.csv_rows import CsvRows, sniff, unquoted
from shardfs.formats.text.files import MAX_ROW, RowShard, TextFile, TextFormat
from shardfs.formats.text.rows import Without, before_damage
from shardfs.model import Field, Plain, Rendered
from shardfs.names import from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.formats.text.csv_declared import Reading
    from shardfs.formats.text.csv_rows import Cell
    from shardfs.formats.text.rows import Finder, Rows, Text
    from shardfs.model import Shard

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
        reading = reading_of(file.declared, tabbed=is_tabbed)
        dialect = reading.dialect or Dialect(_sniffed(file).encode())
        table = _Table(file, reading, Cells(dialect))
        text = file.text(table.finder, begin=table.begin, fields=len(table.names))
        if reading.limit is not None and reading.limit < text.limit:
            text = replace(text, limit=reading.limit, is_part=True)
        rows = file.rows(text, table.kind, by_line=False)
        return CsvShard(text, rows, table)


class Cells:
    """How rows and cells of a dialect are found, and what cells mean: in the usual one, faster."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.finder: Callable[[], Finder] = partial(DialectRows, dialect)
        self.split: Callable[[bytes], Iterator[Cell]] = partial(csv_dialect.cells, dialect=dialect)
        self.content: Callable[[bytes], bytes] = partial(csv_dialect.content, dialect=dialect)
        if dialect.is_usual:
            self.finder = partial(CsvRows, dialect.delimiter)
            self.split = partial(csv_rows.cells, delimiter=dialect.delimiter)
            self.content = unquoted
        self.rendered = Rendered(".txt", self._render, "str")

    def _render(self, cell: memoryview) -> bytes:
        return self.content(bytes(cell))

    def texts(self, row: bytes) -> list[bytes]:
        """What the cells of a row mean. Raises Corrupt, TooLarge."""
        found = []
        for cell in self.split(row):
            content = row[cell.begin : cell.end]
            found.append(self.content(content) if cell.quoted else content)
            if len(found) > MAX_ITEMS:
                raise TooLarge(f"a table of more than {MAX_ITEMS} columns")
        return found


class _Table:
    """Where the rows of a table begin, and what its columns are called.

    Attributes:
        names: what the cells of a row are called; None for those that are not shown.
        strict: whether more cells than that are a fault.
    """

    def __init__(self, file: TextFile, reading: Reading, cells: Cells) -> None:
        self.reading, self.cells, self._file = reading, cells, file
        self.begin, left_out = file.begin, frozenset[int]()
        if reading.skipped:
            self.begin, left_out = _behind_skipped(file, reading.skipped, cells.dialect)
        self.finder = partial(Without, cells.finder, left_out) if left_out else cells.finder
        header = self._header()
        self.strict = reading.columns is None and reading.leading
        self.names = self._named(header)

    @property
    def kind(self) -> str:
        """Tells the ways apart in which the rows of a file can be found."""
        reading, dialect = self.reading, self.cells.dialect
        if reading.dialect is None and dialect.is_usual:
            return f"csv {dialect.delimiter.decode()}"
        skipped = reading.skipped if isinstance(reading.skipped, int) else sorted(reading.skipped)
        way = f"{dialect} {reading.header} {skipped} {reading.limit}"
        return f"csv {hashlib.sha256(way.encode()).hexdigest()[:32]}"

    def _header(self) -> list[bytes] | None:
        """The cells of the header, behind which the rows begin; None where there is none. Raises Corrupt, TooLarge."""
        number = self.reading.header
        if number is None:
            return None
        starts = list(islice(_starts(self._file, self.finder(), self.begin), number, number + 2))
        if not starts:
            if number:
                raise Corrupt(f"the header should be row {number}, but there are fewer")
            self.begin = _end(self._file, self.begin)
            return []
        end = starts[1] if len(starts) > 1 else _end(self._file, starts[0])
        row = bytes(self._file.blob.read(starts[0], end - starts[0]))
        self.begin = end
        return self.cells.texts(row)

    def _named(self, header: list[bytes] | None) -> Sequence[str | None]:
        reading = self.reading
        first = self._first_row() if reading.dialect is not None or header is None else []
        names: list[str] = [from_bytes(name) for name in header or ()]
        width = len(first)
        if reading.names is not None:
            names = list(reading.names)
            width = len(first if header is None else header)
        elif header is None:
            names = [str(number) for number in range(len(first))]
        used = reading.columns
        if reading.names and used and len(names) == len(set(used)) and isinstance(used[0], int):
            return _shown(names, sorted({n for n in used if isinstance(n, int)}))
        leading = max(width - len(names), 0) if reading.leading and names else 0
        index = [f"__index_level_{n}__" for n in range(leading)]
        if used is None:
            return [*index, *names]
        places = _places(names, used)
        kept = [name if place in places else None for place, name in enumerate(names)]
        # Numbers count the cells of a row, names those that have one.
        return [*index, *kept[leading if isinstance(used[0], int) else 0 :]] if used else kept

    def _first_row(self) -> list[bytes]:
        starts = list(islice(_starts(self._file, self.finder(), self.begin), 2))
        if not starts:
            return []
        end = starts[1] if len(starts) > 1 else _end(self._file, starts[0])
        return self.cells.texts(bytes(self._file.blob.read(starts[0], end - starts[0])))


def _shown(names: Sequence[str], places: Sequence[int]) -> list[str | None]:
    """*names* at *places*, nothing at others. Raises TooLarge."""
    if places and places[-1] > MAX_ITEMS:
        raise TooLarge(f"a table of more than {MAX_ITEMS} columns")
    named = dict(zip(places, names, strict=True))
    return [named.get(place) for place in range(places[-1] + 1 if places else 0)]


def _places(names: Sequence[str], used: Sequence[int | str]) -> set[int]:
    """Where the columns *used* are. Raises Corrupt where one is not there."""
    known = {name: place for place, name in reversed(list(enumerate(names)))}
    places = set()
    for column in used:
        place = known.get(column) if isinstance(column, str) else column
        if place is None or place >= len(names):
            raise Corrupt(f"usecols: there is no column {column!r}")
        places.add(place)
    return places


def _starts(file: TextFile, finder: Finder, begin: int) -> Iterator[int]:
    """Where rows begin from *begin* on. Raises TooLarge for one that is too large to be read."""
    at = last = begin
    while data := before_damage(file.blob, at, _SAMPLE):
        for start in finder.feed(data, at):
            last = start
            yield start
        at += len(data)
        if at - last > MAX_ROW + _SAMPLE:
            raise TooLarge(f"a row of more than {MAX_ROW} bytes")


def _end(file: TextFile, at: int) -> int:
    """Where the text ends, as far as it can be read from *at* on. Raises TooLarge."""
    begin = at
    while data := before_damage(file.blob, at, _SAMPLE):
        at += len(data)
        if at - begin > MAX_ROW:
            raise TooLarge(f"a first row of more than {MAX_ROW} bytes")
    return at


def _behind_skipped(
    file: TextFile, skipped: frozenset[int] | int, dialect: Dialect
) -> tuple[int, frozenset[int]]:
    """Where the table begins, and where in it lines begin that are left out."""
    lines = replace(dialect, comment=b"", escape=b"", blank=True)
    starts = _starts(file, DialectRows(lines), file.begin)
    if isinstance(skipped, int):
        begin = next(islice(starts, skipped, None), None)
        return _length(file) if begin is None else begin, frozenset()
    found = islice(starts, max(skipped, default=-1) + 1)
    left_out = frozenset(start for number, start in enumerate(found) if number in skipped)
    return file.begin, left_out


def _length(file: TextFile) -> int:
    return file.blob.size() if file.content.size is None else file.content.size


def _sniffed(file: TextFile) -> str:
    """The delimiter by what the file begins with."""
    sample = before_damage(file.blob, file.begin, _SAMPLE)
    if len(sample) == _SAMPLE:  # the last line is not all there
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    return sniff(sample.decode("latin-1"))


class CsvShard(RowShard):
    """Records that are rows of cells. A row with fewer cells than there are columns lacks the others."""

    def __init__(self, text: Text, rows: Rows, table: _Table) -> None:
        super().__init__(text, rows)
        self._names, self._strict = table.names, table.strict
        self._cells, self._reading = table.cells, table.reading
        self.columns = [name for name in table.names if name is not None]
        self._has_nulls = bool(table.reading.nulls or table.reading.nulls_of)

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, row = self.row(index)
        found = []
        for number, cell in enumerate(self._cells.split(row)):
            size = cell.end - cell.begin
            if number >= len(self._names):
                if size and self._strict:
                    columns = len(self.columns)
                    raise Corrupt(f"at byte {begin}: more cells than the {columns} columns")
                continue
            name = self._names[number]
            if name is None or (self._has_nulls and self._is_null(name, row, cell)):
                continue
            kind = self._cells.rendered if cell.quoted else _TEXT
            found.append(Field(name, kind, Slice(self._blob, begin + cell.begin, size)))
        return found

    def _is_null(self, name: str, row: bytes, cell: Cell) -> bool:
        content = row[cell.begin : cell.end]
        return self._reading.is_null(name, self._cells.content(content) if cell.quoted else content)
