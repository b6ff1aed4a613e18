"""Indexes that other programs have made of tar archives: the JSON file beside each archive that hfutils writes, and
Energon's SQLite file.

They spare a read a member. An index lists files only, so it is believed where it proves that there is nothing else:
between two members is room for a header, and for nothing more. Every header is looked at when its member is first
read.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from shardfs.blob import Slice, expect, read_all, read_exactly
from shardfs.errors import Corrupt, NotFound, ShardfsError
from shardfs.formats.shared import jsontext as _json
from shardfs.formats.webdataset.growing import GrowingTable
from shardfs.formats.webdataset.header import BLOCK, END, METADATA, is_file, padded, parse_header
from shardfs.formats.webdataset.keys import normal
from shardfs.formats.webdataset.scan import Member
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.stores import Entry, Store

# Guesses: larger indexes take longer to fetch and to take in than the headers would.
_MAX_SIDECAR = 64 << 20
_MAX_DATABASE = 256 << 20
_MAX_SECONDS = 10.0
_STEPS_BETWEEN_LOOKS = 100_000
# What may lie before a member's data: its header, or an extended header of one block in front of that.
_PLAIN, _EXTENDED = BLOCK, 3 * BLOCK
_NAME_LENGTH = 100
_SHA256_DIGITS = 64
_COPIED_AT_A_TIME = 1 << 20
_LOCAL = "file://"

_ENERGON = ".nv-meta"
_MEMBERS = """
    SELECT sample_key || '.' || part_name, content_byte_offset, content_byte_size
    FROM sample_parts JOIN samples USING (tar_file_id, sample_index)
    WHERE tar_file_id = ? LIMIT ?
