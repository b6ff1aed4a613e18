"""Places to start from in compressed files: what is found, and what is not believed."""

from __future__ import annotations

import gzip
import lzma
import random
import struct
import zlib
from array import array
from typing import TYPE_CHECKING

import pytest
import zstandard

from shardfs.blob import Bytes, Slice, read_all
from shardfs.cache.memory import Memory
from shardfs.codecs import gzip_points, xz_blocks, zstd_frames
from shardfs.codecs.gzip_points import GzipPoints
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.pieces import Piece, Pieced, PieceTable, Unsuited
from shardfs.codecs.xz_blocks import XzBlocks, parse_index
from shardfs.codecs.zstd_frames import ZstdFrames
from shardfs.errors import Corrupt
from tests import packed_files as packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.codecs.pieces import Indexer

CHANCE = random.Random(3)
CONTENT = b"".join(CHANCE.randbytes(9_000) + b"words and words " * 900 for _ in range(20))
LARGEST = 1 << 20


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_points, "_SPACING", 40_000)
    monkeypatch.setattr(gzip_points, "_STEP", 8_000)
    monkeypatch.setattr(gzip_points, "_MEMBER_SPACING", 20_000)
    monkeypatch.setattr(zstd_frames, "_GROUP", 20_000)


def found(indexer: Indexer, stored: bytes, largest: int = LARGEST) -> list[Piece]:
    return list(indexer.pieces(Bytes(stored), largest))


def opened(indexer: Indexer, stored: bytes, piece: Piece) -> bytes:
    part = Slice(Bytes(stored), piece.first, piece.last - piece.first)
    blob, codec = indexer.open(part, piece.state)
    return bytes(
        read_all(Inflated(blob, codec, piece.size, memory=Memory(1 << 30), limit=piece.size))
    )


@pytest.mark.parametrize(
    ("indexer", "stored", "count"),
    [
        (GzipPoints(), gzip.compress(CONTENT, mtime=0), 10),
        (GzipPoints(), packed.gzip_members(CONTENT, 30_000, 5), 16),
        (GzipPoints(), packed.gzip_flushed(CONTENT, 5_000), 12),
        (ZstdFrames(), packed.zstd_frames(CONTENT, 30_000), 16),
        (ZstdFrames(), packed.zstd_frames(CONTENT, 5_000), 24),
        (ZstdFrames(), packed.zstd_frames(CONTENT, 30_000, skippable=True, sized=False), 16),
        (ZstdFrames(), packed.zstd_seekable(CONTENT, 30_000), 16),
        (XzBlocks(), packed.xz_blocks(CONTENT, 30_000), 16),
        (XzBlocks(), packed.xz_blocks(CONTENT, 30_001, lzma.CHECK_SHA256), 16),
        (XzBlocks(), lzma.compress(CONTENT), 1),
    ],
)
def test_pieces_stand_for_themselves(indexer: Indexer, stored: bytes, count: int) -> None:
    pieces = found(indexer, stored)
    assert sum(piece.size for piece in pieces) == len(CONTENT)
    assert len(pieces) in range(count - 3, count + 4)
    at = 0
    for piece in pieces:
        expected = CONTENT[at : at + piece.size]
        assert piece.content in (None, expected)
        assert opened(indexer, stored, piece) == expected
        at += piece.size


def test_a_gzip_block_may_begin_at_any_bit() -> None:
    stored = gzip.compress(CONTENT * 8)
    pieces = found(GzipPoints(), stored)
    assert {piece.state[0] for piece in pieces if piece.state} == set(range(8))


def test_with_more_behind_it_the_distance_between_places_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gzip_points, "_SPREAD", 4)
    sizes = [piece.size for piece in found(GzipPoints(), gzip.compress(CONTENT * 8))]
    assert max(sizes[:3]) < 100_000
    assert 400_000 < max(sizes) < LARGEST


# --- what is not believed ---


@pytest.mark.parametrize(
    ("indexer", "stored"),
    [
        (GzipPoints(), gzip.compress(CONTENT, mtime=0)[:-1]),
        (GzipPoints(), gzip.compress(CONTENT, mtime=0)[:-9] + bytes(9)),
        (GzipPoints(), gzip.compress(CONTENT, mtime=0) + b"garbage"),
        (ZstdFrames(), packed.zstd_frames(CONTENT, 30_000)[:-1]),
        (ZstdFrames(), packed.zstd_frames(CONTENT, 30_000) + b"gar"),
        (ZstdFrames(), packed.zstd_unsized(CONTENT)[:-5] + bytes(5)),
        (XzBlocks(), lzma.compress(CONTENT)[:-1]),
        (XzBlocks(), lzma.compress(CONTENT) + b"garbage"),
        (XzBlocks(), lzma.compress(CONTENT)[3:]),
        (XzBlocks(), b""[:0] + b"x" * 5),
    ],
)
def test_damage_is_told(indexer: Indexer, stored: bytes) -> None:
    with pytest.raises(Corrupt):
        found(indexer, stored)


@pytest.mark.parametrize(
    ("indexer", "stored"),
    [
        (GzipPoints(), zlib.compressobj(9, wbits=31, memLevel=9)),
        (ZstdFrames(), zstandard.compress(CONTENT)),
        (ZstdFrames(), packed.zstd_unsized(CONTENT)),
        (ZstdFrames(), packed.zstd_seekable(CONTENT, len(CONTENT))),
        (XzBlocks(), lzma.compress(CONTENT)),
    ],
)
def test_too_large_pieces_are_none(indexer: Indexer, stored: object) -> None:
    if not isinstance(stored, bytes):
        deflate = zlib.compressobj(9, wbits=31, memLevel=9)
        stored = deflate.compress(bytes(1 << 20)) + deflate.flush()
    with pytest.raises((Unsuited, Corrupt)):
        found(indexer, stored, 100_000)


