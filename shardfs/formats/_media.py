"""Tables that name media files: a `metadata.csv`, `.jsonl` or `.parquet` in a folder of pictures, sounds or films.

Columns `file_name` and `*_file_name` hold the path of a file below the table's own folder, `file_names` and
`*_file_names` a list of them (datasets.packaged_modules.folder_based_builder). In the records stand the files.
"""

from __future__ import annotations

import json
import mimetypes
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.blob import Broken, Concat, may_wait, read_all
from shardfs.errors import Corrupt, NotAFolder, NotFound, OutsideSource, ShardfsError, Unreadable, WouldBlock
from shardfs.formats._table import MAX_ITEMS
from shardfs.model import Encoded, Field, Items, Plain, Rendered
from shardfs.names import from_bytes, safe_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.model import Entry, Shard, Store

TABLE = "metadata"
"""What such a file is called, before its suffix."""

_ONE, _SEVERAL = "file_name", "file_names"
_MEDIA = ("image", "audio", "video")
# Files that are held open at a time, of all records.
_OPEN_FILES = 32
# Records that are asked for the name of a file, to see what media it is.
_ASKED = 10


def with_media(shard: Shard, store: Store, entry: Entry) -> Shard:
    """*shard*, which is the file *entry*; with files for file names if it is a table of media."""
    if entry.name.partition(".")[0] != TABLE:
        return shard
    names = [name for name in shard.columns if _is_named(name, _ONE) or _is_named(name, _SEVERAL)]
    if not names:
        return shard
    return MediaShard(shard, Folder(store, entry.path.rpartition("/")[0]), names)
