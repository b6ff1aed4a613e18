"""``ls``, ``cat`` and ``cp``: the tree of a source without mounting it."""

from __future__ import annotations

import contextlib
import os
import posixpath
import sys
import time
from contextlib import closing
from glob import has_magic
from typing import TYPE_CHECKING

from shardfs.cli import console
from shardfs.errors import IsAFolder, ShardfsError, UsageError
from shardfs.mounting import open_tree
from shardfs.names import to_bytes
from shardfs.tree.paths import matching, root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from shardfs.options import Options
    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree

_PIECE = 1 << 20
"""Bytes read at a time."""


def _find(tree: Tree, path: str) -> Iterator[Node]:
    """The nodes that *path* names, which may be a pattern, behind links that they may be."""
    for node in matching(root(tree), path):
        where = (
            posixpath.join(posixpath.dirname(node.path), node.readlink()) if node.is_link else ""
        )
        yield root(tree) / where if where else node


def ls(source: str, paths: Iterable[str], options: Options, *, long: bool) -> int:
    """Print the names in folders, or of files, in storage order; *long*: with type, size and time.

    What a pattern matches is printed with its path, and folders are not looked into.
    """
    code = 0
    with closing(open_tree(source, options)) as tree:
        for path in paths:
            for entry, name in _listed(tree, path):
                try:
                    line = _details(entry) if long else b""
                except ShardfsError as error:  # a damaged record is listed all the same
                    console.tell(error)
                    line, code = b"?---------            ?                ? ", console.FAILED
                _write_line(line + _shown(name))
    return code


def _listed(tree: Tree, path: str) -> Iterator[tuple[Node, str]]:
    """What there is to list for a path, and under which name."""
    for node in _find(tree, path):
        if has_magic(path):
            yield node, node.path
        else:
            for entry in node.children() if node.is_dir else [node]:
                yield entry, entry.name


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
            for node in _find(tree, path):
                if node.is_dir:
                    raise IsAFolder(f"{node.path} is a folder")
                for offset in range(0, node.size, _PIECE):
                    sys.stdout.buffer.write(node.read(offset, _PIECE))
    return 0


def cat_lines(source: str, options: Options, *, jobs: int, dask: str) -> int:
    """Write all records to stdout as JSON Lines."""
    from shardfs.dataset import Dataset  # here, since `shardfs ls` needs none of it
    from shardfs.work.executors import executor
    from shardfs.work.jsonl import all_lines

    with Dataset(source, options) as dataset, executor(jobs=jobs, dask=dask) as pool:
        for lines in all_lines(dataset, pool):
            sys.stdout.buffer.write(lines)
    return 0


def cp(source: str, paths: list[str], target: Path, options: Options) -> int:
    """Copy files and whole folders to *target*, or into it where it is a folder; go on after a damaged file.

    Exact copies, with times. Nothing is written outside of *target*, through whatever links lie there.
    """
    into = target.is_dir()
    if (len(paths) > 1 or has_magic(paths[0])) and not into:
        raise UsageError(f"{target} is not a folder, and there may be several things to copy")
    copying = _Copying()
    with closing(open_tree(source, options)) as tree:
        for path in paths:
            for node in _find(tree, path):
                name = posixpath.basename(node.path if has_magic(path) else path.rstrip("/"))
                # `.` means what is in a folder, as for cp -r, and so does all of a source, whose name is no file's.
                within = into and name not in ("", ".", "..")
                copying.copy(node, target / name if within else target, top=not within)
    return console.FAILED if copying.failures else 0


def cp_listed(source: str, listing: Iterable[bytes], target: Path, options: Options) -> int:
    """Copy what the lines of *listing* name into *target*, with the folders that it stands in; go on after a fault."""
    copying, done = _Copying(), set()
    with closing(open_tree(source, options)) as tree:
        for line in listing:
            path = os.fsdecode(line.rstrip(b"\n"))
            if path in done or not path:
                continue
            done.add(path)
            try:
                node = root(tree) / path
            except ShardfsError as error:
                copying.failed(error)
                continue
            copying.copy_below(node, target)
    return console.FAILED if copying.failures else 0


class _Copying:
    """Copies nodes and counts those that could not be copied."""

    def __init__(self) -> None:
        self.failures = 0
        self._written: set[Path] = set()

    def failed(self, error: ShardfsError) -> None:
        self.failures += 1
        console.tell(error)

    def copy_below(self, node: Node, target: Path) -> None:
        """Copy to the place below *target* that the node has in the tree, through no link that lies there."""
        target.mkdir(exist_ok=True)
        place = target
        try:
            for part in node.path.split("/")[:-1]:
                place /= part
                if place.is_symlink():
                    raise UsageError(f"{place} is a symbolic link; nothing is copied through it")
                place.mkdir(exist_ok=True)
        except UsageError as error:
            self.failed(error)
            return
        self.copy(node, target / node.path)

    def copy(self, node: Node, target: Path, *, top: bool = False) -> None:
        try:
            if not node.is_dir and target in self._written:
                raise UsageError(
                    f"{target}: a second file would go there; --from-list keeps folders"
                )
            self._written.add(target)
            if node.is_dir:
                self._folder(node, target, top=top)
            elif node.is_link:
                _put_away(target)
                target.symlink_to(node.readlink())
            else:
                _file(node, target)
        except ShardfsError as error:
            self.failed(error)

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
