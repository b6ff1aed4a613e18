"""All records of a source as JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.tree.lines import line
from shardfs.work.executors import each, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from shardfs.dataset import Dataset
    from shardfs.work.executors import Piece


def all_lines(dataset: Dataset, pool: Executor) -> Iterator[bytes]:
    """The lines of all records in order, thousands at a time. Raises a ShardfsError where a shard can't be read."""
    return each(pool, _lines, pieces(dataset.shards))


def _lines(piece: Piece) -> bytes:
    return b"".join(line(record.as_json()) for record in piece.records())
