"""Tables that name media files: a `metadata.csv`, `.jsonl` or `.parquet` in a folder of pictures, sounds or films.

Columns `file_name` and `*_file_name` hold the path of a file below the table's own folder, `file_names` and
`*_file_names` a list of them (datasets.packaged_modules.folder_based_builder). In the records stand the files.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import accumulate
from posixpath import normpath
from typing import TYPE_CHECKING

from shardfs.blob import Beside, Broken, Concat, may_wait, read_all
from shardfs.errors import (
    Changed,
    Corrupt,
    NotAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    TooLarge,
    Unreadable,
    WouldBlock,
    located,
)
from shardfs.formats.shared.offsets import MAX_ITEMS
from shardfs.model import Encoded, Field, FieldInfo, Items, Plain, Rendered
from shardfs.names import from_bytes, safe_parts, split_extension
from shardfs.placeholders import check_pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Shard
    from shardfs.stores import Entry, Store

TABLE = "metadata"
"""What such a table is called, before its suffix."""

# What columns called just `file_name` are named after.
_MEDIA = {
    "image": ".jpg .jpeg .png .gif .webp .bmp .tif .tiff .jp2 .jxl .avif .heic .ppm .pgm .pbm .tga .psd .exr .dds",
    "audio": ".wav .flac .mp3 .ogg .oga .opus .m4a .aac .aif .aiff .au .wma",
    "video": ".mp4 .m4v .mov .webm .mkv .avi .mpg .mpeg .wmv .ogv",
    "pdf": ".pdf",
    "mesh": ".glb .gltf .obj .ply .stl",
}
_MEDIA_OF = {suffix: media for media, suffixes in _MEDIA.items() for suffix in suffixes.split()}
_OTHER = "file"
_DRIVE = re.compile("[A-Za-z]:/")
# Records that are asked for a file, to see what media it is. A guess.
_ASKED = 10
# Files that are held open at a time, those of all records together.
_OPEN_FILES = 32
# Files of which it takes no waiting to see whether they have changed. A guess: a page of thumbnails, and more.
_WATCHED_FILES = 4096


def with_media(shard: Shard, store: Store, entry: Entry) -> Shard:
    """*shard*, which is the file *entry*; where it is a table of media, with the files in place of their names."""
    if entry.name.partition(".")[0] != TABLE:
        return shard
    ends = {name: end for name in shard.columns if (end := _end(name))}
    if not ends:
        return shard
    media = _media_of(shard, ends)
    bare = {"file_name": media, "file_names": f"{media}s"}
    columns = {name: name[: -len(end)] or bare[end.lstrip("_")] for name, end in ends.items()}
    # As the library has it, `file_name` is `_file_name` behind nothing.
    return MediaShard(shard, Folder(store, entry.path.rpartition("/")[0]), columns)


def _end(name: str) -> str:
    """What makes a column one of file names, "" for others."""
    for end in ("file_name", "file_names"):
        if name == end:
            return end
        if name.endswith(f"_{end}"):
            return f"_{end}"
    return ""


def _media_of(shard: Shard, columns: Iterable[str]) -> str:
    """What media the first records name."""
    for index in range(_ASKED):
        if not shard.has(index):
            break
        try:
            fields = shard.fields(index)
            names = [name for field in fields if field.name in columns for name in _names(field)]
        except Corrupt:
            continue
        for name in names:
            media = _MEDIA_OF.get(split_extension(base_name(name or ""))[1].lower())
            if media is not None:
                return media
    return _OTHER


def _names(field: Field) -> Sequence[str | None]:
    """The file names that a field holds. Raises a ShardfsError where it can't be read."""
    content, kind = read_all(field.data), field.kind
    if isinstance(kind, Rendered):
        content = memoryview(kind.render(content))
    if not _is_list(field):
        return [from_bytes(bytes(content))]
    try:
        names = json.loads(bytes(content))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{field.name} is no list of file names") from error
    if not isinstance(names, list) or not all(isinstance(n, (str, type(None))) for n in names):
        raise Corrupt(f"{field.name} is no list of file names")
    if len(names) > MAX_ITEMS:
        raise TooLarge(f"a list of {len(names)} files, more than {MAX_ITEMS}")
    return names


def _is_list(field: Field) -> bool:
    return isinstance(field.kind, (Plain, Rendered)) and field.kind.suffix == ".json"


def inner_path(name: str) -> str | None:
    """The path of the file that a table calls *name*, as Windows may have written it; None where that leads outside."""
    path = name.replace("\\", "/")
    if "://" in path or "\0" in path or path.startswith("/") or _DRIVE.match(path):
        return None
    path = normpath(path)
    return None if path.split("/", 1)[0] == ".." else path


def base_name(name: str) -> str:
    """The last part of the path that a table calls *name*."""
    return name.replace("\\", "/").rpartition("/")[2]


