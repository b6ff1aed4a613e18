"""Any sharded dataset as a read-only folder tree.

>>> import shardfs
>>> tree = shardfs.open("/data/my_litdata")
>>> (tree.root / "chunk-0-0/000000/caption.txt").read()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardfs.tree.tree import Tree

__all__ = ["open"]


def open(source: str, **options: Any) -> Tree:
    """The tree of *source*, as `shardfs mount` would show it; *options* are fields of ``shardfs.options.Options``.

    Raises:
        shardfs.errors.ShardfsError: there is no such source, or nothing in it that can be shown.
    """
    # Imported here, so that `shardfs --help` and the like don't wait for it.
    from shardfs.mounting import open_tree
    from shardfs.options import Options

    return open_tree(source, Options(**options))
