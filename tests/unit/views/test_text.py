from __future__ import annotations

import math
import struct

import pytest

from shardfs.blob import Bytes, Slice
from shardfs.errors import Corrupt
from shardfs.model import Field, Plain, Scalar
from shardfs.views import text


def shown(dtype: str, data: bytes) -> bytes | None:
    files = text.present(Field("x", Scalar(dtype), Bytes(data)))
    if files is None:
        return None
    (file,) = files
    assert (file.stem, file.extension) == ("x", ".txt")
    return bytes(file.blob.read(0, file.blob.size()))


@pytest.mark.parametrize(
    ("dtype", "data", "expected"),
    [
        ("|b1", b"\0", b"false\n"),
        ("|b1", b"\1", b"true\n"),
        ("|u1", b"\xff", b"255\n"),
        ("|i1", b"\xff", b"-1\n"),
        ("<i2", b"\0\x80", b"-32768\n"),
        (">u2", b"\x01\x00", b"256\n"),
        ("<i8", b"\0" * 7 + b"\x80", b"-9223372036854775808\n"),
        ("<u8", b"\xff" * 8, b"18446744073709551615\n"),
        (">i4", b"\xff\xff\xff\xfe", b"-2\n"),
        ("<f8", struct.pack("<d", 0.1), b"0.1\n"),
        (">f8", struct.pack(">d", 5e-324), b"5e-324\n"),
        ("<f4", struct.pack("<f", 0.1), b"0.1\n"),
        ("<f4", struct.pack("<f", 1.0), b"1.0\n"),
        ("<f4", struct.pack("<f", -0.0), b"-0.0\n"),
        ("<f4", struct.pack("<f", 1e30), b"1e+30\n"),
        ("<f4", b"\x01\0\0\0", b"1e-45\n"),
        ("<f4", b"\xff\xff\x7f\x7f", b"3.4028235e+38\n"),
        ("<f4", struct.pack("<f", 16777217.0), b"16777216.0\n"),
        ("<f4", struct.pack("<f", 123456789.0), b"123456792.0\n"),
        ("<f2", struct.pack("<e", 65504.0), b"65504.0\n"),
        (">f2", struct.pack(">e", 0.1), b"0.1\n"),
        ("<f4", struct.pack("<f", math.nan), b"nan\n"),
        ("<f2", struct.pack("<e", -math.inf), b"-inf\n"),
        ("<f8", struct.pack("<d", math.inf), b"inf\n"),
        ("<c8", struct.pack("<ff", 1.0, -2.5), b"1-2.5j\n"),
        (">c16", struct.pack(">dd", 0.1, 2.0), b"0.1+2j\n"),
        ("<c8", struct.pack("<ff", 0.0, 1.0), b"1j\n"),
        ("<c8", struct.pack("<ff", -0.0, 1.0), b"-0+1j\n"),
        ("<c16", struct.pack("<dd", math.nan, -math.inf), b"nan-infj\n"),
    ],
)
def test_text_and_one_newline(dtype: str, data: bytes, expected: bytes) -> None:
    assert shown(dtype, data) == expected


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("<i4", b"\0\0\0"),
        ("<i4", b"\0\0\0\0\0"),
        ("<f8", b""),
        ("|b1", b"\2"),
        ("|b1", b"\1\0"),
        ("<f16", bytes(16)),
        ("<i3", bytes(3)),
        ("<M8[ns]", bytes(8)),
        ("bfloat16", bytes(2)),
        ("<c4", bytes(4)),
        ("i4", bytes(4)),
        ("", b""),
        ("<f\u0662", bytes(2)),
    ],
)
def test_what_is_no_value_of_the_type_is_left_to_the_stored_bytes(dtype: str, data: bytes) -> None:
    assert shown(dtype, data) is None


def test_a_huge_value_of_a_small_type_is_not_read() -> None:
    class Unread(Bytes):
        def size(self) -> int:
            return 1 << 40

        def read(self, offset: int, length: int, /) -> memoryview:
            raise AssertionError

    assert text.present(Field("x", Scalar("<i4"), Unread(b""))) is None


def test_missing_bytes_are_an_error_of_the_file() -> None:
    files = text.present(Field("x", Scalar("<i4"), Slice(Bytes(b"ab"), 0, 4)))
    assert files is not None
    with pytest.raises(Corrupt):
        files[0].blob.size()
    with pytest.raises(Corrupt):
        files[0].blob.read(0, 1)


def test_other_kinds_are_not_its_business() -> None:
    assert text.present(Field("x", Plain(".txt"), Bytes(b"1"))) is None
