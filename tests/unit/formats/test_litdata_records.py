from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import zstandard

from shardfs.blob import Bytes, Slice, no_wait, stored_at
from shardfs.errors import Corrupt, NoKey, Unsupported, WouldBlock
from shardfs.formats.litdata.chunk import ChunkShard
from shardfs.formats.litdata.leaves import leaf_type
from shardfs.formats.litdata.readers import (
    Near,
    PyTreeReader,
    WholeReader,
    count_leaves,
    guess_reader,
)
from shardfs.formats.litdata.records import (
    BlockRecords,
    FrameRecords,
    LockedRecords,
    PackedRecords,
    TableRecords,
)
from shardfs.formats.shared.offsets import OffsetTable
from shardfs.model import Encoded, Plain
from tests.fakes import FakeServices, SlowBlob
from tests.litdata_files import chunk, content, contents, framed, record

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.formats.litdata.records import Records

NAMES = ("image", "label", "caption")
READER = PyTreeReader([(name, leaf_type("bytes")) for name in NAMES])
ROWS = [record(b"i" * n, bytes(8), b"c%d" % n) for n in range(7)]


def table(blob: Blob) -> TableRecords:
    return TableRecords(OffsetTable.of(blob, None))


def test_a_classic_chunk() -> None:
    shard = ChunkShard(table(Bytes(chunk(*ROWS))), READER, costly=False)
    assert len(shard) == 7
    assert shard.columns == NAMES
    assert contents(shard, 3) == {"image": b"iii", "label": bytes(8), "caption": b"c3"}
    with pytest.raises(IndexError):
        shard.fields(7)


def test_a_record_costs_two_reads_of_a_few_kilobytes() -> None:
    blob = SlowBlob(chunk(*[record(bytes(100_000), bytes(8), b"c")] * 50))
    records = table(blob)
    blob.reads.clear()
    fields = READER.fields(records.record(20))
    assert [length for _, length in blob.reads] == [8, 12 + 4096]
    assert fields[0].data.size() == 100_000


def test_small_fields_are_at_hand_with_the_sizes() -> None:
    blob = SlowBlob(chunk(record(b"a", b"bb", bytes(10_000)), record(b"a", b"bb", b"ccc")))
    first, second, third = READER.fields(table(blob).record(0))
    assert (stored_at(first.data), content(second.data)) == (None, b"bb")
    blob.reads.clear()
    with no_wait():
        assert (content(first.data), content(second.data)) == (b"a", b"bb")
        assert bytes(third.data.read(0, 100)) == bytes(100)
        with pytest.raises(WouldBlock):
            third.data.read(5000, 1)
    assert not blob.reads


def test_near_bytes_read_like_the_slice_they_are() -> None:
    whole = bytes(range(100))
    near, plain = Near(Bytes(whole), 10, 50, memoryview(whole)[10:30]), Slice(Bytes(whole), 10, 50)
    for offset in (0, 5, 19, 20, 25, 49, 50, 60):
        for length in (0, 1, 10, 100):
            assert near.read(offset, length) == plain.read(offset, length)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\1\0\0\0",
        record(b"a", b"b"),
        record(b"a", b"b", b"c") + b"!",
        record(b"a", b"b", b"c")[:-1],
        struct.pack("<3I", 0xFFFFFF00, 1, 1) + b"abc",
    ],
)
def test_a_record_whose_sizes_do_not_fill_it_is_corrupt(stored: bytes) -> None:
    with pytest.raises(Corrupt):
        READER.fields(Bytes(stored))


def test_a_truncated_chunk_is_read_as_far_as_it_goes() -> None:
    whole = chunk(*ROWS)
    cut = len(whole) - len(ROWS[6]) - 1
    shard = ChunkShard(table(Bytes(whole[:cut])), READER, costly=False)
    assert contents(shard, 4)["caption"] == b"c4"
    for index in (5, 6):
        with pytest.raises(Corrupt):
            shard.fields(index)


# --- frames ------------------------------------------------------------------------------------------------


def frames(data: bytes, expected: int | None = None) -> FrameRecords:
    return FrameRecords(Bytes(data), expected, FakeServices())


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_records_in_frames(step: int) -> None:
    records = frames(framed(*ROWS, step=step), 7)
    assert len(records) == 7
    assert [content(records.record(index)) for index in range(7)] == ROWS
    with pytest.raises(IndexError):
        records.record(7)


def test_a_frame_is_decompressed_once() -> None:
    blob = SlowBlob(framed(*ROWS, step=4))
    records = FrameRecords(blob, None, FakeServices())
    content(records.record(0))
    blob.reads.clear()
    assert [content(records.record(index)) for index in (0, 1, 2, 3)] == ROWS[:4]
    assert all(length == 4 for _, length in blob.reads)  # offsets only


def test_all_readers_of_a_frame_share_its_decompression() -> None:
    records = frames(framed(*ROWS, step=4))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(records.record, [0, 1, 2, 3] * 8))
    assert len({id(part.parent) for part in found if isinstance(part, Slice)}) == 1


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (12, 8, "says it holds 8 records, but the index says 7"),
        (12, 0xFFFFFFFF, "says it holds 4294967295"),
        (16, 0, "frames of 0"),
        (16, 3, "frames of 3"),
        (20, 3, "in 3 frames"),
    ],
)
def test_a_head_that_lies_is_corrupt(at: int, value: int, message: str) -> None:
    data = bytearray(framed(*ROWS, step=4))
    data[at : at + 4] = struct.pack("<I", value)
    with pytest.raises(Corrupt, match=message):
        frames(bytes(data), 7)


