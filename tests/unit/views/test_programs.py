"""Pickles, fonts, archives and other files of programs, as these write them."""

from __future__ import annotations

import collections
import datetime
import gzip
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest
import zstandard

from tests.packed_files import lz4, zstd_unsized
from tests.unit.views.samples import sniff

DATA = Path(__file__).parents[2] / "data/views"
VALUES: list[Any] = [
    {"a": 1, "b": [1.5, None, True]},
    list(range(3000)),
    [f"text {n}" for n in range(2000)],
    b"x" * 9000,
    np.arange(12.0).reshape(3, 4),
    collections.OrderedDict(a=datetime.datetime(2024, 1, 1)),
    (1 << 70, "é" * 300, {1, 2}, frozenset([3]), bytearray(b"12")),
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_pickles(number: int, protocol: int) -> None:
    assert sniff(pickle.dumps(VALUES[number], protocol)) == ".pkl"


def test_what_is_no_pickle() -> None:
    whole = pickle.dumps(VALUES[0], 4)
    assert sniff(whole + b"more") == ".bin"
    assert sniff(whole[:-1] + b"\0") == ".bin"
    assert sniff(b"\x80\x09" + whole[2:]) == ".bin"


def test_files_of_torch() -> None:
    number = 0x1950A86A20F9469CFC6C
    old = b"".join(pickle.dumps(each, 2) for each in (number, 1001, {"little_endian": True}))
    assert sniff(old + bytes(100)) == ".pt"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jxl")), ids=lambda path: path.name)
def test_codestreams_of_jpeg_xl(path: Path) -> None:
    assert path.read_bytes().startswith(b"\xff\x0a")
    assert sniff(path.read_bytes()) == ".jxl"


def font(magic: bytes, tables: int) -> bytes:
    power = 1 << tables.bit_length() - 1
    numbers = tables, 16 * power, power.bit_length() - 1, 16 * (tables - power)
    return magic + struct.pack(">4H", *numbers) + bytes(16 * tables + 40)


def test_fonts() -> None:
    assert sniff(font(b"\0\1\0\0", 17)) == ".ttf"
    assert sniff(font(b"OTTO", 9)) == ".otf"
    assert sniff(b"ttcf\0\1\0\0" + struct.pack(">3I", 2, 20, 90) + bytes(99)) == ".ttc"
    for kind, suffix in ((b"wOFF\0\1\0\0", ".woff"), (b"wOF2OTTO", ".woff2")):
        assert sniff(kind + struct.pack(">I", 100) + bytes(88)) == suffix
        assert sniff(kind + struct.pack(">I", 100) + bytes(89)) == ".bin"
    assert sniff(b"\0\1\0\0" + struct.pack(">4H", 17, 3, 2, 1) + bytes(999)) == ".bin"


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (b"\0asm\1\0\0\0", ".wasm"),
        (b"BLENDER-v293REND" + bytes(90), ".blend"),
        (b"BLENDER_V249" + bytes(90), ".blend"),
        (b"BLENDER17-01v0500" + bytes(90), ".blend"),
        (b"BLENDERS are loud", ".txt"),
        (b"Rar!\x1a\7\0" + bytes(40), ".rar"),
        (b"Rar!\x1a\7\1\0" + bytes(40), ".rar"),
        (b"Rar!\x1a\7\2" + bytes(40), ".bin"),
        (b"PXR-USDC\0\x08" + bytes(90), ".usdc"),
    ],
)
def test_other_magic_numbers(data: bytes, suffix: str) -> None:
    assert sniff(data) == suffix


def test_a_scene_in_a_zip() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("scene.usdc", b"PXR-USDC")
    assert sniff(buffer.getvalue()) == ".usdz"


def nifti(magic: bytes, order: str, head: int) -> bytes:
    if head == 540:
        return struct.pack(f"{order}i", 540) + b"n+2\0\r\n\x1a\n" + bytes(600)
    return struct.pack(f"{order}i", 348) + bytes(340) + magic + bytes(100)


@pytest.mark.parametrize("head", [348, 540])
@pytest.mark.parametrize("order", "<>")
def test_brain_images(order: str, head: int) -> None:
    data = nifti(b"n+1\0", order, head)
    assert sniff(data) == ".nii"
    assert sniff(gzip.compress(data)) == ".nii.gz"
    assert sniff(gzip.compress(data + bytes(9 << 20), 0)) == ".nii.gz"
    assert sniff(gzip.compress(b"x" * 999)) == ".gz"


@pytest.mark.parametrize(
    "content", [b"", b"text", bytes(300_000), np.random.default_rng(1).bytes(300_000)]
)
def test_compressed_files(content: bytes) -> None:
    assert sniff(gzip.compress(content)) == ".gz"
    assert sniff(lz4(content)) == ".lz4"
    for packed in (
        zstandard.compress(content),
        zstd_unsized(content),
        zstandard.compress(content, 19),
    ):
        assert sniff(packed) == ".zst"


def test_orc() -> None:
    file = io.BytesIO()
    pa.orc.write_table(pa.table({"a": [1, 2]}), file)
    assert sniff(file.getvalue()) == ".orc"
    assert sniff(file.getvalue() + b"more") == ".bin"