def seek_table(*rows: tuple[int, int], count: int | None = None) -> bytes:
    body = b"".join(struct.pack("<2L", *row) for row in rows)
    footer = struct.pack("<LBL", len(rows) if count is None else count, 0, 0x8F92EAB1)
    return struct.pack("<2L", 0x184D2A5E, len(body) + len(footer)) + body + footer


FRAMES = packed.zstd_frames(CONTENT, 30_000)


@pytest.mark.parametrize(
    "table",
    [
        seek_table((len(FRAMES) - 1, len(CONTENT))),
        seek_table((len(FRAMES) + 1, len(CONTENT))),
        seek_table((len(FRAMES), len(CONTENT)), count=2),
        seek_table((len(FRAMES), len(CONTENT)), count=1 << 30),
    ],
)
def test_a_seek_table_that_does_not_fit_is_passed_over(table: bytes) -> None:
    assert len(found(ZstdFrames(), FRAMES + table)) == 16


def test_a_seek_table_that_lies_about_sizes_is_an_error_not_wrong_bytes() -> None:
    stored = FRAMES + seek_table((len(FRAMES), len(CONTENT) - 5))
    (piece,) = found(ZstdFrames(), stored)
    with pytest.raises(Corrupt):
        opened(ZstdFrames(), stored, piece)


def xz_with(count: int, *numbers: bytes, flags: bytes = b"\0\4") -> bytes:
    header = b"\xfd7zXZ\0" + flags + struct.pack("<L", zlib.crc32(flags))
    return header + packed.xz_index(count, b"".join(numbers), flags)


@pytest.mark.parametrize(
    "stored",
    [
        xz_with(1, b"\x08", b"\x01"),  # a block that is not there
        xz_with(2, b"\x08", b"\x01"),  # fewer records than said
        xz_with(1, b"\xff" * 10, b"\x01"),  # a number without end
        xz_with(0)[:-1] + b"X",
        b"\0" * 4 + xz_with(0)[4:],
    ],
)
def test_an_xz_index_that_lies(stored: bytes) -> None:
    with pytest.raises(Corrupt):
        found(XzBlocks(), stored)


def test_an_xz_file_without_blocks_is_empty() -> None:
    assert found(XzBlocks(), xz_with(0)) == []
    assert lzma.decompress(xz_with(0)) == b""


def test_too_many_parts_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xz_blocks, "_MAX_PARTS", 10)
    with pytest.raises(Unsuited):
        found(XzBlocks(), packed.xz_blocks(CONTENT, 30_000))
    with pytest.raises(Unsuited):
        found(XzBlocks(), xz_with(0) * 11)
    with pytest.raises(Unsuited):
        parse_index(struct.pack("<4B", 0, 100, 0, 0) + struct.pack("<L", zlib.crc32(b"\0\x64\0\0")))


# --- the table ---


def table(*pieces: Piece) -> PieceTable:
    made = PieceTable()
    for piece in pieces:
        made.append(piece)
    return made


def test_a_table_comes_back_from_disk_as_it_was() -> None:
    made = table(Piece(0, 10, 100), Piece(9, 20, 1, b"state"), Piece(20, 30, 50, b"s"))
    again = PieceTable.load(Bytes(made.pack()), 30)
    assert (len(again), again.size) == (3, 151)
    assert [again.state(number) for number in range(3)] == [b"", b"state", b"s"]
    assert (again.ends, again.firsts, again.lasts) == (made.ends, made.firsts, made.lasts)
    assert len(PieceTable.load(Bytes(PieceTable().pack()), 30)) == 0


def packed_table(*columns: list[int], count: int | None = None) -> bytes:
    content = struct.pack("<I", len(columns[0]) if count is None else count)
    return content + b"".join(array("Q", column).tobytes() for column in columns)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\1\0",
        packed_table([10], [0], [31], [0, 0]),  # reaches beyond the file
        packed_table([10], [6], [5], [0, 0]),  # ends before it begins
        packed_table([10, 10], [0, 5], [5, 9], [0, 0, 0]),  # an empty piece
        packed_table([10, 9], [0, 5], [5, 9], [0, 0, 0]),  # a negative one
        packed_table([10], [0], [5], [0, 0], count=1 << 31),  # more than there are
        packed_table([10], [0], [5], [0, 0])[:-9],
    ],
)
def test_what_is_no_table(content: bytes) -> None:
    with pytest.raises(Corrupt):
        PieceTable.load(Bytes(content), 30)


def test_a_state_that_lies_outside_of_the_table_is_damage() -> None:
    loaded = PieceTable.load(Bytes(packed_table([10], [0], [5], [0, 999])), 30)
    with pytest.raises(Corrupt):
        loaded.state(0)


class Broken:
    """Finds two pieces, then fails in a way that nobody thought of."""

    def pieces(self, blob: object, largest: int, /) -> Iterator[Piece]:
        yield Piece(0, 1, 5, b"", b"12345")
        yield Piece(1, 2, 5, b"", b"67890")
        raise MemoryError

    def open(self, part: Bytes, state: bytes, /) -> tuple[Bytes, type]:
        from shardfs.codecs.zstd import Zstd

        return part, Zstd


def test_a_search_that_failed_does_not_look_as_if_it_had_ended() -> None:
    blob = Pieced(
        Bytes(b"ab"),
        Broken(),  # type: ignore[arg-type]
        memory=Memory(1 << 20),
        largest=100,
        kept=None,
        keep=lambda table: None,
    )
    for _ in range(3):
        with pytest.raises(MemoryError):
            blob.size()
    assert bytes(blob.read(3, 4)) == b"4567"
