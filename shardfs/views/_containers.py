"""What is inside a container, by the first bytes: RIFF, ISO media (MP4 and its kin), Matroska, Ogg, zip, MPEG streams.

Each function takes the first bytes of a file, which begin with the container's magic number, and the file's
size, and returns the suffix of what it holds, "" where it isn't such a container after all.
"""

from __future__ import annotations

import re

# --- RIFF and IFF ------------------------------------------------------------------------------------------

_RIFF = {
    b"WAVE": ".wav",
    b"AVI ": ".avi",
    b"WEBP": ".webp",
    b"ACON": ".ani",
    b"RMID": ".rmi",
    b"sfbk": ".sf2",
}


def riff(head: bytes, size: int) -> str:
    """RIFF, RF64 and BW64: a form type, then a chunk. Its length is not looked at: streams leave it open."""
    chunk = head[12:16]
    return _RIFF.get(head[8:12], "") if chunk.isascii() and chunk.decode().isprintable() else ""


def iff(head: bytes, size: int) -> str:
    """IFF of which only AIFF is kept in datasets."""
    length = int.from_bytes(head[4:8], "big")
    return ".aiff" if head[8:12] in (b"AIFF", b"AIFC") and length + 8 <= size else ""


# --- ISO base media (ISO/IEC 14496-12), QuickTime, JPEG 2000 and JPEG XL -----------------------------------

_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), ".avif"),
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), ".heic"),
    **dict.fromkeys((b"mif1", b"msf1", b"mif2"), ".heif"),
    **dict.fromkeys((b"M4V ", b"M4VH", b"M4VP"), ".m4v"),
    b"M4A ": ".m4a",
    b"M4B ": ".m4b",
    b"qt  ": ".mov",
    b"crx ": ".cr3",
    **dict.fromkeys((b"F4V ", b"f4v "), ".f4v"),
}
_ATOMS = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_SIGNED = {b"jP  ": ".jp2", b"JXL ": ".jxl"}
_JPEG_2000 = {b"jpx ": ".jpx", b"jpm ": ".jpm", b"mjp2": ".mj2"}


def iso(head: bytes, size: int) -> str:
    """A file that begins with a box: its length and its type."""
    length, kind = int.from_bytes(head[:4], "big"), head[4:8]
    if kind == b"ftyp":
        return _by_brand(head[8:length]) if 16 <= length <= size and not length % 4 else ""
    if kind in _SIGNED:
        found = _SIGNED[kind] if length == 12 and head[8:12] == b"\r\n\x87\n" else ""
        return _JPEG_2000.get(head[20:24], found) if found == ".jp2" else found
    return ".mov" if kind in _ATOMS and _is_quicktime(head, size, length, kind) else ""


def _by_brand(brands: bytes) -> str:
    """By the major brand, and by the compatible ones where that one is general (version in between)."""
    major, others = brands[:4], [brands[at : at + 4] for at in range(8, len(brands), 4)]
    if major[:2] == b"3g":
        return ".3g2" if major[2:3] == b"2" else ".3gp"
    found = _BRANDS.get(major, ".mp4")
    if found == ".heif":
        return next(
            (_BRANDS[one] for one in others if _BRANDS.get(one) in (".avif", ".heic")), found
        )
    return found


def _is_quicktime(head: bytes, size: int, length: int, kind: bytes) -> bool:
    """Whether a film from before brands: `moov` with its header, or two known atoms in a row."""
    if not 8 <= length <= size:
        return False
    if kind == b"moov":
        return head[12:16] in (b"mvhd", b"cmov", b"rmra")
    return head[length + 4 : length + 8] in _ATOMS or (kind == b"mdat" and length >= len(head))


# --- Matroska and Ogg --------------------------------------------------------------------------------------

_DOCTYPE = re.compile(rb".{4,76}?\x42\x82[\x80-\xbf](webm|matroska)", re.DOTALL)


def ebml(head: bytes, size: int) -> str:
    """Matroska or WebM, by the DocType element of the header (RFC 8794, 11.2.8)."""
    match = _DOCTYPE.match(head)
    return {b"webm": ".webm", b"matroska": ".mkv"}[match[1]] if match else ""


# codec of the first stream; containers that have several say their video first
_OGG = (
    (b"OpusHead", ".opus"),
    (b"\x01vorbis", ".ogg"),
    (b"\x7fFLAC", ".oga"),
    (b"Speex   ", ".spx"),
    (b"\x80theora", ".ogv"),
    (b"fishead\0", ".ogv"),
)


def ogg(head: bytes, size: int) -> str:
    """By the first packet of the first page (RFC 3533), which begins a stream."""
    if head[4] != 0 or not head[5] & 2:
        return ""
    packet = head[27 + head[26] :]
    return next((suffix for magic, suffix in _OGG if packet.startswith(magic)), ".ogg")


# --- MPEG audio, AAC and what stands behind an ID3 tag -----------------------------------------------------

