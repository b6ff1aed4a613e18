"""``ls``, ``cat`` and ``cp``: the tree of a source without mounting it."""

from __future__ import annotations

import contextlib
import os
import posixpath
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from shardfs.cli import console
from shardfs.errors import IsAFolder, ShardfsError, UsageError
from shardfs.mounting import open_tree
from shardfs.names import to_bytes
from shardfs.tree.paths import root

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from shardfs.options import Options
    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree

_PIECE = 1 << 20
"""Bytes read at a time."""


def _find(tree: Tree, path: str) -> Node:
    """The node at *path*, behind a link that it may be."""
    node = root(tree) / path
    if node.is_link:
        node = root(tree) / posixpath.join(posixpath.dirname(node.path), node.readlink())
    return node


def ls(source: str, path: str, options: Options, *, long: bool) -> int:
    """Print the names in the folder *path*, or the file, in storage order; *long*: with type, size and time."""
    code = 0
    with closing(open_tree(source, options)) as tree:
        node = _find(tree, path)
        for entry in node.children() if node.is_dir else [node]:
            try:
                line = _details(entry) if long else b""
            except ShardfsError as error:  # a damaged record is listed all the same
                console.tell(error)
                line, code = b"?---------            ?                ? ", console.FAILED
            _write_line(line + _shown(entry.name))
    return code


def _details(node: Node) -> bytes:
    kind = "dr-xr-xr-x" if node.is_dir else "lr--r--r--" if node.is_link else "-r--r--r--"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(node.mtime_ns // 10**9))
    return f"{kind} {node.size:12d} {when} ".encode()


def _shown(name: str) -> bytes:
    """The bytes of a name, for a program; for a person, what a terminal can show."""
    if sys.stdout.isatty():
        return console.printable(name).encode(errors="backslashreplace")
    return to_bytes(name)


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")


def cat(source: str, paths: Iterable[str], options: Options) -> int:
    """Write the content of files to stdout."""
    with closing(open_tree(source, options)) as tree:
        for path in paths:
            node = _find(tree, path)
            if node.is_dir:
                raise IsAFolder(f"{path} is a folder")
            for offset in range(0, node.size, _PIECE):
                sys.stdout.buffer.write(node.read(offset, _PIECE))
    return 0


def cp(source: str, paths: list[str], target: Path, options: Options) -> int:
    """Copy files and whole folders to *target*, or into it where it is a folder; go on after a damaged file.

    Exact copies, with times. Nothing is written outside of *target*, through whatever links lie there.
    """
    into = target.is_dir()
    if len(paths) > 1 and not into:
        raise UsageError(f"{target} is not a folder, and there are several things to copy")
    copying = _Copying()
    with closing(open_tree(source, options)) as tree:
        for path in paths:
            node = _find(tree, path)
            name = posixpath.basename(path.rstrip("/"))
            # `.` means what is in a folder, as for cp -r, and so does all of a source, whose name is none of a file.
            within = into and name not in ("", ".", "..")
            copying.copy(node, target / name if within else target, top=not within)
    return console.FAILED if copying.failures else 0


class _Copying:
    """Copies nodes and counts those that could not be copied."""

    def __init__(self) -> None:
        self.failures = 0

    def copy(self, node: Node, target: Path, *, top: bool = False) -> None:
        try:
            if node.is_dir:
                self._folder(node, target, top=top)
            elif node.is_link:
                _put_away(target)
                target.symlink_to(node.readlink())
            else:
                _file(node, target)
        except ShardfsError as error:
            self.failures += 1
            console.tell(error)

    def _folder(self, node: Node, target: Path, *, top: bool) -> None:
        if target.is_symlink() and not top:  # what is below must not be written elsewhere
            raise UsageError(f"{target} is a symbolic link; nothing is copied through it")
        target.mkdir(exist_ok=True)
        for child in node.children():
            self.copy(child, target / child.name)
        os.utime(target, ns=(node.mtime_ns, node.mtime_ns))


def _file(node: Node, target: Path) -> None:
    """Copy a file, wholly or not at all."""
    size = node.size  # before the old file goes: what is damaged is known here at the latest
    _put_away(target)
    with target.open("xb") as file:  # fails rather than follow a link
        try:
            for offset in range(0, size, _PIECE):
                file.write(node.read(offset, _PIECE))
            file.flush()
            os.utime(file.fileno(), ns=(node.mtime_ns, node.mtime_ns))
        except BaseException:
            target.unlink()
            raise


def _put_away(target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        target.unlink()
