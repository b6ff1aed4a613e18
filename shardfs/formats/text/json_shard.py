"""Records that are JSON values: lines of JSON Lines, items of an array, or a whole document."""

from __future__ import annotations

import codecs
import re
from array import array
from enum import Enum, auto
from typing import TYPE_CHECKING

from shardfs.blob import Slice
from shardfs.errors import Corrupt, TooLarge, json_fault
from shardfs.formats.shared.json_values import (
    MAX_PARSED,
    STRING,
    Member,
    kind_of,
    members,
    space_end,
    value_end,
)
from shardfs.formats.text.files import RowShard, TextFile
from shardfs.formats.text.json_field import items_of, place_of
from shardfs.formats.text.json_items import Items
from shardfs.formats.text.json_lines import JsonLines
from shardfs.formats.text.line_rows import WholeText
from shardfs.formats.text.rows import PIECE, before_damage
from shardfs.model import Field, NumberedKeys, Plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Shard

# The fields of a record that numbers are kept free for. A guess.
_FIELDS = 4000

_TEXT = Plain(".txt")
# What may stand behind an item of an array, up to the next one or the end of all.
_BEHIND = re.compile(r"[ \t\n\r]*,?[ \t\n\r]*\]?[ \t\n\r]*")
_FILLED = re.compile(rb"[^ \t\n\r]")
_CLOSING = {b"[": b"]", b"{": b"}"}

# Records whose names tell the columns, and how many bytes they may take. Guesses.
_SAMPLE, _SAMPLE_BYTES = 1000, 16 << 20
# How far the first line of a file is looked for: of an array, and of what else there is.
_FIRST_ROW, _FIRST_LINE = 4 << 20, 128 << 20
# How much is looked at at once: at first, and at most.
_GLANCE, _STEP = 4 << 10, 1 << 20
# White space that may follow a line.
_TRAIL = 64


class Shape(Enum):
    """What a file of JSON is."""

    LINES = auto()
    ARRAY = auto()
    OBJECT = auto()


class JsonShard(RowShard):
    """Records that are JSON values, in which members of objects are fields; any other value is a field itself."""

    @property
    def columns(self) -> Sequence[str]:
        """The fields of the first records: what others there are, only a look at all of them would tell."""
        names: dict[str, None] = {}
        for index in range(_SAMPLE):
            if not self.has(index) or self._rows.span(index)[0] > _SAMPLE_BYTES:
                break
            try:
                names |= dict.fromkeys(field.name for field in self.fields(index))
            except Corrupt:
                continue
        return list(names)

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, data = self.row(index)
        text = data.decode("latin-1")
        try:
            found, end = values(text)
        except (ValueError, RecursionError) as error:
            raise Corrupt(f"at byte {begin}: {json_fault(error)}") from error
        if not _BEHIND.fullmatch(text, end):
            raise Corrupt(f"at byte {begin + end}: more behind the JSON value")
        return list(fields_of(found, text, self._blob, begin, is_text=_is_utf8(data)))


def values(text: str) -> tuple[list[Member], int]:
    """The values that are fields in the JSON value that *text* begins with, and where it ends. Raises ValueError."""
    if text.startswith("{"):
        return members(text)
    end = value_end(text, 0)
    return [Member("text" if text.startswith('"') else "data", 0, end)], end


def fields_of(
    found: Sequence[Member], text: str, blob: Blob, at: int, *, is_text: bool
) -> Iterator[Field]:
    """Fields of values in *text*, which lies at *at* in *blob*. *is_text*: all of it is valid UTF-8."""
    for name, begin, end in found:
        kind = kind_of(text[begin])
        if kind is STRING and is_text and text.find("\\", begin, end) < 0:
            yield Field(name, _TEXT, Slice(blob, at + begin + 1, end - begin - 2))
        elif kind is not None:
            yield Field(name, kind, Slice(blob, at + begin, end - begin))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        # Never all of it as text, which may take four times as much.
        for at in range(0, len(data), _STEP):
            decoder.decode(data[at : at + _STEP])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


class ColumnsShard(NumberedKeys):
    """Records of a table by columns, as pandas writes it: `{"a": {"0": 1, "1": 2}, "b": ...}`."""

    costly = False

    def __init__(
        self, blob: Blob, at: int, text: str, table: Sequence[tuple[str, list[Member]]]
    ) -> None:
        self._blob, self._at = blob, at
        self.columns = [name for name, _ in table]
        # Where the values of each column begin and end.
        self._spans = [
            (array("I", (m.begin for m in rows)), array("I", (m.end for m in rows)))
            for _, rows in table
        ]
        self._is_text = _is_utf8(text.encode("latin-1"))

    def __len__(self) -> int:
        return len(self._spans[0][0])

    def fields(self, index: int, /) -> Sequence[Field]:
        found: list[Field] = []
        for name, (begins, ends) in zip(self.columns, self._spans, strict=True):
            begin, end = begins[index], ends[index]
            text = str(self._blob.read(self._at + begin, end - begin), "latin-1")
            value = Member(name, 0, end - begin)
            at = self._at + begin
            found += fields_of([value], text, self._blob, at, is_text=self._is_text)
        return found

    def close(self) -> None:
        """Do nothing: nothing but a blob is held."""


