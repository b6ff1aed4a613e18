"""Datasets of LitData (Lightning): an index.json, and chunks beside it."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, ClassVar

from shardfs.blob import read_all
from shardfs.errors import (
    Corrupt,
    NotFound,
    OutsideSource,
    Unreadable,
    Unsupported,
    located,
)
from shardfs.formats.litdata.chunk import ChunkOpener
from shardfs.formats.litdata.index import (
    INDEX,
    Chunk,
    Index,
    is_index,
    is_parquet_index,
    parse_index,
)
from shardfs.formats.shared.jsontext import parse
from shardfs.formats.shared.shortage import whole_or_told
from shardfs.model import ShardRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.model import Dataset, Services, Shard
    from shardfs.stores import Store

_CHUNK = re.compile(r"chunk-\d+-\d+(?:-u\d+)?(?:\.zstd(?::\d+)?)?\.bin", re.ASCII)

# What readers and writers leave behind: locks and counters of readers, parts of the index before they are merged,
# unfinished files, checkpoints of the writer, tables from keys to record numbers.
_LEFTOVER = re.compile(
    r"[^/]*\.(?:lock|cnt)|[^/]*\.tmp(?:\.\d+)?"
    r"|\d+\.index\.json|\d+-index\.json"
    r"|\.checkpoints(?:/.*)?"
    r"|keys(?:/shard-\d+)?\.parquet|\d+[.-]keys\.parquet",
    re.ASCII | re.DOTALL,
)


class LitData:
    """The format `litdata`."""

    name: ClassVar[str] = "litdata"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        chunks = any(_CHUNK.fullmatch(name) for name in names)
        if chunks or INDEX not in names:
            return chunks
        try:
            index = parse(bytes(read_all(store.open(INDEX))))
        except Corrupt:
            return False
        return is_index(index) and not is_parquet_index(index)

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> Dataset:
        if INDEX in names:
            with located(INDEX):
                return LitDataset(store, _read_index(store), services)
        chosen = [name for name in names if _CHUNK.fullmatch(name)]
        return LitDataset(store, _index_of(store, chosen, services), services)


def _read_index(store: Store) -> Index:
    return parse_index(bytes(read_all(store.open(INDEX))))


def _index_of(store: Store, files: Sequence[str], services: Services) -> Index:
    """The part of the index beside *files* that tells of them, or what there is to know without one."""
    index, problem = Index(), ""
    try:
        index = _read_index(store)
    except NotFound:
        problem = f"there is no {INDEX} beside it"
    except (Corrupt, Unsupported) as error:
        problem = f"{INDEX}: {error}"
    if problem:
        services.report(
            Unsupported(f"{files[0]} is shown without names and types of fields: {problem}")
        )
    known: dict[str | None, Chunk] = {chunk.inflated: chunk for chunk in index.chunks}
    known |= {chunk.path: chunk for chunk in index.chunks}
    return Index(tuple(known.get(file) or Chunk(file, file) for file in files), index.config)


class LitDataset:
    """Chunks in the order of their index."""

    format = LitData.name

    def __init__(self, store: Store, index: Index, services: Services) -> None:
        self._store, self._index, self._services = store, index, services
        self._opener = ChunkOpener(index.config, services)
        self._block_size = services.options.block_size
        there = {entry.path: entry for entry in store.list()}
        self._owned: set[str | None] = {"keys"} if index.keyed else set()
        shards = []
        for chunk in index.chunks:
            path, inflated = chunk.path, chunk.inflated
            self._owned |= {path, inflated}
            # A reader may have put the decompressed chunk in the place of the compressed one.
            entry = there.get(path or "") or there.get(inflated or "")
            file = entry.path if entry else chunk.file
            version, mtime_ns = (entry.version, entry.mtime_ns) if entry else ("", 0)
            shards.append(ShardRef(chunk.name, file, self._records(chunk), mtime_ns, version))
        self._shards = tuple(shards)

    @property
    def shards(self) -> Sequence[ShardRef]:
        return self._shards

    def open_shard(self, index: int, /) -> Shard:
        chunk, file = self._index.chunks[index], self._shards[index].file
        if chunk.path is None:
            raise OutsideSource(f"{INDEX} names {chunk.file!r}, which leads outside of the source")
        try:
            blob = self._store.open(file)
        except NotFound as error:
            raise Unreadable(f"{INDEX} tells of it, but it is missing") from error
        config = self._index.config
        # Of a chunk that is compressed as a whole, the index tells how many bytes come out.
        size = None if config.compression and not config.level else chunk.size
        return whole_or_told(
            lambda: self._opener.open(blob, chunk), blob, size, file, self._services.report
        )

    def owns(self, path: str, /) -> bool:
        return path in self._owned or _LEFTOVER.fullmatch(path) is not None

    def info(self) -> Mapping[str, object]:
        config = self._index.config
        counts = [shard.records for shard in self._shards]
        encryption = config.encryption
        return {
            "format": self.format,
            "shards": len(self._shards),
            "records": None if None in counts else sum(count or 0 for count in counts),
            "fields": [{"name": leaf.name, "type": leaf.type} for leaf in config.leaves or ()],
            "loader": config.loader,
            "compression": config.compression,
            "compressed": config.level,
            "encryption": f"{encryption.algorithm} ({encryption.level})" if encryption else "",
            "updated_at": _iso(self._index.updated_at),
        }

    def _records(self, chunk: Chunk) -> int | None:
        if not self._block_size or self._index.config.tokens is None:
            return chunk.records
        return None if chunk.tokens is None else chunk.tokens // self._block_size


def _iso(seconds: str) -> str:
    """A time that the index tells in seconds since 1970, by ISO 8601; "" where it is none."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(float(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""
