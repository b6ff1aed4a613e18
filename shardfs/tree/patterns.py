"""The files of a source that glob patterns name: `*` stays within a folder, `**` does not."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from glob import has_magic
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, NotAFolder, NotFound
from shardfs.names import safe_parts, to_bytes
from shardfs.tree.hub_rules import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.stores import Entry, Store

# Links can lead in circles. More folders, one below the other or in all, are taken for that. Guesses.
_DEEPEST, _MOST_FOLDERS = 40, 200_000
# What all patterns together may look at: some ten seconds of work. A guess.
_MOST_LOOKS = 20_000_000
# Names of files in folders that are kept, since the next pattern looks into the same ones.
_KEPT = 500_000

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class _Listing:
    """A folder: its entries as they are listed, by name, and their names in order."""

    entries: Sequence[Entry]
    by_name: dict[str, Entry]
    ordered: Sequence[str]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> _Listing:
        by_name = {entry.name: entry for entry in entries}
        return cls(entries, by_name, sorted(by_name))

    def beginning(self, prefix: str) -> Sequence[Entry]:
        """The entries whose names begin with *prefix*."""
        if not prefix:
            return self.entries
        first = bisect_left(self.ordered, prefix)
        last = bisect_left(self.ordered, prefix + "\U0010ffff", first)
        return [self.by_name[name] for name in self.ordered[first:last]]


class Walk:
    """Walks through the folders of a store, each of which is listed once for many patterns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folders = self._looks = self._kept = 0
        self._listings: dict[str, _Listing] = {}

    def matching(self, pattern: str) -> list[str]:
        """The files that a pattern names, sorted; a folder stands for all files below it.

        Hidden files and what leads outside is never matched, nor are folders `__so` and files that say something
        about data, unless the pattern names them. Raises Corrupt.
        """
        parts = safe_parts(pattern)
        if not parts:
            return []
        ignored = IGNORED - {parts[-1]}
        found = self._matching("", parts)
        names = {path for path in found if path.rpartition("/")[2] not in ignored}
        return sorted(names, key=to_bytes)

    def files(self, folder: str) -> Iterator[str]:
        """All files below *folder*. An archive is one."""
        entries = self._visible(folder).entries
        self._count(len(entries))
        for entry in entries:
            if entry.is_dir and not entry.is_archive:
                yield from self.files(entry.path)
            else:
                yield entry.path

    def _matching(self, folder: str, parts: Sequence[str]) -> Iterator[str]:
        """The files in *folder* of which the path from there on matches *parts*."""
        first, rest = parts[0], parts[1:]
        if first == "**" and rest:
            yield from self._matching(folder, rest)
        for entry in self._candidates(folder, first):
            if entry.is_dir and entry.name.startswith("__") and not first.startswith("__"):
                continue
            if first == "**":
                if entry.is_dir:
                    yield from self._matching(entry.path, parts)
                elif not rest:
                    yield entry.path
            elif entry.is_dir:
                yield from self._matching(entry.path, rest or ["**"])
            elif not rest:
                yield entry.path

    def _candidates(self, folder: str, part: str) -> Sequence[Entry]:
        """What in *folder* a part of a pattern names."""
        listing = self._visible(folder)
        if part == "**":
            found = listing.entries
        elif not has_magic(part):
            one = listing.by_name.get(part)
            found = () if one is None else (one,)
        else:
            head = _MAGIC.split(part, maxsplit=1)[0]
            near = listing.beginning(head)
            self._count(len(near))
            if part[len(head)] == "*" and not has_magic(tail := part[len(head) + 1 :]):
                least = len(head) + len(tail)  # by far the most patterns
                return [e for e in near if e.name.endswith(tail) and len(e.name) >= least]
            fits = _pattern(part).match
            return [entry for entry in near if fits(entry.name)]
        self._count(len(found))
        return found

    def _count(self, looks: int) -> None:
        self._looks += looks + 1
        if self._looks > _MOST_LOOKS:
            raise Corrupt("its patterns would have to be compared with too many files")

    def _visible(self, folder: str) -> _Listing:
        """What is in a folder, nothing where there is none, less what is hidden or leads outside."""
        known = self._listings.get(folder)
        if known is not None:
            return known
        self._folders += 1
        if folder.count("/") > _DEEPEST or self._folders > _MOST_FOLDERS:
            raise Corrupt(
                f"{folder[:99]}: too many folders, perhaps links in a circle; splits are not shown"
            )
        try:
            entries = self._store.list(folder)
        except (NotFound, NotAFolder):
            entries = []
        shown = [e for e in entries if not e.name.startswith(".") and not e.problem]
        listing = _Listing.of(shown)
        self._kept += len(shown) + 1
        if self._kept <= _KEPT:
            self._listings[folder] = listing
        return listing


@lru_cache(maxsize=1024)
def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))
