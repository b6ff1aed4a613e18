from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import composite, integers, lists, sampled_from, tuples

from shardfs.blob import Bytes
from shardfs.cache.memory import Memory
from shardfs.codecs import gzip_points, zstd_frames
from shardfs.codecs.unpacked import Means, Packed, Unpacked
from shardfs.errors import ShardfsError
from shardfs.registry import CODECS, INDEXERS, load
from tests.contract.formats import damaged
from tests.packed_files import INDEXED, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL = {**INDEXED, **PLAIN}
FLUSHES = (zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_FINISH)


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gzip_points, "_SPACING", 20_000)
        patch.setattr(gzip_points, "_STEP", 5_000)
        patch.setattr(gzip_points, "_MEMBER_SPACING", 10_000)
        patch.setattr(zstd_frames, "_GROUP", 10_000)
        yield


def unpacked(stored: bytes, codec: str) -> Unpacked:
    indexers = {row.name: row for row in INDEXERS}
    packed = Packed(
        blob=Bytes(stored),
        codec=load("codecs", next(row for row in CODECS if row.name == codec)),
        indexer=load("codecs", indexers[codec])() if codec in indexers else None,
        name="file",
        key="",
    )
    means = Means(
        memory=Memory(100_000),
        index=None,
        spills=None,
        report=lambda error: None,
        largest_piece=1 << 20,
        size_limit=8 << 20,
    )
    return Unpacked(packed, means)


@composite
def written(draw: Any) -> tuple[bytes, bytes]:
    """(content, gzip file of it), with every kind of block and border that deflate has."""
    chance = random.Random(draw(integers(0, 2**32)))
    steps = draw(
        lists(tuples(integers(0, 30_000), sampled_from(FLUSHES), integers(0, 9)), max_size=8)
    )
    content, stored, deflate = bytearray(), bytearray(), zlib.compressobj(1, wbits=31)
    for size, flush, level in steps:
        part = chance.choice([chance.randbytes(size), bytes(size), b"some words " * (size // 11)])
        content += part
        stored += deflate.compress(part) + deflate.flush(flush)
        if flush == zlib.Z_FINISH:
            deflate = zlib.compressobj(level, wbits=31, strategy=chance.choice([0, 2, 3, 4]))
    return bytes(content), bytes(stored + deflate.flush())


READS = lists(tuples(integers(0, 250_000), integers(0, 60_000)), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(pair=written(), reads=READS)
def test_gzip_files_of_all_kinds_read_like_their_content(
    pair: tuple[bytes, bytes], reads: list[tuple[int, int]]
) -> None:
    content, stored = pair
    blob = unpacked(stored, "gz")
    for _ in range(2):  # then without what finding the pieces has brought about
        for offset, length in reads:
            assert bytes(blob.read(offset, length)) == content[offset : offset + length]
        assert blob.size() == len(content)


def content_of(chance: random.Random) -> bytes:
    sizes = [chance.randrange(20_000) for _ in range(chance.randrange(1, 6))]
    return b"".join(chance.choice([chance.randbytes(n), bytes(n), b"word " * n]) for n in sizes)


@settings(max_examples=80, deadline=None)
@given(seed=integers(0, 2**32), kind=sampled_from(sorted(ALL)), reads=READS)
def test_files_of_all_codecs_read_like_their_content(
    seed: int, kind: str, reads: list[tuple[int, int]]
) -> None:
    codec, write = ALL[kind]
    content = content_of(random.Random(seed)) or b"x"
    blob = unpacked(write(content), codec)
    for offset, length in reads:
        assert bytes(blob.read(offset, length)) == content[offset : offset + length]


@settings(max_examples=300, deadline=None)
@given(seed=integers(0, 2**32), kind=sampled_from(sorted(ALL)))
def test_damage_of_any_kind_is_an_error_that_has_a_name(seed: int, kind: str) -> None:
    chance = random.Random(seed)
    codec, write = ALL[kind]
    stored = write(content_of(chance) or b"x")
    for _ in range(chance.choice((1, 1, 2, 5))):
        stored = damaged(stored, chance)
    blob = unpacked(stored, codec)
    uses: list[Callable[[], object]] = [
        blob.size,
        lambda: blob.read(0, 1000),
        lambda: blob.read(30_000, 100_000),
    ]
    chance.shuffle(uses)
    for use in uses:
        try:
            use()
        except ShardfsError:
            continue
