"""What is whole, but beyond a limit of the reader: no damage, and no reason to take much memory."""

from __future__ import annotations

import lzma
import random
import struct
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import zstandard

from shardfs.blob import Bytes, read_all
from shardfs.cache.memory import Memory
from shardfs.codecs._xz_windows import limited
from shardfs.codecs._zstd_frames import parse_header, window_of, with_window
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.lz4 import Lz4
from shardfs.codecs.xz import Xz
from shardfs.codecs.zstd import Zstd
from shardfs.errors import Corrupt, ShardfsError, TooLarge, Unsupported
from tests.packed_files import SKIPPABLE, lz4, xz_blocks, zstd_unsized

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.codecs import Codec

MIB = 1 << 20
CHANCE = random.Random(5)
SMALL = b"some words, " * 3000
# With repetitions from afar, which do not compress where one looks back less far.
LARGE = (block := CHANCE.randbytes(2 * MIB)) + CHANCE.randbytes(MIB) + block[MIB:] + block[:MIB]


def content(codec: Codec, stored: bytes, most: int, step: int = 1 << 19) -> tuple[bytes, object]:
    """(all that comes out, what ends it)."""
    failures: tuple[type[Exception], ...] = (ShardfsError, *codec.damage)
    stream, target, made = codec.stream(Bytes(stored), most), memoryview(bytearray(step)), b""
    try:
        while count := stream.readinto1(target):
            made += target[:count]
    except failures as error:
        return made, error
    return made, None


def zstd_window(data: bytes, log: int) -> bytes:
    """As from `zstd --long=LOG` in a pipe."""
    settings = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=log, enable_ldm=True, write_checksum=True
    )
    stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    return stream.compress(data) + stream.flush()


def xz_dictionary(stored: bytes, code: int) -> bytes:
    """An xz file whose first block says another size of the dictionary."""
    length = 4 * (stored[12] + 1)
    block = bytearray(stored[12 : 12 + length])
    block[block.index(b"\x21\x01") + 2] = code
    block[-4:] = struct.pack("<L", zlib.crc32(block[:-4]))
    return stored[:12] + bytes(block) + stored[12 + length :]


def lzma_dictionary(data: bytes, size: int) -> bytes:
    stored = lzma.compress(data, format=lzma.FORMAT_ALONE)
    return stored[:1] + struct.pack("<L", size) + stored[5:]


HUGE: dict[str, tuple[Codec, bytes]] = {
    "zstd": (Zstd, zstd_window(SMALL, 31)),
    # More than libzstd looks back over at all.
    "zstd-largest": (Zstd, (few := zstd_unsized(SMALL))[:5] + b"\xff" + few[6:]),
    "xz": (Xz, xz_dictionary(lzma.compress(SMALL), 36)),
    "xz-largest": (Xz, xz_dictionary(lzma.compress(SMALL, check=lzma.CHECK_SHA256), 40)),
    "xz-streams": (Xz, 2 * xz_dictionary(lzma.compress(SMALL[:18000]), 37)),
    "lzma": (Xz, lzma_dictionary(SMALL, 3 << 30)),
}


@pytest.mark.parametrize("kind", HUGE)
@pytest.mark.parametrize("most", [len(SMALL), 16 << 30])
def test_what_is_declared_does_not_matter(kind: str, most: int) -> None:
    codec, stored = HUGE[kind]
    assert content(codec, stored, most) == (SMALL, None)


