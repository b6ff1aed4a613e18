"""Headers of tar archives, as v7, POSIX (ustar, pax), GNU tar, Solaris and their kin write them: bytes in, values out.

Facts are those of POSIX.1-2017 (pax, "ustar Interchange Format"), of the GNU tar manual ("Basic Tar Format") and,
where these are silent, of what CPython's tarfile, GNU tar and libarchive agree on.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from shardfs.errors import Corrupt

BLOCK = 512
END = bytes(BLOCK)
"""The block that ends an archive."""

MAX_SIZE = 1 << 60
"""Sizes from here on are no sizes of anything. Offsets in signed 64 bits stay far from their limit."""

HARD_LINK, SYMBOLIC_LINK, SPARSE = b"12S"
# Links, devices, folders and pipes: whatever their size says, no data follows.
WITHOUT_DATA = b"123456"
# The next member's long name and long link target (GNU), its attributes (POSIX, Solaris), those of all later ones.
LONG_NAME, LONG_LINK, PAX, PAX_SOLARIS, PAX_GLOBAL = b"LKxXg"
METADATA = b"LKxXg"
# GNU tar's: a folder's list of files, a long name of old, the rest of a file from another volume, a volume's label.
_NO_FILES = b"DNMV"

_POSIX = b"ustar\0"
_LINKS = b"12"
_BLANK_CHECKSUM = 8 * ord(" ")
_CHECKSUM = re.compile(rb" *[0-7]+[ \0]*")
_ASCII = bytes(range(0x80))


class Header(NamedTuple):
    """What one header says.

    Attributes:
        name: the path as it is stored, joined from its two parts.
        type: the byte that tells the kind of member.
        size: bytes of data; negative where the header has no number there, or a negative one.
        link: what a link leads to.
    """

    name: bytes
    type: int
    size: int
    link: bytes


def begins_archive(head: bytes) -> bool:
    """Whether a file that begins with *head* is an archive, as far as its first header tells."""
    return len(head) >= BLOCK and has_checksum(head[:BLOCK])


def parse_header(block: bytes) -> Header:
    """The header in a block of 512 bytes. Raises Corrupt where its checksum is wrong."""
    if not has_checksum(block):
        raise Corrupt("no valid header")
    end = block.find(0, 0, 100)
    name = block[: 100 if end < 0 else end]
    if block[345] and block[257:263] == _POSIX:  # GNU tar has other things than a prefix there
        name = text(block[345:500]) + b"/" + name
    kind = block[156]
    link = text(block[157:257]) if kind in _LINKS else b""
    try:
        size = number(block[124:136])
    except Corrupt:
        size = -1
    return Header(name, kind, size, link)


def has_checksum(block: bytes) -> bool:
    """Whether the checksum in a block is that of the block: the sum of its bytes, with blanks in its own place.

    Some old programs added bytes up as signed numbers; everybody accepts both.
    """
    if len(block) != BLOCK:
        return False
    field = block[148:156]
    try:
        stored = number(field)
    except Corrupt:
        return False
    # Most of a header is NUL: without those the sum takes a third of the time.
    unsigned = sum(block.translate(None, b"\0")) - sum(field) + _BLANK_CHECKSUM
    return stored == unsigned or stored == unsigned - 256 * len(block.translate(None, _ASCII))


def number(field: bytes) -> int:
    """The number in a field: octal digits, or base 256 where the first bit is set. Raises Corrupt.

    Digits may have blanks before them and end in a NUL, a blank, or with the field; no digits are 0.
    Base 256 is a big-endian two's complement behind the first bit.
    """
    if field[0] & 0x80:
        bits = 8 * len(field) - 1
        value = int.from_bytes(field, "big") & ((1 << bits) - 1)
        return value - (1 << bits) if field[0] & 0x40 else value
    try:
        return int(field.rstrip(b"\0 ") or b"0", 8)
    except ValueError:
        pass
    try:
        return int(text(field).strip(b" ") or b"0", 8)
    except ValueError:
        raise Corrupt(f"{field!r} is no octal number") from None


def text(field: bytes) -> bytes:
    """A field up to its first NUL."""
    end = field.find(0)
    return field if end < 0 else field[:end]


def is_file(kind: int) -> bool:
    """Whether a member's bytes are a file's: also where its type is not known (POSIX)."""
    return kind not in WITHOUT_DATA and kind not in METADATA and kind not in _NO_FILES


def padded(size: int) -> int:
    """Bytes that *size* bytes of data take up."""
    return -(-size // BLOCK) * BLOCK


def parse_pax(body: bytes) -> list[tuple[bytes, bytes]]:
    """The records ``LENGTH KEY=VALUE\\n`` of an extended header, in order. Raises Corrupt.

    The length counts the whole record, so that values can hold anything, line ends too.
    """
    records, at = [], 0
    while at < len(body) and body[at]:
        space = body.find(b" ", at, at + 20)
        digits = body[at:space] if space > 0 else b""
        end = at + int(digits) if digits.isdigit() else -1
        key, equals, value = body[space + 1 : end - 1].partition(b"=")
        if not space < end <= len(body) or body[end - 1 : end] != b"\n" or not equals:
            raise Corrupt(f"an extended header is damaged at its byte {at}")
        records.append((key, value))
        at = end
    return records


def find_header(window: bytes) -> int:
    """The offset of the first block in *window* that is a header, at a multiple of 512; -1 where there is none."""
    for at in range(0, len(window) - BLOCK + 1, BLOCK):
        field = window[at + 148 : at + 156]
        if _CHECKSUM.fullmatch(field) and has_checksum(window[at : at + BLOCK]):
            return at
    return -1
