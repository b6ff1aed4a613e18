from __future__ import annotations

import json
from typing import Any

import pytest

from shardfs.errors import Corrupt, Unsupported
from shardfs.formats.mds.index import (
    Column,
    Part,
    ShardInfo,
    StoredFile,
    lone_shard,
    parse_config,
    parse_index,
)

MDS: dict[str, Any] = {
    "version": 2,
    "format": "mds",
    "samples": 3,
    "compression": "zstd:7",
    "hashes": ["md5"],
    "size_limit": "64mb",
    "column_names": ["a", "b"],
    "column_encodings": ["str", "int"],
    "column_sizes": [None, 8],
    "raw_data": {"basename": "0/shard.00000.mds", "bytes": 90, "hashes": {"md5": "00ff"}},
    "zip_data": {"basename": "0/shard.00000.mds.zstd", "bytes": 50, "hashes": {}},
}
XSV: dict[str, Any] = {
    "version": 2,
    "format": "xsv",
    "samples": 1,
    "compression": None,
    "newline": "\r\n",
    "separator": "|",
    "column_names": ["a"],
    "column_encodings": ["int"],
    "raw_data": {"basename": "shard.00000.xsv", "bytes": 9},
    "zip_data": None,
    "raw_meta": {"basename": "shard.00000.xsv.meta", "bytes": 12},
    "zip_meta": None,
}
JSON: dict[str, Any] = {
    **{k: v for k, v in XSV.items() if not k.startswith("column")},
    "format": "json",
    "columns": {"x": "float", "y": "str"},
}


def parse(*shards: Any, **top: Any) -> tuple[ShardInfo, ...]:
    return parse_index(json.dumps({"version": 2, "shards": shards, **top}).encode())


def test_an_mds_shard() -> None:
    raw = StoredFile("0/shard.00000.mds", 90, (("md5", "00ff"),))
    zipped = StoredFile("0/shard.00000.mds.zstd", 50)
    columns = (Column("a", "str"), Column("b", "int", 8))
    assert parse(MDS) == (ShardInfo("mds", 3, "zstd", columns, Part(raw, zipped)),)


def test_a_shard_of_separated_values() -> None:
    (info,) = parse(XSV)
    assert info.columns == (Column("a", "int"),)
    assert (info.newline, info.separator) == ("\r\n", "|")
    assert info.meta == Part(StoredFile("shard.00000.xsv.meta", 12), None)


@pytest.mark.parametrize(("format_", "separator"), [("csv", ","), ("tsv", "\t")])
def test_separators_that_the_index_need_not_say(format_: str, separator: str) -> None:
    shard = {k: v for k, v in XSV.items() if k not in ("separator", "newline")}
    (info,) = parse({**shard, "format": format_})
    assert (info.newline, info.separator) == ("\n", separator)


def test_a_json_shard() -> None:
    (info,) = parse(JSON)
    assert info.columns == (Column("x", "float"), Column("y", "str"))


def test_equal_columns_are_held_once() -> None:
    first, second = parse(MDS, MDS)
    assert first.columns is second.columns


def test_no_shards() -> None:
    assert parse() == ()


@pytest.mark.parametrize(
    ("basename", "name", "path"),
    [
        ("shard.00000.mds", "shard.00000", "shard.00000.mds"),
        ("0/shard.00000.mds", "0/shard.00000", "0/shard.00000.mds"),
        ("a/./b//c.mds", "a/b/c", "a/b/c.mds"),
        ("data", "data", "data"),
        ("../x.mds", "x", None),
        ("a/../../x.mds", "x", None),
        ("/etc/passwd", "passwd", None),
        ("a\0b", "a\0b", None),
        ("..", "..", None),
        ("", "", None),
        (".", ".", None),
        ("\ud800.mds", "\udced\udca0\udc80", "\udced\udca0\udc80.mds"),
    ],
)
def test_names_of_shards(basename: str, name: str, path: str | None) -> None:
    (info,) = parse({**MDS, "raw_data": {"basename": basename, "bytes": 1}})
    assert (info.name, info.data.raw.path) == (name, path)


