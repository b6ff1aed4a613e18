"""LitData datasets to measure with, laid out as ``litdata/streaming/writer.py`` does, and an extracted copy of one.

All of them are the same at every making and are made once: a folder that stands under its own name is complete.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import shutil
import struct
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import zstandard
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

# Part of every folder's name: to be counted up when what is made comes out otherwise than before.
_VERSION = 1

_U32 = 4
_LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


class Packing(Enum):
    """How the bytes of a chunk are stored."""

    PLAIN = "plain"
    ZSTD_CHUNK = "zstd-chunk"
    ZSTD_BATCH = "zstd-batch"


# --- folders that are made once ----------------------------------------------------------------------------


def made(folder: Path, make: Callable[[Path], None]) -> Path:
    """*folder*, filled by *make* if it is not there yet."""
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


# --- chunks and indexes ------------------------------------------------------------------------------------


def _record(*leaves: bytes) -> bytes:
    return struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves)


def _offsets(records: Sequence[bytes], first: int) -> list[int]:
    return list(itertools.accumulate(map(len, records), initial=first))


def _write_chunk(path: Path, records: Sequence[bytes]) -> int:
    """Write ``u32 n | u32 offsets[n + 1] | records``; the bytes that it takes."""
    offsets = _offsets(records, _U32 * (len(records) + 2))
    with path.open("wb") as file:
        file.write(struct.pack(f"<{len(records) + 2}I", len(records), *offsets))
        file.writelines(records)
    return offsets[-1]


_FRAMES_HEAD = struct.Struct("<8sHHIII")
_FRAME = struct.Struct("<IIQII")
# What the writer takes where it is not told, and the zstd level it uses.
_STEP, _LEVEL = 256, 4


def _write_frames(path: Path, records: Sequence[bytes]) -> int:
    """Write the records in zstd frames behind a table of them (``LDFZ01``); the bytes that it takes."""
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    plain = [records[first : first + _STEP] for first in range(0, len(records), _STEP)]
    frames = [compress(b"".join(part)) for part in plain]
    head = _FRAMES_HEAD.pack(b"LDFZ01\0\0", 1, 0, len(records), _STEP, len(frames))
    offsets = struct.pack(f"<{len(records) + 1}I", *_offsets(records, 0))
    starts = _offsets(frames, len(head) + len(offsets) + _FRAME.size * len(frames))
    with path.open("wb") as file:
        file.write(head + offsets)
        for number, (part, frame) in enumerate(zip(plain, frames, strict=True)):
            size = sum(map(len, part))
            file.write(_FRAME.pack(number * _STEP, len(part), starts[number], len(frame), size))
        file.writelines(frames)
    return starts[-1]


def frames_of(chunk: bytes) -> Iterator[bytes]:
    """The compressed frames of a chunk that ``_write_frames`` wrote."""
    _, _, _, count, _, frames = _FRAMES_HEAD.unpack_from(chunk)
    table = _FRAMES_HEAD.size + _U32 * (count + 1)
    for _, _, start, length, _ in _FRAME.iter_unpack(chunk[table : table + _FRAME.size * frames]):
        yield chunk[start : start + length]


def _entry(file: str, records: int, size: int) -> dict[str, Any]:
    return {"chunk_bytes": size, "chunk_size": records, "dim": None, "filename": file}


def _write_index(
    folder: Path,
    chunks: Sequence[dict[str, Any]],
    fields: dict[str, str],
    packing: Packing = Packing.PLAIN,
) -> None:
    spec = {
        "type": "builtins.dict",
        "context": json.dumps(list(fields)),
        "children_spec": [_LEAF] * len(fields),
    }
    batch = packing is Packing.ZSTD_BATCH
    config = {
        "chunk_bytes": max(chunk["chunk_bytes"] for chunk in chunks),
        "chunk_size": None,
        "compression": None if packing is Packing.PLAIN else "zstd",
        "compression_batch_size": _STEP if batch else None,
        "compression_level": "batch" if batch else None,
        "data_format": list(fields.values()),
        "data_spec": json.dumps([1, spec]),
        "encryption": None,
        "item_loader": "PyTreeLoader",
    }
    index = {"chunks": chunks, "config": config, "updated_at": "0"}
    (folder / "index.json").write_text(json.dumps(index, sort_keys=True))


# --- images ------------------------------------------------------------------------------------------------

_FIELDS = {"image": "jpeg", "label": "int", "caption": "str"}
# Their repetition lies further apart than zstd looks back (2 MB at this level), so that chunks hardly compress.
_PICTURES = 512
GRAIN = 64
"""Random colours of so many pixels a side, blown up and compressed, are about 24 KB."""
_SCALE, _QUALITY = 4, 85


@lru_cache(maxsize=1)
def _pictures(grain: int) -> tuple[bytes, ...]:
    return tuple(_picture(seed, grain) for seed in range(_PICTURES))


def _picture(seed: int, grain: int) -> bytes:
    noise = random.Random(seed).randbytes(3 * grain * grain)
    small, file = Image.frombytes("RGB", (grain, grain), noise), io.BytesIO()
    picture = small.resize((_SCALE * grain, _SCALE * grain), Image.Resampling.BILINEAR)
    picture.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def image(number: int, grain: int = GRAIN) -> bytes:
    """A JPEG that no other record has: the number is in a comment segment behind the first marker."""
    picture, comment = _pictures(grain)[number % _PICTURES], b"record %08d" % number
    segment = b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment
    return picture[:2] + segment + picture[2:]


def label(number: int) -> int:
    return number * 7919 % 1000


def caption(number: int) -> str:
    return f"record {number}: colours at random, número {number * 37 % 1000}"


def _image_record(number: int, grain: int = GRAIN) -> bytes:
    return _record(image(number, grain), struct.pack("<q", label(number)), caption(number).encode())


def _chunks(records: int, chunk_bytes: int, grain: int = GRAIN) -> Iterator[range]:
    """The numbers of the records of each chunk."""
    first = size = 0
    for number in range(records):
        length = len(_image_record(number, grain)) + _U32
        if size and size + length > chunk_bytes:
            yield range(first, number)
            first, size = number, 0
        size += length
    yield range(first, records)


def images(
    work: Path, packing: Packing, records: int, chunk_bytes: int, grain: int = GRAIN
) -> Path:
    """A dataset of *records* images of *grain*, each with a label and a caption, in chunks of *chunk_bytes*."""

    def make(folder: Path) -> None:
        entries = []
        for number, members in enumerate(_chunks(records, chunk_bytes, grain)):
            content = [_image_record(member, grain) for member in members]
            path = folder / f"chunk-0-{number}.bin"
            write = _write_frames if packing is Packing.ZSTD_BATCH else _write_chunk
            size = write(path, content)
            if packing is Packing.ZSTD_CHUNK:
                path = _compress(path)
            entries.append(_entry(path.name, len(members), size))
        _write_index(folder, entries, _FIELDS, packing)

    name = f"images-{packing.value}-{records}-{chunk_bytes}{of_grain(grain)}-v{_VERSION}"
    return made(work / name, make)


def of_grain(grain: int) -> str:
    """The part of a folder's name that tells images of another *grain* than most apart."""
    return "" if grain == GRAIN else f"-{grain}"


