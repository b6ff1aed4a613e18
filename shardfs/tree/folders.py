"""Folders and the files that pass through, as a part of the tree: looked at lazily, the first time somebody does."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import may_wait
from shardfs.errors import (
    IsAFolder,
    NotAFolder,
    NotFound,
    ShardfsError,
    Unreadable,
    WouldBlock,
    located,
)
from shardfs.names import (
    distinct,
    escape,
    shorten,
    to_bytes,
)
from shardfs.stores import stated
from shardfs.tree.archives import without_archive_suffix
from shardfs.tree.choice import Choice
from shardfs.tree.discover import SubStore, discover
from shardfs.tree.files import Files
from shardfs.tree.inodes import (
    Ino,
    file_ino,
    folder_ino,
    is_folder,
    is_special,
    split_file,
    split_folder,
    split_shard,
)
from shardfs.tree.nodes import Attr, Listed, NoLinks, Type
from shardfs.tree.placed import PlacedServices
from shardfs.tree.splits import split_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Dataset, Services
    from shardfs.stores import Entry, Store
    from shardfs.tree.discover import Found
    from shardfs.tree.shards import ShardSpace


class Placed(NamedTuple):
    """A shard on its way down to the folder that it stands in."""

    parts: tuple[str, ...]
    number: int


class Owner(NamedTuple):
    """A dataset that may own files in a folder.

    Attributes:
        above: the folders between this one and the one that the dataset's paths begin in, if that lies below.
        path: the path from there to this folder, "" or ending in `/`, if that lies above.
    """

    dataset: Dataset
    above: tuple[str, ...]
    path: str


class Owners:
    """The datasets that may own files in a folder or below it."""

    def __init__(self, owners: Iterable[Owner] = ()) -> None:
        self._here: list[Owner] = []
        self._inside: dict[str, list[Owner]] = {}
        self._shards: set[str] | None = None
        for owner in owners:
            # By the next folder on their way, since a split may take from thousands.
            place = self._inside.setdefault(owner.above[0], []) if owner.above else self._here
            place.append(owner)

    def own(self, name: str) -> bool:
        """Whether one of them owns the file *name* of the folder."""
        if self._shards is None:  # splits may be thousands, each with a dataset of its own
            own = (owner.dataset for owner in self._here if not owner.path)
            self._shards = {ref.file for dataset in own for ref in dataset.shards}
        return name in self._shards or any(
            owner.dataset.owns(owner.path + name) for owner in self._here
        )

    def inside(self, name: str) -> list[Owner]:
        """Those of which the paths begin in the folder *name* of this one or below."""
        return [owner._replace(above=owner.above[1:]) for owner in self._inside.get(name, ())]

    def below(self, name: str) -> list[Owner]:
        """All that may own files in the folder *name* of this one or below."""
        here = [owner._replace(path=f"{owner.path}{name}/") for owner in self._here]
        return here + self.inside(name)


class Content(NamedTuple):
    """What stands in a folder: shards and folders by name, in listing order, then files."""

    folders: dict[str, Ino]
    names: list[str]
    files: Files


@dataclass(slots=True)
class Folder:
    """A folder of the tree.

    Attributes:
        path: where it stands in the tree.
        store: the folder of the source that it shows, None where only shards stand in it.
        named: whether the store holds just the files that the user named.
        placed: shards of datasets further up that stand in it or below.
        owners: datasets further up, which may own files in it.
        files: all files below it, where the Hub's rules for names divide them into splits.
        archive: whether it is an archive, so that a look into it reads some of that.
        decided: whether it lies in a split or beside some, so that none is looked for in it.
        content: what stands in it; None before the first look.
    """

    path: str
    store: Store | None
    mtime_ns: int
    named: bool = False
    placed: tuple[Placed, ...] = ()
    owners: Sequence[Owner] = ()
    files: Sequence[str] | None = None
    archive: bool = False
    decided: bool = False
    content: Content | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class FolderSpace(NoLinks):
    """All folders of a mount above the shards. Grows with the folders that were looked into."""

    def __init__(self, top: Folder, shards: ShardSpace, services: Services) -> None:
        self._folders = [top]
        self._shards, self._services = shards, services
        self.choice = Choice.of(services.options)
        self._lock = threading.Lock()
        self.total_size = 0
        """Bytes of all files in the folders that were looked into."""

    # --- looking into a folder ---

    def content(self, number: int) -> Content:
        """What stands in a folder. Raises what is wrong with it."""
        folder = self._folders[number]
        if folder.content is None:
            if not may_wait():
                raise WouldBlock
            with folder.lock, located(folder.path):
                if folder.content is None:
                    folder.content = self._look(folder)
        return folder.content

    def _look(self, folder: Folder) -> Content:
        entries = list(folder.store.list()) if folder.store is not None else []
        placed, owners = list(folder.placed), Owners(folder.owners)
        if folder.store is not None:
            free = [entry for entry in entries if not owners.own(entry.name)]
            choice = Choice() if folder.decided else self.choice
            # Below a dataset whose shards lie here, an index is that of a part which that has taken in.
            found = discover(
                folder.store,
                free,
                PlacedServices(self._services, folder.path),
                indexed=not placed,
                named=folder.named,
                files=folder.files,
                choice=choice,
            )
            folder.decided |= any(one.indexed or one.folder is not None for one in found)
            entries = self._less_splits(folder, entries)
            placed += self._take(folder.path, [one for one in found if one.shown])
            own = [Owner(f.dataset, tuple(filter(None, f.base.split("/"))), "") for f in found]
            owners = Owners([*own, *folder.owners])
        with self._lock:
            self.total_size += sum(entry.size for entry in entries)
        entries = [_stated(folder.store, e) for e in entries if not owners.own(e.name)]
        return self._arrange(folder, placed, owners, entries)

    def _less_splits(self, folder: Folder, entries: list[Entry]) -> list[Entry]:
        """*entries* of a folder without those that are splits which the user didn't ask for."""
        if folder.decided or folder.store is None or not self._services.options.splits:
            return entries
        declared = split_order(folder.store, [entry.name for entry in entries])
        hidden = self.choice.hides(folder.store, entries, declared)
        folder.decided = hidden is not None
        return [entry for entry in entries if entry.name not in (hidden or ())]

    def _take(self, path: str, found: Sequence[Found]) -> list[Placed]:
        """Number the shards of new datasets, in listing order: by their index, else by the names of their files."""
        placed: list[tuple[bytes, Placed]] = []
        for dataset, store, base, where, indexed, _ in found:
            first = self._shards.add(dataset, store, "/".join(filter(None, (path, base))))
            for number, ref in enumerate(dataset.shards, first):
                own = tuple(ref.name.split("/"))
                parts = own if where is None else (*where, own[-1])
                order = b"" if indexed or where else to_bytes(ref.file)
                placed.append((order, Placed(parts, number)))
        placed.sort(key=lambda pair: pair[0])  # stable: equal keys stay in the order of their index
        return [shard for _, shard in placed]

    def _arrange(
        self,
        folder: Folder,
        placed: Sequence[Placed],
        owners: Owners,
        entries: Sequence[Entry],
    ) -> Content:
        """Shards first, then folders, then files, each under a name of its own."""
        here = [shard for shard in placed if len(shard.parts) == 1]
        below: dict[str, list[Placed]] = {}
        for shard in placed:
            if len(shard.parts) > 1:
                below.setdefault(shard.parts[0], []).append(Placed(shard.parts[1:], shard.number))
        real = {e.name: e for e in entries if e.is_dir and _is_shown(folder.store, e, owners)}
        # Splits in the order that the source gives them, then what else there is.
        folders = [*below, *(name for name in real if name not in below)]
        if folder.store is not None and not below:
            order = split_order(folder.store, [entry.name for entry in entries])
            folders.sort(key=lambda name: order.index(name) if name in order else len(order))
        titles = [_title(name, real.get(name)) for name in folders]
        counts = Counter([shard.parts[0] for shard in here] + titles)
        named = self._shard_names(here, counts)
        inos = [ino for _, ino in named]
        pairs = [(name, "") for name, _ in named]
        for name, title in zip(folders, titles, strict=True):
            shown = escape(title if counts[title] == 1 else name)
            child = self._make(folder, shown, name, real.get(name), below.get(name, ()), owners)
            inos.append(folder_ino(child))
            pairs.append((shown, ""))
        shown_names = list(distinct(pairs))
        inside = dict(zip(shown_names, inos, strict=True))
        files = Files([entry for entry in entries if not entry.is_dir], inside)
        return Content(inside, shown_names, files)

    def _shard_names(
        self, here: Sequence[Placed], counts: Mapping[str, int]
    ) -> list[tuple[str, Ino]]:
        """(name, inode number) of shards: where two children would get one name, each keeps its full file name."""
        named = []
        for (name,), number in here:
            if counts[name] > 1:
                name = self._shards.ref(number).file.rpartition("/")[2] or name
            named.append((shorten(escape(name)), self._shards.folder_attr(number).ino))
        return named

    def _make(
        self,
        above: Folder,
        shown: str,
        name: str,
        entry: Entry | None,
        placed: Sequence[Placed],
        owners: Owners,
    ) -> int:
        """A new folder that is called *shown*, and *name* in the source."""
        path = f"{above.path}/{shown}" if above.path else shown
        store = SubStore(above.store, name) if entry is not None and above.store else None
        handed = owners.below(name) if entry is not None else ()
        mtime_ns = entry.mtime_ns if entry is not None else above.mtime_ns
        with self._lock:
            child = Folder(path, store, mtime_ns, placed=tuple(placed), owners=handed)
            child.decided, child.archive = above.decided, entry is not None and entry.is_archive
            self._folders.append(child)
            return len(self._folders) - 1

    # --- nodes ---

    def attr(self, ino: Ino, /) -> Attr:
        if is_special(ino):
            return self._file_attr(*self._file(ino))
        number = split_folder(ino)
        if number >= len(self._folders):
            raise NotFound(f"node {ino}")
        return Attr(ino, Type.FOLDER, 0, self._folders[number].mtime_ns)

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        number = self._number(parent)
        folders, _, files = self.content(number)
        if name in folders:
            return self._inner_attr(folders[name])
        position = files.find(name)
        if position is None:
            raise NotFound(name)
        return self._file_attr(number, files, position)

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        number = self._number(ino)
        folders, names, files = self.content(number)
        for cookie, name in enumerate(names[start:], start + 1):
            yield Listed(cookie, name, self._inner_attr(folders[name]))
        for position in range(max(start - len(names), 0), len(files)):
            attr = self._file_attr(number, files, position)
            yield Listed(len(names) + position + 1, files.name(position), attr)

    def open(self, ino: Ino, /) -> Blob:
        if not is_special(ino):
            raise IsAFolder(f"node {ino}")
        if not may_wait():
            raise WouldBlock
        number, files, position = self._file(ino)
        folder, name = self._folders[number], files.stored_name(position)
        with located(folder.path):
            problem = files.problem(position)
            if problem or folder.store is None:
                raise Unreadable(f"{name}: {problem}")
            return files.open(folder.store, position)

    def shards(self, number: int = 0) -> Iterator[tuple[str, int]]:
        """(path, number) of all shards in a folder and below, in listing order. Looks into every folder on its way."""
        try:
            inside = self.content(number).folders
        except ShardfsError as error:
            self._services.report(error)
            return
        path = self._folders[number].path
        for name, ino in inside.items():
            if is_folder(ino):
                yield from self.shards(split_folder(ino))
            else:
                yield f"{path}/{name}" if path else name, split_shard(ino)[0]

    def is_archive(self, number: int) -> bool:
        return self._folders[number].archive

    def path_of(self, shard: int) -> str:
        """Where a shard stands whose folder was looked into. Raises NotFound."""
        ino = self._shards.folder_attr(shard).ino
        for folder in self._folders:
            inside = folder.content.folders if folder.content is not None else {}
            for name, child in inside.items():
                if child == ino:
                    return f"{folder.path}/{name}" if folder.path else name
        raise NotFound(f"shard {shard}")

    def _inner_attr(self, ino: Ino) -> Attr:
        """The attributes of a folder or shard."""
        return self.attr(ino) if is_folder(ino) else self._shards.folder_attr(split_shard(ino)[0])

    @staticmethod
    def _file_attr(folder: int, files: Files, position: int) -> Attr:
        ino = file_ino(folder, position)
        return Attr(ino, Type.FILE, files.size(position), files.mtime_ns(position))

    def _file(self, ino: Ino) -> tuple[int, Files, int]:
        """(number of its folder, files of that, position among them)."""
        folder, position = split_file(ino)
        if folder < len(self._folders):
            files = self.content(folder).files
            if position < len(files):
                return folder, files, position
        raise NotFound(f"node {ino}")

    def _number(self, ino: Ino) -> int:
        if is_special(ino):
            raise NotAFolder(f"node {ino}")
        return split_folder(ino)


def _is_shown(store: Store | None, entry: Entry, owners: Owners) -> bool:
    """Whether a folder of the source has anything that no split has taken away from it."""
    taking = owners.inside(entry.name)
    if not taking or store is None or entry.is_archive:
        return True
    inside, owners = SubStore(store, entry.name), Owners(taking)
    return any(
        _is_shown(inside, each, owners) if each.is_dir else not owners.own(each.name)
        for each in inside.list()
    )


def _title(name: str, entry: Entry | None) -> str:
    """What a folder is called, if nothing else is: an archive without its suffix."""
    is_archive = entry is not None and entry.is_archive
    return without_archive_suffix(name) if is_archive else name


def _stated(store: Store | None, entry: Entry) -> Entry:
    """*entry* with its size; if that can't be had, with the reason."""
    if store is None:
        return entry
    try:
        return stated(store, entry)
    except ShardfsError as error:
        return replace(entry, problem=error.message)
