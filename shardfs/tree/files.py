"""The files of a folder, in little memory: a folder can have a million of them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from shardfs.errors import Changed, NotFound, located
from shardfs.names import escape, from_bytes, shorten, split_extension, to_bytes
from shardfs.placeholders import check_pointer
from shardfs.tree.hub_rules import is_media

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from shardfs.blob import Blob
    from shardfs.stores import Entry, Store


class Files:
    """What is known of files by their position, which is in byte order of their names in the source."""

    def __init__(self, entries: Sequence[Entry], taken: Collection[str]) -> None:
        """Show *entries* beside folders and shards that have *taken* names."""
        pairs = [(to_bytes(entry.name), entry) for entry in entries]
        pairs.sort(key=lambda pair: pair[0])
        ends, at = array("Q", [0]), 0
        for name, _ in pairs:
            at += len(name)
            ends.append(at)
        self._ends, self._names = ends, b"".join([name for name, _ in pairs])
        self._sizes = array("Q", [entry.size for _, entry in pairs])
        self._times = array("q", [entry.mtime_ns for _, entry in pairs])
        # Versions can be long, and only whether they are the same matters.
        self._versions = array("q", [hash(entry.version) for _, entry in pairs])
        self._problems = {n: entry.problem for n, (_, entry) in enumerate(pairs) if entry.problem}
        # Names under which files are shown that can't have their own.
        self._shown: dict[int, str] = {}
        self._positions: dict[str, int] = {}
        for position in range(len(pairs)):
            own = self.stored_name(position)
            if own in taken or not self._is_legal(position, own):
                self._rename(position, escape(own), taken)

    def __len__(self) -> int:
        return len(self._sizes)

    def stored_name(self, position: int) -> str:
        """What the file is called in the source."""
        return from_bytes(self._bytes(position))

    def name(self, position: int) -> str:
        """What it is called in the tree."""
        return self._shown.get(position) or self.stored_name(position)

    def size(self, position: int) -> int:
        return self._sizes[position]

    def mtime_ns(self, position: int) -> int:
        return self._times[position]

    def problem(self, position: int) -> str:
        """Why it can't be opened, "" where it can."""
        return self._problems.get(position, "")

    def is_still(self, position: int, entry: Entry) -> bool:
        """Whether the file is in the version of *entry*, as far as that is known."""
        versions = (hash(""), self._versions[position])
        return entry.size == self._sizes[position] and hash(entry.version) in versions

    def open(self, store: Store, position: int) -> Blob:
        """The file in the folder *store*. Raises Changed where it is another by now, Corrupt where it is none."""
        name = self.stored_name(position)
        try:
            blob = store.open(name)
        except NotFound as error:
            raise Changed("is gone since it was mounted: mount again").at(name) from error
        if blob.size() != self.size(position) or not self.is_still(position, store.stat(name)):
            raise Changed().at(name)
        if is_media(name):
            with located(name):
                check_pointer(blob)
        return blob

    def find(self, name: str) -> int | None:
        """The position of the file that is called *name* in the tree."""
        position = self._positions.get(name)
        if position is None:
            position = self._search(to_bytes(name))
        return position if position is not None and self.name(position) == name else None

    def _bytes(self, position: int) -> bytes:
        return self._names[self._ends[position] : self._ends[position + 1]]

    def _search(self, name: bytes) -> int | None:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < name:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._bytes(low) == name else None

    def _is_legal(self, position: int, name: str) -> bool:
        """Whether the file can have its own name: it can stand in a folder, and no file before has it."""
        is_second = position > 0 and self._bytes(position - 1) == self._bytes(position)
        return not is_second and shorten(escape(name)) == name

    def _rename(self, position: int, wish: str, taken: Collection[str]) -> None:
        stem, extension = split_extension(wish)
        name, number = shorten(stem, extension), 0
        while name in taken or name in self._positions or self._search(to_bytes(name)) is not None:
            number += 1
            name = shorten(stem, f"~{number}{extension}")
        self._shown[position], self._positions[name] = name, position
