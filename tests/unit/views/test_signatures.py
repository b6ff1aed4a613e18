from __future__ import annotations

import contextlib
import io
import json
import struct
import tarfile
import wave
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from shardfs.views import _containers, signatures
from shardfs.views.media import MEDIA
from tests.unit.views.samples import picture, sniff, zipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.views.conftest import Encode

TRIANGLE = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 2.5, 0, 0, 0, -1e-3, 0, 0)

# --- what real encoders make -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "mode", "expected"),
    [
        ("JPEG", "RGB", ".jpg"),
        ("JPEG", "L", ".jpg"),
        ("PNG", "RGBA", ".png"),
        ("GIF", "P", ".gif"),
        ("WEBP", "RGB", ".webp"),
        ("BMP", "RGB", ".bmp"),
        ("TIFF", "RGB", ".tif"),
        ("JPEG2000", "RGB", ".jp2"),
        ("ICO", "RGBA", ".ico"),
        ("DDS", "RGBA", ".dds"),
        ("PPM", "RGB", ".ppm"),
        ("PPM", "L", ".pgm"),
        ("PPM", "1", ".pbm"),
    ],
)
def test_pictures_of_pillow(form: str, mode: str, expected: str) -> None:
    assert sniff(picture(form, mode)) == expected


def test_tiff_of_both_byte_orders_and_big_tiff() -> None:
    assert sniff(picture("TIFF", "I;16B")) == ".tif"
    assert picture("TIFF", "I;16B").startswith(b"MM")
    assert sniff(picture("TIFF", big_tiff=True)) == ".tif"


def test_progressive_and_lossless_variants() -> None:
    assert sniff(picture("JPEG", progressive=True, exif=Image.Exif())) == ".jpg"
    assert sniff(picture("WEBP", lossless=True)) == ".webp"
    assert sniff(picture("JPEG2000", no_jp2=True)) == ".j2k"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("a.wav", ["-c:a", "pcm_s24le"], ".wav"),
        ("a.w64.wav", ["-rf64", "always"], ".wav"),
        ("a.flac", [], ".flac"),
        ("tagged.mp3", ["-metadata", "title=x"], ".mp3"),
        ("bare.mp3", ["-id3v2_version", "0", "-write_xing", "0"], ".mp3"),
        ("low.mp3", ["-ar", "8000", "-id3v2_version", "0"], ".mp3"),
        ("a.mp2", [], ".mp2"),
        ("a.ogg", ["-c:a", "libvorbis"], ".ogg"),
        ("a.opus", [], ".opus"),
        ("a.oga", ["-c:a", "flac"], ".oga"),
        ("a.spx", [], ".spx"),
        ("a.m4a", [], ".m4a"),
        ("a.aac", [], ".aac"),
        ("a.aiff", [], ".aiff"),
        ("a.au", [], ".au"),
        ("a.caf", ["-c:a", "pcm_s16le"], ".caf"),
        ("a.wv", [], ".wv"),
        ("a.wma", [], ".asf"),
        ("a.ac3", [], ".ac3"),
        ("low.ac3", ["-ar", "32000", "-b:a", "96k"], ".ac3"),
        ("cd.ac3", ["-ar", "44100", "-b:a", "128k"], ".ac3"),
        ("a.eac3", [], ".eac3"),
        ("a.voc", [], ".voc"),
    ],
)
def test_sound_of_ffmpeg(encode: Encode, name: str, arguments: list[str], expected: str) -> None:
    assert sniff(encode("sound", name, *arguments)) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("v.mp4", ["-c:v", "mpeg4"], ".mp4"),
        ("fast.mp4", ["-c:v", "mpeg4", "-movflags", "+faststart"], ".mp4"),
        ("v.mov", ["-c:v", "mpeg4"], ".mov"),
        ("v.m4v", ["-c:v", "mpeg4"], ".m4v"),
        ("v.3gp", ["-c:v", "h263"], ".3gp"),
        ("v.3g2", ["-c:v", "mpeg4"], ".3g2"),
        ("v.webm", ["-c:v", "libvpx"], ".webm"),
        ("v.mkv", ["-c:v", "mpeg4"], ".mkv"),
        ("v.ogv", ["-c:v", "libtheora"], ".ogv"),
        ("v.avi", [], ".avi"),
        ("v.flv", [], ".flv"),
        ("v.ts", ["-c:v", "mpeg2video"], ".ts"),
        ("v.mpg", ["-c:v", "mpeg2video"], ".mpg"),
        ("v.m2v", ["-c:v", "mpeg2video"], ".mpg"),
        ("v.wmv", [], ".asf"),
        ("v.gif", [], ".gif"),
        ("i.avif", ["-frames:v", "1"], ".avif"),
        ("i.jxl", ["-frames:v", "1"], ".jxl"),
        ("v.ivf", ["-c:v", "libvpx"], ".ivf"),
        ("v.y4m", ["-pix_fmt", "yuv420p"], ".y4m"),
        ("i.exr", ["-frames:v", "1"], ".exr"),
        ("i.qoi", ["-frames:v", "1"], ".qoi"),
        ("i.pam", ["-frames:v", "1"], ".pam"),
    ],
)
def test_films_and_pictures_of_ffmpeg(
    encode: Encode, name: str, arguments: list[str], expected: str
) -> None:
    assert sniff(encode("film", name, *arguments)) == expected