def _compress(path: Path) -> Path:
    compressed = path.with_name(f"{path.stem}.zstd.bin")
    plain = path.read_bytes()
    compressed.write_bytes(zstandard.ZstdCompressor(level=_LEVEL).compress(plain))
    path.unlink()
    return compressed


def extracted_images(work: Path, records: int, chunk_bytes: int) -> Path:
    """What a mount of these images shows, as plain files."""
    dataset = images(work, Packing.PLAIN, records, chunk_bytes)

    def make(folder: Path) -> None:
        shutil.copy(dataset / "index.json", folder)
        for chunk, members in enumerate(_chunks(records, chunk_bytes)):
            for index, number in enumerate(members):
                record = folder / f"chunk-0-{chunk}" / f"{index:06d}"
                record.mkdir(parents=True)
                (record / "image.jpg").write_bytes(image(number))
                (record / "label.txt").write_text(f"{label(number)}\n")
                (record / "caption.txt").write_text(caption(number), encoding="utf-8")

    return made(work / f"images-extracted-{records}-{chunk_bytes}-v{_VERSION}", make)


# --- other shapes ------------------------------------------------------------------------------------------

_BLOCK = 1 << 20


def one_field(work: Path, size: int) -> Path:
    """A dataset of one record with one field of *size* bytes."""

    def make(folder: Path) -> None:
        block = random.Random(0).randbytes(_BLOCK)
        content = (block * -(-size // _BLOCK))[:size]
        written = _write_chunk(folder / "chunk-0-0.bin", [_record(content)])
        _write_index(folder, [_entry("chunk-0-0.bin", 1, written)], {"content": "bytes"})

    return made(work / f"field-{size}-v{_VERSION}", make)


def small_records(work: Path, chunks: int, records: int) -> Path:
    """A dataset of *chunks* chunks of *records* records, each a few words."""

    def make(folder: Path) -> None:
        entries = []
        for chunk in range(chunks):
            path = folder / f"chunk-0-{chunk}.bin"
            size = _write_chunk(path, list(_words(chunk * records, records)))
            entries.append(_entry(path.name, records, size))
        _write_index(folder, entries, {"text": "str"})

    return made(work / f"small-{chunks}-{records}-v{_VERSION}", make)


def _words(first: int, count: int) -> Iterable[bytes]:
    return (_record(b"text of record %d" % number) for number in range(first, first + count))
