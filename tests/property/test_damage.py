"""Bytes before damage: as many as the codec's own program gives, whatever the size of steps, and what is there."""

from __future__ import annotations

import bz2
import io
import lzma
import random
import shutil
import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from shardfs.blob import Bytes
from shardfs.cache.disk import Room
from shardfs.cache.memory import Memory
from shardfs.cache.spill import Spills
from shardfs.codecs import replayed, spilled
from shardfs.codecs._pass import Limits
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.replayed import Replayed
from shardfs.codecs.spilled import Spilled
from shardfs.errors import ShardfsError
from shardfs.registry import CODECS, load
from tests.packed_files import lz4, zstd_unsized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.codecs import Codec


def codec_of(name: str) -> Codec:
    found: Codec = load("codecs", next(row for row in CODECS if row.name == name))
    return found


# --- what the libraries give in small steps ---


def by_members(begin: Callable[[], Any], step: int) -> Callable[[bytes], bytes]:
    def given(stored: bytes) -> bytes:
        made, call, one = b"", b"", begin()
        try:
            data = stored
            while data or not one.needs_input:
                call += one.decompress(data, step - len(call))
                data = b""
                if len(call) == step or one.eof:
                    made, call = made + call, b""
                if one.eof:
                    data, one = one.unused_data, begin()
        except (OSError, lzma.LZMAError):
            pass
        return made

    return given


def by_zlib(stored: bytes) -> bytes:
    made, one = b"", zlib.decompressobj(wbits=31)
    try:
        for at in range(len(stored)):
            made += one.decompress(stored[at : at + 1])
            while one.unconsumed_tail:
                made += one.decompress(one.unconsumed_tail, 1)
    except zlib.error:
        pass
    return made


def by_zstandard(stored: bytes) -> bytes:
    """With the buffers of the program zstd."""
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(stored), read_size=131075)
    made = b""
    try:
        while block := reader.read1(131072):
            made += block
    except zstandard.ZstdError:
        pass
    return made


class Single(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(1, size or 0))


def by_pyarrow(name: str) -> Callable[[bytes], bytes]:
    def given(stored: bytes) -> bytes:
        made = []
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(Single(stored), mode="r"), name)
            while byte := stream.read(1):
                made.append(byte)
        except OSError:
            pass
        return b"".join(made)

    return given


WRITERS: dict[str, tuple[str, Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "zstd": ("zstd", zstd_unsized, by_zstandard),
    "zstd-sized": ("zstd", zstandard.compress, by_zstandard),
    "gzip": ("gz", lambda data: zlib.compress(data, 6, wbits=31), by_zlib),
    "bzip2": ("bz2", lambda data: bz2.compress(data, 1), by_members(bz2.BZ2Decompressor, 5000)),
    "xz": ("xz", lzma.compress, by_members(lzma.LZMADecompressor, 1)),
    "lz4": ("lz4", lz4, by_pyarrow("lz4")),
    "brotli": ("br", lambda data: bytes(pa.Codec("brotli").compress(data)), by_pyarrow("brotli")),
}


def content_of(chance: random.Random) -> bytes:
    words = [chance.randbytes(chance.randrange(2, 9)) for _ in range(300)]
    text = b" ".join(chance.choices(words, k=chance.randrange(20, 12_000)))
    return text + chance.randbytes(chance.randrange(20_000))


def damaged(stored: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(stored))
    if chance.random() < 0.4:
        return stored[:at]
    with_zeros = stored[:at] + bytes(chance.choice([1, 50])) + stored[at:]
    return chance.choice(
        [with_zeros[: len(stored)], stored[:at] + bytes([stored[at] ^ 4]) + stored[at + 1 :]]
    )


def served(codec: Codec, stored: bytes, step: int) -> tuple[bytes, bool]:
    """(what a stream gives, whether it ends well)."""
    failures: tuple[type[Exception], ...] = (ShardfsError, *codec.damage)
    stream, target, made = codec.stream(Bytes(stored), 1 << 30), memoryview(bytearray(step)), b""
    try:
        while count := stream.readinto1(target):
            made += target[:count]
    except failures:
        return made, False
    return made, True


@settings(max_examples=50, deadline=None)
@given(seed=integers(0, 2**32), kind=sampled_from(sorted(WRITERS)))
def test_all_that_the_library_gives_is_served_in_steps_of_any_size(seed: int, kind: str) -> None:
    chance = random.Random(seed)
    name, write, given_by = WRITERS[kind]
    content = content_of(chance)
    stored = damaged(write(content), chance)
    expected, codec = given_by(stored), codec_of(name)
    for step in (chance.randrange(1, 5000), 131072, 1 << 20):
        made, is_whole = served(codec, stored, step)
        assert made == expected
        assert not is_whole or made == content or kind in ("brotli", "lz4", "zstd-sized")


def good_part(blob: Blob, most: int) -> int:
    """How many bytes can be read from the beginning on."""
    good, bad = 0, most + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            good, bad = (middle, bad) if len(blob.read(0, middle)) == middle else (good, middle)
        except ShardfsError:
            bad = middle
    return good


@pytest.fixture(scope="module")
def spills(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spills]:
    made = Spills(Room(tmp_path_factory.mktemp("cache"), 1 << 30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replayed, "_CHUNK", 70_001)
        patch.setattr(spilled, "_STEP", 33_333)
        yield made
    made.close()


@settings(max_examples=30, deadline=None)
@given(seed=integers(0, 2**32), kind=sampled_from(sorted(WRITERS)))
def test_every_way_serves_it(spills: Spills, seed: int, kind: str) -> None:
    chance = random.Random(seed)
    name, write, given_by = WRITERS[kind]
    content = content_of(chance)
    stored = damaged(write(content), chance)
    expected, codec, memory = given_by(stored), codec_of(name), Memory(1 << 20)
    limits = Limits(1 << 30, 1 << 30)
    ways: list[Blob] = [
        Replayed(Bytes(stored), codec, memory=memory, limits=limits),
        Spilled(Bytes(stored), codec, spills.create(f"{seed} {kind}"), limits=limits, keep=False),
    ]
    if len(expected) < len(content):  # else the end waits for the checksum behind it
        ways.append(Inflated(Bytes(stored), codec, len(content), memory=memory, limit=1 << 30))
    for way in ways:
        good = good_part(way, max(len(expected), len(content)) + 10)
        assert good == len(expected), type(way)
        assert bytes(way.read(0, good)) == expected


# --- and what the programs give ---

PROGRAMS = {
    "zstd": ("zstd", zstd_unsized),
    "gzip": ("gz", WRITERS["gzip"][1]),
    "bzip2": ("bz2", WRITERS["bzip2"][1]),
    "xz": ("xz", lzma.compress),
    "lz4": ("lz4", lz4),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("part", range(1, 10))
def test_a_cut_file_gives_what_its_program_gives(tmp_path: Path, program: str, part: int) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}")
    name, write = PROGRAMS[program]
    stored = write(content_of(random.Random(part)) * 5)
    stored = stored[: len(stored) * part // 10]
    command = [found, "-dc"]
    gives = subprocess.run(command, input=stored, capture_output=True, check=False).stdout
    assert served(codec_of(name), stored, 1 << 19) == (gives, False)
