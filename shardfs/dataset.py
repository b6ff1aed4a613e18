"""A source as records for programs in Python: `shardfs.open(SRC)`.

An adapter over the tree, as the mount is: the same shards, records, names and faults, but values in place of files.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, overload

from shardfs.blob import read_exactly
from shardfs.errors import NotFound, UsageError, in_python
from shardfs.mounting import open_tree
from shardfs.names import split_extension
from shardfs.tree.inodes import is_folder, is_special, split_shard
from shardfs.tree.lines import record_object
from shardfs.views.values import python_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pyarrow

    from shardfs.blob import Blob
    from shardfs.options import Options
    from shardfs.tree.records import OpenShard, ShownField
    from shardfs.tree.tree import Tree


class Media:
    """What a program opens, a picture say: where it is and how large. Its bytes are read when they are asked for.

    Attributes:
        path: where it stands in a mount of the source.
    """

    __slots__ = ("_blob", "path")

    def __init__(self, path: str, blob: Blob) -> None:
        self.path, self._blob = path, blob

    def __repr__(self) -> str:
        return f"<Media {self.path}>"

    @property
    def extension(self) -> str:
        """With its dot: `.jpg`."""
        return split_extension(self.path.rpartition("/")[2])[1]

    @property
    @in_python()
    def size(self) -> int:
        """Bytes of it. Raises what is wrong with one that can't be read."""
        return self._blob.size()

    @in_python()
    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Its bytes from *offset*: *length* of them, or all to the end. Raises what is wrong with it."""
        size = self.size
        stop = size if length is None else min(offset + length, size)
        return bytes(read_exactly(self._blob, offset, max(stop - offset, 0), self.path))


class Record(Mapping[str, Any]):
    """A record: its values by the names of the fields, each read when it is asked for.

    A value is a str, int, float, bool, list, dict, datetime, Decimal... or a ``Media``; None for a null.

    Attributes:
        shard: the shard that it is in.
        index: its number in the shard.
    """

    __slots__ = ("_fields", "_only", "index", "shard")

    def __init__(self, shard: Shard, index: int, only: Collection[str] = ()) -> None:
        self.shard, self.index, self._only = shard, index, only
        self._fields: dict[str, ShownField] | None = None

    def __repr__(self) -> str:
        return f"<Record {self.path}>"

    @property
    @in_python()
    def key(self) -> str:
        """Its name: the index with zeros before it, or the key that the dataset gives it."""
        return self.shard.opened.shard.key(self.index)

    @property
    def path(self) -> str:
        """Where its folder stands in a mount of the source."""
        return f"{self.shard.path}/{self.shard.opened.layout.path(self.index)}".rstrip("/")

    @in_python()
    def __getitem__(self, name: str) -> Any:
        found = self._known().get(name)
        if found is None:
            if name not in self._names():
                raise KeyError(name)
            return None
        return python_value(found.field, self._media(found))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @in_python()
    def _names(self) -> Collection[str]:
        columns = self.shard.columns
        return [name for name in columns if name in self._only] if self._only else columns

    @in_python()
    def as_json(self) -> dict[str, Any]:
        """The record as a line of `records.jsonl` has it: `{"key": ..., "index": ..., "fields": {...}}`."""
        return record_object(self.shard.opened, self.shard.path, self.index, self._only)

    @in_python()
    def shown(self) -> Sequence[ShownField]:
        """Its fields and the files that show them. Raises a ShardfsError where it can't be read."""
        return self.shard.opened.record(self.index, self._only)

    def _known(self) -> dict[str, ShownField]:
        if self._fields is None:
            self._fields = {each.field.name: each for each in reversed(self.shown())}
        return self._fields

    def _media(self, shown: ShownField) -> Callable[[int], Media]:
        return lambda number: Media(f"{self.path}/{shown.names[number]}", shown.files[number].blob)


class Shard(Sequence[Record]):
    """Records that are stored together. Goes to another process as its source and path, and is opened there anew.

    Attributes:
        path: where its folder stands in a mount of the source.
    """

    def __init__(self, dataset: Dataset, path: str, number: int | None = None) -> None:
        self._dataset, self.path, self._number = dataset, path, number
        self._home = os.getpid()

    def __repr__(self) -> str:
        return f"<Shard {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _shard_again, (self._dataset.source, self._dataset.options, self.path)

    @property
    @in_python()
    def opened(self) -> OpenShard:
        """What is behind it. Raises a ShardfsError where it can't be read."""
        tree = self._dataset.tree
        if self._number is None or self._home != os.getpid():
            self._number, self._home = _number(tree, self.path), os.getpid()
        return tree.shard(self._number)

    @property
    @in_python()
    def columns(self) -> Sequence[str]:
        """The names of the fields that its records can have; waits for the end of a scan."""
        return self.opened.columns

    @in_python()
    def __len__(self) -> int:
        return len(self.opened.shard)

    @overload
    def __getitem__(self, key: int | str) -> Record: ...

    @overload
    def __getitem__(self, key: slice) -> list[Record]: ...

    @in_python()
    def __getitem__(self, key: int | str | slice) -> Record | list[Record]:
        """A record by its number or its key, or those of a slice. Raises IndexError, KeyError."""
        if isinstance(key, slice):
            return [Record(self, index) for index in range(*key.indices(len(self)))]
        if isinstance(key, str):
            found = self.opened.shard.find(key)
            if found is None:
                raise KeyError(key)
            return Record(self, found)
        index = key + len(self) if key < 0 else key
        if index < 0 or not self.opened.shard.has(index):
            raise IndexError(f"{self.path}: record {key}")
        return Record(self, index)

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, fields: Iterable[str] = ()) -> Iterator[Record]:
        """All records in order, as they are found; with *fields* of these alone. Raises UsageError for others."""
        only, index = frozenset(fields), 0
        self.check(only)
        while self._has(index):
            yield Record(self, index, only)
            index += 1

    @in_python()
    def _has(self, index: int) -> bool:
        return self.opened.shard.has(index)

    @in_python()
    def check(self, fields: Collection[str]) -> None:
        """Raise UsageError where its records can't have one of *fields*."""
        unknown = sorted(set(fields).difference(self.columns)) if fields else []
        if unknown:
            there = ", ".join(self.columns)
            raise UsageError(f"{self.path}: has no field {', '.join(unknown)}; there are {there}")


