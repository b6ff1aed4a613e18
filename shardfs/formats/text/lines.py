"""Plain text, a record a line, where the user or the source names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import Slice, read_exactly
from shardfs.formats.text.files import RowShard, TextFile, TextFormat
from shardfs.formats.text.line_rows import AllLines
from shardfs.model import Field, Plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.model import Shard

FIELD = "text"

_TEXT = Plain(".txt")


class Text(TextFormat):
    """The format `text`."""

    name: ClassVar[str] = "text"

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        text = file.text(
            AllLines, begin=0, fields=1
        )  # a byte order mark is text, as for the library
        return LineShard(text, file.rows(text, "all lines", by_line=True))


class LineShard(RowShard):
    """Records that are lines, without what ends them."""

    columns: ClassVar[Sequence[str]] = (FIELD,)

    def fields(self, index: int, /) -> Sequence[Field]:
        begin, end = self._rows.span(index)
        tail = bytes(read_exactly(self._blob, max(begin, end - 2), min(end - begin, 2), "a line"))
        if tail.endswith(b"\n"):
            end -= 2 if tail == b"\r\n" else 1
        elif tail.endswith(b"\r"):
            end -= 1
        return [Field(FIELD, _TEXT, Slice(self._blob, begin, end - begin))]
