from __future__ import annotations

import pyarrow as pa
import pytest

from shardfs.blob import Bytes
from shardfs.codecs.snappy import Snappy, block_size
from shardfs.errors import Corrupt


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"\x00", 0),
        (b"\x40rest", 64),
        (b"\xfe\xff\x7f...", (1 << 21) - 2),
        (b"\xff\xff\xff\xff\x0f", 0xFFFFFFFF),
    ],
)
def test_the_length_is_a_varint(head: bytes, size: int) -> None:
    assert block_size(head) == size


@pytest.mark.parametrize("head", [b"", b"\x80", b"\xff\xff\xff\xff\x10", b"\xff" * 9])
def test_what_is_no_length_is_damage(head: bytes) -> None:
    with pytest.raises(Corrupt):
        block_size(head)


def test_the_densest_block_is_believed() -> None:
    stored = bytes(pa.Codec("snappy").compress(bytes(1 << 20)))
    assert Snappy.content_size(Bytes(stored)) == 1 << 20


def test_a_length_that_no_block_of_its_size_has_is_not_believed() -> None:
    with pytest.raises(Corrupt, match="4294967295"):
        Snappy.content_size(Bytes(b"\xff\xff\xff\xff\x0f" + bytes(1000)))