"""


class Part(NamedTuple):
    """A member by an index: its name, and where its bytes lie."""

    name: bytes
    offset: int
    size: int


class Indexes:
    """The indexes that lie beside the archives of a dataset.

    Far from here each look for a file is a request. So JSON files are looked for until an archive of the folder has
    none, as their writer leaves one beside each; and Energon's, which is one for all archives and as long as they are
    many, only where there are several.
    """

    def __init__(self, store: Store, archives: int) -> None:
        """Take those in *store*, beside so many *archives*."""
        self._store, self._is_local = store, store.url.startswith(_LOCAL)
        self._has_energon = self._is_local or archives > 1
        self._without: set[str] = set()

    def read(self, entry: Entry, archive: Blob) -> list[Part] | None:
        """All members of the archive *entry* in order, by an index that is there and fits; None where none does."""
        for find in (self._sidecar, self._energon):
            with contextlib.suppress(ShardfsError):
                parts = find(entry)
                if parts is not None:
                    return fitting(parts, archive, is_local=self._is_local)
        return None

    def _sidecar(self, entry: Entry) -> list[Part] | None:
        folder = entry.path.rpartition("/")[0]
        if folder in self._without:
            return None
        try:
            return _sidecar(self._store, entry)
        except NotFound:
            if not self._is_local:
                self._without.add(folder)
            return None

    def _energon(self, entry: Entry) -> list[Part] | None:
        return _energon(self._store, entry) if self._has_energon else None


def fitting(parts: Iterable[Part], archive: Blob, *, is_local: bool) -> list[Part]:
    """*parts* in order, if they can be all members of *archive* and nothing else. Raises Corrupt.

    Between plain headers nothing can hide. Extended headers could be other members as well: in a local
    archive, where a scan costs little, they are not believed; else the first one is looked at, since
    a writer makes them all alike.
    """
    ordered = sorted(parts, key=lambda part: part.offset)
    end, extended = 0, None
    for part in ordered:
        gap = part.offset - end
        if gap not in (_PLAIN, _EXTENDED) or part.size < 0 or (is_local and gap == _EXTENDED):
            raise Corrupt(f"{part.name!r} does not lie behind a header and the member before")
        end = part.offset + padded(part.size)
        extended = extended or (part if gap == _EXTENDED else None)
    looked_at = [*ordered[:: max(len(ordered) // 2, 1)], *ordered[-1:]]
    places = (end, *(part.offset - BLOCK for part in looked_at))
    expect(archive, ((place, BLOCK) for place in places))
    if end > archive.size() or bytes(archive.read(end, BLOCK)) not in (b"", END):
        raise Corrupt("the archive goes on behind the last member")
    for part in looked_at:
        check_header(archive, part)
    if extended is not None:
        header = parse_header(_block(archive, extended.offset - _EXTENDED))
        if header.type not in METADATA:
            raise Corrupt(f"another member lies before {extended.name!r}")
    return ordered


def check_header(archive: Blob, part: Part) -> None:
    """Raise Corrupt where what lies before a member is not its header."""
    header = parse_header(_block(archive, part.offset - BLOCK))
    # A long name, or one in Unicode, stands in an extended header.
    name = normal(part.name)
    told = name == normal(header.name) or len(part.name) > _NAME_LENGTH or not name.isascii()
    if not is_file(header.type) or header.size != part.size or not told:
        raise Corrupt(f"an index has {part.name!r} at byte {part.offset}, the archive has not")


def _block(archive: Blob, at: int) -> bytes:
    return bytes(read_exactly(archive, at, BLOCK, "a header"))


class Checked:
    """A member by an index, whose own header is looked at before the first read."""

    __slots__ = ("_archive", "_checked", "_data", "_part")

    def __init__(self, archive: Blob, part: Part) -> None:
        self._archive, self._part, self._checked = archive, part, False
        self._data = Slice(archive, part.offset, part.size)

    def size(self) -> int:
        return self._part.size

    def read(self, offset: int, length: int, /) -> memoryview:
        if not self._checked:
            check_header(self._archive, self._part)
            self._checked = True
        return self._data.read(offset, length)


def table_of(parts: Sequence[Part], seed: bytes) -> bytes:
    """The packed table of an archive with these members."""
    table = GrowingTable(seed, len(parts))
    for part in parts:
        table.add(Member(part.name, None, False, part.offset, part.size))
    return table.pack()


def _sidecar(store: Store, entry: Entry) -> list[Part]:
    """The members by `x.json` beside `x.tar`: {"filesize", "hash_lfs", "files": {name: {"offset", "size"}}}."""
    name = entry.path.removesuffix(".tar") + ".json"
    if store.stat(name).size > _MAX_SIDECAR:
        raise Corrupt("is larger than any index that is worth it")
    content = _json.parse_object(bytes(read_all(store.open(name))))
    digest = content.get("hash_lfs", entry.version)
    is_other = len(entry.version) == _SHA256_DIGITS and digest != entry.version
    if content.get("filesize") != entry.size or is_other:
        raise Corrupt("is the index of another archive")
    parts = []
    for path, value in _json.member(content, "files", dict).items():
        where = _json.checked(value, dict, "a file")
        offset, size = _json.member(where, "offset", int), _json.member(where, "size", int)
        parts.append(Part(to_bytes(path), offset, size))
    return parts


def _energon(store: Store, entry: Entry) -> list[Part]:
    """The members by the tables `samples` and `sample_parts` of Energon 7.

    Archives are numbered as `.info.json` lists them.
    """
    info = _json.parse_object(bytes(read_all(store.open(f"{_ENERGON}/.info.json"))))
    paths = list(_json.member(info, "shard_counts", dict))
    if entry.path not in paths:
        raise Corrupt("does not list the archive")
    with _database(store, f"{_ENERGON}/index.sqlite") as place:
        rows = _query(place, paths.index(entry.path), entry.size // BLOCK)
    parts = []
    for name, offset, size in rows:
        if not (isinstance(name, str) and isinstance(offset, int) and isinstance(size, int)):
            raise Corrupt("has members without a place")
        parts.append(Part(to_bytes(name), offset, size))
    return parts


@contextlib.contextmanager
def _database(store: Store, path: str) -> Iterator[str]:
    """A file on this machine with the bytes of *path*."""
    blob = store.open(path)
    if store.url.startswith(_LOCAL):
        yield f"{store.url.removeprefix(_LOCAL)}/{path}"
        return
    if blob.size() > _MAX_DATABASE:
        raise Corrupt("is larger than any index that is worth it")
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="shardfs-") as file:
        for at in range(0, blob.size(), _COPIED_AT_A_TIME):
            file.write(blob.read(at, _COPIED_AT_A_TIME))
        file.flush()
        yield file.name


def _query(place: str, number: int, limit: int) -> list[tuple[object, object, object]]:
    """(name, offset, size) of the members of an archive. A database of unknown origin gets little time."""
    import sqlite3  # here, since most archives have no such index

    end = time.monotonic() + _MAX_SECONDS
    # Immutable: neither locks nor journals are looked at, and nothing is written.
    address = f"file:{quote(to_bytes(place))}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)
            connection.execute("PRAGMA trusted_schema = OFF")
            return connection.execute(_MEMBERS, (number, limit)).fetchall()
    except sqlite3.Error as error:
        raise Corrupt("is no index of Energon's") from error
