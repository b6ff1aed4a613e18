"""``python -m benchmarks.huggingface``: images in Parquet beside the libraries that read them, and large tables."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import tables
from benchmarks.harness import (
    Aim,
    Row,
    Sample,
    end_on_signal,
    measured,
    megabytes,
    parsed,
    parser_of,
    seconds,
    shardfs,
    tell,
    times,
)
from benchmarks.litdata import cat, read_each, read_file, run, warm
from benchmarks.peers import Cost, Side, installed, reading, side_by_side

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.harness import Mount
    from benchmarks.peers import Reader

RESULTS = Path(__file__).parent / "results" / "huggingface.md"

# What there may be to compare with, by the names of the packages.
_PEERS = ("datasets", "pyarrow", "parquet-file-fs")

_TENFOLD, _FASTER, _HALF = (Aim(limit, times, at_least=True) for limit in (10, 1, 0.5))
_SMALL, _AT_ONCE = Aim(150e6, megabytes), Aim(1, seconds)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is made and done.

    Attributes:
        records: images of about 25 KB in each file of images.
        opens: images that are read at random.
        listed: records whose folders are listed.
        rows: rows of the Parquet file of many.
        lines: bytes of the JSON Lines file.
        repeats: pairs of each comparison, and mounts of each large table.
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
        folder: what is mounted; ``images.parquet`` is in it.
        column: the column that the images are in, or the part of one.
        name: what an image is called in a mount.
        peers: those that can read the file.
    """

    writer: str
    folder: Path
    column: str
    name: str
    peers: tuple[str, ...]

    @property
    def file(self) -> Path:
        return self.folder / "images.parquet"

    def title(self, what: str) -> str:
        return f"file by {self.writer}: {what}"


@dataclass
class Bench:
    """What all measures share; the files are made when they are first asked for.

    Attributes:
        python: a Python that has the peers, or some of them.
        peaks: the most memory that the daemon had, for each mount of images.
    """

    work: Path
    sizes: Sizes
    python: str
    peaks: list[int] = field(default_factory=list)

    @cached_property
    def versions(self) -> dict[str, str]:
        return installed(self.python, _PEERS)

    @cached_property
    def images(self) -> list[Images]:
        there, records = tuple(self.versions), self.sizes.records
        plain = tables.images(self.work, records)
        files = [Images("pyarrow", plain, "content", "content.jpg", there)]
        if version := self.versions.get("datasets"):
            made = tables.images_by_datasets(self.work, records, self.python, version)
            # parquet-file-fs knows whole columns only; here the images are a part of one.
            peers = tuple(peer for peer in there if peer != "parquet-file-fs")
            files.insert(0, Images("datasets", made, "image.bytes", "image.jpg", peers))
        return files

    @cached_property
    def picked(self) -> list[int]:
        return random.Random(1).sample(range(self.sizes.records), self.sizes.opens)

    def mounted(self, images: Images, work: Callable[[Mount, Path], Sample]) -> Side:
        """The side that does *work* in the folder of the records, each time on a mount that nobody used before."""

        def once() -> tuple[Sample, Cost]:
            warm(images.folder)
            with shardfs(images.folder) as mount:
                before = mount.bytes_read()
                sample = work(mount, mount.path / images.file.stem)
                cost = Cost(mount.memory().peak, mount.bytes_read() - before)
            self.peaks.append(cost.peak)
            return sample, cost

        return Side("", once)

    def compare(
        self,
        images: Images,
        what: str,
        ours: Callable[[Mount, Path], Sample],
        theirs: Callable[[Reader], tuple[Sample, Cost]],
        aims: Mapping[str, Aim] = MappingProxyType({}),
    ) -> Iterator[Row]:
        """A line for each peer."""
        for peer in images.peers:
            with reading(self.python, peer, images.file, images.column, self.work) as reader:
                once = partial(_asked, images, reader, theirs)
                sides = self.mounted(images, ours), Side(peer, once)
                yield side_by_side(images.title(what), self.sizes.repeats, sides, aims.get(peer))


def _asked(
    images: Images, reader: Reader, ask: Callable[[Reader], tuple[Sample, Cost]]
) -> tuple[Sample, Cost]:
    warm(images.folder)
    warm(reader.kept)
    return ask(reader)


def record(number: int, rows: int) -> str:
    """The name of a record's folder in a shard of *rows*."""
    return f"{number:0{max(6, len(str(rows - 1)))}d}"


# --- images ------------------------------------------------------------------------------------------------


def first_image(bench: Bench, images: Images) -> Iterator[Row]:
    """From nothing, with nothing kept from before, to an image."""
    number = bench.picked[0]
    path = f"{record(number, bench.sizes.records)}/{images.name}"

    def ours(mount: Mount, folder: Path) -> Sample:
        sample = read_file(folder / path)
        return Sample(mount.seconds + sample.seconds, sample.done)

    def theirs(reader: Reader) -> tuple[Sample, Cost]:
        reader.forget()
        return reader.ask({"some": [number]}, opening=True)

    yield from bench.compare(images, "mounted or opened, and one image", ours, theirs)


def random_rows(bench: Bench, images: Images) -> Iterator[Row]:
    paths = [f"{record(number, bench.sizes.records)}/{images.name}" for number in bench.picked]

    def ours(_: Mount, folder: Path) -> Sample:
        return read_each(folder, paths)

    def theirs(reader: Reader) -> tuple[Sample, Cost]:
        return reader.ask({"some": bench.picked})

    aims = {"pyarrow": _TENFOLD, "datasets": _FASTER}
    yield from bench.compare(images, f"one of {len(paths)} images at random", ours, theirs, aims)


