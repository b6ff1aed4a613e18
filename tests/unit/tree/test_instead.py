"""Whatever format a shard should have: what lies in its place instead is named, and its neighbours are read."""

from __future__ import annotations

import gzip
import json
import struct
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import Corrupt, ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.registry import ARCHIVES, FORMATS

if TYPE_CHECKING:
    from pathlib import Path

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 250000000\n" % (
    b"4d7a" * 16
)
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please.</body></html>\n"
ERROR = b'{"error":"Entry not found"}'
PLACEHOLDERS = [
    (LFS, "git lfs pull"),
    (PAGE, "HTML page"),
    (PAGE + b" " * 200_000, "HTML page"),
    (gzip.compress(PAGE, mtime=0), "HTML page"),
    (ERROR, r"JSON message \(Entry not found\)"),
]
SUFFIXES = [suffix for row in (*FORMATS, *ARCHIVES) for suffix in row.suffixes]
LONE = [suffix for row in FORMATS for suffix in row.lone if suffix != ".bin"]
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40)


@pytest.mark.parametrize(("content", "word"), PLACEHOLDERS)
def test_every_suffix(content: bytes, word: str, tmp_path: Path) -> None:
    for number, suffix in enumerate(SUFFIXES):
        (tmp_path / f"{number:03d}{suffix}").write_bytes(content)
    (tmp_path / "good.csv").write_bytes(b"a\n1\n")
    tree = open_tree(str(tmp_path), Options(disk_cache=False))
    assert bytes((tree.root / "good/000000/a.txt").read()) == b"1"
    for number, suffix in enumerate(SUFFIXES):
        with pytest.raises(Corrupt, match=word) as raised:
            list((tree.root / f"{number:03d}").children())
        assert f"{number:03d}{suffix}: " in str(raised.value)
    tree.close()


@pytest.mark.parametrize(("content", "word"), PLACEHOLDERS)
@pytest.mark.parametrize("suffix", LONE)
def test_files_that_the_user_names(suffix: str, content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(content)
    tree = open_tree(str(tmp_path / f"a{suffix}"), Options(disk_cache=False))
    with pytest.raises(Corrupt, match=word):
        list((tree.root / "a").children())
    tree.close()


def mds(*names: str) -> bytes:
    shards = [
        {
            "column_encodings": ["str"],
            "column_names": ["a"],
            "column_sizes": [None],
            "compression": "zstd",
            "format": "mds",
            "hashes": [],
            "raw_data": {"basename": name, "bytes": 100, "hashes": {}},
            "samples": 2,
            "size_limit": 1000,
            "version": 2,
            "zip_data": {"basename": f"{name}.zstd", "bytes": 90, "hashes": {}},
        }
        for name in names
    ]
    return json.dumps({"shards": shards, "version": 2}).encode()


def litdata(*names: str, compression: str | None) -> bytes:
    chunks = [{"chunk_bytes": 90, "chunk_size": 2, "dim": None, "filename": name} for name in names]
    spec = json.dumps([1, {"type": None, "context": None, "children_spec": []}])
    config = {"compression": compression, "data_format": ["str"], "data_spec": spec}
    return json.dumps({"chunks": chunks, "config": config}).encode()


@pytest.mark.parametrize(("content", "word"), PLACEHOLDERS)
@pytest.mark.parametrize(
    ("file", "index"),
    [
        ("shard.00000.mds.zstd", mds("shard.00000.mds")),
        ("shard.00000.mds", mds("shard.00000.mds")),
        ("chunk-0-0.bin", litdata("chunk-0-0.bin", compression=None)),
        ("chunk-0-0.zstd.bin", litdata("chunk-0-0.zstd.bin", compression="zstd")),
        ("chunk-0-0.bin", b""),
    ],
)
def test_shards_of_an_index(
    file: str, index: bytes, content: bytes, word: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(content)
    if index:
        (tmp_path / "index.json").write_bytes(index)
    tree = open_tree(str(tmp_path), Options(disk_cache=False))
    (shard,) = (child for child in tree.root.children() if child.is_dir)
    with pytest.raises(Corrupt, match=word):
        list(shard.children())
    tree.close()


def test_shards_that_are_json_themselves(tmp_path: Path) -> None:
    index = json.loads(mds("shard.00000.json"))
    text = b'{"a":"one"}\n'
    data = {"basename": "shard.00000.json", "bytes": len(text), "hashes": {}}
    meta = {"basename": "shard.00000.json.meta", "bytes": 12, "hashes": {}}
    index["shards"][0] |= {
        **{"format": "json", "columns": {"a": "str"}, "newline": "\n", "samples": 1},
        **{
            "compression": None,
            "raw_data": data,
            "raw_meta": meta,
            "zip_data": None,
            "zip_meta": None,
        },
    }
    (tmp_path / "index.json").write_text(json.dumps(index))
    (tmp_path / "shard.00000.json").write_bytes(text)
    (tmp_path / "shard.00000.json.meta").write_bytes(struct.pack("<III", 1, 0, len(text)))
    tree = open_tree(str(tmp_path), Options(disk_cache=False))
    assert bytes((tree.root / "shard.00000/000000/a.txt").read()) == b"one"
    tree.close()


@pytest.mark.parametrize("shard", ["shard.00000.mds", "chunk-0-0.bin"])
def test_an_index_that_is_a_pointer(shard: str, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_bytes(LFS)
    (tmp_path / shard).write_bytes(LFS)
    with pytest.raises(ShardfsError, match=r"index.json: is a Git LFS pointer.*git lfs pull"):
        open_tree(str(tmp_path), Options(disk_cache=False))


def test_media_of_a_table(tmp_path: Path) -> None:
    for name in ("b.png", "plain.png"):
        (tmp_path / name).write_bytes(PICTURE)
    (tmp_path / "a.png").write_bytes(LFS)
    (tmp_path / "metadata.csv").write_text("file_name,x\na.png,1\nb.png,2\n")
    tree = open_tree(str(tmp_path), Options(disk_cache=False))
    assert bytes((tree.root / "metadata/000001/image.png").read()) == PICTURE
    assert bytes((tree.root / "metadata/000000/x.txt").read()) == b"1"
    with pytest.raises(Corrupt, match=r"a\.png: is a Git LFS pointer.*git lfs pull"):
        (tree.root / "metadata/000000/image.png").read()
    with pytest.raises(
        Corrupt, match="git lfs pull"
    ):  # nor is it a picture where it passes through
        (tree.root / "a.png").read()
    tree.close()
