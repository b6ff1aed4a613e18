"""Which format a file is in, by its first bytes.

A magic number is believed only with the structure behind it, as far as the first bytes show that: datasets
hold bytes that merely begin like something.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from shardfs.views import _containers as containers
from shardfs.views import _packed as packed
from shardfs.views import _programs as programs
from shardfs.views._jxl import is_codestream

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[bytes, int], str]
    """From the first bytes of a file and its size to the suffix of its format, "" for another format."""

HEAD = 4096
"""How many of the first bytes are looked at."""


def signature(head: bytes, size: int) -> str:
    """The suffix of the format that a file of *size* bytes which begins with *head* is in, "" where none fits.

    *head* holds at least the first ``HEAD`` bytes, or all of a shorter file.
    """
    for magic, least, found in _BY_FIRST_BYTE.get(head[:1], ()):
        if len(head) >= least and head.startswith(magic):
            suffix = found if isinstance(found, str) else found(head, size)
            if suffix:
                return suffix
    return _without_magic(head, size)


def _little(head: bytes, at: int, width: int) -> int:
    return int.from_bytes(head[at : at + width], "little")


def _big(head: bytes, at: int, width: int) -> int:
    return int.from_bytes(head[at : at + width], "big")


# --- formats that show themselves only behind their first bytes --------------------------------------------


def _without_magic(head: bytes, size: int) -> str:
    if head[128:132] == b"DICM":
        return ".dcm"
    if head[8:10] == b'{"' and _is_safetensors(head, size):
        return ".safetensors"
    if head[257:262] == b"ustar" and size >= 512:
        return ".tar"
    # binary STL has no magic number, but its length follows from the number of triangles
    if len(head) >= 134 and size == 84 + 50 * _little(head, 80, 4) and _is_triangle(head[84:134]):
        return ".stl"
    return ""


def _is_triangle(data: bytes) -> bool:
    """Twelve numbers that may be a normal and three corners: small integers are none."""
    numbers = struct.unpack_from("<12f", data)
    usual = all(not number or 1e-20 < abs(number) < 1e20 for number in numbers)
    return usual and any(numbers[3:]) and sum(n * n for n in numbers[:3]) < 1.1


def _is_safetensors(head: bytes, size: int) -> bool:
    # 100 MB is the format's own limit for the header
    length = _little(head, 0, 8)
    return length <= min(size - 8, 100_000_000) and (b'"dtype"' in head or b"__metadata__" in head)


# --- pictures ----------------------------------------------------------------------------------------------


def _jpeg(head: bytes, size: int) -> str:
    """A marker segment (ITU T.81, B.1.1.4) and behind it the next marker."""
    marker, end = head[3], 4 + _big(head, 4, 2)
    if marker < 0xC0 or 0xD0 <= marker <= 0xD9 or not 6 <= end < size:
        return ""
    return ".jpg" if end >= len(head) or head[end] == 0xFF else ""


def _gif(head: bytes, size: int) -> str:
    """The colour table, then a block: extension, image or the end."""
    table = 3 << (head[10] & 7) + 1 if head[10] & 0x80 else 0
    return ".gif" if head[13 + table : 14 + table] in (b"!", b",", b";") else ""


def _bmp(head: bytes, size: int) -> str:
    pixels, header = _little(head, 10, 4), _little(head, 14, 4)
    known = header in (12, 16, 40, 52, 56, 64, 108, 124)
    return ".bmp" if known and 14 + header <= pixels <= size else ""


def _tiff(head: bytes, size: int) -> str:
    """The first directory must lie in the file; BigTIFF has 8-byte offsets."""
    order = _little if head[:1] == b"I" else _big
    if order(head, 2, 2) == 43:
        known = order(head, 4, 2) == 8 and order(head, 6, 2) == 0
        return ".tif" if known and 16 <= order(head, 8, 8) <= size - 28 else ""
    at = order(head, 4, 4)
    if not 8 <= at <= size - 14:
        return ""
    entries = order(head, at, 2) if at + 2 <= len(head) else 1
    if not entries or at + 2 + 12 * entries > size:
        return ""
    places = range(at + 2, min(at + 2 + 12 * entries, len(head) - 3), 12)
    tags = [order(head, place, 2) for place in places]
    types = all(1 <= order(head, place + 2, 2) <= 18 for place in places)
    return ".tif" if types and tags == sorted(tags) else ""


def _icon(head: bytes, size: int) -> str:
    """Images one after another behind a table; the first entry must point into the file."""
    count, length, at = _little(head, 4, 2), _little(head, 14, 4), _little(head, 18, 4)
    known = count and head[9] == 0 and length and at >= 6 + 16 * count and at + length <= size
    return {1: ".ico", 2: ".cur"}[head[2]] if known else ""


_PNM = re.compile(rb"P([1-6])((?:\s|#[^\n]*\n)+)(\d{1,9})(?:\s|#[^\n]*\n)+(\d{1,9})\s")


def _pnm(head: bytes, size: int) -> str:
    """Portable bit, gray and pixel maps. So short a magic number also begins sentences."""
    match = _PNM.match(head)
    if match is None:
        return ""
    form, gap, width, height = match.groups()
    number = int(form)
    bits = int(width) * int(height) * {4: 1, 5: 8, 6: 24}.get(number, 0)
    known = 0 < bits < 8 * size if number > 3 else gap[:1] in b"\r\n"
    return (".pbm", ".pgm", ".ppm")[(number - 1) % 3] if known else ""


# --- sound, shapes, data -----------------------------------------------------------------------------------


def _au(head: bytes, size: int) -> str:
    return ".au" if 24 <= _big(head, 4, 4) <= size and 1 <= _big(head, 12, 4) <= 27 else ""


def _glb(head: bytes, size: int) -> str:
    return ".glb" if _little(head, 4, 4) in (1, 2) and 20 <= _little(head, 8, 4) <= size else ""


def _ply(head: bytes, size: int) -> str:
    return ".ply" if re.search(rb"\nformat (ascii|binary_)", head[:1024]) else ""


def _ascii_stl(head: bytes, size: int) -> str:
    return ".stl" if re.search(rb"\s*\n\s*facet\s+normal\s", head[:1024]) else ""


def _npy(head: bytes, size: int) -> str:
    """Version, length and beginning of the header (numpy.lib.format)."""
    at = 10 if head[6] == 1 else 12
    fits = at + _little(head, 8, at - 8) <= size
    return (
        ".npy"
        if head[6] in (1, 2, 3) and not head[7] and fits and head[at : at + 1] == b"{"
        else ""
    )


def _nifti(head: bytes, size: int) -> str:
    return ".nii" if packed.nifti(head) else ""


def _exr(head: bytes, size: int) -> str:
    """Version 2, and the attribute that no file lacks."""
    known = head[4] == 2 and not head[5] & 0xE1 and head[6:8] == b"\0\0"
    return ".exr" if known and b"channels\0chlist\0" in head else ""


def _j2k(head: bytes, size: int) -> str:
    """The SIZ segment: its length follows from the number of components, and the picture is not empty."""
    count, sides = _big(head, 40, 2), [_big(head, at, 4) for at in range(8, 24, 4)]
    known = _big(head, 4, 2) == 38 + 3 * count and sides[0] > sides[2] and sides[1] > sides[3]
    return ".j2k" if count and known else ""


def _netcdf(head: bytes, size: int) -> str:
    """The list of dimensions, which may be missing, behind the number of records."""
    at = 12 if head[3] == 5 else 8
    return ".nc" if head[at : at + 4] in (b"\0\0\0\0", b"\0\0\0\x0a") else ""


def _las(head: bytes, size: int) -> str:
    known = head[24] == 1 and head[25] <= 4 and head[104] & 0x3F <= 10
    return ".las" if known and 227 <= _little(head, 94, 2) <= _little(head, 96, 4) <= size else ""


def _jxl(head: bytes, size: int) -> str:
    return ".jxl" if is_codestream(head, size) else ""


def _orc(head: bytes, size: int) -> str:
    """Its last byte is the length of what ends in its magic number again."""
    return ".orc" if len(head) < size or head[-4:-1] == b"ORC" else ""


def _ends(suffix: str, magic: bytes) -> Check:
    """A check for a format that ends as it begins, where its end is seen."""
    return lambda head, size: suffix if len(head) < size or head.endswith(magic) else ""


def _pdf(head: bytes, size: int) -> str:
    return ".pdf" if re.match(rb"%PDF-\d\.\d\s*[\r\n]", head) else ""


def _sure(suffix: str, pattern: bytes) -> Check:
    """A check for a format that *pattern*, searched in the first bytes, makes sure of."""
    search = re.compile(pattern, re.DOTALL).search
    return lambda head, size: suffix if search(head) else ""


# --- the table ---------------------------------------------------------------------------------------------

# magic number, the least number of bytes that its format takes (or its check looks at), the suffix or a check
_TABLE: tuple[tuple[bytes, int, str | Check], ...] = (
    (b"\xff\xd8\xff", 8, _jpeg),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 57, ".png"),
    (b"GIF87a", 14, _gif),
    (b"GIF89a", 14, _gif),
    (b"BM", 26, _bmp),
    (b"II*\0", 16, _tiff),
    (b"MM\0*", 16, _tiff),
    (b"II+\0", 16, _tiff),
    (b"MM\0+", 16, _tiff),
    (b"\xff\x4f\xff\x51\0", 42, _j2k),
    (b"\xff\x0a", 12, _jxl),
    (b"\0\0\1\0", 22, _icon),
    (b"\0\0\2\0", 22, _icon),
    (b"8BPS\0\1\0\0\0\0\0\0", 26, ".psd"),
    (b"8BPS\0\2\0\0\0\0\0\0", 26, ".psb"),
    (b"\x76\x2f\x31\x01\x02", 64, _exr),
    (b"#?RADIANCE", 32, _sure(".hdr", rb"\nFORMAT=")),
    (b"#?RGBE", 32, _sure(".hdr", rb"\nFORMAT=")),
    (b"DDS |\0\0\0", 128, ".dds"),
    (b"qoif", 22, _sure(".qoi", rb"\Aqoif(?:\x00.{3}){2}[\x03\x04][\x00\x01]")),
    (b"P7\nWIDTH ", 16, ".pam"),
    (b"P", 8, _pnm),
    (b"AT&TFORM", 16, ".djvu"),
    (b"SIMPLE  =", 80, ".fits"),
    (b"NRRD000", 16, ".nrrd"),
    (b"\x5c\1\0\0", 348, _nifti),
    (b"\0\0\1\x5c", 348, _nifti),
    (b"\x1c\2\0\0", 540, _nifti),
    (b"\0\0\2\x1c", 540, _nifti),
    (b"RIFF", 20, containers.riff),
    (b"RF64", 20, containers.riff),
    (b"BW64", 20, containers.riff),
    (b"RIFX", 20, containers.riff),
    (b"FORM", 20, containers.iff),
    (b"fLaC\0\0\0\x22", 42, ".flac"),
    (b"fLaC\x80\0\0\x22", 42, ".flac"),
    (b"ID3", 11, containers.id3),
    (b"\xff", 7, containers.mpeg_audio),
    (b"OggS", 28, containers.ogg),
    (b"#!AMR\n", 7, _sure(".amr", rb"\A#!AMR\n[\x00-\x7c]")),
    (b"#!AMR-WB\n", 10, ".awb"),
    (b"MThd\0\0\0\6", 14, ".mid"),
    (b".snd", 24, _au),
    (b"caff\0\1\0\0desc\0\0\0\0\0\0\0\x20", 52, ".caf"),
    (b"wvpk", 32, _sure(".wv", rb"\Awvpk.{4}[\x02-\x10]\x04")),
    (b"\0", 16, containers.iso),
    (b"\x1a\x45\xdf\xa3", 24, containers.ebml),
    (b"FLV\1", 13, _sure(".flv", rb"\AFLV\x01[\x00\x01\x04\x05]\x00\x00\x00\x09")),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c", 30, ".asf"),
    (b"\0\0\1\xba", 17, containers.program_stream),
    (b"\0\0\1\xb3", 16, containers.mpeg_video),
    (b"G", 565, containers.transport_stream),
    (b"%PDF-", 9, _pdf),
    (b"{\\rtf1", 8, _sure(".rtf", rb"\A\{\\rtf1[\s\\{]")),
    (b"glTF", 20, _glb),
    (b"ply\n", 16, _ply),
    (b"ply\r\n", 16, _ply),
    (b"solid", 16, _ascii_stl),
    (b"Kaydara FBX Binary  \0", 27, ".fbx"),
    (b"PXR-USDC", 88, ".usdc"),
    (b"LASF", 227, _las),
    (b"# .PCD v", 16, ".pcd"),
    (b"\x93NUMPY", 16, _npy),
    (
        b"PAR1\x15",
        12,
        _ends(".parquet", b"PAR1"),
    ),  # a page header or the footer: both begin with an integer field
    (b"ARROW1\0\0", 24, _ends(".arrow", b"ARROW1")),
    (b"FEA1", 16, _ends(".feather", b"FEA1")),
    (b"\x89HDF\r\n\x1a\n", 48, ".h5"),
    (b"CDF\1", 32, _netcdf),
    (b"CDF\2", 32, _netcdf),
    (b"CDF\5", 32, _netcdf),
    (b"MATLAB 5.0 MAT-file", 128, ".mat"),
    (b"MATLAB 7.3 MAT-file", 128, ".mat"),
    (b"SQLite format 3\0", 100, ".sqlite"),
    (b"GGUF", 24, _sure(".gguf", rb"\AGGUF[\x01-\x03]\x00\x00\x00")),
    (b"PK\3\4", 31, containers.zipped),
    (b"PK\5\6", 22, packed.empty_zip),
    (b"\x1f\x8b\x08", 18, packed.gzip),
    (b"\x28\xb5\x2f\xfd", 9, packed.zstd),
    (b"\xfd7zXZ\0\0", 32, packed.xz),
    (b"BZh", 14, packed.bzip2),
    (b"\x04\x22\x4d\x18", 11, packed.lz4),
    (b"\x80", 8, programs.pickle),
    (b"\0\1\0\0", 28, programs.font),
    (b"OTTO", 28, programs.font),
    (b"true", 28, programs.font),
    (b"ttcf", 16, programs.font_collection),
    (b"wOFF", 44, programs.web_font),
    (b"wOF2", 48, programs.web_font),
    (b"\0asm\1\0\0\0", 8, ".wasm"),
    (b"BLENDER", 12, _sure(".blend", rb"\ABLENDER(?:[_-][vV]\d{3}|\d\d-\d\dv\d{4})")),
    (b"DKIF\0\0\x20\0", 32, ".ivf"),
    (b"\x0b\x77", 8, containers.ac3),
    (b"Obj\1", 20, _sure(".avro", rb"avro\.schema")),
    (b"\xabKTX 11\xbb\r\n\x1a\n", 64, ".ktx"),
    (b"\xabKTX 20\xbb\r\n\x1a\n", 80, ".ktx2"),
    (b"YUV4MPEG2 ", 16, ".y4m"),
    (b"NIST_1A\n   1024\n", 1024, ".sph"),
    (b"Creative Voice File\x1a", 26, ".voc"),
    (b"ORC", 16, _orc),
    (b"7z\xbc\xaf\x27\x1c\0", 32, ".7z"),
    (b"Rar!\x1a\7", 20, packed.rar),
)

_BY_FIRST_BYTE: dict[bytes, list[tuple[bytes, int, str | Check]]] = {}
for _row in _TABLE:
    _BY_FIRST_BYTE.setdefault(_row[0][:1], []).append(_row)
