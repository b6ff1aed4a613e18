"""A remote store with what was seen of it at hand: listings, sizes and versions once a mount, bytes in blocks.

The first look at a file fixes its version for the life of the mount. What was seen is also kept on disk, for mounts
that are offline.
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from shardfs.blob import Bytes, read_all
from shardfs.cache.blocks import Keep
from shardfs.cache.cached import Blobs, Means
from shardfs.cache.disk import BLOCKS, INDEX, DiskCache
from shardfs.cache.once import Once
from shardfs.cache.readahead import Shares
from shardfs.cache.workers import Workers
from shardfs.errors import IsAFolder, NotFound, Spoilt, Unreadable
from shardfs.names import to_bytes
from shardfs.stores import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.cache.disk import Room
    from shardfs.cache.memory import Memory
    from shardfs.options import Options
    from shardfs.stores import RemoteStore, Watch

# Threads that fetch: a mount may read from more hosts than one, and some threads write what they fetched.
_WORKERS_A_CONNECTION = 2
# The part of the memory that may be fetched before anybody asks for it.
_AHEAD = 4
# Counted up when entries are kept in another way.
_LAYOUT = 1
_NOTHING = b"null"
# The top folder of a store that says nothing of it.
_NAMELESS = Entry("", 0, 0, "", is_dir=True)

Folder: TypeAlias = "dict[str, Entry]"
"""What lies in a folder, by path."""


class Everything(NamedTuple):
    """All that a store has: itself, and the content of each of its folders by path."""

    top: Entry
    folders: Mapping[str, Folder]


class CachedStore:
    """*store* with its answers kept: bytes by *blobs*, entries in *index*, where there is one.

    *named*: it is for some files only, so that it would be a waste to list everything. *fresh*: ask even where the
    index knows the answer.
    """

    def __init__(
        self,
        store: RemoteStore,
        blobs: Blobs,
        index: DiskCache | None,
        *,
        offline: bool,
        named: bool,
        fresh: bool,
    ) -> None:
        self.url = store.url
        self._store, self._blobs, self._index, self._offline = store, blobs, index, offline
        self._named, self._is_fresh = named, fresh
        self._versions: Once[str] = Once()
        self._whole: Once[Everything | None] = Once()
        self._lists: Once[Folder] = Once()
        self._stats: Once[Entry] = Once()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        return list(self._folder(prefix).values())

    def files(self) -> Sequence[str] | None:
        """The paths of all files, where splits are told by them; None where not, or where there are too many."""
        whole = self._everything() if self._store.hub_rules else None
        if whole is None:
            return None
        return [
            e.path for folder in whole.folders.values() for e in folder.values() if not e.is_dir
        ]

    def stat(self, path: str, /) -> Entry:
        above = path.rpartition("/")[0]
        whole = self._whole.known("")
        listed = self._lists.known(above) if whole is None else whole.folders.get(above, {})
        entry = self._stats.known(path) or (listed or {}).get(path)
        if entry is not None and (entry.version or entry.is_dir):
            return entry
        if path and entry is None and listed is not None and self._store.complete:
            raise NotFound(f"{self.url}/{path}")
        return self._stats.get(path, partial(self._stat, path))

    def open(self, path: str, /) -> Blob:
        entry = self.stat(path)
        if entry.is_dir:
            raise IsAFolder(path)
        if not entry.size:
            return Bytes(b"")
        copy = self._store.at_hand(entry)
        if copy is not None:
            return copy
        key = f"{self.url}/{path}\0{entry.version}\0{entry.size}" if entry.version else ""
        source, name = partial(self._store.blob, entry), f"{self.url}/{path}"
        return self._blobs.open(key, entry.size, source, name=name, least=self._store.least)

    def watch(self, path: str, version: str, /) -> Watch | None:
        return None  # a read of another version than was seen fails

    def counts(self) -> Mapping[str, int]:
        """What it took so far."""
        return {**self._store.counts(), **self._blobs.counter.counts()}

    def close(self) -> None:
        """Let go of all connections; only what is at hand can be read from now on."""
        self._store.close()
        self._blobs.close()

    def _everything(self) -> Everything | None:
        return self._whole.get("", self._ask_for_everything)

    def _ask_for_everything(self) -> Everything | None:
        key = self._key("whole", "")
        before = self._kept(key)
        if before and self._holds():
            if before == _NOTHING:
                return None
            told = self._told(before, self.url)
            if told is not None:
                return _by_folder(told)
        if self._named and not self._offline:
            return None
        entries = self._store.whole()
        content = _NOTHING if entries is None else _pack(entries)
        # Offline it is what other programs have left on this machine, and theirs to keep.
        if not self._offline and (entries is not None or self._version()):
            self._remember(key, before, content)
        return None if entries is None else _by_folder(entries)

    def _folder(self, path: str) -> Folder:
        whole = self._everything()
        if whole is None:
            return self._lists.get(path, partial(self._list, path))
        if path not in whole.folders:
            raise NotFound(f"{self.url}/{path}")
        return whole.folders[path]

    def _list(self, path: str) -> Folder:
        return {entry.path: entry for entry in self._seen("list", path, self._store.list)}

    def _stat(self, path: str) -> Entry:
        if self._offline:
            # What lists everything, or a folder, knows more than what was asked one by one.
            whole = self._everything()
            if whole is not None and not path:
                return whole.top
            with contextlib.suppress(NotFound, Unreadable):
                found = self._folder(path.rpartition("/")[0]).get(path)
                if found is not None and (found.version or found.is_dir):
                    return found
        alone = self._seen("stat", path, lambda path: [self._store.stat(path)])
        return _only(alone, f"{self.url}/{path}")

    def _seen(self, what: str, path: str, ask: Callable[[str], Sequence[Entry]]) -> Sequence[Entry]:
        """What the store says, or said when it could be asked. Raises NotFound also where it said that."""
        key = self._key(what, path)
        before = self._kept(key)
        if self._offline or (before and key != self._top_key and self._holds()):
            told = self._told(before, f"{self.url}/{path}")
            if told is not None:
                return told
        if before:
            self._store.recall(path)
        try:
            entries = ask(path)
        except NotFound:
            self._remember(key, before, _NOTHING)
            raise
        self._remember(key, before, _pack(entries))
        return entries

    def _holds(self) -> bool:
        """Whether what the store said before is as good as asking it."""
        return self._offline or (not self._is_fresh and bool(self._version()))

    def _told(self, before: bytes, place: str) -> Sequence[Entry] | None:
        """The entries that were kept; None where they can't be read, but asked for."""
        try:
            return _unpack(before, place)
        except Unreadable:
            if self._offline:
                raise
            return None

    def _version(self) -> str:
        """What names the state of the whole store, so that what was said of it holds; "" where nothing does."""
        return self._versions.get("", self._ask_version)

    def _ask_version(self) -> str:
        try:
            if not self._offline:
                return self.stat("").version
            return _only(_unpack(self._kept(self._top_key), self.url), self.url).version
        except NotFound:  # a bucket that knows itself only by what is in it
            return ""
        except Unreadable:
            if not self._offline:
                raise
            return ""

    @property
    def _top_key(self) -> str:
        return f"{self.url}/\0stat {_LAYOUT}"

    def _key(self, what: str, path: str) -> str:
        if (what, path) == ("stat", ""):
            return self._top_key
        return f"{self.url}/{path}\0{what} {_LAYOUT} {self._version()}".rstrip()

    def _kept(self, key: str) -> bytes:
        """What was remembered, nothing where nothing was."""
        kept = self._index.get(key) if self._index is not None else None
        try:
            return b"" if kept is None else bytes(read_all(kept))
        except Spoilt:
            return b""

    def _remember(self, key: str, before: bytes, content: bytes) -> None:
        if self._index is not None and content != before:
            self._index.put(key, content)


