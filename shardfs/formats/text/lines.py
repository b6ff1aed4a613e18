"""Plain text, where the user or the source names it: a record a line, a paragraph, or all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import Bytes, Concat, Slice, read_exactly
from shardfs.formats.text.encoding import encoding_of
from shardfs.formats.text.files import MAX_ROW, RowShard, TextFile, TextFormat
from shardfs.formats.text.line_rows import AllLines, AllText, Paragraphs, paragraph_size
from shardfs.model import Field, Plain, Rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.text.declared import Declared
    from shardfs.formats.text.rows import Finder, Rows
    from shardfs.formats.text.rows import Text as TextRows
    from shardfs.model import Shard

FIELD = "text"

_TEXT = Plain(".txt")
# Encodings of which a byte order mark is no part.
_UNMARKED = frozenset({"utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
_WAYS: dict[str, Callable[[], Finder]] = {
    "line": AllLines,
    "paragraph": Paragraphs,
    "document": AllText,
}


class Text(TextFormat):
    """The format `text`."""

    name: ClassVar[str] = "text"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        declared = file.declared
        way, name = declared.text("sample_by", "line"), _name(declared)
        if way not in _WAYS:
            raise declared.wrong("sample_by", "line, paragraph or document")
        encoding = encoding_of(declared)
        # A byte order mark is text, as for the library, unless the encoding has one.
        is_text = encoding in _UNMARKED or (not encoding and not file.charset)
        begin = 0 if is_text else file.begin
        text = file.text(_WAYS[way], begin=begin, fields=1)
        if way == "line":
            rows = file.rows(text, "all lines", by_line=True)
            return LineShard(text, rows, name, kept=declared.flag("keep_linebreaks", False))
        return PartShard(text, file.rows(text, f"{way}s", by_line=False), name)


def _name(declared: Declared) -> str:
    """What the only field is called: the features may say."""
    features = declared.get("features")
    first = features[0] if isinstance(features, list) and features else None
    name = first.get("name") if isinstance(first, dict) else None
    return name if isinstance(name, str) else FIELD


class LineShard(RowShard):
    """Records that are lines, without what ends them, or with an LF for that."""

    def __init__(
        self, text: TextRows, rows: Rows, name: str = FIELD, *, kept: bool = False
    ) -> None:
        super().__init__(text, rows)
        self.columns: Sequence[str] = (name,)
        self._kept = kept

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, end = self._rows.span(index)
        tail = bytes(read_exactly(self._blob, max(begin, end - 2), min(end - begin, 2), "a line"))
        mark = next((mark for mark in (b"\r\n", b"\n", b"\r") if tail.endswith(mark)), b"")
        if mark and self._kept:
            line = Slice(self._blob, begin, end - len(mark) - begin)
            return [Field(self.columns[0], _TEXT, Concat([line, Bytes(b"\n")]))]
        return [Field(self.columns[0], _TEXT, Slice(self._blob, begin, end - len(mark) - begin))]


def _unified(text: memoryview) -> bytes:
    return bytes(text).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


_UNIFIED = Rendered(".txt", _unified, "str")


class PartShard(RowShard):
    """Records that are paragraphs, or the whole text. What ends their lines is an LF, as for `datasets`."""

    def __init__(self, text: TextRows, rows: Rows, name: str) -> None:
        super().__init__(text, rows)
        self.columns: Sequence[str] = (name,)
        self._text = text

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, end = self._rows.span(index)
        if end - begin > MAX_ROW:  # too large to be looked at
            return [Field(self.columns[0], _TEXT, Slice(self._blob, begin, end - begin))]
        data = bytes(read_exactly(self._blob, begin, end - begin, "a text"))
        if self._text.finder is Paragraphs:
            size = paragraph_size(data)
            data = data[:size]
        kind = _UNIFIED if b"\r" in data else _TEXT
        return [Field(self.columns[0], kind, Slice(self._blob, begin, len(data)))]
