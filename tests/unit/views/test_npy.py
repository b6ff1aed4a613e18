from __future__ import annotations

import io
import json

import numpy as np
import pytest

from shardfs.blob import Bytes
from shardfs.model import Array, Field, Plain
from shardfs.views import npy


def shown(
    dtype: str, shape: tuple[int, ...], data: bytes, skip: int = 0, name: str = "x"
) -> tuple[str, bytes] | None:
    files = npy.present(Field(name, Array(dtype, shape, skip), Bytes(data)))
    if files is None:
        return None
    (file,) = files
    assert file.stem == name
    return file.extension, bytes(file.blob.read(0, file.blob.size()))


NUMBERS = (
    "|b1",
    "|i1",
    "|u1",
    "<i2",
    ">i2",
    "<u4",
    "<i8",
    "<f2",
    "<f4",
    ">f4",
    "<f8",
    "<c8",
    "<c16",
)
OTHERS = ("<M8[ns]", "<m8[s]", "|S5", "<U3", "|V7")


@pytest.mark.parametrize("dtype", NUMBERS + OTHERS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 3), (1, 2, 1, 2)])
def test_numpy_loads_what_was_stored(dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    stored = bytes(range(1, 1 + np.dtype(dtype).itemsize * count))
    if dtype == "<U3":
        stored = "abc".encode("utf-32-le") * count
    got = shown(dtype, shape, b"head" + stored, skip=4)
    assert got is not None
    extension, content = got
    array = np.load(io.BytesIO(content), allow_pickle=False)
    assert extension == ".npy"
    assert (array.dtype.str, array.shape) == (dtype, shape)
    assert array.tobytes() == stored
    assert (len(content) - len(stored)) % 64 == 0


def test_the_header_is_the_one_that_numpy_writes() -> None:
    buffer = io.BytesIO()
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    np.save(buffer, array)
    assert shown("<f4", (3, 4), array.tobytes()) == (".npy", buffer.getvalue())


def test_many_dimensions() -> None:
    got = shown("|u1", (1,) * 60, b"\7")
    assert got is not None
    assert np.load(io.BytesIO(got[1])).shape == (1,) * 60


@pytest.mark.parametrize(
    ("dtype", "name", "width"),
    [
        ("bfloat16", "BF16", 2),
        ("float8_e4m3fn", "F8_E4M3", 1),
        ("float8_e5m2", "F8_E5M2", 1),
    ],
)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_types_without_a_name_in_npy(
    dtype: str, name: str, width: int, shape: tuple[int, ...]
) -> None:
    stored = bytes(range(int(np.prod(shape)) * width))
    got = shown(dtype, shape, b"!" + stored, skip=1, name="weights")
    assert got is not None
    extension, content = got
    length = int.from_bytes(content[:8], "little")
    assert extension == ".safetensors"
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length]) == {
        "weights": {"dtype": name, "shape": list(shape), "data_offsets": [0, len(stored)]}
    }
    assert content[8 + length :] == stored


@pytest.mark.parametrize("name", ["", "__metadata__"])
def test_a_tensor_always_has_a_name(name: str) -> None:
    got = shown("bfloat16", (1,), b"ab", name=name)
    assert got is not None
    assert b'{"data":{' in got[1]


@pytest.mark.parametrize(
    ("dtype", "shape", "size", "skip"),
    [
        ("<f4", (2,), 7, 0),
        ("<f4", (2,), 9, 0),
        ("<f4", (2,), 8, 1),
        ("<f4", (), 0, 0),
        ("<f4", (0,), 0, 1),
        ("<f4", (-2, -1), 8, 0),
        ("<f4", (1 << 62, 1 << 62), 8, 0),
        ("|u1", (1,) * 40_000, 1, 0),
        ("|O", (1,), 8, 0),
        ("<f4,<i4", (1,), 8, 0),
        ("f4", (1,), 4, 0),
        ("|S0", (2,), 0, 0),
        ("float8_e3m4", (1,), 1, 0),
        ("bfloat16", (2,), 3, 0),
        ("<f4\n", (1,), 4, 0),
    ],
)
def test_what_does_not_add_up_is_left_to_the_stored_bytes(
    dtype: str, shape: tuple[int, ...], size: int, skip: int
) -> None:
    assert shown(dtype, shape, bytes(size), skip) is None


def test_other_kinds_are_not_its_business() -> None:
    assert npy.present(Field("x", Plain(".npy"), Bytes(b"1"))) is None
