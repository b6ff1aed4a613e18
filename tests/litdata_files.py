"""Files of LitData made by hand, as `litdata/streaming/writer.py` lays them out."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.model import Shard

LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def record(*leaves: bytes) -> bytes:
    return struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves)


def chunk(*records: bytes) -> bytes:
    offsets = [4 + 4 * (len(records) + 1)]
    for stored in records:
        offsets.append(offsets[-1] + len(stored))
    return struct.pack(f"<{len(records) + 2}I", len(records), *offsets) + b"".join(records)


def framed(*records: bytes, step: int) -> bytes:
    """A chunk in zstd frames of *step* records."""
    offsets = [0]
    for stored in records:
        offsets.append(offsets[-1] + len(stored))
    starts = range(0, len(records), step)
    head = struct.pack("<8sHHIII", b"LDFZ01\0\0", 1, 0, len(records), step, len(starts))
    head += struct.pack(f"<{len(offsets)}I", *offsets)
    table, frames = b"", b""
    for first in starts:
        plain = b"".join(records[first : first + step])
        frame = zstandard.compress(plain)
        at = len(head) + 24 * len(starts) + len(frames)
        count = min(step, len(records) - first)
        table += struct.pack("<IIQII", first, count, at, len(frame), len(plain))
        frames += frame
    return head + table + frames


def arrow_chunk(rows: Sequence[dict[str, Any]], step: int = 256, **options: Any) -> bytes:
    """A chunk of Arrow rows, in batches of *step*."""
    import pyarrow as pa

    table, sink = pa.Table.from_pylist(list(rows)), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for start in range(0, len(rows), step):
            writer.write_table(table.slice(start, step))
    file = sink.getvalue().to_pybytes()
    empty = chunk(*[b""] * len(rows))
    return bytes(empty + file + struct.pack("<I8s", len(file), b"LDARW01\0"))


def mapping(*keys: Any, children: Sequence[Any] = ()) -> dict[str, Any]:
    """The node of a dict in a data_spec, of leaves where no other children are given."""
    nodes = list(children) or [LEAF] * len(keys)
    return {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": nodes}


def spec(root: object) -> str:
    return json.dumps([1, root])


def index(*chunks: dict[str, Any], **config: Any) -> bytes:
    """An index.json; records are two leaves, `a` and `b`, unless *config* says otherwise."""
    usual = {
        "compression": None,
        "data_format": ["str", "int"],
        "data_spec": spec(mapping("a", "b")),
    }
    return json.dumps({"chunks": chunks, "config": usual | config}, sort_keys=True).encode()


def entry(file: str, records: int, size: int, **more: Any) -> dict[str, Any]:
    return {"filename": file, "chunk_size": records, "chunk_bytes": size, "dim": None} | more


def content(blob: Blob) -> bytes:
    return bytes(blob.read(0, blob.size()))


def contents(shard: Shard, number: int) -> dict[str, bytes]:
    """The stored bytes of the fields of a record, by their names."""
    return {field.name: content(field.data) for field in shard.fields(number)}
