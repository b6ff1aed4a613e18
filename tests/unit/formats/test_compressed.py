"""Which compression a file has, by its first bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest
import zstandard

from shardfs.blob import Bytes, read_all
from shardfs.formats.shared.compressed import codec_of, open_content
from tests.fakes import FakeServices, MemoryStore

SKIPPED = b"\x5a\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
PACKED = {
    "gz": gzip.compress(b"text"),
    "bz2": bz2.compress(b"text"),
    "bz2 of nothing": bz2.compress(b""),
    "xz": lzma.compress(b"text"),
    "zstd": zstandard.compress(b"text"),
    "lz4": bytes(pa.Codec("lz4").compress(b"text")),
    "lz4 by lz4 -l": b"\x02\x21\x4c\x18\x05\0\0\0\x40text",
    "zstd before 1.0": b"\x27\xb5\x2f\xfd" + bytes(12),
    "zstd behind what is skipped": SKIPPED + zstandard.compress(b"text"),
}


@pytest.mark.parametrize("name", PACKED)
def test_the_first_bytes_tell(name: str) -> None:
    assert codec_of(Bytes(PACKED[name])) == name.split()[0]


@pytest.mark.parametrize(
    "data", [b"", b"BZh9 is a name", b'{"a": 1}', b"\x1f\x8b", SKIPPED, SKIPPED * 99, b"PK\x03\x04"]
)
def test_others_are_not_compressed(data: bytes) -> None:
    assert codec_of(Bytes(data)) is None


def test_the_content_is_what_it_was() -> None:
    services = FakeServices()
    for name in ("gz", "bz2", "xz", "zstd"):
        store = MemoryStore({"file": PACKED[name]})
        content = open_content(store, store.stat("file"), services)
        assert bytes(read_all(content.blob)) == b"text"
        assert (content.size, content.stored) == (None, len(PACKED[name]))
    store = MemoryStore({"file": b"text"})
    assert open_content(store, store.stat("file"), services).size == 4
