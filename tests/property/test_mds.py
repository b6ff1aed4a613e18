"""MosaicML's format against random input: written values are read; all else is read or fails by name."""

from __future__ import annotations

import contextlib
import json
import math
import struct
from typing import Any

from hypothesis import given
from hypothesis.strategies import (
    binary,
    booleans,
    builds,
    dictionaries,
    floats,
    integers,
    just,
    lists,
    none,
    one_of,
    recursive,
    sampled_from,
    text,
    tuples,
)

from shardfs.blob import Bytes, read_all
from shardfs.errors import Corrupt, ShardfsError
from shardfs.formats.mds.encodings import reader
from shardfs.formats.mds.index import Column, parse_index
from shardfs.formats.mds.shard import MdsShard
from shardfs.formats.mds.text import split_line, split_object
from shardfs.formats.shared.offsets import item_spans
from shardfs.model import Array, Items, Kind, Plain, Rendered

ENCODINGS = (
    "bytes",
    "str",
    "int",
    "jpeg_array",
    "list[pil]",
    "ndarray",
    "ndarray:int8",
    "pil",
    "x",
)
JSON = recursive(
    one_of(none(), booleans(), integers(), floats(), text()),
    lambda inner: one_of(lists(inner, max_size=3), dictionaries(text(), inner, max_size=3)),
    max_leaves=8,
)
COLUMNS = lists(
    builds(Column, text(max_size=5), sampled_from(ENCODINGS), one_of(none(), integers(0, 9))),
    max_size=5,
)


