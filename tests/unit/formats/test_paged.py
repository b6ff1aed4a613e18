from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists, tuples

from shardfs.blob import Bytes
from shardfs.formats.shared import paged
from shardfs.formats.shared.paged import Paged
from tests.fakes import SlowBlob


@given(binary(max_size=60), lists(tuples(integers(0, 70), integers(0, 30))))
def test_reads_like_the_blob_itself(data: bytes, reads: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paged, "_PAGE", 8)
        patch.setattr(paged, "_HELD", 2)
        blob = Paged(Bytes(data))
        assert blob.size() == len(data)
        for offset, length in reads:
            assert bytes(blob.read(offset, length)) == data[offset : offset + length]


def test_small_reads_near_one_another_are_one_read() -> None:
    slow = SlowBlob(bytes(1 << 20))
    blob = Paged(slow)
    for offset in range(0, 60_000, 24):
        blob.read(offset, 24)
    assert slow.reads == [(0, 64 << 10)]
