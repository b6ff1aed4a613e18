"""Which config and split the user asked for, and what there is of either."""

from __future__ import annotations

from glob import has_magic
from typing import TYPE_CHECKING

from shardfs.errors import ShardfsError
from shardfs.registry import FORMATS
from shardfs.tree.hub_rules import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from shardfs.options import Options
    from shardfs.stores import Entry, Store
    from shardfs.tree.hub_rules import Split

INDEXES = frozenset(name for row in FORMATS for name in row.markers if not has_magic(name))
"""Files that make a dataset of a folder, whatever else is in it."""

# Folders that are looked into to see whether they are splits. A guess: nobody has more splits.
_MOST_FOLDERS = 256


class Choice:
    """The config and split that the user asked for, "" for all, and those that were met so far."""

    def __init__(self, config: str = "", split: str = "") -> None:
        self.config, self.split = config, split
        self._met: dict[tuple[str, str], None] = {}
        self.found = not (config or split)
        """Whether there is what was asked for."""

    @classmethod
    def of(cls, options: Options) -> Choice:
        return cls(options.config, options.split)

    @property
    def met(self) -> list[tuple[str, str]]:
        """(config, split) of all that were met, in their order; the config of a folder is ""."""
        return list(self._met)

    def among(self, splits: Sequence[Split]) -> tuple[list[Split], list[Split]]:
        """Those of the declared *splits* that the user asked for, and the rest."""
        chosen: list[Split] = []
        others: list[Split] = []
        for split in splits:
            (chosen if self._take(split.config, split.name) else others).append(split)
        return chosen, others

    def hides(
        self, store: Store, entries: Sequence[Entry], declared: Collection[str]
    ) -> frozenset[str] | None:
        """The folders among *entries* that are splits which the user didn't ask for; None: no folder is a split.

        Those are splits that the source has *declared*, else folders with an index of their own, or called as splits
        are: that is how MDS and LitData keep theirs.
        """
        folders = [
            entry.name for entry in entries if entry.is_dir and not entry.name.startswith(".")
        ]
        if declared:
            splits = [name for name in declared if name in folders]
        elif self.split:
            known = {self.split, *KEYWORDS}
            few = len(folders) <= _MOST_FOLDERS
            splits = [n for n in folders if n in known or (few and _is_indexed(store, n))]
        else:
            return None
        hidden = [name for name in splits if not self._take("", name)]
        return frozenset(hidden) if splits else None

    def _take(self, config: str, split: str) -> bool:
        self._met[config, split] = None
        is_it = self.config in ("", config) and self.split in ("", split)
        self.found |= is_it
        return is_it


def _is_indexed(store: Store, folder: str) -> bool:
    """Whether an index makes a dataset of a folder."""
    try:
        return any(entry.name in INDEXES for entry in store.list(folder))
    except ShardfsError:  # whoever looks into it is told
        return False
