from __future__ import annotations

import json
from typing import Any

import pytest

from shardfs.errors import Corrupt, ShardfsError, Unsupported
from shardfs.formats.litdata.index import Chunk, Encryption, is_index, parse_index
from tests.litdata_files import LEAF, entry, index, mapping, spec

ONE = entry("chunk-0-0.bin", 3, 99)


def test_chunks_are_in_the_order_of_the_index() -> None:
    found = parse_index(index(entry("chunk-10-0.bin", 1, 5, dim=7), ONE)).chunks
    assert found == (
        Chunk("chunk-10-0.bin", "chunk-10-0.bin", 1, 5, 7),
        Chunk("chunk-0-0.bin", "chunk-0-0.bin", 3, 99, None),
    )


@pytest.mark.parametrize(
    ("file", "path", "inflated", "name"),
    [
        ("chunk-0-0.bin", "chunk-0-0.bin", "chunk-0-0.bin", "chunk-0-0"),
        ("chunk-0-0.zstd.bin", "chunk-0-0.zstd.bin", "chunk-0-0.bin", "chunk-0-0"),
        ("chunk-0-0.zstd:19.bin", "chunk-0-0.zstd:19.bin", "chunk-0-0.bin", "chunk-0-0"),
        ("chunk-1-2-u7.zstd.bin", "chunk-1-2-u7.zstd.bin", "chunk-1-2-u7.bin", "chunk-1-2-u7"),
        ("./a//b.bin", "a/b.bin", "a/b.bin", "a/b"),
        ("odd", "odd", "odd", "odd"),
        (".bin", ".bin", ".bin", ".bin"),
        ("../x.bin", None, None, "x"),
        ("/etc/passwd", None, None, "passwd"),
        ("a/..", None, None, ".."),
        (".", None, None, "."),
        ("a\0b.bin", None, None, "a\0b"),
        ("x\n.bin", "x\n.bin", "x\n.bin", "x\n"),
    ],
)
def test_what_the_name_of_a_file_tells(
    file: str, path: str | None, inflated: str | None, name: str
) -> None:
    (chunk,) = parse_index(index(entry(file, 1, 1))).chunks
    assert (chunk.path, chunk.inflated, chunk.name) == (path, inflated, name)


def test_leaves_have_names_and_types() -> None:
    leaves = parse_index(index(ONE)).config.leaves
    assert leaves is not None
    assert [(leaf.name, leaf.type) for leaf in leaves] == [("a", "str"), ("b", "int")]


def test_without_a_spec_leaves_are_called_by_their_positions() -> None:
    leaves = parse_index(index(ONE, data_spec=None)).config.leaves
    assert leaves is not None
    assert [leaf.name for leaf in leaves] == ["0", "1"]


def test_an_index_without_chunks() -> None:
    found = parse_index(index(data_format=None, data_spec=None))
    assert (found.chunks, found.config.leaves) == ((), ())


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"item_loader": "TokensLoader"}, True),
        ({"item_loader": "PyTreeLoader"}, False),
        ({}, True),  # before there was an item_loader
        ({"data_format": ["no_header_numpy:5"]}, False),
        ({"data_format": ["no_header_tensor:16", "int"], "data_spec": None}, False),
        ({"item_loader": "TokensLoader", "data_format": ["int", "int"], "data_spec": None}, False),
    ],
)
def test_which_datasets_hold_tokens(config: dict[str, Any], tokens: bool) -> None:
    usual = {"data_format": ["no_header_tensor:16"], "data_spec": spec(LEAF)}
    assert (parse_index(index(ONE, **(usual | config))).config.tokens is not None) == tokens


@pytest.mark.parametrize(
    ("config", "compression", "level"),
    [
        ({}, "", ""),
        ({"compression": "zstd:19"}, "zstd:19", ""),
        ({"compression": "zstd", "compression_level": None}, "zstd", ""),
        ({"compression": "zstd", "compression_level": "chunk"}, "zstd", ""),
        ({"compression": "zstd", "compression_level": "batch"}, "zstd", "batch"),
        ({"compression": "zstd:7", "compression_level": "sample"}, "zstd:7", "sample"),
    ],
)
def test_compression(config: dict[str, Any], compression: str, level: str) -> None:
    found = parse_index(index(ONE, **config)).config
    assert (found.compression, found.level) == (compression, level)


