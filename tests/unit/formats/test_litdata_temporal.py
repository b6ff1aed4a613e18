from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt
from shardfs.formats.litdata.temporal import Strided, TemporalReader, parse_group
from shardfs.model import Array
from tests.litdata_files import content

FIELDS: dict[str, Any] = {
    "x": {"dtype": "<f4", "shape": [2, 3], "tensor": True},
    "flag": {"dtype": "|b1", "shape": [], "tensor": False},
    "time": {"dtype": "<i8", "shape": [], "tensor": False},
    "wave": {"dtype": "<c8", "shape": [3], "tensor": False},
}
SCHEMA: dict[str, Any] = {
    "version": 1,
    "fields": FIELDS,
    "field_order": list(FIELDS),
    "groups": [["flag", "time", "wave"], ["x"]],
}


def numpy_dtype(names: list[str]) -> np.dtype[Any]:
    rows = [(name, FIELDS[name]["dtype"], tuple(FIELDS[name]["shape"])) for name in names]
    return np.dtype(rows, align=True)


def written(frames: int) -> tuple[bytes, dict[str, np.ndarray[Any, Any]]]:
    """A record as TemporalArrayLoader writes it, and the arrays in it."""
    random = np.random.default_rng(frames)
    arrays = {
        name: random.integers(0, 2, (frames, *field["shape"])).astype(field["dtype"])
        for name, field in FIELDS.items()
    }
    data = struct.pack("<I", frames)
    for names in SCHEMA["groups"]:
        packed = np.zeros(frames, numpy_dtype(names))
        for name in names:
            packed[name] = arrays[name]
        data += packed.tobytes()
    return data, arrays


@pytest.mark.parametrize("frames", [1, 2, 7])
def test_every_array_is_a_field_in_the_order_of_the_record(frames: int) -> None:
    data, arrays = written(frames)
    fields = TemporalReader(SCHEMA).fields(Bytes(data))
    assert [field.name for field in fields] == list(FIELDS)
    for field in fields:
        expected = arrays[field.name]
        assert field.kind == Array(FIELDS[field.name]["dtype"], expected.shape)
        assert content(field.data) == expected.tobytes()
        assert field.data.size() == expected.nbytes


@pytest.mark.parametrize(
    "names",
    [["flag", "time"], ["time", "flag"], ["wave", "flag", "x"], ["x", "wave", "time", "flag"]],
)
def test_rows_are_laid_out_like_numpy_does(names: list[str]) -> None:
    group, dtype = parse_group(names, FIELDS), numpy_dtype(names)
    assert group.stride == dtype.itemsize
    assert dtype.fields is not None
    assert [column.offset for column in group.columns] == [dtype.fields[name][1] for name in names]


@pytest.mark.parametrize("change", [b"", b"\0", None])
def test_a_record_that_is_no_whole_number_of_rows_is_corrupt(change: bytes | None) -> None:
    data, _ = written(3)
    damaged = {b"": data[:-1], b"\0": data + b"\0", None: b"\xff\xff\xff\xff" + data[4:]}[change]
    with pytest.raises(Corrupt):
        TemporalReader(SCHEMA).fields(Bytes(damaged))


def test_a_strided_column_reads_at_any_offset() -> None:
    rows = np.arange(60, dtype="u1").reshape(10, 6)
    column, expected = Strided(Bytes(rows.tobytes()), 6, 2, 3), rows[:, 2:5].tobytes()
    for offset in range(32):
        for length in (0, 1, 2, 3, 4, 7, 30, 99):
            assert bytes(column.read(offset, length)) == expected[offset : offset + length]
