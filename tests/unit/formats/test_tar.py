from __future__ import annotations

import pytest

from shardfs.errors import Corrupt
from shardfs.formats.webdataset.header import (
    BLOCK,
    END,
    find_header,
    has_checksum,
    number,
    parse_header,
    parse_pax,
)
from tests.tar_files import header


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"00000000106\0", 70),
        (b"        106\0", 70),
        (b"        106 ", 70),
        (b"000000000106", 70),
        (b"106\0garbage ", 70),
        (b"106 \0       ", 70),
        (b"\0" * 12, 0),
        (b" " * 12, 0),
        (b"\x80" + b"\0" * 10 + b"\x46", 70),
        (b"\x80\0\0\0\x02" + b"\0" * 7, 2 << 56),
        (b"\xff" * 11 + b"\xf0", -16),
        (b"\xff" * 12, -1),
    ],
)
def test_numbers_in_all_their_forms(field: bytes, value: int) -> None:
    assert number(field) == value


@pytest.mark.parametrize("field", [b"00000000108\0", b"none\0       ", b"1 2         "])
def test_what_is_no_number_is_refused(field: bytes) -> None:
    with pytest.raises(Corrupt):
        number(field)


def test_a_header_is_read() -> None:
    read = parse_header(header("a/b.jpg", size=70, kind=b"2", link="c.jpg"))
    assert read == (b"a/b.jpg", ord("2"), 70, b"c.jpg")


def test_a_name_of_all_its_bytes_has_no_end() -> None:
    assert parse_header(header("x" * 100)).name == b"x" * 100


def test_a_prefix_counts_in_posix_archives_only() -> None:
    assert parse_header(header("b", prefix="a")).name == b"a/b"
    assert parse_header(header("b", prefix="a", magic=b"ustar  \0")).name == b"b"
    assert parse_header(header("b", prefix="a", magic=b"\0" * 8)).name == b"b"


def test_a_size_that_is_none_is_negative() -> None:
    assert parse_header(header("a", size_field=b"twelve bytes")).size < 0


def test_both_sums_are_checksums() -> None:
    block = header("\xe9", encoding="latin-1")
    signed = number(block[148:156]) - 256
    assert has_checksum(block)
    assert has_checksum(block[:148] + b"%06o\0 " % signed + block[156:])
    assert not has_checksum(block[:148] + b"%06o\0 " % (signed + 1) + block[156:])


@pytest.mark.parametrize("at", [0, 124, 148, 156, 511])
def test_a_changed_byte_is_no_header(at: int) -> None:
    block = bytearray(header("a.txt", size=5))
    block[at] ^= 1
    with pytest.raises(Corrupt):
        parse_header(bytes(block))


def test_extended_records_hold_anything() -> None:
    body = b"20 path=a=b\nc/d.txt\n8 size=\n27 SCHILY.xattr.user.x=\0\xff\n\n"
    assert parse_pax(body + b"\0\0") == [
        (b"path", b"a=b\nc/d.txt"),
        (b"size", b""),
        (b"SCHILY.xattr.user.x", b"\0\xff\n"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"9 path=a",
        b"10 path=a\nx",
        b"99 path=a\n",
        b"path=a\n",
        b"-9 path=a\n",
        b"7 path\n",
        b"0 a=b\n",
        b"1" * 5000 + b" a=b\n",
    ],
)
def test_damaged_records_are_refused(body: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_pax(body)


def test_the_next_header_stands_at_a_multiple_of_512() -> None:
    found = header("a")
    assert find_header(b"x" * BLOCK + END + found) == 2 * BLOCK
    assert find_header(b"x" * 64 + found + bytes(448)) == -1
    assert find_header(found[:-1]) == -1