def written(records: list[list[bytes]], columns: list[Column]) -> bytes:
    samples = []
    for record in records:
        varying = [len(v) for v, c in zip(record, columns, strict=True) if c.size is None]
        samples.append(struct.pack(f"<{len(varying)}I", *varying) + b"".join(record))
    offsets = [4 * (len(records) + 2)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    return struct.pack(f"<{len(offsets) + 1}I", len(records), *offsets) + b"".join(samples)


@given(COLUMNS, lists(lists(binary(max_size=40), min_size=5, max_size=5), max_size=4))
def test_what_was_written_is_read(columns: list[Column], values: list[list[bytes]]) -> None:
    records = [
        [
            v if c.size is None else v[: c.size].ljust(c.size)
            for v, c in zip(row, columns, strict=False)
        ]
        for row in values
    ]
    shard = MdsShard(Bytes(written(records, columns)), columns, samples=len(records), costly=False)
    got = [[bytes(read_all(f.data)) for f in shard.fields(i)] for i in range(len(shard))]
    assert got == records


@given(COLUMNS, binary(max_size=200), integers(0, 5))
def test_random_bytes_are_no_shard_or_one_that_keeps_inside(
    columns: list[Column], data: bytes, samples: int
) -> None:
    with contextlib.suppress(ShardfsError):
        shard = MdsShard(Bytes(data), columns, samples=samples, costly=False)
        assert len(shard) <= samples
        for index in range(len(shard)):
            with contextlib.suppress(Corrupt):
                for field in shard.fields(index):
                    assert len(read_all(field.data)) == field.data.size() <= len(data)


@given(binary(max_size=100), integers(0, 199), integers(0, 255))
def test_one_changed_byte_harms_no_value_silently_in_size(tail: bytes, at: int, byte: int) -> None:
    columns = [Column("a", "str"), Column("b", "int8", 1)]
    data = bytearray(written([[b"first", b"1"], [tail, b"2"]], columns))
    data[at % len(data)] = byte
    with contextlib.suppress(Corrupt):
        shard = MdsShard(Bytes(bytes(data)), columns, samples=2, costly=False)
        for index in range(len(shard)):
            with contextlib.suppress(Corrupt):
                fields = shard.fields(index)
                assert [field.name for field in fields] == ["a", "b"]
                assert fields[1].data.size() == 1


@given(sampled_from([*ENCODINGS, "list[png]", "ndarray:float64", "ndarray:int16:2,2"]), binary())
def test_what_a_value_is_never_reaches_out_of_it(encoding: str, value: bytes) -> None:
    kind = reader(encoding)(Bytes(value))
    if isinstance(kind, Array):
        assert kind.skip + int(kind.dtype[2:]) * math.prod(kind.shape) == len(value)
    if isinstance(kind, Items):
        assert all(
            start >= 0 and start + length <= len(value)
            for start, length in filter(None, kind.spans)
        )


@given(text(max_size=20))
def test_any_encoding_has_a_reader(encoding: str) -> None:
    for prefix in ("", "ndarray:", "ndarray:int8:", "list["):
        kind = reader(prefix + encoding)(Bytes(b"x"))
        assert isinstance(kind, Kind)


@given(lists(binary(max_size=9), max_size=6), integers(0, 3))
def test_items_are_what_was_put_in(items: list[bytes], start: int) -> None:
    sizes = struct.pack(f"<{len(items) + 1}I", len(items), *map(len, items))
    data = bytes(start) + sizes + b"".join(items)
    spans = item_spans(Bytes(data), start)
    assert [data[at : at + length] for at, length in spans] == items


VALUES = text().map(str.encode)


@given(lists(VALUES, min_size=1, max_size=5), sampled_from([b",", b"\t", b"::"]))
def test_lines_are_split_as_they_were_joined(values: list[bytes], separator: bytes) -> None:
    line = separator.join(values) + b"\n"
    names = [str(index) for index in range(line.count(separator) + 1)]
    cells = split_line(names, separator, b"\n", line)
    assert [line[cell.begin : cell.end] for cell in cells] == line[:-1].split(separator)
    assert [cell.name for cell in cells] == names


def content(kind: object, token: bytes) -> bytes:
    if isinstance(kind, Rendered):
        return kind.render(memoryview(token))
    assert isinstance(kind, Plain)
    return token


@given(dictionaries(text(), JSON, max_size=5), booleans(), sampled_from(["\n", "", "\r\n"]))
def test_members_are_those_that_the_json_module_finds(
    value: dict[str, Any], ascii_only: bool, newline: str
) -> None:
    text_ = json.dumps(value, ensure_ascii=ascii_only) + newline
    line = text_.encode("utf-8", "surrogatepass")
    try:
        line.decode()
    except ValueError:
        return  # half a surrogate pair as it is: no UTF-8
    cells = split_object(newline.encode(), line)
    assert [cell.name for cell in cells] == list(value)
    for cell, expected in zip(cells, value.values(), strict=True):
        token = line[cell.begin : cell.end]
        if cell.kind is None:
            assert expected is None
        elif isinstance(expected, str):
            assert content(cell.kind, token) == expected.encode("utf-8", "backslashreplace")
        elif isinstance(expected, float):
            got = float(content(cell.kind, token))
            assert got == expected or (math.isnan(got) and math.isnan(expected))
        else:
            assert json.loads(content(cell.kind, token).decode()) == expected or "NaN" in text_


@given(
    one_of(
        binary(),
        lists(sampled_from('{}[]",:1naN \\u'), max_size=30).map(lambda s: "".join(s).encode()),
    )
)
def test_any_line_is_an_object_or_damage(line: bytes) -> None:
    with contextlib.suppress(Corrupt):
        for cell in split_object(b"", line):
            assert 0 < cell.begin < cell.end < len(line)
            if isinstance(cell.kind, Rendered):
                with contextlib.suppress(Corrupt):
                    cell.kind.render(memoryview(line)[cell.begin : cell.end])


SHARD = {
    "version": 2,
    "format": "mds",
    "samples": 1,
    "compression": None,
    "column_names": ["a"],
    "column_encodings": ["str"],
    "column_sizes": [None],
    "raw_data": {"basename": "x.mds", "bytes": 1, "hashes": {}},
    "zip_data": None,
}


@given(
    dictionaries(sampled_from([*SHARD, "columns", "newline", "separator", "raw_meta"]), JSON),
    sampled_from(["mds", "json", "csv", "xsv", None]),
)
def test_any_entry_of_an_index_is_one_or_damage(
    change: dict[str, Any], format_: str | None
) -> None:
    entry = {**SHARD, **({"format": format_} if format_ else {}), **change}
    with contextlib.suppress(ShardfsError):
        for info in parse_index(json.dumps({"version": 2, "shards": [entry]}).encode()):
            assert isinstance(info.name, str)
            assert all(
                file.path is None or ".." not in file.path.split("/") for file in info.files()
            )


@given(
    one_of(
        binary(),
        JSON.map(lambda value: json.dumps(value).encode()),
        tuples(just(b"["), binary()).map(b"".join),
    )
)
def test_any_text_is_an_index_or_damage(data: bytes) -> None:
    with contextlib.suppress(ShardfsError):
        parse_index(data)
