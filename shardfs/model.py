"""The protocols between the layers, and the values that pass through them.

A ``Store`` is named blobs (stores.py). A ``Format`` makes a ``Dataset`` of some of them: shards of records of fields. A
``Field`` is a blob plus what its bytes mean, its ``Kind``; a view turns that into files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.errors import ShardfsError
    from shardfs.options import Options
    from shardfs.stores import Entry, Store

# --- what the bytes of a field mean ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """What the stored bytes of a field are; the subclasses are all there are."""


@dataclass(frozen=True, slots=True)
class Plain(Kind):
    """Bytes that stand as they are under *suffix*, without a look into them: text, pickles, unknown types."""

    suffix: str


@dataclass(frozen=True, slots=True)
class Encoded(Kind):
    """Bytes in some file format: *suffix* as declared ("" for undeclared), overruled by a specific signature.

    The signature is looked for in the content. *hint* is a file name stored beside the bytes; it counts where
    neither a declaration nor the content tells.
    """

    suffix: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Scalar(Kind):
    """One number or truth value in binary; *dtype* as in ``numpy.dtype.str`` (`<i8`, `>f4`, `|b1`)."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Array(Kind):
    """The elements of an array in C order.

    *dtype* is as in ``numpy.dtype.str``, or a name that .npy lacks (`bfloat16`, `float8_e4m3fn`).
    The elements begin *skip* bytes into the stored bytes, behind a header of the format's own, and
    must fill the rest.
    """

    dtype: str
    shape: tuple[int, ...]
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Pixels(Kind):
    """A raw Pillow image as LitData and MDS store it: u32 width, height, len(mode), mode, pixels."""


@dataclass(frozen=True, slots=True)
class Items(Kind):
    """Several values, each a file of its own: (start, length) in the stored bytes, all of one kind; None for a null."""

    kind: Kind
    spans: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Rendered(Kind):
    """Bytes that become a file only by *render*: stored bytes to the content of a file `.suffix`.

    *render* must be deterministic and may raise Corrupt. *logical* names the type for people.
    """

    suffix: str
    render: Callable[[memoryview], bytes]
    logical: str = ""


class Field(NamedTuple):
    """A value of a record: its *name* in the dataset, what its bytes mean, and the bytes.

    *filename* is the file name that it must have, where the dataset itself names files (WebDataset members).
    """

    name: str
    kind: Kind
    data: Blob
    filename: str | None = None


class FieldInfo(NamedTuple):
    """What is known of a field of all records: its name, what the format calls its type, whether it may be null.

    *type* is "" and *nullable* is None where only a look at records would tell.
    """

    name: str
    type: str = ""
    nullable: bool | None = None


class File(NamedTuple):
    """What a view makes of a field: a file *stem* + *extension* (stem not escaped yet) of *blob*."""

    stem: str
    extension: str
    blob: Blob


class View(Protocol):
    """Turns fields of one kind into files: a function."""

    def __call__(self, field: Field, /) -> Sequence[File] | None:
        """The files that show *field*; None: the bytes are not what the kind says, show them raw."""
        ...


# --- datasets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardRef:
    """A shard before it is opened.

    Attributes:
        name: its folder in the tree: the file name less the format's suffixes; parts before a ``/`` are folders.
        file: the path of its file in the store, "" where no single file is the shard's.
        records: how many records it holds by the index, None where only the shard knows.
        mtime_ns: the file's time of change.
        version: the file's version, as in Entry.
        others: the paths of more files that it is made of.
    """

    name: str
    file: str
    records: int | None
    mtime_ns: int
    version: str
    others: tuple[str, ...] = ()


class Shard(Protocol):
    """A folder of records. Immutable and thread-safe; reads in it obey ``blob.no_wait``."""

    @property
    def columns(self) -> Sequence[str]:
        """The names that fields of its records can have, in order."""
        ...

    def schema(self) -> Sequence[FieldInfo]:
        """The fields that its records can have, as far as is known without waiting for the end of a scan."""
        ...

    @property
    def costly(self) -> bool:
        """Whether the sizes of its fields take work (decompression) that is worth remembering."""
        ...

    @property
    def nested(self) -> bool:
        """Whether keys may have folders in them."""
        ...

    @property
    def capacity(self) -> int:
        """How many records and loose files there can be at most; known without a scan."""
        ...

    @property
    def loose(self) -> int:
        """How many record numbers from ``len`` on stand for files without a key of their own.

        Their key is the path of the folder that the files stand in.
        """
        ...

    def __len__(self) -> int:
        """How many records there are. A shard that is scanned for them waits for the end of the scan."""
        ...

    def has(self, index: int, /) -> bool:
        """Whether there is a record of that number; waits no longer than it takes to find it."""
        ...

    def key(self, index: int, /) -> str:
        """The name of a record's folder, not escaped; parts before a ``/`` are folders."""
        ...

    def find(self, key: str, /) -> int | None:
        """The index of the record with that key; waits no longer than it takes to find it."""
        ...

    def fields(self, index: int, /) -> Sequence[Field]:
        """The fields of a record, in storage order; one that can't be read has a ``Broken`` blob.

        Raises Corrupt where nothing of the record can be read.
        """
        ...

    def early(self, index: int, name: str, /) -> Sequence[Field] | None:
        """While records are still being found: the fields of a record up to the one whose file is *name*.

        Waits no longer than it takes to find that. None where all fields of the record are known.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds open. Blobs handed out before go on working."""
        ...


