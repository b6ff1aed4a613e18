"""Puts a tree together: the source, the caches, the views, the spaces."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from shardfs.blob import Bytes, may_wait
from shardfs.cache.index import IndexCache, default_folder
from shardfs.cache.memory import Derived, Memory
from shardfs.cache.spill import Spills
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.unpacked import Means, Packed, Unpacked
from shardfs.errors import NotFound, Unreadable, UsageError, WouldBlock
from shardfs.journal import Journal
from shardfs.registry import CODECS, INDEXERS, SOURCES, load
from shardfs.tree.archives import WithArchives
from shardfs.tree.control import ControlSpace
from shardfs.tree.discover import Selection, SubStore
from shardfs.tree.folders import Folder, FolderSpace
from shardfs.tree.shards import ShardSpace
from shardfs.tree.tree import Tree
from shardfs.views.present import Presenter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.errors import ShardfsError
    from shardfs.model import Entry, Store
    from shardfs.options import Options

# The most bytes of a compressed file that are decompressed and held together. A guess: 60 ms of zstd.
_LARGEST_PIECE = 64 << 20


class Workshop:
    """The services that formats get: codecs and derived blobs under one memory budget, the index cache, the journal."""

    def __init__(
        self, options: Options, memory: Memory, index: IndexCache | None, journal: Journal
    ) -> None:
        self.options, self._memory, self._index, self._journal = options, memory, index, journal
        self._spills = None
        if options.disk_cache:
            self._spills = Spills(options.cache_dir or default_folder(), options.cache_size)
        self._codecs = {row.name: row for row in CODECS}
        self._indexers = {row.name: row for row in INDEXERS}
        self._means = Means(
            memory=memory,
            index=index,
            spills=self._spills,
            report=journal.note,
            largest_piece=min(_LARGEST_PIECE, options.memory_limit // 4),
            size_limit=options.max_chunk_size,
            is_fresh=options.rebuild_index,
        )
        self._unpacked: WeakValueDictionary[str, Unpacked] = WeakValueDictionary()
        self._lock = threading.Lock()

    def inflate(self, blob: Blob, codec: str, size: int | None, /) -> Blob:
        return Inflated(
            blob,
            load("codecs", self._codecs[codec]),
            size,
            memory=self._memory,
            limit=self.options.max_chunk_size,
        )

    def unpack(self, store: Store, entry: Entry, codec: str, /) -> Blob:
        if not entry.version:
            return self._unpack(store, entry, codec, "")
        key = f"{store.url}/{entry.path}\0{entry.version}\0unpacked {codec}"
        with self._lock:
            unpacked = self._unpacked.get(key)
        if unpacked is None:
            made = self._unpack(store, entry, codec, key)
            with self._lock:  # one pass over a file for all who read in it
                unpacked = self._unpacked.setdefault(key, made)
        return unpacked

    def _unpack(self, store: Store, entry: Entry, codec: str, key: str) -> Unpacked:
        blob = store.open(entry.path)
        if blob.size() != entry.size:
            raise Unreadable(f"{entry.path}: has changed since it was mounted")
        indexer = self._indexers.get(codec)
        packed = Packed(
            blob=blob,
            codec=load("codecs", self._codecs[codec]),
            indexer=load("codecs", indexer)() if indexer is not None else None,
            name=entry.path,
            key=key,
        )
        return Unpacked(packed, self._means)

    def derive(self, build: Callable[[], bytes], /) -> Blob:
        return Derived(build, self._memory)

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        if self._index is None or not entry.version:
            return Derived(build, self._memory)
        key = f"{store.url}/{entry.path}\0{entry.version}\0{what}"
        kept = None if self.options.rebuild_index else self._index.get(key)
        if kept is None:
            if not may_wait():
                raise WouldBlock  # what is built is written to a disk
            content = build()
            self._index.put(key, content)
            kept = self._index.get(key) or Bytes(content)
        return kept

    def report(self, error: ShardfsError, /) -> None:
        self._journal.note(error)

    def close(self) -> None:
        """Leave nothing half-made on disk."""
        if self._spills is not None:
            self._spills.close()


def open_tree(source: str, options: Options) -> Tree:
    """The tree of *source*, with its top folder looked into.

    Raises:
        ShardfsError: there is no such source, nothing to show in it, or its index can't be read; the message is
            one line for the user.
    """
    store, names = open_source(source, options)
    journal, memory = Journal(), Memory(options.memory_limit)
    index = _index_cache(options)
    workshop = Workshop(options, memory, index, journal)
    store = WithArchives(store, workshop)
    if len(names) == 1 and store.stat(names[0]).is_archive:  # it is mounted as a folder would be
        store, names = SubStore(store, names[0]), []
    shards = ShardSpace(Presenter(memory, raw=options.raw), journal, options, index)
    top = Folder("", Selection(store, names) if names else store, _mtime(store), named=bool(names))
    folders = FolderSpace(top, shards, workshop)
    _check(folders, source, named=bool(names))

    def info() -> Mapping[str, object]:
        return {"source": store.url, "layout": options.layout, "raw": options.raw} | shards.info()

    def stats() -> Mapping[str, object]:
        held = {"bytes": memory.total, "hits": memory.hits, "misses": memory.misses}
        return {"memory": held, "errors": journal.count, "shards_open": shards.opened}

    control = ControlSpace(folders, shards, journal, info=info, stats=stats)
    return Tree(
        folders,
        shards,
        control,
        journal,
        info=info,
        total_size=lambda: folders.total_size,
        on_close=workshop.close,
    )


def _index_cache(options: Options) -> IndexCache | None:
    if not options.disk_cache:
        return None
    return IndexCache(options.cache_dir or default_folder(), options.cache_size)


def open_source(source: str, options: Options) -> tuple[Store, Sequence[str]]:
    """The store that *source* names, and the files in it that it names one by one (none: all of it)."""
    scheme = source.partition(":")[0] if "://" in source or source.startswith("zenodo:") else ""
    for row in SOURCES:
        if scheme in row.schemes:
            opened: tuple[Store, Sequence[str]] = load("sources", row)(source, options)
            return opened
    raise UsageError(f"{source}: shardfs reads no {scheme}:// sources")


def _mtime(store: Store) -> int:
    try:
        return store.stat("").mtime_ns
    except NotFound:
        return 0


def _check(folders: FolderSpace, source: str, *, named: bool) -> None:
    """Refuse to show nothing."""
    inside, names, files = folders.content(0)
    shown = [*names, *(files.name(position) for position in range(len(files)))]
    if all(name.startswith(".") for name in shown):
        raise UsageError(f"{source}: no dataset found, the folder is empty")
    if named and not inside:
        raise UsageError(f"{source}: not a shard of a format that shardfs knows")
