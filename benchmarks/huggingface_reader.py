"""Reads the images of a Parquet file with what people use for that: ``huggingface_reader.py KIND FILE COLUMN``.

Each line on stdin is a task in JSON: ``{"some": [row, ...]}``, ``{"sizes": rows}`` or ``{"all": null}``. For each the
file is opened anew, and a line of JSON says how long opening took, how long the task took (of *some* the median of a
row), how many bytes of images it came upon, how much memory the process had meanwhile at most (VmHWM), and how many
bytes it got from read calls (rchar in proc_pid_io(5), opening and task). It is run as a program and imports nothing of
shardfs.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

_SELF = Path("/proc/self")


class Images(Protocol):
    """The images of an open file."""

    def image(self, row: int, /) -> bytes: ...

    def sizes(self, rows: int, /) -> int:
        """The bytes that the images in the first *rows* rows have."""
        ...

    def all(self) -> int:
        """Make each image bytes, in order; how many bytes there were."""
        ...


class Datasets:
    """Hugging Face's library, images left encoded. At the first opening it makes an Arrow file, which it then maps."""

    def __init__(self, file: str, column: str) -> None:
        library = importlib.import_module("datasets")
        library.disable_progress_bars()
        self._name, _, self._part = column.partition(".")
        self._rows = library.load_dataset("parquet", data_files=file, split="train")
        if self._part:
            self._rows = self._rows.cast_column(self._name, library.Image(decode=False))

    def image(self, row: int, /) -> bytes:
        return self._image(self._rows[row])

    def sizes(self, rows: int, /) -> int:
        return sum(len(self.image(row)) for row in range(rows))

    def all(self) -> int:
        return sum(len(self._image(row)) for row in self._rows)

    def _image(self, row: dict[str, Any]) -> bytes:
        value = row[self._name]
        image: bytes = value[self._part] if self._part else value
        return image


class Pyarrow:
    """pyarrow's ``read_row_group`` of the group that has the row, and of that column alone."""

    def __init__(self, file: str, column: str) -> None:
        self._compute = importlib.import_module("pyarrow.compute")
        self._file = importlib.import_module("pyarrow.parquet").ParquetFile(file)
        self._column, self._part = column, column.partition(".")[2]
        groups = range(self._file.num_row_groups)
        counts = (self._file.metadata.row_group(group).num_rows for group in groups)
        self._starts = list(accumulate(counts, initial=0))

    def image(self, row: int, /) -> bytes:
        group = bisect_right(self._starts, row) - 1
        image: bytes = self._group(group)[row - self._starts[group]].as_py()
        return image

    def sizes(self, rows: int, /) -> int:
        total = 0
        for group, start in enumerate(self._starts[:-1]):
            if start < rows:
                lengths = self._compute.binary_length(self._group(group)[: rows - start])
                total += self._compute.sum(lengths).as_py()
        return total

    def all(self) -> int:
        groups = range(self._file.num_row_groups)
        return sum(len(image.as_py()) for group in groups for image in self._group(group))

    def _group(self, group: int) -> Any:
        values = self._file.read_row_group(group, columns=[self._column]).column(0)
        return self._compute.struct_field(values, self._part) if self._part else values


class ParquetFileFs:
    """parquet-file-fs, whose files are named by one column and are in another."""

    def __init__(self, file: str, column: str) -> None:
        library = importlib.import_module("parquet_file_fs")
        self._files = library.ParquetFileSystem(file, path_column="path", content_column=column)
        self._names = self._files.find("")

    def image(self, row: int, /) -> bytes:
        image: bytes = self._files.cat_file(self._names[row])
        return image

    def sizes(self, rows: int, /) -> int:
        return sum(self._files.info(name)["size"] for name in self._names[:rows])

    def all(self) -> int:
        return sum(len(self._files.cat_file(name)) for name in self._names)


KINDS: dict[str, type[Datasets | Pyarrow | ParquetFileFs]] = {
    "datasets": Datasets,
    "pyarrow": Pyarrow,
    "parquet-file-fs": ParquetFileFs,
}


def some(images: Images, rows: list[int]) -> tuple[float, int]:
    """Take each of *rows*: the median of the times, and how many bytes there were."""
    took, done = [], 0
    for row in rows:
        started = time.perf_counter()
        done += len(images.image(row))
        took.append(time.perf_counter() - started)
    return statistics.median(took), done


def carry_out(images: Images, task: dict[str, Any]) -> tuple[float, int]:
    if "some" in task:
        return some(images, task["some"])
    started = time.perf_counter()
    done = images.sizes(task["sizes"]) if "sizes" in task else images.all()
    return time.perf_counter() - started, done


def told(file: str, name: str) -> int:
    """The number that a file of this process has behind a name."""
    lines = (_SELF / file).read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1])


def main() -> None:
    kind, file, column = sys.argv[1:]
    for line in sys.stdin:
        (_SELF / "clear_refs").write_text("5")  # VmHWM counts from here, proc_pid_clear_refs(5)
        before, started = told("io", "rchar"), time.perf_counter()
        images: Images = KINDS[kind](file, column)
        opened = time.perf_counter() - started
        took, done = carry_out(images, json.loads(line))
        del images
        answer = {
            "opened": opened,
            "took": took,
            "done": done,
            "peak": told("status", "VmHWM") << 10,
            "read": told("io", "rchar") - before,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
