"""All codecs, read through ``Inflated``."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import zstandard

from shardfs.blob import Broken, Bytes
from shardfs.cache.memory import Memory
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.progress import STEP
from shardfs.errors import Corrupt, TooLarge, Unreadable
from shardfs.registry import CODECS, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstandard.ZstdCompressor().compress,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lz4": lambda data: bytes(pa.Codec("lz4").compress(data)),
    "br": lambda data: bytes(pa.Codec("brotli").compress(data)),
    "snappy": lambda data: bytes(pa.Codec("snappy").compress(data)),
}
# Some of it compresses, some does not, and it takes several steps.
CONTENT = random.Random(1).randbytes(STEP) + bytes(STEP) + b"the end"


def inflated(blob: Blob, codec: str, size: int | None, limit: int = 1 << 30) -> Inflated:
    row = next(row for row in CODECS if row.name == codec)
    return Inflated(blob, load("codecs", row), size, memory=Memory(1 << 30), limit=limit)


def test_every_codec_is_tested() -> None:
    assert set(COMPRESS) == {row.name for row in CODECS}


@pytest.mark.parametrize("codec", COMPRESS)
@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_content_comes_out_as_it_went_in(codec: str, size: int | None) -> None:
    blob = inflated(Bytes(COMPRESS[codec](CONTENT)), codec, size)
    assert bytes(blob.read(STEP - 5, 10)) == CONTENT[STEP - 5 : STEP + 5]
    assert bytes(blob.read(0, len(CONTENT) + 1)) == CONTENT
    assert blob.size() == len(CONTENT)


@pytest.mark.parametrize("codec", COMPRESS)
@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_another_size_than_declared_is_damage(codec: str, size: int) -> None:
    blob = inflated(Bytes(COMPRESS[codec](CONTENT)), codec, size)
    with pytest.raises(Corrupt):
        blob.read(0, size)


@pytest.mark.parametrize("codec", COMPRESS)
@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_cut_stream_is_damage(codec: str, kept: int) -> None:
    blob = inflated(Bytes(COMPRESS[codec](CONTENT)[:kept]), codec, len(CONTENT))
    with pytest.raises(Corrupt):
        blob.read(0, len(CONTENT))


@pytest.mark.parametrize("codec", COMPRESS)
def test_what_is_no_such_stream_is_damage(codec: str) -> None:
    blob = inflated(Bytes(b"<html>" * 100), codec, 1000)
    with pytest.raises(Corrupt):
        blob.read(0, 1)


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_source_that_fails_is_no_damage(codec: str) -> None:
    blob = inflated(Broken(Unreadable("no network")), codec, 1000)
    with pytest.raises(Unreadable, match="no network"):
        blob.read(0, 1)


@pytest.mark.parametrize("codec", COMPRESS)
def test_more_than_is_allowed_is_refused(codec: str) -> None:
    blob = inflated(Bytes(COMPRESS[codec](CONTENT)), codec, None, limit=STEP)
    with pytest.raises(TooLarge):
        blob.read(0, 1)


@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "lz4"])
def test_parts_one_after_another_are_one_stream(codec: str) -> None:
    stored = COMPRESS[codec](b"first ") + COMPRESS[codec](b"second")
    blob = inflated(Bytes(stored), codec, None)
    assert bytes(blob.read(0, 100)) == b"first second"


@pytest.mark.parametrize("codec", ["zstd", "gz", "bz2", "xz", "lz4", "br"])
def test_the_beginning_costs_only_the_beginning(codec: str) -> None:
    class Counted(Bytes):
        last = 0

        def read(self, offset: int, length: int, /) -> memoryview:
            data = super().read(offset, length)
            Counted.last = max(Counted.last, offset + len(data))
            return data

    content = random.Random(2).randbytes(6 * STEP)
    stored = Counted(COMPRESS[codec](content))
    blob = inflated(stored, codec, len(content))
    assert bytes(blob.read(0, 10)) == content[:10]
    assert Counted.last < stored.size() / 2


def test_brotli_that_unpacks_to_much_takes_little_memory() -> None:
    stored = COMPRESS["br"](bytes(64 << 20))
    assert len(stored) < 1000
    row = next(row for row in CODECS if row.name == "br")
    stream = load("codecs", row).stream(Bytes(stored), 1 << 30)
    before = pa.total_allocated_bytes()
    stream.readinto1(memoryview(bytearray(1 << 10)))
    assert pa.total_allocated_bytes() - before < 8 << 20
