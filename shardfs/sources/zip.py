"""The members of a zip file as a store."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, Concat, Slice, clip, expect, read_all, read_exactly
from shardfs.codecs.checked import Checked
from shardfs.errors import (
    Changed,
    Corrupt,
    IsAFolder,
    NoKey,
    NotAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    Unreadable,
    Unsupported,
    located,
)
from shardfs.names import from_bytes, to_bytes
from shardfs.sources._zip_directory import build_table
from shardfs.sources._zip_records import LOCAL_SIZE, dos_time, parse_local
from shardfs.sources._zip_table import DOS_TIME, ENCRYPTED, END_MARK, FOLDER, LINK, VERSION, Table
from shardfs.stores import Entry, check

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services
    from shardfs.sources._zip_table import Row
    from shardfs.stores import Store, Watch

# A local header takes no more, mostly; and so much of a member comes along with it where the zip is far. Guesses.
_LOCAL, _TOGETHER = 512, 256 << 10
# Larger members are not inflated into memory.
_IN_MEMORY = 16 << 20
# Deflate makes 258 bytes of two bits at best (https://zlib.net/zlib_tech.html).
_MAX_DEFLATE_RATIO = 1032
_MAX_LINKS = 8
_MAX_TARGET = 4096

_STORED, _DEFLATED, _LZMA = 0, 8, 14
_CODECS = {_DEFLATED: "gz", 12: "bz2", _LZMA: "xz", 20: "zstd", 93: "zstd", 95: "xz"}
_NAMES = {1: "shrunk", 6: "imploded", 9: "deflate64", 96: "JPEG", 97: "WavPack", 98: "PPMd"}

# A member's deflate data with these around it is a gzip member.
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_TAIL = struct.Struct("<2L")
# Version of the encoder, length of the properties, properties; in an .lzma file the size follows them.
_LZMA_HEAD = struct.Struct("<HH5s")
_UNKNOWN_SIZE = b"\xff" * 8


class ZipStore:
    """The members of the zip file *entry* in *store*; where they lie is remembered."""

    def __init__(self, store: Store, entry: Entry, services: Services) -> None:
        """Raises Corrupt, Unsupported where the zip can't be read."""
        self.url = f"{store.url}/{entry.path}"
        self._store, self._entry, self._services = store, entry, services
        self._table = Table(
            services.remember(store, entry, f"zip {VERSION}", lambda: build_table(self._archive()))
        )

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        folder, _ = self._follow(prefix)
        if folder.type != FOLDER:
            raise NotAFolder(prefix)
        lead = f"{prefix}/" if prefix else ""
        above = {self._follow(path)[1] for path in _prefixes(prefix)}
        rows = self._table.children(folder)
        return [self._listed(lead + from_bytes(row.name), row, above) for row in rows]

    def stat(self, path: str, /) -> Entry:
        row, _ = self._follow(path)
        return self._described(path, row)

    def open(self, path: str, /) -> Blob:
        row, place = self._follow(path)
        if row.type == FOLDER:
            raise IsAFolder(path)
        with located(path):
            return self._content(place, row)

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(self._entry.path, self._entry.version)

    # --- entries ---

    def _follow(self, path: str) -> tuple[Row, str]:
        """(row, path) of what a path leads to, over links inside the zip. Raises NotFound, OutsideSource."""
        row = self._find(path)
        if row is not None and row.type != LINK:
            return row, path
        left, links = path.split("/")[::-1], 0
        done: list[str] = []
        while left:
            part = left.pop()
            if part == ".." and not done:
                raise OutsideSource(f"{path!r} is a link that leads outside of the zip")
            if part == "..":
                done.pop()
            elif part not in ("", "."):
                row = self._find("/".join([*done, part]))
                if row is None:
                    raise NotFound(path)
                if row.type == LINK:
                    links += 1
                    left += self._target(path, row, links).split("/")[::-1]
                else:
                    done.append(part)
        place = "/".join(done)
        row = self._find(place)
        if row is None:
            raise NotFound(path)
        return row, place

    def _find(self, path: str) -> Row | None:
        return self._table.find([to_bytes(part) for part in path.split("/") if part])

    def _target(self, path: str, link: Row, links: int) -> str:
        if links > _MAX_LINKS or link.size > _MAX_TARGET:
            raise Unreadable(f"{path!r} is a link that leads nowhere")
        target = from_bytes(bytes(read_all(self._content(path, link))))
        if target.startswith("/"):
            raise OutsideSource(f"{path!r} is a link that leads outside of the zip")
        return target

    def _listed(self, path: str, row: Row, above: Collection[str]) -> Entry:
        """The entry of a row; of a link, that of what it leads to, or why it can't be followed.

        *above*: the folders that one goes through on the way.
        """
        if row.type != LINK:
            return self._described(path, row)
        try:
            target, place = self._follow(path)
        except ShardfsError as error:
            return Entry(path, 0, self._mtime_ns(row), "", problem=error.message)
        if target.type == FOLDER and place in above:
            problem = "leads back to a folder above itself (a loop)"
            return Entry(path, 0, self._mtime_ns(row), "", problem=problem)
        return self._described(path, target)

    def _described(self, path: str, row: Row) -> Entry:
        mtime_ns = self._mtime_ns(row)
        if row.type == FOLDER:
            return Entry(path, 0, mtime_ns, "", is_dir=True)
        # A path in a zip stands for the same bytes as long as the zip is the same.
        return Entry(path, row.size, mtime_ns, self._entry.version)

    def _mtime_ns(self, row: Row) -> int:
        moment = dos_time(row.time) if row.flags & DOS_TIME else row.time
        return moment * 10**9 or self._entry.mtime_ns

    # --- content ---

    def _archive(self) -> Blob:
        blob = self._store.open(self._entry.path)
        with located(self._entry.path):
            if blob.size() != self._entry.size:
                raise Changed
            check(self._store, self._entry)
        return blob

    def _content(self, path: str, row: Row) -> Blob:
        place = f"{self._entry.path}: {path}"
        if row.flags & ENCRYPTED:
            raise NoKey("is encrypted, and shardfs opens no encrypted zip members")
        if row.method == _STORED:
            if row.stored != row.size:
                raise Corrupt(f"has {row.stored} stored bytes, but a size of {row.size}")
            return Checked(self._stored(row), row.crc, place)
        codec, packed = self._packed(row)
        if row.size <= _IN_MEMORY:
            return Checked(self._services.inflate(packed, codec, row.size), row.crc, place)
        entry = replace(self._described(path, row), size=packed.size())
        plain = self._services.unpack(_Packed(self.url, entry, packed), entry, codec)
        return Checked(_Exactly(plain, row.size), row.crc, place)

    def _stored(self, row: Row) -> Blob:
        """The bytes of a member as they are stored. The local header says where they begin, and only that."""
        archive = self._archive()
        expect(archive, [(row.offset, _LOCAL + min(row.stored, _TOGETHER))])
        head = read_exactly(archive, row.offset, LOCAL_SIZE, "a local header")
        start = row.offset + parse_local(head)
        if start + row.stored > archive.size():
            raise Corrupt(f"should reach to byte {start + row.stored} of {archive.size()}")
        return Slice(archive, start, row.stored)

    def _packed(self, row: Row) -> tuple[str, Blob]:
        """(codec, bytes) of a compressed member, as a file of the codec's own kind. Raises Corrupt, Unsupported."""
        codec = _CODECS.get(row.method)
        if codec is None:
            name = _NAMES.get(row.method, f"compressed by method {row.method}")
            raise Unsupported(f"is {name}, which shardfs does not read")
        stored = self._stored(row)
        if row.method == _DEFLATED:
            if row.size > _MAX_DEFLATE_RATIO * (row.stored + 1):
                raise Corrupt(f"can't come to {row.size} bytes from {row.stored}")
            tail = _GZIP_TAIL.pack(row.crc, row.size & 0xFFFFFFFF)
            return codec, Concat([Bytes(_GZIP_HEAD), stored, Bytes(tail)])
        if row.method == _LZMA:
            head = read_exactly(stored, 0, _LZMA_HEAD.size, "LZMA properties")
            _, length, properties = _LZMA_HEAD.unpack(head)
            if length != len(properties):
                raise Corrupt(f"has {length} bytes of LZMA properties")
            size = _UNKNOWN_SIZE if row.flags & END_MARK else struct.pack("<Q", row.size)
            rest = Slice(stored, _LZMA_HEAD.size, row.stored - _LZMA_HEAD.size)
            return codec, Concat([Bytes(properties + size), rest])
        return codec, stored


def _prefixes(path: str) -> Iterator[str]:
    """The folders on the way into *path*, from the top down to itself."""
    parts = path.split("/") if path else []
    return ("/".join(parts[:count]) for count in range(len(parts) + 1))


class _Exactly:
    """A blob that takes long to say its size, where that is known: whoever reads the end learns if it is another."""

    __slots__ = ("_blob", "_size")

    def __init__(self, blob: Blob, size: int) -> None:
        self._blob, self._size = blob, size

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        data = self._blob.read(start, stop - start)
        if len(data) != stop - start or (data and stop == self._size != self._blob.size()):
            raise Corrupt(f"does not come to {self._size} bytes, but to {self._blob.size()}")
        return data


class _Packed:
    """A compressed member of a zip, as a store of that one file, in its codec's own kind."""

    def __init__(self, url: str, entry: Entry, content: Blob) -> None:
        self.url = f"{url}#packed"
        self._entry, self._content = entry, content

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        return [self._entry]

    def stat(self, path: str, /) -> Entry:
        return self._entry

    def open(self, path: str, /) -> Blob:
        return self._content

    def watch(self, path: str, version: str, /) -> Watch | None:
        return None
