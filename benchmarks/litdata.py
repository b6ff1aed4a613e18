"""``python -m benchmarks.litdata``: what a mount of a LitData dataset costs, beside what it is to be compared with."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import zstandard

from benchmarks import datasets
from benchmarks.datasets import Packing
from benchmarks.harness import (
    Aim,
    Memory,
    Mount,
    Passthrough,
    Row,
    Sample,
    compared,
    end_on_signal,
    measured,
    megabytes,
    pairs,
    parsed,
    parser_of,
    seconds,
    shardfs,
    tell,
    times,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

RESULTS = Path(__file__).parent / "results" / "litdata.md"

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is made and done.

    Attributes:
        records: images in the datasets of images.
        opens: images that are opened at random.
        field: bytes of the one large field.
        chunks: chunks of the dataset of many.
        small: records of the dataset of many small ones.
        repeats: pairs of each comparison.
        cold: pairs where a repeat is one image only.
    """

    records: int = 20_000
    chunk_bytes: int = 64 * _MB
    opens: int = 2_000
    field: int = 1024 * _MB
    chunks: int = 10_000
    small: int = 1_000_000
    repeats: int = 7
    cold: int = 15


FULL = Sizes()
QUICK = Sizes(600, 4 * _MB, 200, 64 * _MB, 300, 5_000, repeats=3, cold=3)


@dataclass
class Bench:
    """What all measures share: the datasets, made when they are first asked for, and the programs to compare with."""

    work: Path
    sizes: Sizes
    passthrough: Passthrough
    litdata_python: str | None

    def images(self, packing: Packing) -> Path:
        return datasets.images(self.work, packing, self.sizes.records, self.sizes.chunk_bytes)

    @cached_property
    def extracted(self) -> Path:
        return datasets.extracted_images(self.work, self.sizes.records, self.sizes.chunk_bytes)

    @cached_property
    def picked(self) -> list[tuple[int, str]]:
        """Images at random: the number in the dataset, and the path in a mount."""
        chunks = sorted(self.extracted.glob("chunk-*"), key=lambda path: int(path.name[8:]))
        paths = [
            f"{chunk.name}/{record:06d}/image.jpg"
            for chunk in chunks
            for record in range(len(list(chunk.iterdir())))
        ]
        return random.Random(1).sample(list(enumerate(paths)), self.sizes.opens)


# --- what is timed -----------------------------------------------------------------------------------------


def read_file(path: Path) -> Sample:
    """Open, read to the end by the mebibyte, close."""
    buffer, total = memoryview(bytearray(_MB)), 0
    started = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            total += count
    return Sample(time.perf_counter() - started, total)


def cat(path: Path) -> Sample:
    """Read a file to its end with the program that everybody has."""
    started = time.perf_counter()
    subprocess.run(["cat", str(path)], check=True, stdout=subprocess.DEVNULL)
    return Sample(time.perf_counter() - started)


def read_each(folder: Path, paths: list[str]) -> Sample:
    """Read each of *paths*; the median of the times."""
    samples = [read_file(folder / path) for path in paths]
    return Sample(statistics.median(s.seconds for s in samples), sum(s.done for s in samples))


def run(command: list[str], folder: Path) -> Sample:
    """Run a program in *folder* that prints a line for each thing it finds."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        subprocess.run(
            command, cwd=folder, check=True, stdout=output, env={**os.environ, "LC_ALL": "C"}
        )
        took = time.perf_counter() - started
        output.seek(0)
        return Sample(took, output.read().count(b"\n"))


def warm(folder: Path) -> None:
    """Bring all files in a folder, and all names, to the kernel's memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            read_file(path)


# --- the measures ------------------------------------------------------------------------------------------