_KBPS = {  # (MPEG-1, layer): by the bitrate index, ISO/IEC 11172-3 and 13818-3
    (True, 1): range(0, 449, 32),
    (True, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = (44100, 48000, 32000)


def mpeg_audio(head: bytes, size: int, at: int = 0) -> str:
    """Two frames in a row that agree, or one that is the whole file: the sync word alone is no evidence."""
    length = _frame_length(head[at : at + 6])
    end = at + length
    if not length or end > size:
        return ""
    if not _is_same_stream(head[at : at + 6], head[end : end + 6]) and (at or end < size):
        return ""
    return (".aac", ".mp3", ".mp2", ".mp1")[head[at + 1] >> 1 & 3]


def _is_same_stream(one: bytes, other: bytes) -> bool:
    """Whether two frames agree in what a stream can't change: version, layer, sampling rate."""
    return _frame_length(other) > 0 and one[:2] == other[:2] and not (one[2] ^ other[2]) & 0x0C


def _frame_length(header: bytes) -> int:
    """The length of an MPEG audio or ADTS frame, 0 where *header* begins none."""
    if len(header) < 6 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return 0
    version, layer = header[1] >> 3 & 3, 4 - (header[1] >> 1 & 3)
    if (
        layer == 4
    ):  # ADTS (ISO/IEC 13818-7): the layer is 0, and the length is written in the header
        length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
        return length if version & 2 and length >= 7 and header[2] >> 2 & 15 < 13 else 0
    bitrate, rate, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or bitrate in (0, 15) or rate == 3 or header[3] & 3 == 2:
        return 0
    hertz = _RATES[rate] >> (2, 0, 1, 0)[version]
    bits = _KBPS[version == 3, layer][bitrate] * 1000
    if layer == 1:
        return (12 * bits // hertz + padding) * 4
    return (144 if layer == 2 or version == 3 else 72) * bits // hertz + padding


def id3(head: bytes, size: int) -> str:
    """What an ID3v2 tag stands in front of; MP3 where that lies beyond the first bytes."""
    if head[3] not in (2, 3, 4) or head[4] == 255 or head[5] & 15 or max(head[6:10]) > 127:
        return ""
    end = 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])
    if end >= size:
        return ""
    if head[end : end + 4] == b"fLaC":
        return ".flac"
    return mpeg_audio(head, size, end) or ".mp3"


_AC3_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
_AC3_MOST, _EAC3_MOST = 10, 16  # what the streams call their syntax


def ac3(head: bytes, size: int) -> str:
    """Two frames in a row, or one that is the whole file (ETSI TS 102 366)."""
    syntax = head[5] >> 3
    length = _ac3_length(head) if syntax <= _AC3_MOST else 2 * (((head[2] & 7) << 8 | head[3]) + 1)
    if syntax > _EAC3_MOST or length < 16 or length > size:
        return ""
    following = head[length : length + 6]
    if length < size and not (following[:2] == head[:2] and following[5:6] == head[5:6]):
        return ""
    return ".ac3" if syntax <= _AC3_MOST else ".eac3"


def _ac3_length(head: bytes) -> int:
    rate, code = head[4] >> 6, head[4] & 63
    if rate == 3 or code >= 2 * len(_AC3_KBPS):
        return 0
    bits = 1000 * _AC3_KBPS[code >> 1] * 1536
    words = bits // 16 // (48000, 44100, 32000)[rate]
    return 2 * (words + (code & 1 if rate == 1 else 0))


def program_stream(head: bytes, size: int) -> str:
    """A pack of MPEG-1 or MPEG-2 (ISO/IEC 13818-1): its marker bits, and the start code behind it."""
    if head[4] & 0xC4 == 0x44:
        marked, end = head[6] & 4 and head[8] & 4 and head[9] & 1, 14 + (head[13] & 7)
    else:
        marked, end = head[4] & 0xF1 == 0x21 and head[6] & 1 and head[8] & 1, 12
    return ".mpg" if marked and head[end : end + 3] == b"\0\0\1" else ""


def mpeg_video(head: bytes, size: int) -> str:
    """The header of a sequence (ISO/IEC 13818-2), and behind its matrices the next start code."""
    width, height = head[4] << 4 | head[5] >> 4, (head[5] & 15) << 8 | head[6]
    shape, rate = head[7] >> 4, head[7] & 15
    if not (width and height and 1 <= shape <= 14 and 1 <= rate <= 8 and head[10] & 0x20):
        return ""
    end = 76 if head[11] & 2 else 12
    end += 64 * (head[end - 1] & 1) if end <= len(head) else 0
    return ".mpg" if re.match(rb"\x00*\x00\x00\x01[\xb2\xb5\xb8\x00]", head[end : end + 64]) else ""


def transport_stream(head: bytes, size: int) -> str:
    """MPEG-TS: packets of 188 bytes, each with the sync byte."""
    return ".ts" if head[188] == head[376] == head[564] == 0x47 else ""


# --- zip ---------------------------------------------------------------------------------------------------

_OFFICE = ((b"word/", ".docx"), (b"xl/", ".xlsx"), (b"ppt/", ".pptx"))
_MIMETYPES = (
    (b"application/epub+zip", ".epub"),
    (b"application/vnd.oasis.opendocument.text", ".odt"),
    (b"application/vnd.oasis.opendocument.spreadsheet", ".ods"),
    (b"application/vnd.oasis.opendocument.presentation", ".odp"),
)


def zipped(head: bytes, size: int) -> str:
    """A zip, or the format that its first member speaks for."""
    method, length, extra = head[8], head[26] | head[27] << 8, head[28] | head[29] << 8
    if head[4] > 63 or not (method in (0, 8, 9, 12, 14) or 93 <= method <= 99) or not length:
        return ""  # versions and methods of APPNOTE.TXT 6.3.10, 4.4.3 and 4.4.5
    if 30 + length + extra > size:
        return ""
    name, content = head[30 : 30 + length], head[30 + length + extra :]
    if name.endswith(b".npy"):
        return ".npz"
    if name.endswith(b"/data.pkl"):
        return ".pt"
    if method == 0 and name.endswith((b".usd", b".usda", b".usdc")):
        return ".usdz"
    if name == b"mimetype":
        return next((suffix for mime, suffix in _MIMETYPES if content.startswith(mime)), ".zip")
    if name in (b"[Content_Types].xml", b"_rels/.rels"):
        return next(
            (suffix for part, suffix in _OFFICE if re.search(rb"PK.{28}" + part, head, re.S)),
            ".zip",
        )
    return ".zip"
