from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes, Slice, no_wait, read_all
from shardfs.errors import Corrupt, Unreadable, WouldBlock
from shardfs.formats.mds.index import Column
from shardfs.formats.mds.shard import MdsShard
from shardfs.model import Array, Plain, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob

COLUMNS = (Column("name", "str"), Column("number", "int16", 2), Column("array", "ndarray:uint8"))
ARRAY = b"\x04\x02xy"


def written(
    records: Sequence[Sequence[bytes]], columns: Sequence[Column] = COLUMNS, config: bytes = b"{}"
) -> bytes:
    """A shard as the library's writer makes it."""
    samples = []
    for record in records:
        varying = [len(v) for v, c in zip(record, columns, strict=True) if c.size is None]
        samples.append(struct.pack(f"<{len(varying)}I", *varying) + b"".join(record))
    offsets = [4 * (len(records) + 2) + len(config)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    table = struct.pack(f"<{len(offsets) + 1}I", len(records), *offsets)
    return table + config + b"".join(samples)


def config(columns: Sequence[Column]) -> bytes:
    return json.dumps(
        {
            "version": 2,
            "column_names": [column.name for column in columns],
            "column_encodings": [column.encoding for column in columns],
            "column_sizes": [column.size for column in columns],
        }
    ).encode()


def opened(data: bytes | Blob, samples: int | None = None) -> MdsShard:
    blob = Bytes(data) if isinstance(data, bytes) else data
    return MdsShard(blob, COLUMNS, samples=samples, costly=False)


def values(shard: MdsShard, index: int) -> list[bytes]:
    return [bytes(read_all(field.data)) for field in shard.fields(index)]


RECORDS = [(b"first", b"\1\0", ARRAY), (b"", b"\2\0", ARRAY), (b"third", b"\3\0", ARRAY)]
DATA = written(RECORDS)


def test_fields_are_the_stored_bytes() -> None:
    shard = opened(DATA, 3)
    assert len(shard) == 3
    assert shard.columns == ["name", "number", "array"]
    for index, record in enumerate(RECORDS):
        assert values(shard, index) == list(record)
    kinds = [field.kind for field in shard.fields(0)]
    assert kinds == [Plain(".txt"), Scalar("<i2"), Array("|u1", (2,), 2)]


def test_records_are_numbered() -> None:
    shard = opened(DATA, 3)
    assert [shard.key(index) for index in range(3)] == ["000000", "000001", "000002"]
    assert shard.find("000002") == 2
    assert shard.find("000003") is None


def test_fields_are_slices_of_the_shard() -> None:
    blob = Bytes(DATA)
    for field in opened(blob).fields(0):
        assert isinstance(field.data, Slice)
        assert field.data.parent is blob


def test_columns_of_fixed_size_need_no_sizes() -> None:
    columns = (Column("a", "uint8", 1), Column("b", "int", 8))
    data = written([(b"\7", bytes(8))], columns)
    shard = MdsShard(Bytes(data), columns, samples=1, costly=False)
    assert values(shard, 0) == [b"\7", bytes(8)]


def test_a_shard_without_records() -> None:
    assert len(opened(written([]), 0)) == 0


def test_a_shard_without_an_index_knows_its_columns() -> None:
    data = written(RECORDS, config=config(COLUMNS))
    shard = MdsShard(Bytes(data), None, samples=None, costly=False)
    assert shard.columns == ["name", "number", "array"]
    assert values(shard, 2) == list(RECORDS[2])


@pytest.mark.parametrize("text", [b"", b"{}", b"not JSON", b'{"version": 2}', bytes(1 << 21)])
def test_a_shard_without_an_index_and_columns_is_damage(text: bytes) -> None:
    with pytest.raises(Corrupt, match=r"config text|column names"):
        MdsShard(Bytes(written(RECORDS, config=text)), None, samples=None, costly=False)


def test_the_index_may_say_too_much_but_not_too_little() -> None:
    assert len(opened(DATA, 9)) == 3
    with pytest.raises(Corrupt):
        opened(DATA, 2)


def changed(at: int, number: int) -> MdsShard:
    """The shard with another u32 at *at*."""
    data = bytearray(DATA)
    struct.pack_into("<I", data, at, number)
    return opened(bytes(data), 3)


FIRST = 4 * 5 + len(b"{}")  # where the first record begins


@pytest.mark.parametrize("size", [4, 6, 0xFFFFFFFF])
def test_sizes_that_do_not_come_to_the_record_are_damage(size: int) -> None:
    shard = changed(FIRST, size)
    with pytest.raises(Corrupt, match="has values of"):
        shard.fields(0)
    assert values(shard, 1) == list(RECORDS[1])


def test_a_record_too_short_for_its_sizes_is_damage() -> None:
    shard = changed(8, FIRST + 7)
    for index in (0, 1):
        with pytest.raises(Corrupt):
            shard.fields(index)
    assert values(shard, 2) == list(RECORDS[2])


@pytest.mark.parametrize("offset", [0, 4, 19, len(DATA) + 1, 0xFFFFFFFF])
def test_an_offset_outside_of_the_records_harms_its_two_records(offset: int) -> None:
    shard = changed(8, offset)
    for index in (0, 1):
        with pytest.raises(Corrupt):
            shard.fields(index)
    assert values(shard, 2) == list(RECORDS[2])


def test_a_cut_shard_has_its_first_records() -> None:
    shard = opened(DATA[:-1], 3)
    assert values(shard, 1) == list(RECORDS[1])
    with pytest.raises(Corrupt):
        shard.fields(2)


class Flaky(Bytes):
    """Bytes of which those from *bad* on can't be read."""

    def __init__(self, data: bytes, bad: int, error: Exception) -> None:
        super().__init__(data)
        self._bad, self._error = bad, error

    def read(self, offset: int, length: int, /) -> memoryview:
        if offset + length > self._bad:
            raise self._error
        return super().read(offset, length)


def test_a_value_that_cannot_be_looked_into_fails_alone() -> None:
    array_begins = FIRST + 8 + len(b"first") + 2
    shard = opened(Flaky(DATA, array_begins, Unreadable("no network")), 3)
    name, number, array = shard.fields(0)
    assert bytes(read_all(name.data)) == b"first"
    assert bytes(read_all(number.data)) == b"\1\0"
    with pytest.raises(Unreadable, match="no network"):
        array.data.size()


def test_a_look_without_waiting_is_no_fault() -> None:
    shard = opened(Flaky(DATA, FIRST + 8, WouldBlock()), 3)
    with no_wait(), pytest.raises(WouldBlock):
        shard.fields(0)


def test_a_record_costs_two_offsets_and_its_sizes() -> None:
    class Counted(Bytes):
        read_bytes = 0

        def read(self, offset: int, length: int, /) -> memoryview:
            Counted.read_bytes += length
            return super().read(offset, length)

    columns = (Column("text", "str"),)
    blob = Counted(written([(b"x" * 1000,)] * 1000, columns))
    shard = MdsShard(blob, columns, samples=1000, costly=False)
    shard.fields(500)
    assert Counted.read_bytes == 4 + 8 + 4
