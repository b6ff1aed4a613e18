"""Stores: named blobs, on this machine or behind a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from shardfs.blob import Blob

    Watch: TypeAlias = Callable[[], None]
    """Raises Changed once a file is another than it was. Costs microseconds; raises WouldBlock rather than wait."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of a store.

    Where each file would cost a request, a listing leaves out what only that tells: size 0, no version.
    ``Store.stat`` has it; ``stated`` asks for it where it is missing.

    Attributes:
        path: relative to the store's root, parts joined by ``/``, no ``.`` or ``..``.
        size: bytes; 0 for a folder.
        mtime_ns: time of the last change, nanoseconds since 1970; 0 where unknown.
        version: changes whenever the content does (size and mtime, ETag, checksum).
        is_dir: whether it is a folder.
        problem: why it can't be opened, for entries that are listed all the same (a link that leads outside).
        is_archive: whether the folder is a file in truth, of which the content is shown.
    """

    path: str
    size: int
    mtime_ns: int
    version: str
    is_dir: bool = False
    problem: str = ""
    is_archive: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def at(self, path: str) -> Entry:
        """The same under another path."""
        # Not dataclasses.replace, which costs five times as much: folders have a million of them.
        return Entry(
            path,
            self.size,
            self.mtime_ns,
            self.version,
            self.is_dir,
            self.problem,
            self.is_archive,
        )


class Store(Protocol):
    """Named blobs: a folder, a bucket, a repository, a zip."""

    url: str

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        """What lies directly in a folder, in byte order of the names. Raises NotFound, NotAFolder."""
        ...

    def stat(self, path: str, /) -> Entry:
        """The entry of *path*. Raises NotFound, OutsideSource."""
        ...

    def open(self, path: str, /) -> Blob:
        """The bytes of the file *path*. Raises NotFound, IsAFolder, OutsideSource."""
        ...

    def watch(self, path: str, version: str, /) -> Watch | None:
        """What tells whether the file *path* is still of that version; None where reads themselves see to it."""
        ...


def check(store: Store, entry: Entry, /) -> None:
    """Raise Changed where the file *entry* is no longer of its version."""
    watch = store.watch(entry.path, entry.version) if entry.version else None
    if watch is not None:
        watch()


class RemoteBlob(Protocol):
    """A file behind a network: nothing of it is kept, and every read is a request."""

    def size(self) -> int: ...

    def read(self, offset: int, length: int, /) -> memoryview: ...

    def stream(self, offset: int, length: int, /) -> Generator[bytes | memoryview, None, None]:
        """The bytes of a range inside the file, in pieces as they come; closed early, no more of them come.

        Raises:
            Unreadable: they don't come, or are not those of the version that was asked for.
            AccessDenied, NotFound: the source says so.
        """
        ...


class RemoteStore(Store, Protocol):
    """A store behind a network. It neither keeps nor reads ahead: ``cache.remote`` does that around it.

    Stores inherit what most of them have in common.
    """

    least: int
    """The fewest bytes that are worth a request; neighbours of what is asked for are fetched along."""
    complete: bool = False
    """Whether listings name all there is, so that nobody need ask for what is not in them."""
    hub_rules: bool = False
    """Whether its files are divided into splits by the Hugging Face Hub's rules for their names."""

    def whole(self) -> Sequence[Entry] | None:
        """All there is, itself as the entry "" and folders or not, if that is no more than a few requests; else None.

        Where requests are not wanted it is what this machine knows without one.
        """
        return None

    def at_hand(self, entry: Entry, /) -> Blob | None:
        """The file *entry* where this machine has that very version of it already, so that it need not be fetched."""
        return None

    def recall(self, path: str, /) -> None:
        """Take note that a mount before has asked for *path*.

        So its bytes may be at hand, and none need come along when the store is asked for it now.
        """
        return

    def blob(self, entry: Entry, /) -> RemoteBlob:
        """The file *entry*, as ``stat`` described it, in this very version. Makes no request."""
        ...

    def watch(self, path: str, version: str, /) -> Watch | None:
        return None

    def counts(self) -> Mapping[str, int]:
        """What it took so far: requests, bytes and the like."""
        ...

    def close(self) -> None:
        """Let go of all connections. Requests under way fail, as do later ones."""
        ...


def stated(store: Store, entry: Entry) -> Entry:
    """*entry* with its size and version, which the listing may have left out. Raises as ``Store.stat``."""
    return entry if entry.version or entry.is_dir or entry.problem else store.stat(entry.path)