class Folder:
    """A folder of a store, from which files are shown."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self.open = lru_cache(_OPEN_FILES)(self._open_now)
        self._watch = lru_cache(_WATCHED_FILES)(lambda e: store.watch(e.path, e.version))

    def find(self, name: str) -> Entry:
        """The file *name*. Raises Corrupt, OutsideSource."""
        path = inner_path(name)
        if path is None:
            raise OutsideSource(f"{name!r} leads out of the folder")
        if not may_wait():
            raise WouldBlock
        entry = self._stat(path)
        if entry is None and "\\" in name:  # a file name may have one
            literal = safe_parts(name)
            entry = self._stat("/".join(literal)) if literal else None
        if entry is None:
            raise Corrupt(f"{name!r} is not there")
        if entry.is_dir or entry.problem:
            raise Corrupt(f"{name!r} is {entry.problem or 'a folder'}")
        return entry

    def _stat(self, path: str) -> Entry | None:
        try:
            return self._store.stat(f"{self._path}/{path}".lstrip("/"))
        except (NotFound, NotAFolder):
            return None

    def _open_now(self, entry: Entry) -> Blob:
        if not may_wait():
            raise WouldBlock
        blob = self._store.open(entry.path)
        if blob.size() != entry.size:
            raise Changed().at(entry.path)
        self.check(entry)
        with located(entry.path):
            check_pointer(blob)
        return blob

    def check(self, entry: Entry) -> None:
        """Raise Changed where *entry* is no longer what it was."""
        look = self._watch(entry) if entry.version else None
        if look is not None:
            with located(entry.path):
                look()


class MediaFile(Beside):
    """A file that is opened when it is read, since more may be known than can be open."""

    __slots__ = ("_entry", "_folder")

    def __init__(self, folder: Folder, entry: Entry) -> None:
        self._folder, self._entry = folder, entry

    def size(self) -> int:
        return self._entry.size

    def read(self, offset: int, length: int, /) -> memoryview:
        return self._folder.open(self._entry).read(offset, length)

    def check(self) -> None:
        self._folder.check(self._entry)


class _Missing(Broken):
    """A file of a list that is not there. It takes one byte among the others, so that it is noticed."""

    __slots__ = ()

    def size(self) -> int:
        return 1


class MediaShard:
    """A shard with files in place of their names; *columns*: what the columns of names become."""

    def __init__(self, shard: Shard, folder: Folder, columns: Mapping[str, str]) -> None:
        self._shard, self._folder, self._columns = shard, folder, columns
        self.nested, self.loose, self.costly = shard.nested, 0, shard.costly
        self.capacity = shard.capacity

    @property
    def columns(self) -> Sequence[str]:
        return [self._columns.get(name, name) for name in self._shard.columns]

    def schema(self) -> Sequence[FieldInfo]:
        known = self._shard.schema()
        return [FieldInfo(self._columns.get(f.name, f.name), f.type, f.nullable) for f in known]

    def __len__(self) -> int:
        return len(self._shard)

    def has(self, index: int, /) -> bool:
        return self._shard.has(index)

    def key(self, index: int, /) -> str:
        return self._shard.key(index)

    def find(self, key: str, /) -> int | None:
        return self._shard.find(key)

    def early(self, index: int, name: str, /) -> Sequence[Field] | None:
        return None  # the rows of a table are there as a whole

    def close(self) -> None:
        self._shard.close()

    def fields(self, index: int, /) -> Sequence[Field]:
        return [shown for field in self._shard.fields(index) for shown in self._shown(field)]

    def _shown(self, field: Field) -> Iterator[Field]:
        column = self._columns.get(field.name)
        if column is None:
            yield field
            return
        try:
            names = _names(field)
        except Unreadable:
            raise
        except ShardfsError as error:
            yield Field(column, field.kind, Broken(error.again()))
            return
        if _is_list(field):
            yield self._several(column, names)
        elif names[0]:  # an empty cell is the null of CSV
            yield self._one(column, names[0])

    def _one(self, column: str, name: str) -> Field:
        blob = self._file(name)
        if isinstance(blob, Broken):
            return Field(column, Plain(split_extension(base_name(name))[1]), blob)
        return Field(column, Encoded(hint=base_name(name)), blob)

    def _several(self, column: str, names: Sequence[str | None]) -> Field:
        blobs = [self._file(name) if name else None for name in names]
        parts = [_Missing(b.error) if isinstance(b, Broken) else b for b in blobs]
        ends = accumulate((0 if part is None else part.size() for part in parts), initial=0)
        spans = [
            None if part is None else (at, part.size())
            for at, part in zip(ends, parts, strict=False)
        ]
        suffixes = {split_extension(base_name(name or ""))[1] for name in names}
        hint = f"x{suffixes.pop()}" if len(suffixes) == 1 else ""
        content = Concat([part for part in parts if part is not None])
        return Field(column, Items(Encoded(hint=hint), tuple(spans)), content)

    def _file(self, name: str) -> Blob:
        try:
            return MediaFile(self._folder, self._folder.find(name))
        except Unreadable:
            raise
        except ShardfsError as error:
            return Broken(error.again())
