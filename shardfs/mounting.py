"""Puts a tree together: the source, the caches, the views, the spaces."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from functools import partial
from glob import has_magic
from typing import TYPE_CHECKING, cast
from weakref import WeakValueDictionary

from shardfs.blob import Bytes
from shardfs.cache import trust
from shardfs.cache.disk import BLOCKS, INDEX, UNPACKED, DiskCache, Room, default_folder
from shardfs.cache.files import Files
from shardfs.cache.memory import Derived, Memory
from shardfs.cache.remembered import remembered
from shardfs.cache.remote import cached
from shardfs.cache.spill import Spills
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.unpacked import Means, Packed, Unpacked
from shardfs.errors import Changed, NotFound, ShardfsError, UsageError, located
from shardfs.journal import Journal
from shardfs.model import NO_PARAMETERS
from shardfs.names import without_secrets
from shardfs.registry import CHARSETS, CODECS, INDEXERS, load, load_codec, source_row
from shardfs.stores import Entry, check, stated
from shardfs.tree.archives import WithArchives
from shardfs.tree.control import ControlSpace
from shardfs.tree.demands import check_options, check_splits
from shardfs.tree.discover import Selection, SubStore
from shardfs.tree.folders import Folder, FolderSpace
from shardfs.tree.lines import RECORDS, RecordLines
from shardfs.tree.lines import VERSION as LINES_VERSION
from shardfs.tree.named import by_content, those_there
from shardfs.tree.rooms import RoomSpace
from shardfs.tree.shards import ShardSpace
from shardfs.tree.survey import Survey
from shardfs.tree.tree import Served, Tree
from shardfs.views.present import Presenter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.cache.remote import CachedStore
    from shardfs.codecs import Codec
    from shardfs.options import Options
    from shardfs.stores import RemoteStore, Store

log = logging.getLogger("shardfs")

# The most bytes of a compressed file that are decompressed and held together. A guess: 60 ms of zstd.
_LARGEST_PIECE = 64 << 20


class Workshop:
    """The services that formats get: codecs and derived blobs under one memory budget, the index cache, the journal."""

    def __init__(
        self,
        options: Options,
        memory: Memory,
        room: Room | None,
        journal: Journal,
        remote: CachedStore | None = None,
    ) -> None:
        self.options, self.memory, self.journal, self._remote = options, memory, journal, remote
        self.parameters = NO_PARAMETERS
        self.index = None if room is None else DiskCache(room, INDEX)
        self._spills = None if room is None else Spills(room)
        self.indexers = INDEXERS
        self._means = Means(
            memory=memory,
            index=self.index,
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
            load_codec((*CODECS, *CHARSETS), codec),
            size,
            memory=self.memory,
            limit=self.options.max_chunk_size,
        )

    def unpack(self, store: Store, entry: Entry, codec: str, /) -> Blob:
        entry = stated(store, entry)
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
        with located(entry.path):
            if blob.size() != entry.size:
                raise Changed
            check(store, entry)
        indexer = load_codec(self.indexers, codec)
        packed = Packed(
            blob=blob,
            codec=load_codec((*CODECS, *CHARSETS), codec),
            indexer=indexer() if isinstance(indexer, type) else indexer,
            name=entry.path,
            key=key,
        )
        return Unpacked(packed, self._means)

    def made(self, codec: Codec, name: str, key: str) -> Blob:
        """What *codec* makes of nothing, as far as it is read; kept under *key*, if there is one."""
        packed = Packed(blob=Bytes(b""), codec=codec, indexer=None, name=name, key=key)
        return Unpacked(packed, self._means)

    def derive(self, build: Callable[[], bytes], /) -> Blob:
        return Derived(build, self.memory)

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        entry = stated(store, entry) if self.index is not None else entry
        if self.index is None or not entry.version:
            return Derived(build, self.memory)
        key = f"{store.url}/{entry.path}\0{entry.version}\0{what}"

        def build_of_version() -> bytes:
            content = build()
            check(store, entry)  # else it would be kept for another version than it was made of
            return content

        return remembered(self.index, key, build_of_version, is_fresh=self.options.rebuild_index)

    def report(self, error: ShardfsError, /) -> None:
        self.journal.note(error)

    def stats(self) -> Mapping[str, object]:
        """What the mount has cost so far."""
        memory = self.memory
        held = {"bytes": memory.total, "hits": memory.hits, "misses": memory.misses}
        remote = {} if self._remote is None else {"remote": self._remote.counts()}
        journal = self.journal
        faults = {"count": journal.different, "last": journal.last}
        return {"memory": held, "errors": journal.count, "faults": faults, **remote}

    def close(self) -> None:
        """Let go of all connections, and leave nothing half-made on disk."""
        if self._remote is not None:
            self._remote.close()
        if self._spills is not None:
            self._spills.close()
        if self.memory.files is not None:
            self.memory.files.close()


def open_tree(source: str, options: Options) -> Tree:
    """The tree of *source*, with its top folder looked into.

    Raises:
        ShardfsError: there is no such source, nothing to show in it, or its index can't be read; the message is
            one line for the user.
    """
    options = replace(options, offline=options.offline or _is_offline())
    if options.revision and source_row(source).name != "hub":
        raise UsageError("--revision names one of a repository on the Hub, which this is not")
    room, journal = _room(options), Journal()
    scratch = None if room is None else Files(room, options.cache_size)

    def tell(text: str) -> None:
        journal.note(ShardfsError(text))

    memory = Memory(options.memory_limit, scratch, tell)
    store, names = open_source(source, options)
    remote = None
    if source_row(source).remote:
        inner = cast("RemoteStore", store)
        store = remote = cached(inner, options, memory, room, named=bool(names))
    workshop = Workshop(options, memory, room, journal, remote)
    try:
        files = None
        if remote is not None:
            files = None if names else remote.files()
        names = those_there(store, names, workshop, listed=remote is not None)
        if len(names) == 1 or not has_magic(source.partition("?")[0]):
            store, names = by_content(store, names, workshop)
        return _plant(source, workshop, store, names, files)
    except BaseException:
        workshop.close()
        raise


def _plant(
    source: str,
    workshop: Workshop,
    store: Store,
    names: Sequence[str],
    files: Sequence[str] | None,
) -> Tree:
    """The tree of the files *names* in *store*, or of all that is in it.

    *files* are all of a repository, where the Hub's rules for their names divide it.
    """
    options, journal = workshop.options, workshop.journal
    store = WithArchives(store, workshop)
    version = _top(store).version
    if len(names) == 1 and store.stat(names[0]).is_dir:  # also an archive
        store, names = SubStore(store, names[0]), []
    presenter = Presenter(workshop.memory, raw=options.raw)
    shards = ShardSpace(presenter, journal, options, workshop.index)
    shown = Selection(store, names) if names else store
    top = Folder("", shown, _top(store).mtime_ns, named=bool(names), files=files)
    folders = FolderSpace(top, shards, workshop)
    survey = Survey(folders, shards)
    check_splits(survey, folders.choice, options, journal.note)
    _check(folders, without_secrets(source), named=bool(names))
    check_options(survey, options, journal.note)

    def info() -> Mapping[str, object]:
        revision = {"revision": version} if version else {}
        mode = {"layout": options.layout, "raw": options.raw}
        return {"source": store.url, **revision, **mode, **survey.facts()}

    served = Served()

    def stats() -> Mapping[str, object]:
        asked = {"requests": served.requests, "bytes_read": served.bytes_read}
        return {**asked, **workshop.stats(), "shards_open": shards.opened}

    lines = partial(_record_lines, workshop, folders, shards)
    return Tree(
        folders,
        shards,
        ControlSpace(folders, shards, journal, info=info, stats=stats),
        RoomSpace(shards, {RECORDS: lines}),
        journal,
        survey=survey,
        info=info,
        stats=stats,
        served=served,
        total_size=lambda: folders.total_size,
        on_close=workshop.close,
    )


def _record_lines(workshop: Workshop, folders: FolderSpace, shards: ShardSpace, shard: int) -> Blob:
    """A shard as JSON Lines, made once for each way of showing it: the lines tell where files stand."""
    options, path = workshop.options, folders.path_of(shard)
    what = f"lines {LINES_VERSION} {options.layout} {options.fanout} {path}"
    codec = RecordLines(partial(shards.shard, shard), path)
    return workshop.made(codec, f"{path}/{RECORDS}", shards.key(shard, what))


def _is_offline() -> bool:
    """Whether the variable of Hugging Face's libraries says so, which speaks for every source."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def _room(options: Options) -> Room | None:
    if not options.disk_cache:
        return None
    folder = options.cache_dir or default_folder()
    trust.make(folder)
    fault = trust.distrust(folder, (INDEX, UNPACKED, BLOCKS))
    if fault:
        log.warning("the disk cache %s is not used: %s", folder, fault)
        return None
    return Room(folder, options.cache_size)


def open_source(source: str, options: Options) -> tuple[Store, Sequence[str]]:
    """The store that *source* names, and the files in it that it names one by one (none: all of it)."""
    opened: tuple[Store, Sequence[str]] = load("sources", source_row(source))(source, options)
    return opened


def _top(store: Store) -> Entry:
    """The folder that the store is."""
    try:
        return store.stat("")
    except NotFound:  # buckets know no folders but by the files in them
        return Entry("", 0, 0, "", is_dir=True)


def _check(folders: FolderSpace, source: str, *, named: bool) -> None:
    """Refuse to show nothing."""
    inside, names, files = folders.content(0)
    shown = [*names, *(files.name(position) for position in range(len(files)))]
    if all(name.startswith(".") for name in shown):
        raise UsageError(f"{source}: no dataset found, the folder is empty")
    if named and not inside:
        raise UsageError(f"{source}: not a shard of a format that shardfs knows")