def sequential(bench: Bench) -> Iterator[Row]:
    source = datasets.one_field(bench.work, bench.sizes.field)

    def ours() -> Sample:
        warm(source)
        with shardfs(source) as mount:
            (file,) = (mount.path / "chunk-0-0" / "000000").iterdir()
            return cat(file)

    def theirs() -> Sample:
        warm(source)
        return cat(source / "chunk-0-0.bin")

    found = pairs(bench.sizes.repeats, ours, theirs)
    aim = Aim(0.5, times, at_least=True)
    what = f"cat of a field of {megabytes(bench.sizes.field)}"
    yield compared(what, found, "cat of its chunk", aim)


def random_access(bench: Bench) -> Iterator[Row]:
    source, paths = bench.images(Packing.PLAIN), [path for _, path in bench.picked]

    def ours() -> Sample:
        warm(source)
        with shardfs(source) as mount:
            return read_each(mount.path, paths)

    def theirs() -> Sample:
        warm(bench.extracted)
        with bench.passthrough.mount(bench.extracted) as mount:
            return read_each(mount.path, paths)

    what = f"open, read, close one of {len(paths)} images at random"
    found = pairs(bench.sizes.repeats, ours, theirs)
    yield compared(what, found, "passthrough_ll", Aim(1.3, times))
    if bench.litdata_python is not None:
        library = partial(_with_litdata, bench, bench.litdata_python)
        found = pairs(bench.sizes.repeats, lambda: Sample(ours().seconds), library)
        yield compared("the same", found, "litdata's dataset[i], which decodes it")