class Dataset(Protocol):
    """Shards in order."""

    format: str

    @property
    def shards(self) -> Sequence[ShardRef]: ...

    def open_shard(self, index: int, /) -> Shard:
        """The shard, opened on the first look inside. Raises a ShardfsError where it can't be read."""
        ...

    def owns(self, path: str, /) -> bool:
        """Whether the file at *path* is shown by a shard or is a leftover, so that it is not shown itself."""
        ...

    def info(self) -> Mapping[str, object]:
        """What is known of it without opening a shard (schema, counts, writer); values fit for JSON."""
        ...


@dataclass(frozen=True, slots=True)
class Parameters:
    """How a source says that its files are to be read, in terms of the readers of `datasets`; nobody has checked it.

    *place* says where that stands, for messages.
    """

    place: str
    values: Mapping[str, object]


NO_PARAMETERS = Parameters("", {})


class Services(Protocol):
    """What a format may ask of the program around it. Caches and budgets stay behind it."""

    @property
    def options(self) -> Options: ...

    @property
    def parameters(self) -> Parameters:
        """What the source declares of how the files that are opened now are to be read."""
        ...

    def inflate(self, blob: Blob, codec: str, size: int | None, /) -> Blob:
        """The decompressed bytes of *blob*, made as far as they are read.

        *size* is what they must come to, exactly; None where only decompression tells.
        Reads raise Corrupt where the stream is damaged or has another size, TooLarge beyond the limits.
        """
        ...

    def unpack(self, store: Store, entry: Entry, codec: str, /) -> Blob:
        """The decompressed bytes of a whole file of any length, readable at any offset in little memory.

        The first pass over it goes at the pace of decompression; what makes later seeks cheap is
        kept on disk. Its size is known only when the end was reached once: until then ``size``
        waits, and a read is short only where the end is. Reads raise Corrupt where the stream is
        damaged, which may be behind bytes that were right.
        """
        ...

    def derive(self, build: Callable[[], bytes], /) -> Blob:
        """The bytes that *build* computes, at the first use; kept while memory allows, then computed again."""
        ...

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        """The bytes that *build* computes of the file *entry* in *store*, or has computed before.

        They are kept in the index cache on disk, under the file's place and version and under
        *what*, which names and numbers the layout of the bytes, so that a shardfs with another
        layout does not take them for its own. *build* may raise Spoilt to say that it can't compute
        them; so do reads of what turns out to be damaged then.
        """
        ...

    def report(self, error: ShardfsError, /) -> None:
        """Tell the user, once, of a fault that does not stop what is being done."""
        ...


class Format(Protocol):
    """Makes datasets of files."""

    name: ClassVar[str]

    @classmethod
    def detect(cls, store: Store, names: Sequence[str], /) -> bool:
        """Whether the files *names* at the top of *store* are such a dataset, by names and a glance inside."""
        ...

    @classmethod
    def open(cls, store: Store, names: Sequence[str], services: Services, /) -> Dataset:
        """The dataset in the files *names*. Reads indexes only. Raises Corrupt, Unsupported."""
        ...


class _Columned(Protocol):
    @property
    def columns(self) -> Sequence[str]: ...


class NumberedKeys:
    """Keys for shards whose records are named by their index, zero-padded to max(6, digits of the largest)."""

    __slots__ = ()
    nested = False
    loose = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def schema(self: _Columned) -> Sequence[FieldInfo]:
        return [FieldInfo(name) for name in self.columns]

    @property
    def capacity(self) -> int:
        return len(self)

    def has(self, index: int, /) -> bool:
        return 0 <= index < len(self)

    def early(self, index: int, name: str, /) -> Sequence[Field] | None:
        return None

    def key(self, index: int, /) -> str:
        return f"{index:0{number_width(len(self))}d}"

    def find(self, key: str, /) -> int | None:
        if not (key.isascii() and key.isdigit()) or len(key) != number_width(len(self)):
            return None
        index = int(key)
        return index if index < len(self) else None


def number_width(count: int) -> int:
    """Digits in the names of *count* numbered things."""
    return max(6, len(str(count - 1)))
