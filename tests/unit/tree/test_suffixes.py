"""Every usual spelling of a suffix makes a shard, in a folder and as what the user names, in any case of letters."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from shardfs.blob import read_all
from shardfs.formats.shared.compressed import codec_of
from shardfs.registry import FORMATS
from shardfs.tree.discover import discover
from tests.fakes import FakeServices, MemoryStore
from tests.packed_files import lz4
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Callable

TAR, LINES, CSV = archive(member("0001.txt", b"one")), b'{"text": "one"}\n', b"text\none\n"
TABLE = pa.table({"text": ["one"]})


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(TABLE, file)
    return file.getvalue()


def arrow(open_: Any) -> bytes:
    file = io.BytesIO()
    with open_(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return file.getvalue()


lzma_alone = partial(lzma.compress, format=lzma.FORMAT_ALONE)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz .gzip": gzip.compress,
    ".bz2 .bz .bzip2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lzma_alone,
    ".zst .zstd .pzstd": zstandard.compress,
    ".lz4": lz4,
    ".br": lambda data: bytes(pa.Codec("brotli").compress(data)),
}
SHORT: dict[str, Callable[[bytes], bytes]] = {
    ".tgz .taz": gzip.compress,
    ".tbz .tbz2 .tb2 .tz2": bz2.compress,
    ".txz": lzma.compress,
    ".tlz": lzma_alone,
    ".tzst .tzstd": zstandard.compress,
    ".tlz4": lz4,
}
ROWS = {".jsonl .ndjson .jsonlines .ldjson": LINES, ".csv .tsv": CSV, ".tar": TAR}

FILES = {
    suffix + packed: pack(data)
    for suffixes, data in ROWS.items()
    for suffix in suffixes.split()
    for spellings, pack in PACK.items()
    for packed in spellings.split() or [""]
}
FILES |= {suffix: pack(TAR) for suffixes, pack in SHORT.items() for suffix in suffixes.split()}
FILES |= dict.fromkeys((".parquet", ".parq", ".pq", ".geoparquet", ".gpq"), parquet())
FILES |= dict.fromkeys((".arrow", ".feather", ".ipc"), arrow(pa.ipc.new_file))
FILES |= {".arrows": arrow(pa.ipc.new_stream)}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("suffix", FILES)
def test_spellings(suffix: str, named: bool) -> None:
    for name in (f"some.name-01{suffix}", f"some.name-01{suffix.upper()}"):
        store = MemoryStore({name: FILES[suffix]})
        found = discover(store, store.list(), FakeServices(), indexed=not named, named=named)
        (dataset,) = [one.dataset for one in found]
        (ref,) = dataset.shards
        assert (ref.name, ref.file) == ("some.name-01", name)
        assert dataset.owns(name)
        shard = dataset.open_shard(0)
        assert len(shard) == 1
        (field,) = shard.fields(0)
        assert bytes(read_all(field.data)).strip() == b"one"


def test_no_suffix_is_left_out() -> None:
    without_index = [row for row in FORMATS if row.suffixes and row.name != "mds"]
    assert set(FILES) == {suffix for row in without_index for suffix in row.suffixes}


def test_what_the_format_before_xz_begins_with() -> None:
    packed = lzma.compress(b"text", lzma.FORMAT_ALONE)
    sized = packed[:5] + (4).to_bytes(8, "little") + packed[13:]
    for preset in range(10):
        other = lzma.compress(b"text", lzma.FORMAT_ALONE, preset=preset)
        assert codec_of(MemoryStore({"a": other}).open("a")) == "xz"
    assert codec_of(MemoryStore({"a": sized}).open("a")) == "xz"
    wrong = [packed[:1] + b"\0\0\0\0" + packed[5:], packed[:1] + b"abcd" + packed[5:]]
    wrong += [b"\xff" + packed[1:], packed[:13] + b"\1" + packed[14:], packed[:13]]
    for data in (
        *wrong,
        b"]\n" * 10,
        "[1, 2, 3] []".encode("utf-32-le"),
        "]]]]]]]".encode("utf-16"),
    ):
        assert codec_of(MemoryStore({"a": data}).open("a")) is None
