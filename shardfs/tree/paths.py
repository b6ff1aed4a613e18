"""Nodes of a tree as objects: what Python code, the command line and fsspec walk."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import has_magic
from typing import TYPE_CHECKING

from shardfs.errors import NotAFolder, NotFound
from shardfs.tree.inodes import ROOT
from shardfs.tree.nodes import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.blob import Blob
    from shardfs.tree.nodes import Attr
    from shardfs.tree.tree import Tree

_MAX_LINKS = 8


class Node:
    """A file, folder or link. Reads through it may wait; nothing is read before it is asked for."""

    __slots__ = ("_blob", "_tree", "attr", "path")

    def __init__(self, tree: Tree, path: str, attr: Attr) -> None:
        self._tree, self.path, self.attr = tree, path, attr
        self._blob: Blob | None = None

    def __repr__(self) -> str:
        return f"<{self.attr.type.value} {self.path or '/'}>"

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def is_dir(self) -> bool:
        return self.attr.type is Type.FOLDER

    @property
    def is_link(self) -> bool:
        return self.attr.type is Type.LINK

    @property
    def size(self) -> int:
        """Bytes of a file. Raises what is wrong with a file that can't be read."""
        return self.attr.size or (0 if self.is_dir or self.is_link else self._content().size())

    @property
    def mtime_ns(self) -> int:
        """Time of the last change, in nanoseconds since 1970."""
        return self.attr.mtime_ns

    def children(self) -> Iterator[Node]:
        """What stands in a folder, in storage order. Raises NotAFolder, and what is wrong with the folder."""
        if not self.is_dir:
            raise NotAFolder(self.path)
        cookie = 0
        while entries := self._tree.scan(self.attr.ino, cookie):
            for _, name, attr in entries:
                yield Node(self._tree, posixpath.join(self.path, name), attr)
            cookie = entries[-1].cookie

    def __truediv__(self, path: str) -> Node:
        """The node at a path below this one. Links on the way are followed; the last one is not. Raises NotFound."""
        node, rest, links = self, path.split("/")[::-1], 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if node.is_link:
                links += 1
                if links > _MAX_LINKS:
                    raise NotFound(f"{path}: too many links")
                rest += [part, *node.readlink().split("/")[::-1]]
                node = node._above()
                continue
            node = node._above() if part == ".." else node._child(part)
        return node

    def read(self, offset: int = 0, length: int | None = None) -> memoryview:
        """Bytes of a file from *offset*: *length* of them, or all to the end. Raises what is wrong with it."""
        content = self._content()
        return content.read(offset, content.size() if length is None else length)

    def readlink(self) -> str:
        """Where a symbolic link leads. Raises NotALink."""
        return self._tree.readlink(self.attr.ino)

    def _content(self) -> Blob:
        if self._blob is None:
            self._blob = self._tree.open(self.attr.ino)
        return self._blob

    def _child(self, name: str) -> Node:
        path = posixpath.join(self.path, name)
        if not self.is_dir:
            raise NotAFolder(self.path)
        try:
            return Node(self._tree, path, self._tree.lookup(self.attr.ino, name))
        except NotFound as error:
            raise NotFound(f"{path}: no such file or folder") from error

    def _above(self) -> Node:
        return root(self._tree) / posixpath.dirname(self.path)


def matching(node: Node, pattern: str) -> Iterator[Node]:
    """The nodes below *node* that a path with `*`, `?`, `[]` and `**` names, in storage order; `**` is any folders.

    What stands there literally is taken as it is. Raises NotFound where there is nothing.
    """
    if has_magic(pattern):
        try:
            yield node / pattern
            return
        except (NotFound, NotAFolder):
            pass
    else:
        yield node / pattern
        return
    found = _matches(node, [part for part in pattern.split("/") if part not in ("", ".")])
    first = next(found, None)
    if first is None:
        raise NotFound(f"{pattern}: nothing there matches")
    yield first
    yield from found


def _matches(node: Node, parts: Sequence[str]) -> Iterator[Node]:
    if not parts:
        yield node
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _matches(node, rest) if rest else ()
        for child in node.children():
            if child.is_dir:
                yield from _matches(child, parts)
            elif not rest:
                yield child
        return
    if not has_magic(part):
        if part == ".." or node.is_dir:
            with suppress(NotFound):
                yield from _matches(node / part, rest)
        return
    for child in node.children() if node.is_dir else ():
        if fnmatchcase(child.name, part):
            yield from _matches(child, rest)


def root(tree: Tree) -> Node:
    """The top folder of *tree*."""
    return Node(tree, "", tree.attr(ROOT))