def listing(bench: Bench, images: Images) -> Iterator[Row]:
    folders = [record(number, bench.sizes.records) for number in range(bench.sizes.listed)]

    def ours(_: Mount, folder: Path) -> Sample:
        command, env = ["ls", "-l", *folders], {**os.environ, "LC_ALL": "C"}
        started = time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE)
        took = time.perf_counter() - started
        lines = (line.split() for line in done.stdout.decode().splitlines())
        sizes = [int(words[4]) for words in lines if words and words[-1] == images.name]
        return Sample(took, sum(sizes))

    def theirs(reader: Reader) -> tuple[Sample, Cost]:
        return reader.ask({"sizes": len(folders)})

    yield from bench.compare(images, f"ls -l of {len(folders)} records", ours, theirs)


def all_images(bench: Bench, images: Images) -> Iterator[Row]:
    count = bench.sizes.records
    paths = [f"{record(number, count)}/{images.name}" for number in range(count)]

    def cat_all(_: Mount, folder: Path) -> Sample:
        started = time.perf_counter()
        subprocess.run(["cat", *paths], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return Sample(time.perf_counter() - started)

    def counted(mount: Mount, folder: Path) -> Sample:
        took = cat_all(mount, folder).seconds
        return Sample(took, sum((folder / path).stat().st_size for path in paths))

    def whole() -> tuple[Sample, None]:
        warm(images.folder)
        return cat(images.file), None

    def theirs(reader: Reader) -> tuple[Sample, Cost]:
        return reader.ask({"all": None})

    what = f"cat of all {count} images, in order"
    sides = bench.mounted(images, cat_all), Side("cat of the file", whole)
    yield side_by_side(images.title(what), bench.sizes.repeats, sides, _HALF)
    yield from bench.compare(images, what, counted, theirs)


def of_images(bench: Bench) -> Iterator[Row]:
    """Files of images, the same images in each."""
    for images in bench.images:
        for measure in (first_image, random_rows, listing, all_images):
            yield from measure(bench, images)
    most, what = max(bench.peaks), "memory of the daemon in all of these, at most"
    yield Row(what, megabytes(most), aim=str(_SMALL), met=_SMALL.judge(most))


# --- large tables ------------------------------------------------------------------------------------------


class Visit(NamedTuple):
    """What came out of one mount of a large table: seconds, and bytes of memory."""

    mount: float
    names: float
    memory_then: float
    row: float
    peak: float


def visit(source: Path, number: int, rows: int) -> Visit:
    """Mount it, look at the first names, read a small field of one record."""
    warm(source)
    with shardfs(source) as mount:
        folder = mount.path / "rows"
        names = run(["sh", "-c", "ls -U1 | head -n 5"], folder)
        then = mount.memory().now
        file = folder / record(number, rows) / "id.txt"
        row = read_file(file)
        if names.done != 5 or file.read_text() != f"{number}\n":
            raise RuntimeError(f"{source}: not what is in the file")
        return Visit(mount.seconds, names.seconds, then, row.seconds, mount.memory().peak)


def large(bench: Bench) -> Iterator[Row]:
    sizes = bench.sizes
    for what, source, rows in (
        (f"Parquet of {sizes.rows} rows", tables.many_rows(bench.work, sizes.rows), sizes.rows),
        (
            f"JSON Lines of {megabytes(sizes.lines)}",
            tables.json_lines(bench.work, sizes.lines),
            sizes.lines // tables.LINE,
        ),
    ):
        number = random.Random(2).randrange(rows)
        visits = [visit(source, number, rows) for _ in range(sizes.repeats)]
        found = Visit(*(statistics.median(values) for values in zip(*visits, strict=True)))
        peak = max(visit.peak for visit in visits)
        yield _judged(f"{what}: mount", found.mount, _AT_ONCE)
        yield _judged(f"{what}: its first 5 names", found.names, _AT_ONCE)
        yield Row(f"{what}: memory of the daemon then", megabytes(found.memory_then))
        yield Row(f"{what}: a field of record {number}", seconds(found.row))
        yield _judged(f"{what}: memory of the daemon, at most", peak, _SMALL)


def _judged(what: str, figure: float, aim: Aim) -> Row:
    return Row(what, aim.show(figure), aim=str(aim), met=aim.judge(figure))


# --- the program -------------------------------------------------------------------------------------------

MEASURES: tuple[Callable[[Bench], Iterator[Row]], ...] = (of_images, large)


def _arguments() -> argparse.Namespace:
    names = [measure.__name__ for measure in MEASURES]
    parser = parser_of("huggingface", __doc__, names, space="6 GB")
    parser.add_argument(
        "--datasets-python",
        metavar="PATH",
        default=sys.executable,
        help="a Python that has datasets, pyarrow and parquet-file-fs, or some of them (default: this one)",
    )
    return parsed(parser, names)


def main() -> None:
    arguments = _arguments()
    end_on_signal()
    sizes = QUICK if arguments.quick else FULL
    bench = Bench(arguments.work.absolute(), sizes, arguments.datasets_python)
    rows = measured(MEASURES, arguments.measures, bench)
    tell(rows, "Parquet and JSON Lines", RESULTS if arguments.save else None, bench.versions)


if __name__ == "__main__":
    main()
