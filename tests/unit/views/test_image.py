from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

from shardfs.blob import Bytes
from shardfs.model import Field, Pixels, Plain
from shardfs.views import image
from tests.pillow import LACKING

WIDTH, HEIGHT = 21, 13


def stored(mode: str, pixels: bytes, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    """As LitData and MDS store it."""
    return struct.pack("<3I", width, height, len(mode)) + mode.encode() + pixels


def shown(data: bytes) -> bytes | None:
    files = image.present(Field("x", Pixels(), Bytes(data)))
    if files is None:
        return None
    (file,) = files
    assert (file.stem, file.extension) == ("x", ".tif")
    return bytes(file.blob.read(0, file.blob.size()))


def pixels_of(mode: str) -> bytes:
    """As ``Image.tobytes`` makes them, all samples different."""
    how = image.MODES[mode]
    if mode == "1":
        return Image.linear_gradient("L").resize((WIDTH, HEIGHT)).convert("1").tobytes()
    if mode == "F":
        count = WIDTH * HEIGHT
        return struct.pack(f"<{count}f", *(index / 7 for index in range(count)))
    count = WIDTH * HEIGHT * how.samples * how.bits // 8
    return bytes(index * 7 % 251 for index in range(count))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "RGB", "RGBA", "CMYK", "YCbCr", "I", "F"])
def test_pillow_opens_the_same_image(mode: str) -> None:
    if mode in LACKING:
        pytest.skip(f"this Pillow does not load TIFFs of {mode}")
    pixels = pixels_of(mode)
    content = shown(stored(mode, pixels))
    assert content is not None
    with Image.open(io.BytesIO(content)) as opened:
        assert (opened.format, opened.mode, opened.size) == ("TIFF", mode, (WIDTH, HEIGHT))
        assert opened.tobytes() == pixels


@pytest.mark.parametrize(
    ("mode", "as_mode"),
    [
        ("P", "L"),
        ("PA", "LA"),
        ("HSV", "RGB"),
        ("I;16", "I;16"),
        ("I;16L", "I;16"),
        ("I;16B", "I;16B"),
    ],
)
def test_modes_that_open_under_another_name(mode: str, as_mode: str) -> None:
    pixels = pixels_of(mode)
    content = shown(stored(mode, pixels))
    assert content is not None
    with Image.open(io.BytesIO(content)) as opened:
        assert (opened.mode, opened.size) == (as_mode, (WIDTH, HEIGHT))
        assert opened.tobytes() == pixels


def test_samples_beyond_the_colours_that_pillow_drops_or_undoes() -> None:
    for mode, as_mode in (("RGBX", "RGB"), ("RGBa", "RGBA"), ("LAB", "LAB")):
        pixels = pixels_of(mode)
        content = shown(stored(mode, pixels))
        assert content is not None
        with Image.open(io.BytesIO(content)) as opened:
            opened.load()
            assert (opened.mode, opened.size) == (as_mode, (WIDTH, HEIGHT))
        assert content.endswith(pixels)


@pytest.mark.parametrize("mode", image.MODES)
def test_the_head_says_where_the_stored_pixels_lie(mode: str) -> None:
    pixels = pixels_of(mode)
    content = shown(stored(mode, pixels))
    assert content is not None
    order = image.MODES[mode].order
    (count,) = struct.unpack_from(f"{order}H", content, 8)
    tags = {
        tag: value
        for tag, _, _, value in struct.iter_unpack(f"{order}HHII", content[10 : 10 + 12 * count])
    }
    assert content[tags[273] : tags[273] + tags[279]] == pixels
    assert tags[273] + tags[279] == len(content)
    assert list(tags) == sorted(tags), "TIFF wants its entries in order"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\0\0\0",
        stored("RGB", bytes(3 * WIDTH * HEIGHT - 1)),
        stored("RGB", bytes(3 * WIDTH * HEIGHT + 1)),
        stored("RGB", b"", width=0),
        stored("RGB", b"", height=0),
        stored("RGB", bytes(30), width=1 << 31, height=1 << 31),
        stored("L", bytes(8), width=(1 << 32) - 1, height=1),
        stored("BGR;15", bytes(2 * WIDTH * HEIGHT)),
        stored("", bytes(9)),
        struct.pack("<3I", 1, 1, 0xFFFFFFFF) + b"L\0",
        struct.pack("<3I", 1, 1, 2) + b"L\0\0",
        struct.pack("<3I", 1, 1, 1) + b"\xff\0",
        stored("1", bytes(HEIGHT * 2)),
    ],
)
def test_a_header_that_lies_is_left_to_the_stored_bytes(data: bytes) -> None:
    assert shown(data) is None


def test_more_than_the_offsets_of_tiff_can_say() -> None:
    class Huge(Bytes):
        def size(self) -> int:
            return 13 + (1 << 32)

    data = Huge(stored("L", b"", width=1 << 16, height=1 << 16))
    assert image.present(Field("x", Pixels(), data)) is None


def test_other_kinds_are_not_its_business() -> None:
    assert image.present(Field("x", Plain(".tif"), Bytes(b"1"))) is None
