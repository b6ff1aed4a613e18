"""Shards of which the file is something else: a pointer of Git LFS, or the page of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.placeholders import HEAD, may_be_placeholder, placeholder
from shardfs.registry import FORMATS

if TYPE_CHECKING:
    from shardfs.model import Dataset, Shard
    from shardfs.stores import Store

_UNSURE = frozenset(row.name for row in FORMATS if not row.sure)
# Files that may be text have other suffixes: MosaicML's shards may be JSON or CSV, and any name may hold any format.
_BINARY = tuple(suffix for row in FORMATS if not row.text for suffix in (*row.suffixes, *row.lone))


def open_shard(dataset: Dataset, store: Store, index: int) -> Shard:
    """The shard *index*. Raises Corrupt where a placeholder lies in its place, and what else is wrong with it.

    That is looked for where opening fails, and before where it would not: anything passes for text, and compressed
    data is not looked at yet.
    """
    file = dataset.shards[index].file
    is_text = not file.lower().endswith(_BINARY)
    if file and dataset.format in _UNSURE:
        found = instead_of(store, file, text=is_text)
        if found is not None:
            raise found
    try:
        return dataset.open_shard(index)
    except (Corrupt, Unsupported) as error:
        raise (instead_of(store, file, text=is_text) if file else None) or error from None


def instead_of(store: Store, file: str, *, text: bool = False) -> Corrupt | None:
    """What to say of a file that holds a placeholder, None for any other; *text*: whether its data is text."""
    try:
        blob = store.open(file)
        if not may_be_placeholder(bytes(blob.read(0, 1))):
            return None
        said = placeholder(bytes(blob.read(0, HEAD)), text=text)
    except ShardfsError:
        return None  # whoever reads it next says why
    return Corrupt(said) if said else None
