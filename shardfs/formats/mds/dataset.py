"""Datasets of MosaicML Streaming: folders of MDS, JSON, CSV, TSV or XSV shards with an ``index.json``.

A merged dataset has its shards in sub-folders, one for each writer, and an index of all of them at the top.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_all
from shardfs.errors import (
    Corrupt,
    IsAFolder,
    NotAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    Unsupported,
    located,
)
from shardfs.formats.mds.index import (
    CODECS,
    FORMATS,
    INDEX,
    lone_shard,
    parse_index,
)
from shardfs.formats.mds.shard import MdsShard
from shardfs.formats.mds.text import TextShard, objects, separated
from shardfs.formats.shared.jsontext import parse
from shardfs.formats.shared.shortage import whole_or_told
from shardfs.model import ShardRef

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.formats.mds.index import Part, ShardInfo, StoredFile
    from shardfs.model import Services, Shard
    from shardfs.stores import Entry, Store

# How an index begins, so that a long one need not be parsed to see that it is one: keys are sorted by the writers,
# merged ones have the version first. LitData's has the chunks first.
_BEGINNING = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"(\w+)"\s*:')
_BEGINNING_BYTES = 256
# An index.json that begins otherwise is parsed to see what it is, but not a longer one. A guess.
_MAX_GLANCE = 16 << 20
_SHARD_NAME = re.compile(rf"shard\.\d{{5,}}\.({'|'.join(FORMATS)})(\.({'|'.join(CODECS)}))?")


class Mds:
    """The format `mds`."""

    name: ClassVar[str] = "mds"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        """Whether there is an index of shards, or MDS shards without one.

        An index that is none is taken for one where shards lie beside it, so that opening says what is wrong.
        """
        if INDEX not in names:
            return any(lone_shard(name) for name in names)
        keys = _top_keys(store.open(INDEX))
        if keys is None:
            return any(_SHARD_NAME.fullmatch(name) for name in names)
        return "shards" in keys

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> MdsDataset:
        if INDEX in names:
            with located(INDEX):
                infos: Sequence[ShardInfo] = parse_index(bytes(read_all(store.open(INDEX))))
        else:
            infos = _without_index(names, store, services)
        return MdsDataset(store, infos, services)


class MdsDataset:
    """The shards that an index names."""

    format = "mds"

    def __init__(self, store: Store, infos: Sequence[ShardInfo], services: Services) -> None:
        self._store, self._infos, self._services = store, infos, services
        paths = [file.path for info in infos for file in info.files()]
        self._files = frozenset(path for path in paths if path is not None)
        self._folders = dict.fromkeys(["", *(_folder(path) for path in self._files)])
        self._entries = {
            entry.path: entry
            for folder in self._folders
            for entry in self._listed(folder)
            if entry.path in self._files or entry.path == INDEX
        }
        self.shards = tuple(map(self._ref, infos))

    def _listed(self, folder: str) -> Iterator[Entry]:
        """The files in a folder where shards lie."""
        try:
            yield from (entry for entry in self._store.list(folder) if not entry.is_dir)
        except (NotFound, NotAFolder):
            return  # the shards in it say so, each when it is opened
        except ShardfsError as error:
            self._services.report(error)

    def _ref(self, info: ShardInfo) -> ShardRef:
        path = self._choice(info.data).path
        entry = self._entries.get(path or "") or self._entries.get(INDEX)
        mtime_ns = entry.mtime_ns if entry is not None else 0
        version = entry.version if entry is not None and entry.path == path else ""
        meta = None if info.meta is None else self._choice(info.meta).path
        others = () if meta is None else (meta,)
        return ShardRef(info.name, path or "", info.samples, mtime_ns, version, others)

    def _choice(self, part: Part) -> StoredFile:
        """The form of a file that is to be read: the raw one, if it is there and whole."""
        raw = self._entries.get(part.raw.path or "")
        whole = raw is not None and part.raw.bytes in (None, raw.size)
        if part.zip is None or whole:
            return part.raw
        return part.zip if raw is None or part.zip.path in self._entries else part.raw

    def open_shard(self, index: int, /) -> Shard:
        info = self._infos[index]
        if info.unsupported:
            raise Unsupported(f"{INDEX}: shard {index} {info.unsupported}")
        file = self._choice(info.data)
        return whole_or_told(
            lambda: self._shard(info),
            self._stored(file),
            file.bytes,
            file.name,
            self._services.report,
        )

    def _shard(self, info: ShardInfo) -> Shard:
        data, costly = self._open(info, info.data), self._choice(info.data) is not info.data.raw
        if info.meta is None:
            return MdsShard(data, info.columns, samples=info.samples, costly=costly)
        names = [column.name for column in info.columns or ()]
        split = objects(info.newline)
        if info.format != "json":
            split = separated(names, info.separator, info.newline)
        meta = self._open(info, info.meta)
        return TextShard(data, meta, names, split, samples=info.samples, costly=costly)

    def _open(self, info: ShardInfo, part: Part) -> Blob:
        """The uncompressed bytes of a file."""
        file = self._choice(part)
        blob = self._stored(file)
        if file is part.raw:
            return blob
        with located(file.name):
            if info.compression not in CODECS:
                raise Unsupported(f"has the unknown compression {info.compression!r}")
            return self._services.inflate(blob, info.compression, part.raw.bytes)

    def _stored(self, file: StoredFile) -> Blob:
        """The bytes of a file."""
        with located(file.name):
            if file.path is None:
                raise OutsideSource(f"{INDEX} names it, but it leads outside of the source")
            try:
                return self._store.open(file.path)
            except (NotFound, NotAFolder, IsAFolder) as error:
                raise Corrupt(f"{INDEX} names it, but it is not there") from error

    def owns(self, path: str, /) -> bool:
        leftover = path.endswith(".tmp") and _folder(path) in self._folders
        return leftover or path in self._files

    def info(self) -> Mapping[str, object]:
        counts = [info.samples for info in self._infos]
        sets = dict.fromkeys(info.columns for info in self._infos if info.columns is not None)
        fields = {column.name: column.encoding for columns in sets for column in columns}
        return {
            "formats": sorted({info.format for info in self._infos}),
            "compressions": sorted({info.compression or "none" for info in self._infos}),
            "shards": len(counts),
            "records": None if None in counts else sum(filter(None, counts)),
            "fields": [{"name": name, "type": encoding} for name, encoding in fields.items()],
        }

    def checksums(self) -> Iterator[tuple[str, str, str]]:
        """(path, algorithm, hex digits): every checksum that the index has of a file that is there.

        Algorithms are named as in ``hashlib``, or ``xxh32``, ``xxh64``, ``xxh128``, ``xxh3_64``, ``xxh3_128``.
        """
        for info in self._infos:
            for file in info.files():
                if file.path in self._entries:
                    yield from ((file.path, *checksum) for checksum in file.hashes)


def _top_keys(index: Blob) -> Collection[str] | None:
    """The keys of an index.json, or those that matter; None where it is no JSON."""
    found = _BEGINNING.match(bytes(index.read(0, _BEGINNING_BYTES)))
    if found and found[1] in (b"shards", b"chunks"):
        return {found[1].decode()}
    if index.size() > _MAX_GLANCE:
        return ()
    try:
        content = parse(bytes(read_all(index)))
    except Corrupt:
        return None
    return content.keys() if isinstance(content, dict) else ()


def _without_index(names: Sequence[str], store: Store, services: Services) -> list[ShardInfo]:
    """The MDS shards among *names*; a raw and a compressed file of one shard are one."""
    infos = {info.data.raw.name: info for name in names if (info := lone_shard(name))}
    try:
        store.stat(INDEX)
    except NotFound:
        said = f"no {INDEX} beside it: columns and counts are those that the shards have in them"
        problem = Corrupt(said)
        problem.places.append(names[0])
        services.report(problem)
    return list(infos.values())


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