def test_a_wave_file_whose_length_was_left_open() -> None:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(2000))
    data = bytearray(buffer.getvalue())
    data[4:8] = b"\xff\xff\xff\xff"
    assert sniff(bytes(data)) == ".wav"


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


def _npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.arange(3))
    return buffer.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"x": [1, 2]}), buffer)
    return buffer.getvalue()


def _empty_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"x": pa.array([], pa.int8())}), buffer)
    return buffer.getvalue()


def _arrow() -> bytes:
    import pyarrow as pa

    buffer = io.BytesIO()
    table = pa.table({"x": [1, 2]})
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    return buffer.getvalue()


def _sqlite() -> bytes:
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (x)")
        return (
            bytes(connection.serialize())
            if hasattr(connection, "serialize")
            else b"SQLite format 3\0" + bytes(84)
        )


def _safetensors() -> bytes:
    header = json.dumps({"t": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def _nifti() -> bytes:
    header = bytearray(352)
    struct.pack_into("<I", header, 0, 348)
    header[344:348] = b"n+1\0"
    return bytes(header)


def _compressed(module: str) -> Callable[[], bytes]:
    return lambda: bytes(__import__(module).compress(b"some content " * 9))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_npy, ".npy"),
        (_npz, ".npz"),
        (_parquet, ".parquet"),
        (_empty_parquet, ".parquet"),
        (_arrow, ".arrow"),
        (_tar, ".tar"),
        (_sqlite, ".sqlite"),
        (_safetensors, ".safetensors"),
        (_nifti, ".nii"),
        (_compressed("gzip"), ".gz"),
        (_compressed("bz2"), ".bz2"),
        (_compressed("lzma"), ".xz"),
        (_compressed("zstandard"), ".zst"),
        (lambda: zipped("a.txt"), ".zip"),
        (lambda: zipped(), ".zip"),
        (lambda: zipped("archive/data.pkl"), ".pt"),
        (lambda: zipped("[Content_Types].xml", "_rels/.rels", "word/document.xml"), ".docx"),
        (lambda: zipped("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"), ".xlsx"),
        (lambda: zipped("mimetype", "a", stored=b"application/epub+zip"), ".epub"),
        (lambda: b"\x89HDF\r\n\x1a\n" + bytes(80), ".h5"),
        (lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", ".pdf"),
        (lambda: b"glTF" + struct.pack("<II", 2, 24) + bytes(12), ".glb"),
        (lambda: b"ply\nformat ascii 1.0\nelement vertex 0\nend_header\n", ".ply"),
        (lambda: bytes(80) + struct.pack("<I", 2) + 2 * TRIANGLE, ".stl"),
        (lambda: b"solid cube\n  facet normal 0 0 1\n    outer loop\n", ".stl"),
        (lambda: bytes(128) + b"DICM" + bytes(40), ".dcm"),
        (lambda: b"MThd\0\0\0\6\0\1\0\1\0\x60MTrk", ".mid"),
        (lambda: b"#!AMR\n\x3c" + bytes(12), ".amr"),
        (lambda: b"8BPS\0\1" + bytes(24), ".psd"),
        (lambda: b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n", ".hdr"),
        (lambda: b"\0\0\0\x14ftypheic\0\0\0\0mif1", ".heic"),
        (lambda: b"\0\0\0\x1cftypmif1\0\0\0\0mif1miafheic", ".heic"),
        (lambda: b"\0\0\0\x14ftypmif1\0\0\0\0miaf", ".heif"),
        (lambda: b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl ", ".jxl"),
        (lambda: b"\0\0\0\x08wide\0\0\0\x10mdat" + bytes(8), ".mov"),
    ],
)
def test_data_documents_and_containers(make: Callable[[], bytes], expected: str) -> None:
    assert sniff(make()) == expected


# --- bytes that only begin like something ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n but not a png", ".bin"),
        (b"\xff\xd8\xff", ".bin"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", ".bin"),
        (b"GIF89a is older than PNG", ".txt"),
        (b"BM", ".txt"),
        (b"BMW makes cars, among other things", ".txt"),
        (b"RIFF\0\0\0\0WAVE", ".bin"),
        (b"RIFF....WAVE", ".txt"),
        (b"II*\0short", ".bin"),
        (b"II*\0\xff\xff\xff\x7f" + bytes(20), ".bin"),
        (b"\x1f\x8b\x08 not gzip", ".bin"),
        (b"PAR1....PAR1", ".txt"),
        (b"%PDF-1.4", ".txt"),
        (b"%PDF is a format", ".txt"),
        (b"ID3 is a decision tree algorithm", ".txt"),
        (b"\xff\xfb\x90\x00" + bytes(600), ".bin"),
        (b"\xff\xf1\x50\x80" + bytes(60), ".bin"),
        (b"PK\x03\x04 not really\x00", ".bin"),
        (b"P5 100 200 dollars are a lot", ".txt"),
        (b"P1 10 20 \xff", ".bin"),
        (b"solid advice, and no triangles", ".txt"),
        (b"ply is a layer of wood", ".txt"),
        (b"BZh9 and nothing", ".txt"),
        (b"\0\0\1\0\1\0" + bytes(30), ".bin"),
        (b"\0\0\0\x20ftyp", ".bin"),
        (b"\0\0\0\x04free\0\0\0\0\0\0\0\0", ".bin"),
        (b"\x1a\x45\xdf\xa3" + bytes(40), ".bin"),
        (b"OggS\1" + bytes(40), ".bin"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", ".bin"),
        (b"\x80\x04\x95 pickle-like", ".bin"),
        (b"G" + bytes(700), ".bin"),
        (bytes(range(256)), ".bin"),
        (bytes(84), ".bin"),
        (bytes(5000), ".bin"),
    ],
)
def test_a_magic_number_without_its_structure_is_no_evidence(data: bytes, expected: str) -> None:
    assert sniff(data) == expected


def test_every_suffix_in_the_tables_is_known_as_specific_or_general() -> None:
    general = {".zip", ".gz", ".zst", ".xz", ".bz2", ".lz4", ".7z", ".rar", ".tar"}
    found = {row[2] for row in signatures._TABLE if isinstance(row[2], str)}
    found |= set(_containers._RIFF.values()) | set(_containers._BRANDS.values())
    found |= {suffix for _, suffix in _containers._OGG}
    assert found <= MEDIA.keys() | general
    assert not general & MEDIA.keys()