def _with_litdata(bench: Bench, python: str) -> Sample:
    """The same images by litdata itself, on a dataset of its own: it leaves files beside the chunks."""
    with tempfile.TemporaryDirectory(dir=bench.work) as name:
        folder = Path(name) / "dataset"
        shutil.copytree(bench.images(Packing.PLAIN), folder, copy_function=os.link)
        done = subprocess.run(
            # -I: `import litdata` must not find the module of that name beside the program.
            [python, "-I", str(Path(__file__).with_name("litdata_reader.py")), str(folder)],
            input=json.dumps([number for number, _ in bench.picked]),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return Sample(float(done.stdout.splitlines()[-1]))


def listings(bench: Bench) -> Iterator[Row]:
    source, extracted = bench.images(Packing.PLAIN), bench.extracted
    # Of one chunk, since passthrough_ll holds a descriptor for each file and folder that was looked at.
    for what, command, place in (
        ("find in a chunk", ["find", "."], "chunk-0-0"),
        ("ls -l of a chunk", ["ls", "-l"], "chunk-0-0"),
    ):

        def ours(command: list[str] = command, place: str = place) -> Sample:
            warm(source)
            with shardfs(source) as mount:
                return run(command, mount.path / place)

        def theirs(command: list[str] = command, place: str = place) -> Sample:
            warm(extracted)
            with bench.passthrough.mount(extracted) as mount:
                return run(command, mount.path / place)

        found = pairs(bench.sizes.repeats, ours, theirs)
        yield compared(what, found, "passthrough_ll")
    warm(source)
    with shardfs(source) as mount:
        all_found = run(["find", "."], mount.path)
    yield Row(f"find over {bench.sizes.records} records", seconds(all_found.seconds))


def first_images(bench: Bench) -> Iterator[Row]:
    cases: list[tuple[Packing, str, Callable[[bytes], object], Aim | None]] = [
        (
            Packing.ZSTD_CHUNK,
            "zstd chunk",
            zstandard.ZstdDecompressor().decompress,
            Aim(0.2, times),
        ),
        (Packing.ZSTD_BATCH, "chunk of zstd batches", _all_frames, None),
    ]
    for packing, what, decompress, aim in cases:
        source = bench.images(packing)
        (file,) = source.glob("chunk-0-0.*")
        chunk = file.read_bytes()

        def ours(source: Path = source) -> Sample:
            warm(source)
            with shardfs(source, "--no-disk-cache") as mount:
                return Sample(read_file(mount.path / "chunk-0-0/000000/image.jpg").seconds)

        def theirs(
            chunk: bytes = chunk, decompress: Callable[[bytes], object] = decompress
        ) -> Sample:
            started = time.perf_counter()
            decompress(chunk)
            return Sample(time.perf_counter() - started)

        found = pairs(bench.sizes.cold, ours, theirs)
        yield compared(f"first image of a cold {what}", found, "all of the chunk decompressed", aim)


def _all_frames(chunk: bytes) -> None:
    decompressor = zstandard.ZstdDecompressor()
    for frame in datasets.frames_of(chunk):
        decompressor.decompress(frame)


def many_chunks(bench: Bench) -> Iterator[Row]:
    peaks: dict[int, list[int]] = {1: [], bench.sizes.chunks: []}

    def mounted(chunks: int) -> Sample:
        with shardfs(datasets.small_records(bench.work, chunks, 1)) as mount:
            peaks[chunks].append(mount.memory().peak)
            return Sample(mount.seconds)

    for chunks in peaks:
        mounted(chunks)  # brings programs and names to the kernel's memory
    many = bench.sizes.chunks
    found = pairs(bench.sizes.repeats, lambda: mounted(many), lambda: mounted(1))
    took, memory = statistics.median(found.ours), max(peaks[many])
    time_aim, memory_aim = Aim(1, seconds), Aim(80e6, megabytes)
    row = compared(f"mount {many} chunks", found, "one chunk")
    yield row._replace(aim=str(time_aim), met=time_aim.judge(took))
    yield Row(
        "memory of the daemon then, at most",
        megabytes(memory),
        f"{megabytes(max(peaks[1]))} one chunk",
        times(memory / max(peaks[1])),
        str(memory_aim),
        memory_aim.judge(memory),
    )


def memory_of_walks(bench: Bench) -> Iterator[Row]:
    source = datasets.small_records(bench.work, 1, bench.sizes.small)
    warm(source)
    with shardfs(source) as mount:
        before = mount.memory()
        (first, once), (second, twice) = (_walked(mount) for _ in range(2))
    if first.done != second.done:
        raise RuntimeError(f"{first.done} names in the first walk, {second.done} in the second")
    yield Row(
        f"walk of {bench.sizes.small} records, the second time",
        seconds(second.seconds),
        f"{seconds(first.seconds)} the first time",
        times(second.seconds / first.seconds),
    )
    aim, ratio = Aim(1.05, times), twice.now / once.now
    yield Row(
        f"memory of the daemon then (peak {megabytes(twice.peak)})",
        megabytes(twice.now),
        f"{megabytes(once.now)} after the first, {megabytes(before.now)} before",
        times(ratio),
        str(aim),
        aim.judge(ratio),
    )


def _walked(mount: Mount) -> tuple[Sample, Memory]:
    sample = run(["find", "."], mount.path)
    return sample, mount.memory()


MEASURES: tuple[Callable[[Bench], Iterator[Row]], ...] = (
    sequential,
    random_access,
    listings,
    first_images,
    many_chunks,
    memory_of_walks,
)


# --- the program -------------------------------------------------------------------------------------------


def _arguments() -> argparse.Namespace:
    names = [measure.__name__ for measure in MEASURES]
    parser = parser_of("litdata", __doc__, names, space="4 GB")
    parser.add_argument("--litdata-python", metavar="PATH", help="a Python that has litdata")
    return parsed(parser, names)


def main() -> None:
    arguments = _arguments()
    end_on_signal()
    with tempfile.TemporaryDirectory() as programs:
        bench = Bench(
            arguments.work.absolute(),
            QUICK if arguments.quick else FULL,
            Passthrough(Path(programs)),
            arguments.litdata_python,
        )
        rows = measured(MEASURES, arguments.measures, bench)
    tell(rows, "LitData", RESULTS if arguments.save else None)


if __name__ == "__main__":
    main()
