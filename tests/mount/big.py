"""Large datasets in no time: what is in them is simple, and made of parts that are made once."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import zstandard

from tests.litdata_files import entry, index, mapping, spec

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 1 << 20
# Bytes of half a byte's worth each: they take zstd some work, unlike noise and unlike repetition. No text, as all
# of them are above 127.
PATTERN = random.Random(5).randbytes(BLOCK).translate(bytes(128 + byte % 16 for byte in range(256)))
_PACKED = zstandard.compress(PATTERN, 1)


def plain(folder: Path, **counts: int) -> Path:
    """A dataset of chunks of so many tiny records: `text` is the number of the record in 7 digits."""
    folder.mkdir()
    chunks = []
    for name, count in counts.items():
        records = b"".join(b"\7\0\0\0%07d" % number for number in range(count))
        content = _table(count, 11) + records
        (folder / f"{name}.bin").write_bytes(content)
        chunks.append(entry(f"{name}.bin", count, len(content)))
    about = {"data_format": ["str"], "data_spec": spec(mapping("text"))}
    (folder / "index.json").write_bytes(index(*chunks, **about))
    return folder


def zipped(folder: Path, **counts: tuple[int, int]) -> Path:
    """A dataset of whole compressed chunks: (records, megabytes of each); see ``record`` for what is in them."""
    folder.mkdir()
    chunks = []
    for name, (count, blocks) in counts.items():
        length = 8 + blocks * BLOCK
        table = _table(count, 4 + length)
        with (folder / f"{name}.zstd.bin").open("wb") as file:
            file.write(zstandard.compress(table))
            for number in range(count):
                file.write(zstandard.compress(struct.pack("<I", length) + b"%08d" % number))
                file.writelines([_PACKED] * blocks)
        chunks.append(entry(f"{name}.zstd.bin", count, len(table) + count * (4 + length)))
    about = {"data_format": ["bytes"], "data_spec": spec(mapping("data")), "compression": "zstd"}
    (folder / "index.json").write_bytes(index(*chunks, **about))
    return folder


def record(number: int, blocks: int) -> bytes:
    """The field `data` of a record of so many megabytes."""
    return b"%08d" % number + PATTERN * blocks


def _table(count: int, length: int) -> bytes:
    """The head of a chunk: the number of records, and where each begins and the last one ends."""
    begin = 4 + 4 * (count + 1)
    offsets = range(begin, begin + count * length + 1, length)
    return struct.pack(f"<{count + 2}I", count, *offsets)
