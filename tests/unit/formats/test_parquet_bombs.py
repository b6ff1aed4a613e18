"""Parquet files of a few bytes that claim to hold very many."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from shardfs.errors import Corrupt, ShardfsError, TooLarge
from shardfs.options import Options
from tests import thrift
from tests.fakes import FakeServices
from tests.parquet_files import (
    BYTE_ARRAY,
    INT64,
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Made,
    element,
    made,
    opened,
    page,
    root,
    texts,
)

TEXT = [root(1), element("v", OPTIONAL, type=BYTE_ARRAY)]
HUGE = (1 << 31) - 1
ALL = struct.pack("<I", 6) + thrift.varint(HUGE << 1) + b"\x01"


def bomb(name: str) -> bytes:
    """A file of few bytes that says it holds very many."""
    number = [root(1), element("v", REQUIRED, type=INT64)]
    tags = [root(1), element("v", REPEATED, type=INT64)]
    delta = thrift.varint(1 << 30) + b"\x04" + thrift.varint(HUGE) + bytes(20)
    zeros = struct.pack("<I", 6) + thrift.varint(HUGE << 1) + b"\x00"
    pages = {
        "nulls": (TEXT, page(struct.pack("<I", 6) + thrift.varint(HUGE << 1) + b"\0", HUGE), 0),
        "texts": (TEXT, page(ALL + texts(b"a"), HUGE), 0),
        "numbers": (number, page(bytes(8), HUGE), 0),
        "differences": (number, page(delta, HUGE, encoding=5), 0),
        "lists": (tags, page(zeros + ALL + bytes(8), HUGE), 0),
        "one list": (tags, page(ALL + ALL + bytes(8), HUGE), 0),
    }
    for codec in (1, 2, 4, 5, 6, 7):
        pages[f"codec {codec}"] = (
            TEXT,
            page(b"\xff\xff\xff\xff\x07" + bytes(9), 1, size=HUGE),
            codec,
        )
    schema, data, codec = pages[name]
    chunk = Made(data, HUGE, INT64 if schema is number else BYTE_ARRAY, said={4: thrift.I32(codec)})
    if schema is tags:
        chunk = Made(data, HUGE, INT64)
    return made(schema, [(HUGE, [chunk])])


@pytest.mark.parametrize(
    "name",
    ["nulls", "texts", "numbers", "differences", "lists", "one list"]
    + [f"codec {codec}" for codec in (1, 2, 4, 5, 6, 7)],
)
def test_a_page_that_claims_any_number_of_bytes_takes_little_memory(name: str) -> None:
    opened(bomb("nulls"))  # so that what is imported does not count
    tracemalloc.start()
    try:
        shard = opened(bomb(name))
        assert len(shard) == HUGE
        for row in (0, HUGE - 1):
            try:
                assert all(field.data.size() <= 8 for field in shard.fields(row))
            except ShardfsError:
                continue
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [1, 2, 4, 5, 6, 7])
def test_a_page_that_decompresses_to_more_than_is_allowed(codec: int) -> None:
    said = {4: thrift.I32(codec)}
    data = made(TEXT, [(1, [Made(page(bytes(50), 1, size=10_000), 1, said=said)])])
    options = Options(max_chunk_size=9_999)
    with pytest.raises(TooLarge if codec != 1 else Corrupt):
        [f.data.size() for f in opened(data, FakeServices(options)).fields(0)]
