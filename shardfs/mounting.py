"""Puts a tree together: the source, the caches, the views, the spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import Bytes
from shardfs.cache.index import IndexCache, default_folder
from shardfs.cache.memory import Derived, Memory
from shardfs.codecs.inflated import Inflated
from shardfs.errors import NotFound, UsageError
from shardfs.journal import Journal
from shardfs.registry import CODECS, SOURCES, load
from shardfs.tree.control import ControlSpace
from shardfs.tree.discover import Selection
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


class Workshop:
    """The services that formats get: codecs and derived blobs under one memory budget, the index cache, the journal."""

    def __init__(
        self, options: Options, memory: Memory, index: IndexCache | None, journal: Journal
    ) -> None:
        self.options, self._memory, self._index, self._journal = options, memory, index, journal
        self._codecs = {row.name: row for row in CODECS}

    def inflate(self, blob: Blob, codec: str, size: int | None, /) -> Blob:
        return Inflated(
            blob,
            load("codecs", self._codecs[codec]),
            size,
            memory=self._memory,
            limit=self.options.max_chunk_size,
        )

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
            content = build()
            self._index.put(key, content)
            kept = self._index.get(key) or Bytes(content)
        return kept

    def report(self, error: ShardfsError, /) -> None:
        self._journal.note(error)


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
    shards = ShardSpace(Presenter(memory, raw=options.raw), journal, options, index)
    top = Folder("", Selection(store, names) if names else store, _mtime(store), named=bool(names))
    folders = FolderSpace(top, shards, workshop)
    _check(folders, shards, source, named=bool(names))

    def info() -> Mapping[str, object]:
        return {"source": store.url, "layout": options.layout, "raw": options.raw} | shards.info()

    def stats() -> Mapping[str, object]:
        held = {"bytes": memory.total, "hits": memory.hits, "misses": memory.misses}
        return {"memory": held, "errors": journal.count, "shards_open": shards.opened}

    control = ControlSpace(folders, shards, journal, info=info, stats=stats)
    return Tree(folders, shards, control, journal, info=info, total_size=lambda: folders.total_size)


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


def _check(folders: FolderSpace, shards: ShardSpace, source: str, *, named: bool) -> None:
    """Refuse to show nothing."""
    shown = [name for name in folders.children(0) if not name.startswith(".")]
    if not shown:
        raise UsageError(f"{source}: no dataset found, the folder is empty")
    if named and not shards.count:
        raise UsageError(f"{source}: not a shard of a format that shardfs knows")
