"""Any sharded dataset as records of values, and as a read-only folder tree.

>>> import shardfs
>>> with shardfs.open("/data/my_litdata") as ds:
...     ds[42]["caption"]
...     ds.tree.root / "chunk-0-0/000042/caption.txt"
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardfs.dataset import Dataset

__all__ = ["open"]


def open(source: str | os.PathLike[str], **options: Any) -> Dataset:
    """The records of *source*; *options* are fields of ``shardfs.options.Options``, as `shardfs mount` has them.

    Raises:
        shardfs.errors.ShardfsError: there is no such source, or nothing in it that can be shown; or an option names
            what is not there.
        TypeError: there is no such option.
    """
    # Imported here, so that `shardfs --help` and the like don't wait for it.
    from shardfs.dataset import Dataset
    from shardfs.options import Options

    columns = options.pop("columns", None) or ()
    return Dataset(os.fspath(source), Options(columns=tuple(columns), **options))