def _by_folder(entries: Sequence[Entry]) -> Everything:
    """*entries* by the folder that they lie in, in byte order; with the folders that nobody has mentioned."""
    top = _NAMELESS
    folders: dict[str, Folder] = {"": {}}
    for entry in sorted(entries, key=lambda entry: to_bytes(entry.path).split(b"/")):
        if not entry.path:
            top = entry
            continue
        above = ""
        for name in entry.path.split("/")[:-1]:
            path = f"{above}/{name}" if above else name
            folders[above].setdefault(path, Entry(path, 0, entry.mtime_ns, "", is_dir=True))
            folders.setdefault(path, {})
            above = path
        folders[above][entry.path] = entry
        if entry.is_dir:
            folders.setdefault(entry.path, {})
    return Everything(top, folders)


def _pack(entries: Sequence[Entry]) -> bytes:
    rows = [(e.path, e.size, e.mtime_ns, e.version, e.is_dir, e.problem) for e in entries]
    return json.dumps(rows).encode()


def _unpack(content: bytes, place: str) -> list[Entry]:
    """Entries that were kept. Raises NotFound, and Unreadable where none were."""
    if content == _NOTHING:
        raise NotFound(place)
    try:
        return [Entry(*row) for row in json.loads(content)]
    except (ValueError, TypeError):
        raise Unreadable(f"{place}: offline, and never seen before") from None


def _only(entries: Sequence[Entry], place: str) -> Entry:
    """The entry of a file or folder that was kept alone. Raises Unreadable where it was not."""
    if len(entries) != 1:
        raise Unreadable(f"{place}: offline, and never seen before")
    return entries[0]


def cached(
    store: RemoteStore,
    options: Options,
    memory: Memory,
    room: Room | None,
    *,
    named: bool = False,
) -> CachedStore:
    """*store* with what the options say put around it; *named*: some of its files are wanted, not all."""
    keep = Keep(memory, None if room is None else DiskCache(room, BLOCKS), options.offline)
    means = Means(
        keep=keep,
        workers=Workers(_WORKERS_A_CONNECTION * options.connections),
        shares=Shares(options.memory_limit // _AHEAD),
        connections=options.connections,
    )
    index = None if room is None else DiskCache(room, INDEX)
    return CachedStore(
        store,
        Blobs(means),
        index,
        offline=options.offline,
        named=named,
        fresh=options.rebuild_index,
    )