def test_a_table_that_does_not_fit_is_corrupt() -> None:
    data = struct.pack("<8sHHIII", b"LDFZ01\0\0", 1, 0, 1 << 31, 1 << 31, 1)
    with pytest.raises(Corrupt, match="too short for a table"):
        frames(data)
    with pytest.raises(Corrupt, match="head of a chunk"):
        frames(data[:20])


def test_another_version_of_frames_is_unsupported() -> None:
    data = bytearray(framed(*ROWS, step=4))
    data[8] = 2
    with pytest.raises(Unsupported, match="version 2"):
        frames(bytes(data))


@pytest.mark.parametrize("at", range(24 + 32, 24 + 32 + 24, 4))
def test_a_frame_that_lies_harms_its_own_records_only(at: int) -> None:
    data = bytearray(framed(*ROWS, step=4))
    data[at : at + 4] = struct.pack("<I", 0x7FFFFFF0)
    records = frames(bytes(data), 7)
    for index in range(4):
        with pytest.raises(Corrupt):
            content(records.record(index))
    assert [content(records.record(index)) for index in (4, 5, 6)] == ROWS[4:]


def test_offsets_out_of_their_frame_are_corrupt() -> None:
    data = bytearray(framed(*ROWS, step=4))
    data[24 + 4 : 24 + 8] = struct.pack("<I", 0x7FFFFFF0)  # where record 0 ends
    records = frames(bytes(data), 7)
    for index in (0, 1):
        with pytest.raises(Corrupt, match="its frame reaches"):
            records.record(index)
    assert content(records.record(2)) == ROWS[2]


# --- other records -----------------------------------------------------------------------------------------


def test_blocks_leave_out_the_tail() -> None:
    records = BlockRecords(Slice(Bytes(b"..0123456789"), 2, 10), 4)
    assert [content(records.record(index)) for index in range(len(records))] == [b"0123", b"4567"]
    with pytest.raises(IndexError):
        records.record(2)


def test_blocks_beyond_a_truncated_chunk_are_corrupt() -> None:
    records = BlockRecords(Slice(Bytes(b"..01234"), 2, 8), 4)
    assert content(records.record(0)) == b"0123"
    with pytest.raises(Corrupt):
        records.record(1)


def test_packed_records_are_unpacked_once_while_they_are_in_use() -> None:
    made: list[Blob] = []

    def unpack(blob: Blob) -> Blob:
        made.append(blob)
        return Bytes(content(blob)[::-1])

    records = PackedRecords(table(Bytes(chunk(b"ab", b"cd"))), unpack)
    assert len(records) == 2
    assert [content(records.record(index)) for index in (0, 1, 0, 1)] == [
        b"ba",
        b"dc",
        b"ba",
        b"dc",
    ]
    assert len(made) == 2


def test_locked_records_have_names_and_kinds() -> None:
    reader = PyTreeReader([("a", leaf_type("jpeg")), ("b", leaf_type("numpy"))])
    shard = ChunkShard(LockedRecords(3, NoKey("locked")), reader, costly=True)
    assert len(shard) == 3
    fields = shard.fields(2)
    assert [(field.name, field.kind) for field in fields] == [
        ("a", Encoded(".jpg")),
        ("b", Plain(".npy")),
    ]
    with pytest.raises(NoKey, match="locked"):
        fields[0].data.read(0, 1)


# --- guesses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (ROWS, ["0", "1", "2"]),
        ([record(b"")], ["0"]),
        ([record(b"x" * 9, b"")], ["0", "1"]),
        ([b"no sizes", b"at all"], ["data"]),
        ([record(b"a"), record(b"a", b"b")], ["data"]),
        ([], ["data"]),
    ],
)
def test_unknown_leaves_are_found_by_their_sizes(rows: list[bytes], names: list[str]) -> None:
    records: Records = table(Bytes(chunk(*rows)))
    reader = guess_reader(records)
    assert [name for name, _ in reader.declared] == names
    for index, row in enumerate(rows):
        fields = reader.fields(records.record(index))
        assert {field.kind for field in fields} == {Encoded()}
        assert b"".join(content(field.data) for field in fields) == row[
            4 * len(fields) :
        ] or names == ["data"]


def test_damaged_records_do_not_spoil_the_guess() -> None:
    data = chunk(*ROWS)
    reader = guess_reader(table(Bytes(data[: -len(ROWS[6]) - 1])))
    assert len(reader.declared) == 3


@pytest.mark.parametrize(
    ("head", "size", "count"),
    [
        (b"", 0, None),
        (record(b"a", b"b"), 10, 2),
        (record(b"a", b"b"), 11, None),
        (b"\xff\xff\xff\xff", 4, None),
        (bytes(400), 400, 100),
        (bytes(400), 404, None),
    ],
)
def test_counting_leaves(head: bytes, size: int, count: int | None) -> None:
    assert count_leaves(memoryview(head), size) == count


def test_a_whole_record_as_one_field() -> None:
    (field,) = WholeReader("data", leaf_type("no_header_numpy:9")).fields(Bytes(bytes(12)))
    assert (field.name, content(field.data)) == ("data", bytes(12))


def test_zstd_records_of_unknown_size_are_measured() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(ROWS[5])
    services = FakeServices()
    records = PackedRecords(
        table(Bytes(chunk(frame))), lambda blob: services.inflate(blob, "zstd", None)
    )
    assert records.record(0).size() == len(ROWS[5])
    assert content(READER.fields(records.record(0))[0].data) == b"iiiii"