def table_of(text: str, *, loose: bool = False) -> list[tuple[str, list[Member]]] | None:
    """The columns of a table that the document *text* is; None where it is none.

    Every member of the document must be an object with the members `"0"`, `"1"` and so on; where that is *loose*,
    with the same ones, or a list of as many items.
    """
    try:
        columns, end = members(text, space_end(text, 0))
        if not columns or space_end(text, end) != len(text):
            return None
        table = []
        for name, begin, _ in columns:
            if text[begin] != "{" and not (loose and text[begin] == "["):
                return None
            table.append((name, _cells(text, begin)))
    except (ValueError, RecursionError, TooLarge):
        return None
    count = len(table[0][1])
    keys = [row.name for row in table[0][1]] if loose else [str(row) for row in range(count)]
    if not keys or any([row.name for row in rows] != keys for _, rows in table):
        return None
    return table


def _cells(text: str, at: int) -> list[Member]:
    """The values in the object or array at *at*, by name or by number. Raises ValueError, RecursionError, TooLarge."""
    if text[at] == "{":
        return members(text, at, limit=MAX_PARSED)[0]
    found: list[Member] = []
    at = space_end(text, at + 1)
    while text[at] != "]":
        end = value_end(text, at)
        found.append(Member(str(len(found)), at, end))
        at = space_end(text, end)
        if text[at : at + 1] == ",":
            at = space_end(text, at + 1)
        elif text[at : at + 1] != "]":
            raise ValueError(f"no end of the array at byte {at}")
    return found


def shape_of(blob: Blob, begin: int, *, lines: bool) -> Shape:
    """What the text is that begins at *begin*; *lines*: it is called JSON Lines, and only an array shows otherwise.

    It is lines where the first one ends as it began and another value follows.
    """
    first = _filled(blob, begin)
    if first is None:
        return Shape.LINES
    place, mark = first
    closing = _CLOSING.get(mark)
    if closing is None or (lines and mark == b"{"):
        return Shape.LINES
    document = Shape.ARRAY if mark == b"[" else Shape.OBJECT
    end = _line_end(blob, place, _FIRST_ROW if document is Shape.ARRAY else _FIRST_LINE)
    trail = max(place, end - _TRAIL)
    if end < 0 or not bytes(blob.read(trail, end - trail)).rstrip().endswith(closing):
        return document
    second = _filled(blob, end)
    return document if second is None or second[1] in (b",", b"]", b"}", b":") else Shape.LINES


def _filled(blob: Blob, at: int) -> tuple[int, bytes] | None:
    """The first byte from *at* on that is no white space and where it is, unless it is far away."""
    for length in (_GLANCE, _STEP):
        found = _FILLED.search(before_damage(blob, at, length))
        if found:
            return at + found.start(), found[0]
    return None


def _line_end(blob: Blob, at: int, limit: int) -> int:
    """Where the line that begins at *at* ends, -1 where that is further than *limit* away."""
    end, step = at + limit, _GLANCE
    while at < end and (data := before_damage(blob, at, step)):
        found = data.find(b"\n")
        if found >= 0:
            return at + found
        at, step = at + len(data), min(4 * step, _STEP)
    return -1


def _are_several(blob: Blob, begin: int) -> bool:
    """Whether another object follows on the one that the text begins with, if that is not very long."""
    text = before_damage(blob, begin, MAX_PARSED).decode("latin-1")
    try:
        end = value_end(text, space_end(text, 0))
    except (ValueError, RecursionError):
        return False
    return text.startswith("{", space_end(text, end))


def _are_by_line(data: bytes) -> bool:
    """Whether the values that *data* begins with are one a line."""
    lines = data.count(b"\n")
    return abs(len(JsonLines().feed(data, 0)) - lines) <= 1 + lines // 10


def open_json(file: TextFile, *, lines: bool) -> Shard:
    """The records of a file; *lines*: it is called JSON Lines."""
    blob, begin = file.blob, file.begin
    field = file.declared.text("field", "")
    if field:
        return open_field(file, field)
    shape = shape_of(blob, begin, lines=lines)
    if shape is Shape.LINES or (shape is Shape.OBJECT and _are_several(blob, begin)):
        text = file.text(JsonLines, begin=begin, fields=_FIELDS)
        by_line = _are_by_line(before_damage(blob, begin, PIECE))
        return JsonShard(text, file.rows(text, "values", by_line=by_line))
    if shape is Shape.ARRAY:
        first = _filled(blob, begin)
        text = file.text(Items, begin=first[0] + 1 if first else begin, fields=_FIELDS)
        return JsonShard(text, file.rows(text, "items", by_line=False))
    data = before_damage(blob, begin, MAX_PARSED + 1)
    table = table_of(data.decode("latin-1")) if len(data) <= MAX_PARSED else None
    if table is not None:
        return ColumnsShard(blob, begin, data.decode("latin-1"), table)
    text = file.text(WholeText, begin=begin, fields=_FIELDS)
    return JsonShard(text, file.rows(text, "document", by_line=False))


def open_field(file: TextFile, field: str) -> Shard:
    """The records in the member *field* of the document that a file is."""
    blob = file.blob
    place = place_of(blob, file.begin, field)
    if bytes(blob.read(place, 1)) == b"[":
        text = items_of(file.text(Items, begin=place, fields=_FIELDS), place)
        return JsonShard(text, file.rows(text, f"items of {field}", by_line=False))
    data = before_damage(blob, place, MAX_PARSED + 1).decode("latin-1")
    try:
        end = value_end(data, 0)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"the field {field[:99]!r} is no JSON, or larger than 4 MiB") from error
    table = table_of(data[:end], loose=True)
    if table is None:
        raise Corrupt(f"the field {field[:99]!r} holds neither a list of records nor columns")
    return ColumnsShard(blob, place, data[:end], table)
