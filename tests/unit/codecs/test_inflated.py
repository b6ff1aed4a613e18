from __future__ import annotations

import gc
import weakref

import pytest
import zstandard

from shardfs.blob import Bytes
from shardfs.cache.memory import Memory
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.zstd import Zstd
from shardfs.errors import Corrupt, Unreadable

STORED = zstandard.compress(b"content" * 1000)


def test_damage_that_was_met_keeps_nobody_alive() -> None:
    def meet() -> weakref.ref[Inflated]:
        blob = Inflated(Bytes(STORED[:-9]), Zstd, 7000, memory=Memory(1 << 20), limit=1 << 20)
        with pytest.raises(Corrupt):
            blob.read(0, 7000)
        return weakref.ref(blob)

    met = meet()
    gc.collect()
    assert met() is None


def test_a_source_that_failed_is_asked_again() -> None:
    class Flaky(Bytes):
        good = False

        def read(self, offset: int, length: int, /) -> memoryview:
            if offset and not self.good:
                raise Unreadable("no network")
            return super().read(offset, min(length, 40))

    source = Flaky(STORED)
    blob = Inflated(source, Zstd, 7000, memory=Memory(1 << 20), limit=1 << 20)
    for _ in range(2):
        with pytest.raises(Unreadable):
            blob.read(0, 7000)
    source.good = True
    assert bytes(blob.read(0, 7000)) == b"content" * 1000