class Dataset:
    """All records of a source, in order. Works on in a forked process, which opens the source anew.

    Attributes:
        source: what was opened.
        options: how.
    """

    @in_python()
    def __init__(self, source: str, options: Options) -> None:
        """Raises ShardfsError: there is no such source, or nothing in it that can be shown."""
        self.source, self.options = source, options
        self._lock = threading.Lock()
        self._tree, self._home = open_tree(source, options), os.getpid()
        self._shards: list[Shard] | None = None
        self._ends: list[int] = []

    def __repr__(self) -> str:
        return f"<Dataset {self.source}>"

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections. What was read before stays."""
        self.tree.close()

    @property
    @in_python()
    def tree(self) -> Tree:
        """The same as folders and files."""
        if self._home != os.getpid():  # forked: threads and connections stayed behind
            self._tree, self._home, self._lock = (
                open_tree(self.source, self.options),
                os.getpid(),
                threading.Lock(),
            )
        return self._tree

    @property
    @in_python()
    def shards(self) -> Sequence[Shard]:
        """In the order of the listing. Looks into all folders of the source, and into no shard."""
        with self._lock:
            if self._shards is None:
                found = self.tree.shards()
                self._shards = [Shard(self, path, number) for path, number in found]
            return self._shards

    @property
    @in_python()
    def fields(self) -> Mapping[str, str]:
        """The types of the fields by their names, as the format calls them; of the first dataset that has any."""
        survey = self.tree.survey
        survey.look(lambda: bool(survey.datasets))
        found = next(filter(None, map(survey.fields, survey.datasets)), ())
        return {info.name: info.type for info in found}

    def __len__(self) -> int:
        """How many records there are: by an index at once, else by a look into each shard."""
        return self._counted()[-1] if self.shards else 0

    @in_python()
    def _counted(self) -> list[int]:
        """The numbers behind the last record of each shard."""
        if not self._ends:
            counts = [self.tree.records(_number(self.tree, s.path)) for s in self.shards]
            self._ends = list(accumulate(counts))
        return self._ends

    def __getitem__(self, key: int | str) -> Record:
        """A record by its number in the dataset, or by its path. Raises IndexError, KeyError."""
        if isinstance(key, str):
            return self._at(key)
        index = key + len(self) if key < 0 else key
        if not 0 <= index < len(self):
            raise IndexError(f"{self.source}: record {key} of {len(self)}")
        ends = self._counted()
        at = bisect_right(ends, index)
        return self.shards[at][index - (ends[at - 1] if at else 0)]

    @in_python()
    def _at(self, path: str) -> Record:
        for shard in self.shards:
            if path.startswith(f"{shard.path}/"):
                return shard[path.removeprefix(f"{shard.path}/")]
        raise KeyError(path)

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, fields: Iterable[str] = ()) -> Iterator[Record]:
        """All records in order; with *fields* of these alone. Raises UsageError for others."""
        chosen = tuple(fields)
        for shard in self.shards:
            yield from shard.records(chosen)

    def arrow(
        self, fields: Iterable[str] = (), media: Literal["reference", "bytes"] = "reference"
    ) -> pyarrow.RecordBatchReader:
        """All records as a table, a column a field, read as somebody asks for more.

        Media are `{"file": PATH, "bytes": SIZE}`, or with *media* "bytes" what is in them; JSON is text; what is
        damaged is null. Raises UsageError for fields that the first shard hasn't.
        """
        from shardfs.tree.batches import Tables  # here, since it imports Arrow

        columns = list(dict.fromkeys(fields))
        if self.shards:
            columns = columns or list(self.shards[0].columns)
            self.shards[0].check(columns)
        tables = Tables(columns, media, self.tree.note)
        return tables.read((shard.path, shard.opened) for shard in self.shards)


def _number(tree: Tree, path: str) -> int:
    """The number of the shard at *path*. Raises NotFound."""
    ino = (tree.root / path).attr.ino
    number, place = (-1, 0) if is_folder(ino) or is_special(ino) else split_shard(ino)
    if number < 0 or place:
        raise NotFound(f"{path}: no shard")
    return number


@lru_cache(maxsize=8)
def _opened(source: str, options: Options, process: int) -> Dataset:
    """One for all shards of a source that come to a process."""
    return Dataset(source, options)


def _shard_again(source: str, options: Options, path: str) -> Shard:
    return Shard(_opened(source, options, os.getpid()), path)