_WITHIN = """
import resource, sys
from pathlib import Path
from shardfs.blob import Bytes, read_all
from shardfs.cache.memory import Memory
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.{module} import {name}
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
stored = Path(sys.argv[1]).read_bytes()
blob = Inflated(Bytes(stored), {name}, {size}, memory=Memory(1 << 20), limit=16 << 30)
assert bytes(read_all(blob)) == b"some words, " * 3000
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("kind", HUGE)
def test_room_is_taken_for_the_content_only(tmp_path: Path, kind: str) -> None:
    codec, stored = HUGE[kind]
    module, name = ("zstd", "Zstd") if codec is Zstd else ("xz", "Xz")
    (tmp_path / "stored").write_bytes(stored)
    program = _WITHIN.format(module=module, name=name, size=len(SMALL))
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "stored")], check=True)


FAR: dict[str, tuple[Codec, bytes]] = {
    "zstd": (Zstd, zstd_window(LARGE, 23)),
    "zstd-single": (Zstd, zstandard.ZstdCompressor(level=19).compress(LARGE)),
    "xz": (Xz, lzma.compress(LARGE)),
    "lzma": (Xz, lzma.compress(LARGE, format=lzma.FORMAT_ALONE)),
}


@pytest.mark.parametrize("kind", FAR)
def test_more_than_is_allowed_is_read_as_far_as_that_goes(kind: str) -> None:
    codec, stored = FAR[kind]
    assert content(codec, stored, len(LARGE)) == (LARGE, None)
    made, error = content(codec, stored, MIB)
    assert MIB <= len(made) <= MIB + (256 << 10)
    assert made == LARGE[: len(made)]
    assert isinstance(error, TooLarge)
    assert "--max-chunk-size" in error.message


def test_what_looks_back_less_may_be_longer() -> None:
    near = zstandard.ZstdCompressionParameters.from_level(1, window_log=19)
    stream = zstandard.ZstdCompressor(compression_params=near).compressobj()
    stored = stream.compress(LARGE) + stream.flush()
    assert content(Zstd, stored, MIB) == (LARGE, None)
    # Each frame for itself, also behind one that is only just allowed.
    parts = [LARGE[:MIB], LARGE[MIB : 2 * MIB], LARGE[2 * MIB : 3 * MIB]]
    frames = b"".join(zstd_window(part, 25) for part in parts)
    assert content(Zstd, frames, MIB) == (LARGE[: 3 * MIB], None)
    assert content(Xz, b"".join(map(lzma.compress, parts)), MIB) == (LARGE[: 3 * MIB], None)


def test_windows_by_their_codes() -> None:
    assert [window_of(code) for code in (0, 1, 8, 0xFF)] == [1024, 1152, 2048, 15 << 38]
    for head in (zstd_window(SMALL, 27)[:18], zstandard.compress(SMALL)[:18]):
        header = parse_header(head)
        other = parse_header(with_window(head, header, 5000))
        assert (other.window, other.size, other.tail) == (5120, header.size, header.tail)


def test_a_dictionary_that_is_small_enough_stays() -> None:
    stored = lzma.compress(SMALL, preset=6)
    assert limited(stored, 8 * MIB) == (stored, None)
    changed, said = limited(stored, 5 * MIB)
    assert said == 8 * MIB
    assert lzma.decompress(changed) == SMALL
    for cut in range(60):
        assert limited(stored[:cut], 4096)[0][:5] == stored[: min(cut, 5)]


# --- what is not supported ---


def zstd_dictionary() -> bytes:
    samples: list[Any] = [b"word %d and word %d" % (i, 7 * i) for i in range(2000)]
    dictionary = zstandard.train_dictionary(2000, samples)
    return zstandard.ZstdCompressor(dict_data=dictionary).compress(SMALL)


def lz4_flagged(flags: int) -> bytes:
    stored = bytearray(lz4(SMALL))
    stored[4] = flags
    return bytes(stored)


def xz_unknown_filter() -> bytes:
    stored = bytearray(lzma.compress(SMALL))
    stored[14] = 0x3A
    stored[20:24] = struct.pack("<L", zlib.crc32(stored[12:20]))
    return bytes(stored)


NOT_SUPPORTED: list[tuple[Codec, bytes, str]] = [
    (Zstd, zstd_dictionary(), "dictionary"),
    *((Zstd, bytes([n]) + b"\xb5\x2f\xfd" + SMALL, "v0") for n in (0x1E, 0x22, 0x27)),
    (Zstd, (sized := zstandard.compress(SMALL))[:4] + bytes([sized[4] | 8]) + sized[5:], "later"),
    (Lz4, lz4_flagged(0x41), "dictionary"),
    (Lz4, lz4_flagged(0x80), "later"),
    (Xz, xz_unknown_filter(), "filter"),
]
WRITE = {Zstd: zstandard.compress, Lz4: lz4, Xz: lzma.compress}


@pytest.mark.parametrize(("codec", "stored", "word"), NOT_SUPPORTED)
def test_a_limit_is_not_called_damage(codec: Codec, stored: bytes, word: str) -> None:
    error = content(codec, stored, 1 << 30)[1]
    assert isinstance(error, Unsupported)
    assert "not supported" in error.message
    assert word in error.message
    with pytest.raises(Unsupported, match=word):
        inflated(codec, stored).read(0, 1)


@pytest.mark.parametrize(("codec", "stored", "word"), NOT_SUPPORTED)
def test_what_is_before_it_can_be_read(codec: Codec, stored: bytes, word: str) -> None:
    before = WRITE[codec](SMALL)  # type: ignore[index]
    made, error = content(codec, before + stored, 1 << 30)
    assert (made, type(error)) == (SMALL, Unsupported)
    blob = inflated(codec, before + stored, 2 * len(SMALL))
    for _ in range(2):
        with pytest.raises(Unsupported, match=word):
            blob.read(0, len(SMALL) + 1)
    assert bytes(blob.read(0, len(SMALL))) == SMALL


def inflated(codec: Codec, stored: bytes, size: int = len(SMALL)) -> Inflated:
    return Inflated(Bytes(stored), codec, size, memory=Memory(1 << 30), limit=1 << 30)


@pytest.mark.parametrize(
    "filters", [[{"id": lzma.FILTER_X86}], [{"id": lzma.FILTER_DELTA, "dist": 3}]]
)
def test_filters_before_lzma(filters: list[dict[str, int]]) -> None:
    chain = [*filters, {"id": lzma.FILTER_LZMA2, "dict_size": 64 << 20}]
    stored = lzma.compress(LARGE[: 2 * MIB], filters=chain)
    assert content(Xz, stored, 2 * MIB) == (LARGE[: 2 * MIB], None)


# --- LZ4 by all writers ---


def lz4_legacy(data: bytes) -> bytes:
    """As from `lz4 -l`."""
    codec, stored = pa.Codec("lz4_raw"), struct.pack("<L", 0x184C2102)
    for at in range(0, len(data), 8 * MIB):
        block = bytes(codec.compress(data[at : at + 8 * MIB]))
        stored += struct.pack("<L", len(block)) + block
    return stored


@pytest.mark.parametrize("size", [1, 5000, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 17 * MIB])
def test_lz4_of_the_legacy_format(size: int) -> None:
    data = (SMALL * (size // len(SMALL) + 1))[:size]
    assert content(Lz4, lz4_legacy(data), 0) == (data, None)


def test_lz4_frames_of_all_kinds_one_after_another() -> None:
    stored = SKIPPABLE + lz4_legacy(SMALL) + lz4(SMALL) + SKIPPABLE + lz4_legacy(b"a") * 2
    stored += lz4(b"") + lz4_legacy(b"") + SKIPPABLE
    assert content(Lz4, stored, 0, step=1000) == (2 * SMALL + b"aa", None)
    made, error = content(Lz4, stored + b"no frame", 0)
    assert (made, type(error)) == (2 * SMALL + b"aa", Corrupt)


@pytest.mark.parametrize("place", [5, 9, 2000])
def test_damage_in_lz4_of_the_legacy_format(place: int) -> None:
    first, second = lz4_legacy(LARGE * 2), lz4_legacy(SMALL)
    assert len(LARGE) * 2 > 8 * MIB
    broken = bytearray(second)
    broken[place : place + 30] = b"\xff" * len(broken[place : place + 30])
    made, error = content(Lz4, first + bytes(broken), 0)
    if made != LARGE * 2 + SMALL:
        assert made == LARGE * 2
        assert isinstance(error, Corrupt)
    cut, error = content(Lz4, first[:-10], 0)
    assert (cut, type(error)) == ((LARGE * 2)[: 8 * MIB], Corrupt)


def test_xz_blocks_have_dictionaries_of_their_size() -> None:
    stored = xz_dictionary(xz_blocks(LARGE, MIB), 40)
    assert content(Xz, stored, len(LARGE)) == (LARGE, None)
    assert bytes(read_all(inflated(Xz, stored, len(LARGE)))) == LARGE
