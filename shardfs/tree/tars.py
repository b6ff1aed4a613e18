"""Tars as stores, for ``--recursive``: their members under their own paths, so that shards among them are shards."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from shardfs.errors import IsAFolder, NotAFolder, NotFound, ShardfsError, Unsupported
from shardfs.names import to_bytes
from shardfs.registry import ARCHIVES, FORMATS, load
from shardfs.stores import Entry
from shardfs.tree.discover import Glance, SubStore, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Services, Shard
    from shardfs.stores import Store, Watch

ROW = next(row for row in FORMATS if row.name == "webdataset")
# Members are held by path, half a kilobyte each. A guess: archives of shards have no more.
_MAX_MEMBERS = 1 << 20


def open_tar(store: Store, entry: Entry, services: Services) -> Shard:
    """The tar *entry* as a shard. Raises what is wrong with it."""
    folder, _, name = entry.path.rpartition("/")
    part = SubStore(store, folder) if folder else store
    glance = Glance(part, [entry.at(name)])
    shard: Shard = load("formats", ROW).open(glance, [name], services).open_shard(0)
    return shard


def holds_shards(tar: Shard) -> bool:
    """Whether there are shards or archives among the members of a tar, by their names. Waits for all to be known."""
    return any(_is_shard(f"x.{column}".lower()) for column in tar.columns)


def _is_shard(name: str) -> bool:
    is_archive = any(name.endswith(row.suffixes) for row in ARCHIVES)
    return is_archive or row_of(name, named=False) is not None


class TarStore:
    """The members of the tar file *entry* in *store*, which is open as *tar*. Of two with one path the last counts."""

    def __init__(self, store: Store, entry: Entry, tar: Shard) -> None:
        self.url = f"{store.url}/{entry.path}"
        self._store, self._entry, self._tar = store, entry, tar

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        inside = self._folders.get(prefix)
        if inside is None:
            raise NotAFolder(prefix) if prefix in self._members else NotFound(prefix)
        lead = f"{prefix}/" if prefix else ""
        found = [
            self._described(lead + name, is_dir=is_dir)
            for name, kinds in inside.items()
            for is_dir in kinds
        ]
        return sorted(found, key=lambda entry: to_bytes(entry.path))

    def stat(self, path: str, /) -> Entry:
        if path not in self._members and path not in self._folders:
            raise NotFound(path)
        return self._described(path, is_dir=path not in self._members)

    def open(self, path: str, /) -> Blob:
        place = self._members.get(path)
        if place is None:
            raise IsAFolder(path) if path in self._folders else NotFound(path)
        group, number = place
        return self._tar.fields(group)[number].data

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(self._entry.path, self._entry.version)

    def _described(self, path: str, *, is_dir: bool) -> Entry:
        mtime_ns, version = self._entry.mtime_ns, self._entry.version
        if is_dir:
            return Entry(path, 0, mtime_ns, "", is_dir=True)
        try:
            return Entry(path, self.open(path).size(), mtime_ns, version)
        except ShardfsError as error:
            return Entry(path, 0, mtime_ns, "", problem=error.message)

    @cached_property
    def _members(self) -> dict[str, tuple[int, int]]:
        """Where each member is by its path: (record or folder, number there)."""
        found: dict[str, tuple[int, int]] = {}
        for path, place in self._walk():
            if len(found) >= _MAX_MEMBERS:
                raise Unsupported(
                    f"has more than {_MAX_MEMBERS} members: mount without --recursive"
                )
            found[path] = place
        return found

    @cached_property
    def _folders(self) -> dict[str, dict[str, set[bool]]]:
        """What stands in each folder, by name: whether as a folder, as a file, or both."""
        folders: dict[str, dict[str, set[bool]]] = {"": {}}
        for path in self._members:
            above, _, name = path.rpartition("/")
            folders.setdefault(above, {}).setdefault(name, set()).add(False)
        for path in list(folders):
            while path:
                above, _, name = path.rpartition("/")
                folders.setdefault(above, {}).setdefault(name, set()).add(True)
                path = above
        return folders

    def _walk(self) -> Iterator[tuple[str, tuple[int, int]]]:
        records = len(self._tar)
        for group in range(records + self._tar.loose):
            folder = self._tar.key(group)
            if group < records:  # behind the last slash it is a part of the names
                folder = folder.rpartition("/")[0]
            for number, field in enumerate(self._tar.fields(group)):
                name = field.filename or field.name
                yield f"{folder}/{name}" if folder else name, (group, number)