@pytest.mark.parametrize(
    "change",
    [{"version": 1}, {"format": "parquet"}, {"format": "x", "column_names": None}],
)
def test_one_shard_of_another_kind_is_listed_all_the_same(change: dict[str, Any]) -> None:
    odd, good = parse({**MDS, **change}, MDS)
    assert odd.unsupported
    assert odd.name.startswith("0/shard.00000")
    assert not good.unsupported


@pytest.mark.parametrize("version", [1, 3, 10**50])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(Unsupported, match="only version 2"):
        parse(version=version)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"version": 2}',
        b'{"shards": []}',
        b'{"version": "2", "shards": []}',
        b'{"version": true, "shards": []}',
        b'{"version": 2, "shards": {}}',
        b'{"version": 2, "shards": [7]}',
        b"[" * 100_000,
        b'{"version": ' + b"9" * 5000 + b"}",
        b"\xff\xfe\xff",
    ],
)
def test_what_is_no_index_is_damage(text: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_index(text)


WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    1.5,
    float("nan"),
    "x",
    ["x"],
    {"x": 1},
    10**30,
    [[]],
    [None],
    [1],
    [True],
)


@pytest.mark.parametrize("shard", [MDS, XSV, JSON], ids=["mds", "xsv", "json"])
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_wrong_types_are_damage_or_taken_but_nothing_else(
    shard: dict[str, Any], value: object
) -> None:
    for key in shard:
        changes = [{key: value}]
        if isinstance(shard[key], dict):
            changes += [{key: {**shard[key], inner: value}} for inner in shard[key]]
        for change in changes:
            try:
                (info,) = parse({**shard, **change})
            except Corrupt as error:
                assert error.places == ["shard 0", *error.places[1:]]  # noqa: PT017
            else:
                assert isinstance(info.name, str)


@pytest.mark.parametrize(
    ("shard", "change", "message"),
    [
        (MDS, {"samples": -1}, "samples is -1"),
        (MDS, {"samples": 1 << 32}, "samples is 4294967296"),
        (MDS, {"samples": None}, "samples should be a whole number"),
        (MDS, {"column_sizes": [8]}, "2 columns with 2 encodings and 1 sizes"),
        (MDS, {"column_sizes": [-1, 8]}, "a size is -1"),
        (MDS, {"raw_data": None}, "raw_data should be an object"),
        (MDS, {"raw_data": {"basename": "x"}}, "raw_data: has no bytes"),
        (MDS, {"raw_data": {"basename": "x", "bytes": -1}}, "raw_data: bytes is -1"),
        (XSV, {"separator": ""}, "separator is empty"),
        (XSV, {"raw_meta": None}, "raw_meta should be an object"),
        (JSON, {"columns": ["x"]}, "columns should be an object"),
    ],
)
def test_damage_is_named(shard: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(Corrupt) as raised:
        parse({**shard, **change})
    assert str(raised.value).startswith("shard 0: ")
    assert message in str(raised.value)


def test_a_config_text() -> None:
    config = {k: MDS[k] for k in ("version", "column_names", "column_encodings", "column_sizes")}
    assert parse_config(json.dumps(config).encode()) == (
        Column("a", "str"),
        Column("b", "int", 8),
    )
    with pytest.raises(Unsupported):
        parse_config(json.dumps({**config, "version": 3}).encode())
    with pytest.raises(Corrupt):
        parse_config(b"\0\0\0\0")


@pytest.mark.parametrize(
    ("name", "raw", "codec"),
    [
        ("shard.00000.mds", "shard.00000.mds", None),
        ("x.mds.zstd", "x.mds", "zstd"),
        ("x.mds.zst", "x.mds", "zstd"),
        ("X.MDS.GZ", "X.MDS", "gz"),
        ("shard.00000.mds.snappy", "shard.00000.mds", "snappy"),
    ],
)
def test_what_a_name_tells(name: str, raw: str, codec: str | None) -> None:
    info = lone_shard(name)
    assert info is not None
    assert (info.data.raw.name, info.compression) == (raw, codec)
    assert info.name == raw[: -len(".mds")]
    assert [file.name for file in info.files()] == [raw, *([name] if codec else [])]


@pytest.mark.parametrize("name", ["mds", "a.mds.meta", "a.json", "a.mds.lz4", "zstd", "a.zstd"])
def test_other_names(name: str) -> None:
    assert lone_shard(name) is None
