"""Names and sizes of all files in a shard, remembered where learning them took decompression.

While the records of such a shard are looked at for the first time, a ``Recorder`` writes along; when it has seen all of
them, the ``Listing`` goes to the index cache. A later mount then lists the shard without decompressing it.

    u32 length of the names | names, JSON: [[name, column, fixed], ...] | u32 records | u32 files
    u32 first file of each record, and one more | u32 name of each file | u64 size of each file
"""

from __future__ import annotations

import json
import struct
import threading
from array import array
from typing import TYPE_CHECKING

from shardfs.blob import may_wait, read_exactly
from shardfs.errors import Corrupt, Unreadable, WouldBlock
from shardfs.names import NAME_MAX, escape, to_bytes
from shardfs.tree.layouts import NamedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.blob import Blob

# Part of the key of every listing: to be counted up when names or sizes of files come out otherwise than before.
VERSION = 3

_COUNTS = struct.Struct("<II")


class Recorder:
    """Notes the files of each record once; says what to keep when it has seen all records."""

    def __init__(self, records: int, save: Callable[[bytes], None]) -> None:
        self._save = save
        self._names: dict[tuple[str, str, bool], int] = {}
        self._starts, self._counts = array("q", [-1]) * records, array("I", [0]) * records
        self._name_of, self._sizes = array("I"), array("Q")
        self._missing = records
        self._lock = threading.Lock()

    def note(self, record: int, files: Sequence[NamedFile]) -> None:
        """Take down a record, once its sizes are known. Raises what is wrong with a file's size, and WouldBlock."""
        rows = [((file.name, file.column, file.fixed), file.blob.size()) for file in files]
        with self._lock:
            if not 0 <= record < len(self._starts) or self._starts[record] >= 0:
                return
            if self._missing == 1 and not may_wait():
                raise WouldBlock  # what follows is written to a disk
            self._starts[record], self._counts[record] = len(self._sizes), len(rows)
            for key, size in rows:
                self._name_of.append(self._names.setdefault(key, len(self._names)))
                self._sizes.append(size)
            self._missing -= 1
            if self._missing:
                return
        self._save(self._content())
        self._name_of, self._sizes = array("I"), array("Q")

    def _content(self) -> bytes:
        first, order = array("I", [0]), array("I")
        for start, count in zip(self._starts, self._counts, strict=True):
            order.extend(range(start, start + count))
            first.append(len(order))
        names = json.dumps(list(self._names)).encode("ascii")
        return b"".join(
            [
                struct.pack("<I", len(names)) + names,
                _COUNTS.pack(len(self._starts), len(order)),
                first.tobytes(),
                array("I", [self._name_of[file] for file in order]).tobytes(),
                array("Q", [self._sizes[file] for file in order]).tobytes(),
            ]
        )


class Listing:
    """Names and sizes by record, read from a blob as they are asked for. Raises Corrupt where it is no such blob."""

    def __init__(self, blob: Blob) -> None:
        (length,) = struct.unpack("<I", read_exactly(blob, 0, 4, "listing"))
        self._names = _names(read_exactly(blob, 4, length, "listing"))
        counts = read_exactly(blob, 4 + length, _COUNTS.size, "listing")
        self.records, files = _COUNTS.unpack(counts)
        self._blob, self._first = blob, 4 + length + _COUNTS.size
        self._name_of = self._first + 4 * (self.records + 1)
        self._sizes = self._name_of + 4 * files
        if blob.size() != self._sizes + 8 * files:
            raise Corrupt(f"listing of {blob.size()} bytes")

    def files(self, record: int, find: Callable[[int], Blob]) -> list[NamedFile]:
        """The files of a record; *find* gives the content of its n-th one, when it is read."""
        start, stop = struct.unpack("<II", self._read(self._first + 4 * record, 8))
        count = stop - start
        if count < 0:
            raise Corrupt(f"listing of record {record}")
        names = struct.unpack(f"<{count}I", self._read(self._name_of + 4 * start, 4 * count))
        sizes = struct.unpack(f"<{count}Q", self._read(self._sizes + 8 * start, 8 * count))
        if len(set(names)) != count or max(names, default=-1) >= len(self._names):
            raise Corrupt(f"listing of record {record}")
        return [
            NamedFile(name, Remembered(size, find, position), column, fixed)
            for position, (size, (name, column, fixed)) in enumerate(
                zip(sizes, (self._names[number] for number in names), strict=True)
            )
        ]

    def _read(self, offset: int, length: int) -> memoryview:
        return read_exactly(self._blob, offset, length, "listing")


def _names(data: memoryview) -> list[tuple[str, str, bool]]:
    """(name, column, fixed) of all files."""
    try:
        rows = json.loads(bytes(data))
        names = [(name, column, fixed) for name, column, fixed in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise Corrupt("listing without names") from error
    for name, column, fixed in names:
        legal = isinstance(name, str) and escape(name) == name and len(to_bytes(name)) <= NAME_MAX
        if not (legal and isinstance(column, str) and isinstance(fixed, bool)):
            raise Corrupt(f"listing with a file named {name!r}")
    return names


class Remembered:
    """A blob whose size is known and whose bytes are looked for when they are read."""

    __slots__ = ("_blob", "_find", "_position", "_size")

    def __init__(self, size: int, find: Callable[[int], Blob], position: int) -> None:
        self._size, self._find, self._position = size, find, position
        self._blob: Blob | None = None

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        if self._blob is None:
            blob = self._find(self._position)
            if blob.size() != self._size:
                raise Unreadable("is not what the index cache says: use --rebuild-index")
            self._blob = blob
        return self._blob.read(offset, length)
