"""What a tree says of its nodes, and what the parts of a tree have in common."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardfs.errors import NotALink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.tree.inodes import Ino


class Type(Enum):
    FOLDER = "folder"
    FILE = "file"
    LINK = "link"


class Attr(NamedTuple):
    """The attributes of a node.

    Attributes:
        size: bytes of a file's content or a link's target, 0 for a folder.
        mtime_ns: nanoseconds since 1970.
        volatile: whether the next look may find other content (statistics, the list of faults).
    """

    ino: Ino
    type: Type
    size: int
    mtime_ns: int
    volatile: bool = False


class Listed(NamedTuple):
    """An entry of a listing; *cookie* is where the listing goes on behind it."""

    cookie: int
    name: str
    attr: Attr


class Space(Protocol):
    """A part of a tree: the nodes in one space of inode numbers."""

    def attr(self, ino: Ino, /) -> Attr: ...

    def lookup(self, parent: Ino, name: str, /) -> Attr:
        """Raises NotFound."""
        ...

    def scan(self, ino: Ino, start: int, /) -> Iterator[Listed]:
        """The entries of a folder from a cookie on, 0 at the beginning. Raises NotAFolder."""
        ...

    def open(self, ino: Ino, /) -> Blob:
        """The content of a file. Raises what is wrong with it, and IsAFolder."""
        ...

    def readlink(self, ino: Ino, /) -> str:
        """The target of a symbolic link. Raises NotALink."""
        ...


class NoLinks:
    """For spaces without symbolic links."""

    __slots__ = ()

    def readlink(self, ino: Ino, /) -> str:
        raise NotALink(f"node {ino} is no symbolic link")
