"""What lies in a tree as a whole: which datasets, of how many records, with which fields.

Folders are looked into nearest first, and only as far as somebody needs to know.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from shardfs.errors import NoKey, ShardfsError
from shardfs.model import FieldInfo
from shardfs.tree.inodes import is_folder, split_folder
from shardfs.tree.samples import example, rows, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from shardfs.model import Dataset
    from shardfs.tree.folders import FolderSpace
    from shardfs.tree.shards import ShardSpace

# How far is looked unless all is asked for. Guesses: what a person waits for, and more folders than most sources have.
MOST_FOLDERS, PATIENCE = 1000, 10.0
# Shards of a dataset of which the fields are asked: files beside each other may have nothing to do with one another.
_MOST_SHARDS = 32
# Shards that are opened for their counts where that is a matter of one read each.
_MOST_COUNTED = 1000
# Records that tell whether a key fits: one may be damaged.
_TRIES = 2

# Formats whose shards say at their end or beginning how many records they have.
_COUNTED = frozenset({"parquet", "litdata-parquet", "arrow", "mds"})


class Known(NamedTuple):
    """A dataset of the tree, and the number of its first shard."""

    dataset: Dataset
    first: int
    url: str


class Survey:
    """Looks around in a tree. For one thread."""

    def __init__(self, folders: FolderSpace, shards: ShardSpace) -> None:
        self._folders, self._shards = folders, shards
        self._todo = deque([0])
        self._fields: dict[int, Sequence[FieldInfo]] = {}
        self._examples: dict[int, Mapping[str, str]] = {}
        self._counts: dict[int, int | None] = {}
        self.files = 0
        """Files that pass through, in the folders that were looked into."""

    # --- looking around ---

    @property
    def complete(self) -> bool:
        """Whether all folders were looked into."""
        return not self._todo

    def look(
        self,
        enough: Callable[[], bool] = lambda: False,
        *,
        most: float = MOST_FOLDERS,
        seconds: float = PATIENCE,
        report: bool = False,
        archives: bool = True,
    ) -> None:
        """Look into one folder after another until that is enough, or for a while; *report* what is wrong with any.

        Without *archives* these stay closed, since a look into one reads its directory, maybe from far away.
        """
        deadline = time.monotonic() + seconds
        closed: list[int] = []
        while not enough() and self._todo and most > 0 and time.monotonic() < deadline:
            most -= 1
            number = self._todo.popleft()
            if not archives and self._folders.is_archive(number):
                closed.append(number)
                continue
            try:
                content = self._folders.content(number)
            except ShardfsError as error:
                if report:
                    self._shards.journal.note(error)
                continue
            self.files += len(content.files)
            inside = (content.folders[name] for name in content.names)
            self._todo += [split_folder(ino) for ino in inside if is_folder(ino)]
        self._todo += closed

    @property
    def datasets(self) -> Sequence[Known]:
        """Those that were found so far."""
        return [Known(*each) for each in self._shards.datasets()]

    # --- fields ---

    def field_names(self, known: Known) -> Iterator[Sequence[str]]:
        """Names of a dataset's fields, as one shard after another tells them; none where none can be opened."""
        declared = known.dataset.info().get("fields")
        if isinstance(declared, list) and declared:
            yield [str(field["name"]) for field in declared]
            return
        deadline = time.monotonic() + PATIENCE
        for number in range(min(len(known.dataset.shards), _MOST_SHARDS)):
            with suppress(ShardfsError):  # which the journal has
                shard = self._shards.shard(known.first + number).shard
                yield [field.name for field in shard.schema()]
            if time.monotonic() > deadline:
                return

    def fields(self, known: Known) -> Sequence[FieldInfo]:
        """The fields of a dataset, as its index or its first shard that can be opened tells them."""
        if known.first not in self._fields:
            self._fields[known.first] = self._find_fields(known)
            self._examples[known.first] = self._find_examples(known)
        return self._fields[known.first]

    def _find_examples(self, known: Known) -> Mapping[str, str]:
        """What the fields of a first record hold, in a few words each."""
        for number in range(min(len(known.dataset.shards), _TRIES)):
            with suppress(ShardfsError):
                shard = self._shards.shard(known.first + number)
                if shard.shard.has(0):
                    files = {file.column: file for file in reversed(shard.files(0))}
                    return {name: example(file) for name, file in files.items()}
        return {}

    def _find_fields(self, known: Known) -> Sequence[FieldInfo]:
        declared = known.dataset.info().get("fields")
        if isinstance(declared, list) and declared:
            return [FieldInfo(f["name"], f.get("type", ""), f.get("nullable")) for f in declared]
        for number in range(min(len(known.dataset.shards), _TRIES)):
            with suppress(ShardfsError):
                return typed(self._shards.shard(known.first + number).shard)
        return ()

    # --- keys ---

    @staticmethod
    def is_encrypted(known: Known) -> bool:
        return bool(known.dataset.info().get("encryption"))

    def locked(self, known: Known) -> NoKey | None:
        """Why an encrypted dataset can't be read with what the user gave; None where some of it can be."""
        why: NoKey | None = None
        for number in range(min(len(known.dataset.shards), _TRIES)):
            try:
                shard = self._shards.shard(known.first + number).shard
                for record in range(min(len(shard), _TRIES)):
                    for field in shard.fields(record):
                        field.data.size()
                    return None
            except NoKey as error:
                why = error
            except ShardfsError:
                continue
        return why

    # --- counts ---

    def count(
        self,
        *,
        all_of_it: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Count the records of what was found: where that is cheap, or all."""
        deadline = time.monotonic() + PATIENCE
        todo = [
            number
            for known in self.datasets
            if all_of_it or known.dataset.format in _COUNTED
            for number in range(known.first, known.first + len(known.dataset.shards))
            if self._shards.ref(number).records is None and number not in self._counts
        ]
        if not all_of_it:
            todo = todo if len(todo) <= _MOST_COUNTED else []
        for done, number in enumerate(todo):
            if progress is not None:
                progress(done, len(todo))
            if not all_of_it and time.monotonic() > deadline:
                return
            try:
                self._counts[number] = len(self._shards.shard(number).shard)
            except ShardfsError:  # which the journal has
                self._counts[number] = None
        if progress is not None and todo:
            progress(len(todo), len(todo))

    @property
    def uncountable(self) -> int:
        """Shards that could not be counted since they can't be read."""
        return sum(1 for count in self._counts.values() if count is None)

    def records(self, known: Known) -> int | None:
        """How many records a dataset has in shards that can be read; None where nobody has counted yet."""
        total = 0
        for number, ref in enumerate(known.dataset.shards, known.first):
            if ref.records is not None:
                total += ref.records
            elif number in self._counts:
                total += self._counts[number] or 0
            else:
                return None
        return total

    # --- in all ---

    def facts(self) -> dict[str, Any]:
        """What is known so far, as values for JSON; docs/info.md says what each means."""
        datasets = self.datasets
        counts = [self.records(known) for known in datasets]
        found = [self._facts(*pair) for pair in zip(datasets, counts, strict=True)]
        met = [{"config": config, "split": split} for config, split in self._folders.choice.met]
        return {
            "complete": self.complete,
            "shards": self._shards.count,
            "records": None if None in counts else sum(filter(None, counts)),
            "bytes": self._folders.total_size,
            "files": self.files,
            "splits": met,
            "datasets": found,
        }

    def _facts(self, known: Known, records: int | None) -> Mapping[str, object]:
        info = {**known.dataset.info()}
        fields = self._fields.get(known.first)
        declared = info.pop("fields", None) if fields is None else fields
        return {
            "format": known.dataset.format,
            "url": known.url,
            **info,
            "shards": len(known.dataset.shards),
            "records": records,
            "fields": rows(declared or (), self._examples.get(known.first, {})),
        }
