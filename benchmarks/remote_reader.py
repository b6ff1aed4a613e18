"""Reads images from a Hub with what people use for that: ``remote_reader.py KIND SOURCE TASK < ARGUMENTS``.

TASK is a method of a class in ``KINDS``, each of which tells how many bytes of images it came upon; ARGUMENTS are in
JSON. A line of JSON on stdout says that, and how long opening the source and the task took; importing is in neither.
It is run as a program and imports nothing of shardfs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MB = 1 << 20


def in_threads(share: Callable[[list[Any]], int], wanted: Sequence[Any], threads: int) -> int:
    """Do *share* in each thread, with its share of what is *wanted*; the sum."""
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(share, (list(wanted[number::threads]) for number in range(threads))))


def files() -> Any:
    return importlib.import_module("huggingface_hub").HfFileSystem()


# --- files of which one knows where the images are ---------------------------------------------------------


class Opened:
    """HfFileSystem: a file that each thread opens once, as it is when nothing is told."""

    needs = ("huggingface_hub.hf_file_system",)
    how: ClassVar[dict[str, Any]] = {}

    def __init__(self, source: str) -> None:
        self._files, self._path = files(), source
        self._files.info(source)

    def some(self, spans: list[Any], threads: int) -> int:
        """Read the images at *spans*."""
        return in_threads(self._share, spans, threads)

    def _share(self, spans: list[Any]) -> int:
        done = 0
        with self._files.open(self._path, "rb", **self.how) as file:
            for start, stop in spans:
                file.seek(start)
                done += len(file.read(stop - start))
        return done

    def all(self) -> int:
        """Read the file from its first byte to its last."""
        done = 0
        with self._files.open(self._path, "rb", **self.how) as file:
            while data := file.read(_MB):
                done += len(data)
        return done


class Uncached(Opened):
    """The same, told to fetch no more than is read."""

    how: ClassVar[dict[str, Any]] = {"cache_type": "none"}


class Streamed(Opened):
    """The same, told that nobody will seek."""

    how: ClassVar[dict[str, Any]] = {"block_size": 0}


class CatFile(Opened):
    """HfFileSystem: a call for each range."""

    def _share(self, spans: list[Any]) -> int:
        return sum(len(self._files.cat_file(self._path, *span)) for span in spans)


class CatRanges(Opened):
    """HfFileSystem: a call for all ranges of a thread."""

    def _share(self, spans: list[Any]) -> int:
        starts, stops = ([span[side] for span in spans] for side in (0, 1))
        return sum(map(len, self._files.cat_ranges([self._path] * len(spans), starts, stops)))


# --- tables ------------------------------------------------------------------------------------------------


class Pyarrow:
    """pyarrow over HfFileSystem, of the column of the images alone: for each image the row group that it is in."""

    needs = ("huggingface_hub.hf_file_system", "pyarrow.parquet", "pyarrow.compute")
    _COLUMN, _PART = "image.bytes", "bytes"

    def __init__(self, source: str) -> None:
        self._parquet = importlib.import_module("pyarrow.parquet")
        self._compute = importlib.import_module("pyarrow.compute")
        self._files, self._path = files(), source
        self._table = self._open(None)
        self._footer = self._table.metadata
        groups = range(self._footer.num_row_groups)
        counts = (self._footer.row_group(group).num_rows for group in groups)
        self._starts = list(accumulate(counts, initial=0))

    def _open(self, footer: Any) -> Any:
        return self._parquet.ParquetFile(
            self._path, filesystem=self._files, metadata=footer, pre_buffer=True
        )

    def first(self) -> int:
        """Read the first image, and as little else as pyarrow can be told to."""
        file = self._files.open(self._path, "rb")
        table = self._parquet.ParquetFile(
            file, metadata=self._footer, buffer_size=_MB, pre_buffer=False
        )
        batch = next(table.iter_batches(batch_size=1, columns=[self._COLUMN]))
        return len(batch.column(0)[0].as_py()[self._PART])

    def some(self, rows: list[int], threads: int) -> int:
        """Read the images of *rows*."""
        return in_threads(self._share, self._parts(rows), threads)

    def _parts(self, rows: list[int]) -> list[list[int]]:
        """Rows that are read together, which lie in one row group."""
        return [[row] for row in rows]

    def _share(self, parts: list[list[int]]) -> int:
        table = self._open(self._footer)
        return sum(self._bytes_of(table, rows) for rows in parts)

    def _bytes_of(self, table: Any, rows: list[int]) -> int:
        group = self._group(rows[0])
        values = table.read_row_group(group, columns=[self._COLUMN]).column(0)
        images = self._compute.struct_field(values, self._PART)
        return sum(len(images[row - self._starts[group]].as_py()) for row in rows)

    def _group(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1


class PyarrowAtOnce(Pyarrow):
    """The same by somebody who knows beforehand which images it will be: each row group once, side by side."""

    def _parts(self, rows: list[int]) -> list[list[int]]:
        parts: dict[int, list[int]] = {}
        for row in rows:
            parts.setdefault(self._group(row), []).append(row)
        return list(parts.values())


class Datasets:
    """Hugging Face's library, streaming, images left encoded."""

    needs = ("datasets", "datasets.load", "datasets.iterable_dataset", "pyarrow.dataset")

    def __init__(self, source: str) -> None:
        library = importlib.import_module("datasets")
        library.disable_progress_bars()
        rows = library.load_dataset(source, split="train", streaming=True)
        kinds = rows.features.items()
        (self._column,) = (name for name, kind in kinds if isinstance(kind, library.Image))
        self._rows = rows.cast_column(self._column, library.Image(decode=False))

    def first(self) -> int:
        """Read the first image."""
        return len(next(iter(self._rows))[self._column]["bytes"])

    def all(self) -> int:
        """Read all images in order."""
        return sum(len(row[self._column]["bytes"]) for row in self._rows)


KINDS: dict[str, type[Opened | Pyarrow | Datasets]] = {
    "open": Opened,
    "open, uncached": Uncached,
    "open, streamed": Streamed,
    "cat_file": CatFile,
    "cat_ranges": CatRanges,
    "pyarrow": Pyarrow,
    "pyarrow, at once": PyarrowAtOnce,
    "datasets": Datasets,
}


def main() -> None:
    kind, source, task = sys.argv[1:]
    arguments = json.load(sys.stdin)
    for module in KINDS[kind].needs:
        importlib.import_module(module)
    started = time.perf_counter()
    images = KINDS[kind](source)
    opened = time.perf_counter()
    done: int = getattr(images, task)(*arguments)
    took = time.perf_counter() - opened
    print(json.dumps({"opened": opened - started, "took": took, "done": done}), flush=True)
    os._exit(
        0
    )  # pyarrow's threads may still fetch what nobody wants, and abort where they find Python gone


if __name__ == "__main__":
    main()
