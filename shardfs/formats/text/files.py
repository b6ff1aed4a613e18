"""Text files as shards: what JSON Lines, JSON documents, CSV and plain text have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_exactly
from shardfs.errors import Corrupt, Spoilt, TooLarge
from shardfs.formats.shared.media import with_media
from shardfs.formats.text.declared import Declared
from shardfs.formats.text.encoding import BOM, open_text
from shardfs.formats.text.row_digits import foretold
from shardfs.formats.text.rows import LAYOUT, Rows, Table, Text
from shardfs.model import NumberedKeys, ShardRef
from shardfs.names import without_suffix
from shardfs.registry import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.shared.compressed import Content
    from shardfs.formats.text.rows import Finder
    from shardfs.model import Services, Shard
    from shardfs.stores import Entry, Store


MAX_ROW = 128 << 20
"""A row of more bytes is not read: it is held twice while it is looked at."""
# Files of a shard in all, shown or not: what the numbers of the tree have room for.
_MAX_FILES = 1 << 40
# Those of one record that are left room for beside its fields.
_BESIDE = 4


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that was opened.

    Attributes:
        content: what it holds, in UTF-8.
        charset: the encoding that it is in, "" where nothing was to be done.
        begin: where text begins, behind a byte order mark.
        declared: how it is to be read.
    """

    store: Store
    entry: Entry
    services: Services
    content: Content
    charset: str
    begin: int
    declared: Declared

    @classmethod
    def open(cls, store: Store, entry: Entry, services: Services, declared: Declared) -> TextFile:
        """Open the file *entry*. Raises Corrupt where it is declared to be in an unknown encoding."""
        content, charset = open_text(store, entry, services, declared)
        head = bytes(content.blob.read(0, len(BOM)))
        begin = len(BOM) if head == BOM else 0
        return cls(store, entry, services, content, charset, begin, declared)

    @property
    def blob(self) -> Blob:
        return self.content.blob

    def text(self, finder: Callable[[], Finder], *, begin: int, fields: int) -> Text:
        """The rows from *begin* on; *fields*: the most that a record has."""
        limit = _MAX_FILES >> (fields + _BESIDE).bit_length()
        if self.content.size is not None:
            limit = min(limit, self.content.size + 1)
        return Text(self.blob, self.content.size, begin, finder, limit)

    def rows(self, text: Text, kind: str, *, by_line: bool) -> Rows:
        """The rows of *text*; *kind* tells ways apart in which the rows of one file can be found."""
        what = f"rows {LAYOUT} {kind}{self.charset and f' in {self.charset}'}"
        remember = partial(self.services.remember, self.store, self.entry, what)
        return Rows(
            text,
            _kept(remember),
            keep=lambda packed: remember(lambda: packed),
            digits=partial(self._digits, text, by_line=by_line),
            report=self._report,
        )

    def _digits(self, text: Text, *, by_line: bool) -> int | None:
        if self.charset or text.is_part:  # what is stored says too little of that
            return None
        return foretold(self.content, text, by_line=by_line)

    def _report(self, fault: str) -> None:
        error = Corrupt(fault)
        error.places.append(self.entry.path)
        self.services.report(error)


def _make_nothing() -> bytes:
    raise Spoilt("nothing is kept")


def _kept(remember: Callable[[Callable[[], bytes]], Blob]) -> Table | None:
    try:
        return Table.load(remember(_make_nothing))
    except Corrupt:
        return None


class RowShard(NumberedKeys):
    """Records that are the rows of a text."""

    costly = False  # what is found of the rows is kept, and sizes follow from it at little cost

    def __init__(self, text: Text, rows: Rows) -> None:
        self._blob, self._rows = text.blob, rows
        # Always the same for a file, however much is known of it: numbers of files depend on it.
        self._capacity = text.limit

    @property
    def capacity(self) -> int:
        return self._capacity

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, index: int, /) -> bool:
        return self._rows.has(index)

    def key(self, index: int, /) -> str:
        return f"{index:0{self._rows.digits}d}"

    def find(self, key: str, /) -> int | None:
        if not (key.isascii() and key.isdigit()):
            return None
        index = int(key)
        return index if key == self.key(index) and self.has(index) else None

    def row(self, index: int) -> tuple[int, bytes]:
        """(offset, bytes) of a row. Raises TooLarge."""
        begin, end = self._rows.span(index)
        if end - begin > MAX_ROW:
            raise TooLarge(f"a row of {end - begin} bytes, more than {MAX_ROW}")
        return begin, bytes(read_exactly(self._blob, begin, end - begin, "a row"))

    def close(self) -> None:
        """Do nothing: nothing but blobs is held."""


class TextFormat:
    """A format of text files, each a shard; which files these are, the registry says."""

    name: ClassVar[str]

    @classmethod
    def suffixes(cls) -> tuple[str, ...]:
        return next(row.suffixes + row.lone for row in FORMATS if row.name == cls.name)

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        """Whether there are files with its suffixes."""
        return any(name.lower().endswith(cls.suffixes()) for name in names)

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> TextDataset:
        entries = {entry.path: entry for entry in store.list()}
        found = [entries[name] for name in names if name.lower().endswith(cls.suffixes())]
        return TextDataset(cls, store, found, services)

    @classmethod
    def open_file(cls, file: TextFile, /) -> Shard:
        """The shard that a file is. Raises a ShardfsError where it can't be read."""
        raise NotImplementedError


class TextDataset:
    """Files, each a shard."""

    def __init__(
        self, kind: type[TextFormat], store: Store, entries: Sequence[Entry], services: Services
    ) -> None:
        self.format = kind.name
        self._kind, self._store, self._entries, self._services = kind, store, entries, services
        self._files = frozenset(entry.path for entry in entries)
        self.shards = tuple(map(self._ref, entries))

    def _ref(self, entry: Entry) -> ShardRef:
        name = without_suffix(entry.path, self._kind.suffixes())
        return ShardRef(name, entry.path, None, entry.mtime_ns, entry.version)

    def open_shard(self, index: int, /) -> Shard:
        declared = Declared(self._services.parameters)
        file = TextFile.open(self._store, self._entries[index], self._services, declared)
        return with_media(self._kind.open_file(file), file.store, file.entry)

    def owns(self, path: str, /) -> bool:
        return path in self._files

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards), "bytes": sum(entry.size for entry in self._entries)}
