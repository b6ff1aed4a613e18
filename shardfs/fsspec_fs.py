"""The tree as an fsspec file system: `fsspec.filesystem("shardfs", source="/data/my_litdata")`.

Chained URLs name the source behind the path: `shardfs://chunk-0-0/000000/image.jpg::/data/my_litdata`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractFileSystem

from shardfs.errors import ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options

if TYPE_CHECKING:
    from shardfs.tree.paths import Node


class ShardFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Read-only. Errors are OSErrors, with the errno that a program on a mount would get.

    Args:
        source: what `shardfs mount` takes as SRC; *fo* is fsspec's name for it in chained URLs.
        options: as fields of ``shardfs.options.Options``, for example ``layout="flat"``.
    """

    protocol = "shardfs"
    root_marker = ""

    def __init__(
        self,
        source: str = "",
        fo: str = "",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        **storage: Any,
    ) -> None:
        super().__init__(**storage)
        if target_protocol not in (None, "", "file", "local"):
            fo = f"{target_protocol}://{fo}"
        with _os_errors():
            self._tree = open_tree(source or fo, Options(**(options or {})))

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("shardfs://").strip("/")

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        with _os_errors():
            node = self._node(path)
            nodes = list(node.children()) if node.is_dir else [node]
        return [_details(child) if detail else child.path for child in nodes]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        with _os_errors():
            return _details(self._node(path))

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BufferedReader:
        if mode != "rb":
            raise OSError(f"{path}: shardfs is read-only")
        with _os_errors():
            return io.BufferedReader(_File(self._node(path)), buffer_size=1 << 20)

    def _node(self, path: str) -> Node:
        return self._tree.root / self._strip_protocol(path)


class _os_errors:
    """Turns a ShardfsError into the OSError that fsspec's users expect."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ShardfsError):
            raise OSError(error.errno, str(error)) from error


class _File(io.RawIOBase):
    """A node as a raw file."""

    def __init__(self, node: Node) -> None:
        self._node, self._size, self._at = node, node.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, target: Any) -> int:
        with _os_errors():
            data = self._node.read(self._at, len(target))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)


def _details(node: Node) -> dict[str, Any]:
    kind = "directory" if node.is_dir else "link" if node.is_link else "file"
    size = None if node.is_dir else node.attr.size
    return {"name": node.path, "size": size, "type": kind, "mtime": node.mtime_ns / 1e9}
