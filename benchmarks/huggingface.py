"""``python -m benchmarks.huggingface``: images in Parquet through a mount, beside the libraries that read them; large tables."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import tables
from benchmarks.harness import (
    Aim,
    Mount,
    Pairs,
    Row,
    Sample,
    machine,
    megabytes,
    pairs,
    seconds,
    shardfs,
    table,
    times,
)
from benchmarks.litdata import cat, read_each, read_file, run, warm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

RESULTS = Path(__file__).parent / "results" / "huggingface.md"

# What there may be to compare with, by the names of the packages.
PEERS = ("datasets", "pyarrow", "parquet-file-fs")

_TENFOLD, _FASTER, _HALF = (Aim(limit, times, at_least=True) for limit in (10, 1, 0.5))
_SMALL, _AT_ONCE = Aim(150e6, megabytes), Aim(1, seconds)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is made and done.

    Attributes:
        records: images of about 25 KB in either file of images.
        opens: images that are read at random.
        listed: folders that are listed.
        rows: rows of the Parquet file of many.
        lines: bytes of the JSON Lines file.
        repeats: pairs of each comparison; mounts of each large table.
    """

    records: int = 8_000
    opens: int = 200
    listed: int = 1_000
    rows: int = 10_000_000
    lines: int = 5_000_000_000
    repeats: int = 5


FULL = Sizes()
QUICK = Sizes(400, 20, 100, 200_000, 50_000_000, repeats=2)


class Images(NamedTuple):
    """A Parquet file of images.

    Attributes:
        folder: what is mounted; in it is ``images.parquet``.
        column: the column of the images, and the part of it where it has parts.
        file: the name that an image has in a mount.
        peers: those that can read it.
    """

    name: str
    folder: Path
    column: str
    file: str
    peers: tuple[str, ...]


@dataclass
class Bench:
    """What all measures share. The files are made when they are first asked for.

    Attributes:
        python: a Python with what there is of the peers.
        peaks: the most memory that the daemon had, of each mount of images.
    """

    work: Path
    sizes: Sizes
    python: str
    peaks: list[int] = field(default_factory=list)

    @cached_property
    def versions(self) -> dict[str, str]:
        """The versions of the peers that are there."""
        program = (
            "from importlib import metadata; import json, sys; there = metadata.distributions();"
            "print(json.dumps({d.name: d.version for d in there if d.name in sys.argv}))"
        )
        command = [self.python, "-I", "-c", program, *PEERS]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        versions: dict[str, str] = json.loads(found)
        return {peer: versions[peer] for peer in PEERS if peer in versions}

    @cached_property
    def images(self) -> list[Images]:
        there, records = tuple(self.versions), self.sizes.records
        plain = tables.images(self.work, records)
        files = [Images("pyarrow's", plain, "content", "content.jpg", there)]
        if (version := self.versions.get("datasets")) is not None:
            made = tables.images_by_datasets(self.work, records, self.python, version)
            # parquet-file-fs looks at whole columns only, and in this file the images are a part of one.
            peers = tuple(peer for peer in there if peer != "parquet-file-fs")
            files.insert(0, Images("datasets'", made, "image.bytes", "image.jpg", peers))
        return files

    @cached_property
    def picked(self) -> list[int]:
        return random.Random(1).sample(range(self.sizes.records), self.sizes.opens)


# --- both sides --------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a repeat took: bytes of memory at most, bytes from read calls."""

    peak: int
    read: int


class Side:
    """One of the two that are compared, and what its repeats took."""

    def __init__(self) -> None:
        self.costs: list[Cost] = []

    def __str__(self) -> str:
        peak = max(cost.peak for cost in self.costs)
        read = statistics.median(cost.read for cost in self.costs)
        return f"{megabytes(peak)}, {megabytes(read)} read"


class Ours(Side):
    """A mount of the images that nobody used before, for each repeat."""

    def __init__(self, images: Images, work: Callable[[Mount, Path], Sample]) -> None:
        super().__init__()
        self._images, self._work = images, work

    def once(self) -> Sample:
        warm(self._images.folder)
        with shardfs(self._images.folder) as mount:
            before = mount.bytes_read()
            sample = self._work(mount, mount.path / "images")
            self.costs.append(Cost(mount.memory().peak, mount.bytes_read() - before))
        return sample


class Reader(Side):
    """A peer: a program that stays, so that it is not measured how long that takes to start.

    Attributes:
        kept: the folder of what the library keeps for itself.
    """

    def __init__(self, program: subprocess.Popen[str], images: Images, kept: Path) -> None:
        super().__init__()
        self._program, self._images, self.kept = program, images, kept

    def ask(self, task: Mapping[str, object], *, opening: bool = False) -> Sample:
        """Let it carry out a task of ``huggingface_reader.py``; *opening*: the time has the opening of the file in it."""
        warm(self._images.folder)
        warm(self.kept)
        if self._program.stdin is None or self._program.stdout is None:
            raise RuntimeError("a reader without pipes")
        self._program.stdin.write(json.dumps(task) + "\n")
        self._program.stdin.flush()
        answer = json.loads(self._program.stdout.readline() or "{}")
        if not answer:
            raise RuntimeError(f"the reader ended with status {self._program.wait()}")
        self.costs.append(Cost(answer["peak"], answer["read"]))
        return Sample(answer["took"] + (answer["opened"] if opening else 0.0), answer["done"])


@contextmanager
def reading(bench: Bench, images: Images, kind: str) -> Iterator[Reader]:
    """A peer that has everything it needs loaded."""
    script = str(Path(__file__).with_name("huggingface_reader.py"))
    file = str(images.folder / "images.parquet")
    with tempfile.TemporaryDirectory(dir=bench.work) as kept:
        program = subprocess.Popen(
            # -I: `import datasets` must not find the module of that name beside the program.
            [bench.python, "-I", script, kind, file, images.column],
            env={**os.environ, "HF_HOME": kept, "HF_HUB_OFFLINE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with program:  # ends it: its input is at its end
            reader = Reader(program, images, Path(kept))
            reader.ask({"some": [0]})
            reader.costs.clear()
            yield reader


def against(
    bench: Bench,
    what: str,
    ours: Ours,
    theirs: Side,
    once: Callable[[], Sample],
    reference: str,
    aim: Aim | None = None,
) -> Row:
    """A line: time, memory and bytes of both, and how many times as fast ours was."""
    found = pairs(bench.sizes.repeats, ours.once, once)
    bench.peaks += [cost.peak for cost in ours.costs]
    return _line(what, found, (str(ours), str(theirs)), reference, aim)


def _line(what: str, found: Pairs, costs: tuple[str, str], reference: str, aim: Aim | None) -> Row:
    ratio = 1 / found.ratio
    here, there = (seconds(statistics.median(took)) for took in (found.ours, found.theirs))
    return Row(
        what,
        f"{here}, {costs[0]}",
        f"{reference} {there}" + (f", {costs[1]}" if costs[1] else ""),
        times(ratio),
        *(("", "") if aim is None else (str(aim), aim.judge(ratio))),
    )
