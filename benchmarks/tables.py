"""Parquet and JSON Lines files to measure with. They are made once, as those in ``datasets.py`` are."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from benchmarks.datasets import GRAIN, caption, image, label, made, of_grain

if TYPE_CHECKING:
    from collections.abc import Iterator

# As in datasets.py: to be counted up when what is made comes out otherwise than before.
_VERSION = 1

_WRITER = Path(__file__).with_name("huggingface_writer.py")


# --- images ------------------------------------------------------------------------------------------------


def image_name(number: int) -> str:
    return f"{number:06d}.jpg"


def images(work: Path, records: int, grain: int = GRAIN) -> Path:
    """A folder with ``images.parquet`` as pyarrow writes it when it is told nothing: snappy, one row group."""

    def make(folder: Path) -> None:
        numbers = range(records)
        columns = {
            "path": pa.array(map(image_name, numbers), pa.string()),
            "content": pa.array((image(number, grain) for number in numbers), pa.binary()),
            "label": pa.array(map(label, numbers), pa.int64()),
            "caption": pa.array(map(caption, numbers), pa.string()),
        }
        parquet.write_table(pa.table(columns), folder / "images.parquet")

    return made(work / f"parquet-images-{records}{of_grain(grain)}-v{_VERSION}", make)


def images_by_datasets(
    work: Path, records: int, python: str, version: str, grain: int = GRAIN
) -> Path:
    """The same records in ``images.parquet`` as Hugging Face's library writes it; *python* has that in this version."""
    source = images(work, records, grain) / "images.parquet"

    def make(folder: Path) -> None:
        # -I: `import datasets` must not find the module of that name beside the program.
        command = [python, "-I", str(_WRITER), str(source), str(folder / "images.parquet")]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)

    name = f"datasets-{version}-images-{records}{of_grain(grain)}-v{_VERSION}"
    return made(work / name, make)


# --- many rows ---------------------------------------------------------------------------------------------

# Rows that are made at a time; also the rows of a row group by pyarrow's defaults.
_BATCH = 1 << 20


def many_rows(work: Path, rows: int) -> Path:
    """A folder with ``rows.parquet``: a number, a text and a fraction a row, by pyarrow's defaults."""

    def make(folder: Path) -> None:
        tables = (_rows(range(rows)[first : first + _BATCH]) for first in range(0, rows, _BATCH))
        first = next(tables)
        with parquet.ParquetWriter(folder / "rows.parquet", first.schema) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)

    return made(work / f"parquet-rows-{rows}-v{_VERSION}", make)


def _rows(numbers: range) -> pa.Table:
    ids = pa.array(numbers, pa.int64())
    text = pc.binary_join_element_wise("text of record", ids.cast(pa.string()), " ")
    return pa.table({"id": ids, "text": text, "score": pc.divide(ids.cast(pa.float64()), 7.0)})


# Bytes of each line: a number, which JSON lets stand behind spaces, and as much text as fits.
LINE = 512
_HEAD, _TAIL = b'{"id": %9d, "text": "', b'"}\n'
_TEXTS = 64
_LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def json_lines(work: Path, size: int) -> Path:
    """A folder with ``rows.jsonl`` of *size* bytes, rounded down to whole lines."""

    def make(folder: Path) -> None:
        with (folder / "rows.jsonl").open("wb", buffering=1 << 20) as file:
            file.writelines(_lines(size // LINE))

    return made(work / f"jsonl-{size}-v{_VERSION}", make)


def _lines(count: int) -> Iterator[bytes]:
    chance, length = random.Random(0), LINE - len(_HEAD % 0) - len(_TAIL)
    texts = ["".join(chance.choices(_LETTERS, k=length)).encode() + _TAIL for _ in range(_TEXTS)]
    return (_HEAD % number + texts[number % _TEXTS] for number in range(count))