def test_encryption() -> None:
    found = parse_index(index(ONE, encryption={"algorithm": "rsa", "level": "sample"})).config
    assert found.encryption == Encryption("rsa", "sample")


@pytest.mark.parametrize(
    "config",
    [
        {"item_loader": "ParquetLoader"},
        {"compression": "lz4"},
        {"compression": "zstd", "compression_level": "row"},
        {"encryption": {"algorithm": "fernet", "level": "byte"}},
        {"item_loader": "TemporalArrayLoader", "temporal_schema": {"version": 2}},
    ],
)
def test_what_cannot_be_read_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        parse_index(index(ONE, **config))


WHOLE: dict[str, Any] = json.loads(index(ONE))


@pytest.mark.parametrize(
    "whole",
    [
        5,
        [],
        {"chunks": 5},
        {"chunks": []},
        {"config": {}},
        {"chunks": {}, "config": {}},
        WHOLE | {"config": []},
        WHOLE | {"chunks": [5]},
        WHOLE | {"chunks": [{}]},
        WHOLE | {"updated_at": 5},
        WHOLE | {"keys": 5},
    ],
)
def test_an_index_of_another_form_is_corrupt(whole: object) -> None:
    with pytest.raises(Corrupt):
        parse_index(json.dumps(whole).encode())


WRONG = [True, -1, 1.5, "x", [5], {"a": 5}]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key in ONE
        for value in (None, *WRONG, [], 1 << 70)
        if (key, value) not in (("filename", "x"), ("dim", None))
    ],
    ids=str,
)
def test_a_wrong_type_in_a_chunk_is_corrupt(key: str, value: object) -> None:
    with pytest.raises(Corrupt, match=r"^chunk 1: "):
        parse_index(index(ONE, ONE | {key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key in (*WHOLE["config"], "encryption", "item_loader", "compression_level")
        for value in (*WRONG, {})
        if (key, value) != ("item_loader", "x")
    ],
    ids=str,
)
def test_a_wrong_type_in_the_config_is_refused(key: str, value: object) -> None:
    with pytest.raises(ShardfsError):
        parse_index(index(ONE, **{key: value}))


SCHEMA: dict[str, Any] = {
    "version": 1,
    "fields": {"x": {"dtype": "<f4", "shape": [2]}, "t": {"dtype": "<i8", "shape": []}},
    "field_order": ["x", "t"],
    "groups": [["x", "t"]],
}


@pytest.mark.parametrize(
    "change",
    [
        *({key: value} for key in SCHEMA for value in (None, True, "x", 5, [5], {"a": 5})),
        {"groups": []},
        {"groups": [["x"]]},
        {"groups": [["x"], []]},
        {"groups": [["x", "t", "t"]]},
        {"groups": [["x", "y"]]},
        {"field_order": ["x", "x"], "groups": [["x"], ["x"]]},
        *(
            {"fields": SCHEMA["fields"] | {"x": {"dtype": dtype, "shape": shape}}}
            for dtype, shape in [
                ("<O8", []), ("|S3", []), ("f4", []), (5, []), ("<f3", []),
                ("<f4", 5), ("<f4", [0]), ("<f4", ["2"]), ("<f4", [True]), ("<f4", [-2]),
            ]
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_temporal_schema_is_refused(change: dict[str, Any]) -> None:
    config = {
        "item_loader": "TemporalArrayLoader",
        "data_format": ["bytes"],
        "data_spec": spec(LEAF),
    }
    assert parse_index(index(ONE, **config, temporal_schema=SCHEMA)).config.temporal is not None
    with pytest.raises(ShardfsError):
        parse_index(index(ONE, **config, temporal_schema=SCHEMA | change))


def test_leaves_and_types_are_as_many() -> None:
    with pytest.raises(Corrupt, match="data_spec has 3 leaves, but data_format 2"):
        parse_index(index(ONE, data_spec=spec(mapping("a", "b", "c"))))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"chunks": 5}, True),
        ({"config": 1}, True),
        ({"shards": []}, False),
        ([], False),
        (None, False),
    ],
)
def test_what_looks_like_an_index(value: object, expected: bool) -> None:
    assert is_index(value) == expected
