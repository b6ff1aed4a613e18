from __future__ import annotations

import struct

import pytest

from shardfs.blob import Bytes
from shardfs.formats.litdata.leaves import leaf_type
from shardfs.model import Array, Encoded, Items, Kind, Pixels, Plain, Rendered, Scalar
from tests.fakes import SlowBlob

OPAQUE = Plain(".bin")


def kind(name: str, data: bytes = b"") -> Kind:
    return leaf_type(name).kind(Bytes(data))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("str", Plain(".txt")),
        ("text", Plain(".txt")),
        ("bool", Scalar("|b1")),
        ("int", Scalar("<i8")),
        ("float", Scalar("<f8")),
        ("bytes", Encoded()),
        ("jpeg", Encoded(".jpg")),
        ("pil", Pixels()),
        ("tif", Encoded(".tif")),
        ("tifffile", Encoded(".tif")),
        ("tiff", Encoded(".tif")),
        ("pdf", Encoded(".pdf")),
        ("graph", OPAQUE),
        ("graph:pickle", Plain(".pkl")),
        ("pickle", Plain(".pkl")),
        ("image:PNG", Encoded(".png")),
        ("audio:mp3", Encoded(".mp3")),
        ("video:mp4", Encoded(".mp4")),
        ("video", Encoded()),
        ("file", Encoded()),
        ("file:tar.gz", Encoded(".tar.gz")),
        ("mesh:glb", Encoded(".glb")),
        ("nifti:nii", Encoded(".nii")),
        ("nifti:gz", Encoded(".nii.gz")),
        ("nifti:nii.gz", Encoded(".nii.gz")),
        ("somebodys_own", OPAQUE),
        ("", OPAQUE),
        ("no_header_numpy", OPAQUE),
        ("no_header_numpy:x", OPAQUE),
        ("no_header_numpy:14", OPAQUE),  # objects: memory addresses
        ("no_header_tensor:99", OPAQUE),
    ],
)
def test_types_that_say_it_all(name: str, expected: Kind) -> None:
    assert kind(name) == expected


def test_json_is_rendered() -> None:
    found = kind("json")
    assert isinstance(found, Rendered)
    assert (found.suffix, found.render(memoryview(b"\x0b"))) == (".json", b"null\n")


@pytest.mark.parametrize("suffix", ["../../x", "a/b", "", "\0", "x" * 40, ".", "é"])
def test_a_suffix_that_is_no_extension_is_not_believed(suffix: str) -> None:
    assert kind(f"image:{suffix}") == Encoded()


@pytest.mark.parametrize(
    ("name", "code", "dtype", "width"),
    [
        *[
            ("numpy", i, d, w)
            for i, (d, w) in enumerate([("|i1", 1), ("<i2", 2), ("<i4", 4), ("<i8", 8)])
        ],
        ("numpy", 8, "<f2", 2),
        ("numpy", 11, "<c8", 8),
        ("numpy", 12, "<c16", 16),
        ("numpy", 13, "|b1", 1),
        ("tensor", 1, "<f4", 4),
        ("tensor", 10, "bfloat16", 2),
        ("tensor", 18, "<i8", 8),
        ("tensor", 19, "|b1", 1),
        ("tensor", 20, "<u2", 2),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (1, 1, 5), ()])
def test_arrays_with_a_header(
    name: str, code: int, dtype: str, width: int, shape: tuple[int, ...]
) -> None:
    count = 1
    for extent in shape:
        count *= extent
    for order in "<>" if name == "tensor" else "<":
        head = struct.pack(f"{order}{2 + len(shape)}I", code, len(shape), *shape)
        assert kind(name, head + bytes(width * count)) == Array(dtype, shape, len(head))


@pytest.mark.parametrize(
    ("code", "dtype", "width"), [(11, "<f16", 16), (12, "<c8", 8), (13, "<c16", 16)]
)
def test_codes_of_old_writers_are_told_by_the_size(code: int, dtype: str, width: int) -> None:
    head = struct.pack("<4I", code, 2, 3, 1)
    assert kind("numpy", head + bytes(3 * width)) == Array(dtype, (3, 1), 16)


@pytest.mark.parametrize("name", ["numpy", "tensor"])
@pytest.mark.parametrize(
    "leaf",
    [
        b"",
        bytes(7),
        struct.pack("<4I", 9, 2, 2, 2),  # no elements
        struct.pack("<4I", 9, 2, 2, 2) + bytes(17),  # one byte more
        struct.pack("<2I", 9, 0xFFFFFFFF),  # a rank beyond the leaf
        struct.pack("<4I", 9, 2, 0xFFFFFFFF, 0xFFFFFFFF) + bytes(16),
        struct.pack("<4I", 99, 2, 2, 2) + bytes(16),
        struct.pack("<4I", 14, 2, 2, 1) + bytes(17),
        struct.pack("<2I", 9, 70)
        + struct.pack("<70I", *[1] * 70)
        + bytes(4),  # more dimensions than there can be
    ],
)
def test_an_array_whose_header_lies_is_opaque(name: str, leaf: bytes) -> None:
    assert kind(name, leaf) == OPAQUE


def test_vectors_have_no_header() -> None:
    assert kind("no_header_numpy:9", bytes(12)) == Array("<f4", (3,))
    assert kind("no_header_tensor:14") == Array("<i2", (0,))
    assert kind("no_header_tensor:16", bytes(13)) == OPAQUE


def test_a_list_of_jpegs_is_its_items() -> None:
    leaf = struct.pack("<3I", 2, 3, 0) + b"abc"
    assert kind("jpeg_array", leaf) == Items(Encoded(".jpg"), ((12, 3), (15, 0)))
    assert kind("jpeg_array", leaf[:-1]) == OPAQUE
    assert kind("jpeg_array", b"\xff\xff\xff\xff") == OPAQUE
    assert kind("jpeg_array") == OPAQUE


def test_no_more_than_the_head_of_an_array_is_read() -> None:
    blob = SlowBlob(struct.pack("<4I", 1, 2, 1000, 1000) + bytes(4_000_000))
    assert leaf_type("tensor").kind(blob) == Array("<f4", (1000, 1000), 16)
    assert sum(length for _, length in blob.reads) <= 16
