"""Arrow files and streams, Feather files, and the datasets that Hugging Face's `datasets` keeps in them."""

from __future__ import annotations

import contextlib
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from shardfs.blob import read_all
from shardfs.errors import (
    Corrupt,
    NotAFolder,
    NotFound,
    OutsideSource,
    ShardfsError,
    TooLarge,
    Unreadable,
    located,
)
from shardfs.formats.arrow.saved import INFO, LEFTOVER, STATE, is_state, parse_state
from shardfs.formats.arrow.shard import MappedShard, TableShard, is_mapping, open_table
from shardfs.formats.shared.arrow.batches import schema_of_any
from shardfs.formats.shared.features import info_features
from shardfs.formats.shared.jsontext import parse, parse_object
from shardfs.model import ShardRef
from shardfs.names import without_suffix
from shardfs.registry import suffixes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.formats.arrow.saved import SavedFile, State
    from shardfs.model import Dataset, Services, Shard
    from shardfs.stores import Entry, Store

SUFFIXES = suffixes_of("arrow")

# Files of the cache of `datasets` that hold what a transform made, and files that it has not finished.
_CACHED = re.compile(r"cache-[0-9a-f]{16}(?:_\d{5}_of_\d{5})?\.arrow", re.ASCII)
_UNFINISHED = re.compile(r".*-of-N{5}\.arrow", re.DOTALL)
# A state or description longer than this is none. A guess.
_MAX_JSON = 64 << 20


class Arrow:
    """The format `arrow`."""

    name: ClassVar[str] = "arrow"

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        if STATE not in names:
            return any(name.lower().endswith(SUFFIXES) for name in names)
        try:
            return is_state(parse(_read(store, STATE)))
        except Corrupt:  # a damaged one says so where its files lie beside it
            return INFO in names

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> Dataset:
        if STATE in names:
            with located(STATE):
                state = parse_state(_read(store, STATE))
            return SavedDataset(store, state, services)
        return ArrowDataset(store, names, services)


class _Described:
    """What datasets have in common: a folder, and a description that may lie in it."""

    format = Arrow.name

    def __init__(self, store: Store, services: Services) -> None:
        self._store, self._services = store, services

    @cached_property
    def _info(self) -> Mapping[str, Any]:
        """What dataset_info.json says, nothing where there is none."""
        try:
            with located(INFO):
                return parse_object(_read(self._store, INFO))
        except NotFound:
            return {}
        except Corrupt as error:
            self._services.report(error)
            return {}

    def _features(self) -> Mapping[str, Any]:
        return info_features(self._info)

    def _table(self, entry: Entry) -> TableShard:
        table = open_table(self._store, entry, self._services)
        return TableShard(table, self._features, self._services)


class ArrowDataset(_Described):
    """Files, each a shard."""

    def __init__(self, store: Store, names: Sequence[str], services: Services) -> None:
        super().__init__(store, services)
        files = [name for name in names if name.lower().endswith(SUFFIXES)]
        self._leftovers = frozenset(name for name in files if self._is_leftover(name))
        chosen = set(files) - self._leftovers
        self._entries = [entry for entry in store.list() if entry.path in chosen]
        self._owned = self._leftovers.union(entry.path for entry in self._entries)
        self.shards = tuple(
            ShardRef(without_suffix(e.path, SUFFIXES), e.path, None, e.mtime_ns, e.version)
            for e in self._entries
        )

    def _is_leftover(self, name: str) -> bool:
        """Whether a file is no data: unfinished, or an indices mapping that nothing says the table of."""
        if not _CACHED.fullmatch(name):
            return _UNFINISHED.fullmatch(name) is not None
        with contextlib.suppress(ShardfsError):  # that shard says so
            return is_mapping(schema_of_any(self._store.open(name)))
        return False

    def open_shard(self, index: int, /) -> Shard:
        return self._table(self._entries[index])

    def owns(self, path: str, /) -> bool:
        return path in self._owned

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards)}


class SavedDataset(_Described):
    """Files in the order of a state.json; with a mapping, one shard of all of them."""

    def __init__(self, store: Store, state: State, services: Services) -> None:
        super().__init__(store, services)
        self._state = state
        self._owned = frozenset(file.path for file in (*state.files, *state.indices))
        files = state.files
        others: Sequence[SavedFile] = ()
        if state.indices:
            files, others = files[:1], (*files[1:], *state.indices)
        paths = tuple(file.path for file in others if file.path is not None)
        self.shards = tuple(self._ref(file, paths) for file in files)

    def _ref(self, file: SavedFile, others: tuple[str, ...]) -> ShardRef:
        base = file.path or file.name.rpartition("/")[2]
        name = without_suffix(base, SUFFIXES)
        with contextlib.suppress(NotFound, NotAFolder):  # it says so when it is opened
            if file.path is not None:
                entry = self._store.stat(file.path)
                return ShardRef(name, entry.path, None, entry.mtime_ns, entry.version, others)
        return ShardRef(name, "", None, 0, "", others)

    def open_shard(self, index: int, /) -> Shard:
        if not self._state.indices:
            return self._table(self._entry(self._state.files[index]))
        mappings = [
            open_table(self._store, self._entry(file), self._services)
            for file in self._state.indices
        ]
        tables = [self._table(self._entry(file)) for file in self._state.files]
        return MappedShard(mappings, tables)

    def _entry(self, file: SavedFile) -> Entry:
        if file.path is None:
            raise OutsideSource(f"{STATE} names {file.name!r}, which leads outside of the source")
        try:
            return self._store.stat(file.path)
        except (NotFound, NotAFolder) as error:
            raise Unreadable(f"{STATE} names {file.name!r}, but it is missing") from error

    def owns(self, path: str, /) -> bool:
        return path in self._owned or LEFTOVER.fullmatch(path) is not None

    def info(self) -> Mapping[str, object]:
        return {"shards": len(self.shards), "features": dict(self._features())}


def _read(store: Store, name: str) -> bytes:
    """The content of a JSON file. Raises TooLarge."""
    blob = store.open(name)
    if blob.size() > _MAX_JSON:
        raise TooLarge(f"has {blob.size()} bytes; more than {_MAX_JSON} are no description")
    return bytes(read_all(blob))
