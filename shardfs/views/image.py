"""Raw Pillow images as `.tif`: the head of an uncompressed TIFF before the stored pixels, which are served as they lie.

The field numbers are those of TIFF 6.0; how LitData and MDS store such an image is in ``Pixels``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shardfs.blob import Bytes, Concat, Slice
from shardfs.model import Field, File, Pixels

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTENSION = ".tif"

# PhotometricInterpretation
_BLACK_IS_ZERO, _RGB, _SEPARATED, _YCBCR, _CIELAB = 1, 2, 5, 6, 8
# ExtraSamples
_UNSPECIFIED, _ASSOCIATED_ALPHA, _ALPHA = 0, 1, 2
# SampleFormat
_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Mode:
    """How TIFF says what a mode of Pillow is.

    Attributes:
        photometric: what the samples mean.
        samples: how many a pixel has.
        extra: the meaning of the last of them, where it is beyond what *photometric* has.
        bits: of a sample.
        sample_format: how to read them.
        order: of the bytes in a sample, as in struct. TIFF says it for the whole file.
    """

    photometric: int
    samples: int = 1
    extra: int | None = None
    bits: int = 8
    sample_format: int = _UNSIGNED
    order: str = "<"


# P comes without its palette, so gray; HSV and PA have no name in TIFF and are shown in false colours.
MODES = {
    "1": Mode(_BLACK_IS_ZERO, bits=1),
    "L": Mode(_BLACK_IS_ZERO),
    "P": Mode(_BLACK_IS_ZERO),
    "LA": Mode(_BLACK_IS_ZERO, 2, _ALPHA),
    "La": Mode(_BLACK_IS_ZERO, 2, _ASSOCIATED_ALPHA),
    "PA": Mode(_BLACK_IS_ZERO, 2, _ALPHA),
    "I": Mode(_BLACK_IS_ZERO, bits=32, sample_format=_SIGNED),
    "F": Mode(_BLACK_IS_ZERO, bits=32, sample_format=_FLOAT),
    "I;16": Mode(_BLACK_IS_ZERO, bits=16),
    "I;16L": Mode(_BLACK_IS_ZERO, bits=16),
    "I;16B": Mode(_BLACK_IS_ZERO, bits=16, order=">"),
    "RGB": Mode(_RGB, 3),
    "RGBA": Mode(_RGB, 4, _ALPHA),
    "RGBa": Mode(_RGB, 4, _ASSOCIATED_ALPHA),
    "RGBX": Mode(_RGB, 4, _UNSPECIFIED),
    "HSV": Mode(_RGB, 3),
    "CMYK": Mode(_SEPARATED, 4),
    "YCbCr": Mode(_YCBCR, 3),
    "LAB": Mode(_CIELAB, 3),
}

_HEADER = struct.Struct("<III")
_LONGEST_MODE = 5
# bytes of pixels: offsets have 4 bytes, and the head takes some
_MOST = (1 << 32) - 1024
_SHORT, _LONG = 3, 4


def present(field: Field, /) -> Sequence[File] | None:
    """A `.tif`; None where mode and dimensions don't come to the bytes that are there."""
    if not isinstance(field.kind, Pixels):
        return None
    data, size = field.data, field.data.size()
    begin = bytes(data.read(0, _HEADER.size + _LONGEST_MODE))
    if len(begin) < _HEADER.size:
        return None
    width, height, length = _HEADER.unpack_from(begin)
    mode, start = (
        begin[_HEADER.size : _HEADER.size + length].decode("latin-1"),
        _HEADER.size + length,
    )
    if mode not in MODES or not width or not height:
        return None
    stored = height * ((width * MODES[mode].samples * MODES[mode].bits + 7) // 8)
    if start + stored != size or stored > _MOST:
        return None
    head = Bytes(tiff_head(mode, width, height, stored))
    return (File(field.name, EXTENSION, Concat([head, Slice(data, start, stored)])),)


@lru_cache(maxsize=256)
def tiff_head(mode: str, width: int, height: int, stored: int) -> bytes:
    """What makes a TIFF of the pixels that follow it: header, one directory, values that don't fit into that.

    The *stored* bytes of pixels are one strip, without padding but at the ends of the rows of 1-bit images.
    """
    how = MODES[mode]
    fields = {
        256: (_LONG, [width]),
        257: (_LONG, [height]),
        258: (_SHORT, [how.bits] * how.samples),
        259: (_SHORT, [1]),  # no compression
        262: (_SHORT, [how.photometric]),
        273: (_LONG, [0]),  # where the strip begins, known below
        277: (_SHORT, [how.samples]),
        278: (_LONG, [height]),  # rows of the strip
        279: (_LONG, [stored]),
        338: (_SHORT, [] if how.extra is None else [how.extra]),
        339: (_SHORT, [how.sample_format] * how.samples),
        530: (_SHORT, [1, 1] if how.photometric == _YCBCR else []),  # no subsampling
    }
    fields = {tag: field for tag, field in fields.items() if field[1]}
    fields[273] = _LONG, [len(_directory(how.order, fields))]
    return _directory(how.order, fields)


def _directory(order: str, fields: dict[int, tuple[int, list[int]]]) -> bytes:
    """A TIFF's header and a directory of *fields*: by tag, the type and the values."""
    outside_at = 8 + 2 + 12 * len(fields) + 4
    entries, outside = b"", b""
    for tag, (kind, values) in fields.items():
        packed = struct.pack(f"{order}{len(values)}{'H' if kind == _SHORT else 'I'}", *values)
        if len(packed) > 4:
            outside, packed = outside + packed, struct.pack(f"{order}I", outside_at + len(outside))
        entries += struct.pack(f"{order}HHI4s", tag, kind, len(values), packed)
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(f"{order}HIH", 42, 8, len(fields)) + entries + bytes(4) + outside
