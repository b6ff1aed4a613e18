"""What a user reads of damaged data is never what Python or a library said to itself."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import zstandard

from shardfs.blob import Bytes
from shardfs.codecs._pass import Limits, Pass
from shardfs.codecs.bzip2 import Bzip2
from shardfs.codecs.gzip import Gzip
from shardfs.codecs.xz import Xz
from shardfs.errors import ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options
from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from shardfs.codecs import Codec
    from shardfs.tree.paths import Node

# How exceptions of Python, its modules and the libraries begin to speak.
FOREIGN = re.compile(
    r"Traceback|codec can't|Expecting|recursion depth|has no attribute|struct\.error|requires a buffer|unpack"
    r"|NoneType|subscriptable|\w+Error\b|out of range|invalid literal|Errno|\(char \d|Error -?\d|please report"
    r"|(?i:corrupt input|end-of-stream marker|invalid data stream|not a gzipped|crc check failed|zstd decompress)"
    r"|could not convert|must be str|not enough values|internal error|<class|0x[0-9a-f]{8}|\w+\.\w+Exception"
)

DAMAGED = sorted(
    [
        *(path for path in (DATA / "litdata/damaged").iterdir() if path.is_dir()),
        *(path for path in (DATA / "mds/damaged").iterdir() if path.is_dir()),
        *(path for path in (DATA / "huggingface").glob("bad_*") if path.is_dir()),
    ]
)
# Sound data of each kind, to be damaged here.
SOUND = [
    *("litdata/plain_dict", "litdata/zstd_batch", "litdata/arrow_rows", "litdata/nested_mixed"),
    *(
        "mds/plain",
        "mds/comp_gz",
        "mds/comp_bz2",
        "mds/comp_snappy",
        "mds/json_plain",
        "mds/csv_plain",
    ),
    *("huggingface/parquet_nested", "huggingface/ipc_feather", "huggingface/disk_dataset"),
    *("huggingface/jsonl_plain", "huggingface/jsonl_compressed", "huggingface/csv_quotes"),
    *("huggingface/json_documents", "huggingface/imagefolder_metadata_csv"),
]


def messages(source: Path, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """All that is said when everything in a source is read."""
    said: set[str] = set()
    try:
        with closing(open_tree(str(source), Options(disk_cache=False))) as tree:
            said |= set(_read(tree.root))
    except ShardfsError as error:
        said.add(str(error))
    yield from said
    yield from caplog.messages


def _read(node: Node) -> Iterator[str]:
    try:
        if not node.is_dir:
            node.read()
            return
        for child in node.children():
            yield from _read(child)
    except ShardfsError as error:
        yield str(error)


@pytest.mark.parametrize("source", DAMAGED, ids=lambda path: path.name)
def test_damaged_data_is_told_in_words_for_users(
    source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = list(messages(source, caplog))
    assert [text for text in said if FOREIGN.search(text) or "\n" in text] == []


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return (
        data[:middle]
        + bytes(byte ^ 0xFF for byte in data[middle : middle + 64])
        + data[middle + 64 :]
    )


def nested(data: bytes) -> bytes:
    return b'{"config": ' + b"[" * 100_000


def no_text(data: bytes) -> bytes:
    return data[:1] + b"\xff\xfe" + data[1:]


def other_types(data: bytes) -> bytes:
    """JSON with a text for every number and the other way round."""

    def changed(value: object) -> object:
        if isinstance(value, dict):
            return {key: changed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [changed(inner) for inner in value]
        return str(value) if isinstance(value, int) else 5

    try:
        return json.dumps(changed(json.loads(data))).encode()
    except ValueError:
        return b"5"


@pytest.mark.parametrize("spoil", [half, flipped, nested, no_text, other_types])
@pytest.mark.parametrize("case", SOUND)
def test_so_is_what_is_damaged_anywhere(
    case: str, spoil: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [p.relative_to(DATA / case) for p in sorted((DATA / case).rglob("*")) if p.is_file()]
    for number, name in enumerate(names[:4]):
        source = shutil.copytree(DATA / case, tmp_path / str(number))
        (source / name).write_bytes(spoil((source / name).read_bytes()))
        said = list(messages(source, caplog))
        assert [text for text in said if FOREIGN.search(text) or "\n" in text] == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('[1, {"type": "builtins.dict", "context": "[]"}]', "data_spec: has no children_spec"),
        ("[1", "data_spec: is no JSON: line 1, column 3 is not as it must be"),
        ("[1]", "data_spec: has 1 parts instead of 2"),
        (f"[1, {'[' * 100_000}", "data_spec: is JSON that is nested too deeply to be read"),
    ],
)
def test_what_is_wrong_in_an_index_says_where(spec: str, words: str, tmp_path: Path) -> None:
    source = shutil.copytree(DATA / "litdata/plain_dict", tmp_path / "source")
    index = json.loads((source / "index.json").read_text())
    index["config"]["data_spec"] = spec
    (source / "index.json").write_text(json.dumps(index))
    with pytest.raises(ShardfsError) as caught:
        open_tree(str(source), Options(disk_cache=False))
    assert str(caught.value) == f"index.json: {words}"


@pytest.mark.parametrize(
    ("case", "file", "size", "whole"),
    [
        ("litdata/plain_dict", "chunk-0-0.bin", 5000, "5,000 of 11,516"),
        ("litdata/zstd_batch", "chunk-0-0.bin", 5000, "5,000 of 12,778"),
        ("mds/plain", "shard.00000.mds", 2000, "2,000 of 8,017"),
        ("mds/comp_gz", "shard.00000.mds.gz", 600, "600 of 3,971"),
        ("mds/json_plain", "shard.00000.json", 100, None),
    ],
)
def test_a_file_that_is_too_short_says_how_long_it_is(
    case: str,
    file: str,
    size: int,
    whole: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = shutil.copytree(DATA / case, tmp_path / "source")
    whole = whole or f"{size:,} of {(source / file).stat().st_size:,}"
    with (source / file).open("r+b") as chunk:
        chunk.truncate(size)
    with closing(open_tree(str(source), Options(disk_cache=False))) as tree:
        said = list(_read(tree.root))
    assert caplog.messages.count(f"{file}: is {whole} bytes: what lay behind is lost") == 1
    assert said, "what lay behind can't be read"
    with (source / file).open("r+b") as chunk:
        chunk.truncate(3)
    with closing(open_tree(str(source), Options(disk_cache=False))) as tree:
        said = list(_read(tree.root))
    assert any(re.search(rf"{file}: is 3 of .* bytes", text) for text in [*said, *caplog.messages])


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst", "lz4"])
@pytest.mark.parametrize("spoil", [half, flipped])
def test_so_are_damaged_compressed_lines(
    suffix: str, spoil: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = random.Random(1)
    plain = b"".join(b'{"a": "%s"}\n' % made.randbytes(30).hex().encode() for _ in range(3000))
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.compress,
        "lz4": lambda data: pa.compress(data, "lz4", asbytes=True),
    }
    (tmp_path / f"x.jsonl.{suffix}").write_bytes(spoil(pack[suffix](plain)))
    said = list(messages(tmp_path, caplog))
    assert said
    assert [text for text in said if FOREIGN.search(text)] == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            half,
            r"ends too early, inside compressed data after \d+ bytes: fetch or write the file anew",
        ),
        (
            lambda data: data[:-9] + bytes(9),
            r"damaged compressed data( after \d+ bytes| with a \w+ that is not that of its content)?"
            r": fetch or write the file anew(, after \d+ bytes)?",
        ),
    ],
)
def test_compressed_data_say_where_they_are_damaged_and_what_to_do(
    pack: Callable[[bytes], bytes], spoil: Callable[[bytes], bytes], words: str
) -> None:
    codecs: dict[object, Codec] = {gzip.compress: Gzip, bz2.compress: Bzip2, lzma.compress: Xz}
    data = Bytes(spoil(pack(random.Random(1).randbytes(3000))))
    read = Pass(data, codecs[pack], Limits(1 << 20, 1 << 20))
    while not read.ended:
        read.turn(memoryview(bytearray(1000)))
    assert read.failure is not None
    assert re.fullmatch(words, read.failure.message)
