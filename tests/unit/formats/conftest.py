"""What formats are opened with, without the program around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shardfs.cache.memory import Derived, Memory
from shardfs.codecs.inflated import Inflated
from shardfs.options import Options
from shardfs.registry import CODECS, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.errors import ShardfsError
    from shardfs.model import Entry


class PlainServices:
    """Services with everything but the index cache on disk; *reports* holds what was reported."""

    def __init__(self) -> None:
        self.options = Options(max_chunk_size=64 << 20)
        self.memory = Memory(16 << 20)
        self.reports: list[ShardfsError] = []

    def inflate(self, blob: Blob, codec: str, size: int | None, /) -> Blob:
        row = next(row for row in CODECS if row.name == codec)
        limit = self.options.max_chunk_size
        return Inflated(blob, load("codecs", row), size, memory=self.memory, limit=limit)

    def derive(self, build: Callable[[], bytes], /) -> Blob:
        return Derived(build, self.memory)

    def remember(self, entry: Entry, what: str, build: Callable[[], bytes], /) -> Blob:
        return Derived(build, self.memory)

    def report(self, error: ShardfsError, /) -> None:
        self.reports.append(error)


@pytest.fixture
def services() -> PlainServices:
    return PlainServices()
