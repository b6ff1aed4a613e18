"""``python -m benchmarks.remote``: datasets on a Hub that is 50 ms away, beside what else reads them there."""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import (
    Aim,
    Row,
    Sample,
    end_on_signal,
    measured,
    megabytes,
    parsed,
    parser_of,
    tell,
    times,
)
from benchmarks.hub import Distance, serving
from benchmarks.litdata import read_file, run
from benchmarks.peers import installed
from benchmarks.remote_sides import Side, beside, curl, in_turn, library, mounted, redirected
from benchmarks.repositories import (
    FILE,
    LITDATA,
    PARQUET,
    TAR,
    Shard,
    Span,
    images_in_chunk,
    repositories,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.harness import Mount
    from benchmarks.hub import Hub

RESULTS = Path(__file__).parent / "results" / "remote.md"

_PEERS = ("datasets", "huggingface_hub", "fsspec", "pyarrow")

_DISTANCE = Distance(latency=0.05, bandwidth=100e6)

_FIVEFOLD, _AS_FAST, _NEARLY = (Aim(limit, times, at_least=True) for limit in (5, 1, 0.9))
_FEW_TRIPS = Aim(3, "{:.0f} in a row".format)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is made and done.

    Attributes:
        records: images of about 100 KB in each shard.
        opens: images that are read at random.
        few: those where an image costs a hundred megabytes.
        readers: how many read them at a time.
        repeats: rounds of each comparison.
        long: rounds where a repeat is a whole shard.
    """

    records: int = 2_600
    opens: int = 100
    few: int = 16
    readers: int = 8
    repeats: int = 5
    long: int = 3


FULL = Sizes()
QUICK = Sizes(100, 16, 8, repeats=2, long=2)


def read_files(folder: Path, paths: Sequence[str], readers: int) -> Sample:
    """Open, read and close files in so many threads, each its share."""

    def share(number: int) -> int:
        return sum(read_file(folder / path).done for path in paths[number::readers])

    with ThreadPoolExecutor(readers) as pool:
        started = time.perf_counter()
        done = sum(pool.map(share, range(readers)))
        return Sample(time.perf_counter() - started, done)


@dataclass
class Bench:
    """What all measures share.

    Attributes:
        root: the repositories.
        python: a Python that has the peers.
    """

    hub: Hub
    root: Path
    sizes: Sizes
    python: str

    def url(self, shard: Shard) -> str:
        """Where the Hub has a shard; leads to where its bytes are."""
        return f"{self.hub.url}/datasets/{shard.repository}/resolve/main/{shard.file}"

    @cached_property
    def picked(self) -> list[int]:
        """Records at random."""
        return random.Random(1).sample(range(self.sizes.records), self.sizes.opens)

    def spans(self, numbers: Sequence[int]) -> list[Span]:
        """Where the images of records are in the LitData chunk."""
        return images_in_chunk(self.root / LITDATA.repository / LITDATA.file, numbers)

    @cached_property
    def places(self) -> dict[Shard, str]:
        """Where the folders of the shards are in a mount."""
        return {shard: self._place(shard) for shard in (LITDATA, TAR, PARQUET)}

    def _place(self, shard: Shard) -> str:
        found = []

        def look(mount: Mount) -> Sample:
            for above, names, _ in os.walk(mount.path):
                if shard.folder in names:
                    found.append(os.path.relpath(Path(above) / shard.folder, mount.path))
                    break
            return Sample(0)

        mounted(self.hub, shard.repository, look)
        return found[0]

    def image(self, shard: Shard, number: int) -> str:
        """The path of an image in a mount."""
        return f"{self.places[shard]}/{number:06d}/{shard.image(number)}"

    def mount(
        self,
        shard: Shard,
        work: Callable[[Mount], Sample],
        *options: str,
        name: str = "",
        is_counted: bool = False,
    ) -> Side:
        """The side that does *work* on a mount."""
        once = partial(mounted, self.hub, shard.repository, work, options)
        return Side(name, self.hub, once, is_counted)

    def images(self, shard: Shard, numbers: Sequence[int], readers: int) -> Side:
        """The side that reads images by a mount, in so many threads."""
        paths = [self.image(shard, number) for number in numbers]
        return self.mount(shard, lambda mount: read_files(mount.path, paths, readers))

    def peer(
        self,
        name: str,
        kind: str,
        source: str,
        task: str,
        *arguments: object,
        opening: bool = False,
    ) -> Side:
        """The side that is a library."""
        once = partial(
            library, self.hub, self.python, kind, source, task, *arguments, opening=opening
        )
        return Side(name, self.hub, once, is_counted=opening)


# --- the first image ---------------------------------------------------------------------------------------


def from_nothing(bench: Bench) -> Iterator[Row]:
    """All it takes to come to an image."""
    told, where = "HfFileSystem, told where", bench.spans([0])
    peers = {
        PARQUET: [
            bench.peer("datasets", "datasets", PARQUET.repository, "first", opening=True),
            bench.peer("pyarrow", "pyarrow", PARQUET.path, "first", opening=True),
        ],
        TAR: [bench.peer("datasets", "datasets", TAR.repository, "first", opening=True)],
        LITDATA: [bench.peer(told, "open", LITDATA.path, "some", where, 1, opening=True)],
    }
    for shard, theirs in peers.items():

        def read(mount: Mount, image: str = bench.image(shard, 0)) -> Sample:
            sample = read_file(mount.path / image)
            return Sample(mount.seconds + sample.seconds, sample.done)

        ours = bench.mount(shard, read, is_counted=True)
        in_turn(bench.sizes.repeats, ours, *theirs)
        for peer in theirs:
            yield beside(f"{shard.title}: from nothing to its first image", ours, peer)


def first_image(bench: Bench) -> Iterator[Row]:
    """What the first image takes after a mount."""
    hub = bench.hub
    # The same image in all shards.
    download = partial(curl, bench.url(LITDATA), bench.spans([0]))
    for shard in (PARQUET, TAR, LITDATA):

        def read(mount: Mount, image: str = bench.image(shard, 0)) -> Sample:
            hub.forget()
            return read_file(mount.path / image)

        ours = bench.mount(shard, read, is_counted=True)
        alone = Side("curl", hub, download, is_counted=True)
        in_turn(bench.sizes.repeats, ours, alone)
        row = beside(f"{shard.title}: after the mount, its first image", ours, alone)
        met = _FEW_TRIPS.judge(ours.most().in_a_row)
        yield row._replace(aim=str(_FEW_TRIPS), met=met)


def mounting(bench: Bench) -> Iterator[Row]:
    """A mount, and a look at it."""

    def nothing(mount: Mount) -> Sample:
        return Sample(mount.seconds)

    def listed(mount: Mount) -> Sample:
        bench.hub.forget()
        return run(["ls"], mount.path)

    for shard in (PARQUET, TAR, LITDATA):
        for what, work in (("mount", nothing), ("after the mount, ls", listed)):
            side = bench.mount(shard, work, is_counted=True)
            in_turn(bench.sizes.repeats, side)
            yield Row(f"{shard.title}: {what}", side.tell())


# --- images at random --------------------------------------------------------------------------------------


def random_images(bench: Bench) -> Iterator[Row]:
    """Different images, after a mount, where none of them is at hand."""
    sizes, spans = bench.sizes, bench.spans(bench.picked)
    what = f"{len(spans)} images at random, {sizes.readers} readers"
    ours = bench.images(LITDATA, bench.picked, sizes.readers)
    direct = redirected(bench.url(LITDATA))
    alone = Side("curl", bench.hub, partial(curl, direct, spans, sizes.readers))
    peers = [
        bench.peer(f"HfFileSystem, {kind}", kind, LITDATA.path, "some", spans, sizes.readers)
        for kind in ("open", "open, uncached", "cat_file", "cat_ranges")
    ]
    in_turn(sizes.repeats, ours, alone, *peers)
    yield beside(f"{LITDATA.title}: {what}", ours, alone)
    for peer in peers:
        yield beside(f"{LITDATA.title}: {what}", ours, peer, _FIVEFOLD)

    few = bench.picked[: sizes.few]
    for kind, rows in (("pyarrow", few), ("pyarrow, at once", bench.picked)):
        ours = bench.images(PARQUET, rows, sizes.readers)
        peer = bench.peer(kind, kind, PARQUET.path, "some", rows, sizes.readers)
        in_turn(sizes.long, ours, peer)
        what = f"{len(rows)} images at random, {sizes.readers} readers"
        yield beside(f"{PARQUET.title}: {what}", ours, peer, _FIVEFOLD)


# --- whole shards ------------------------------------------------------------------------------------------


def whole_file(bench: Bench) -> Iterator[Row]:
    """A file as large as a shard, from its first byte to its last."""
    hub, connections = bench.hub, bench.sizes.readers
    source = bench.url(FILE)
    size = (bench.root / FILE.repository / FILE.file).stat().st_size
    steps = [size * number // connections for number in range(connections + 1)]
    parts = [Span(*ends) for ends in pairwise(steps)]

    def read(mount: Mount) -> Sample:
        return read_file(mount.path / FILE.file)

    single = bench.mount(FILE, read, "--connections", "1", name="by 1 connection")
    usual = bench.mount(FILE, read)
    alone = Side("curl", hub, partial(curl, source))
    apart = Side(
        f"curl by {connections} connections", hub, partial(curl, source, parts, connections)
    )
    peers = [
        bench.peer(f"HfFileSystem, {kind}", kind, FILE.path, "all")
        for kind in ("open", "open, streamed")
    ]
    in_turn(bench.sizes.long, single, usual, alone, apart, *peers)
    what = f"a file of {megabytes(size)}, in order"
    yield beside(what, single, alone, _NEARLY, size=size)
    yield beside(what, usual, alone, _AS_FAST, size=size)
    for other in (apart, *peers):
        yield beside(what, usual, other, size=size)


def whole_shards(bench: Bench) -> Iterator[Row]:
    """All images of a shard, one after another."""
    for shard in (TAR, PARQUET, LITDATA):
        ours = bench.images(shard, range(bench.sizes.records), readers=1)

        def download(source: str = bench.url(shard)) -> Sample:
            return Sample(curl(source).seconds)  # more bytes than those of the images

        alone = Side("curl of all of it", bench.hub, download)
        peers = []
        if shard is not LITDATA:
            peers.append(bench.peer("datasets", "datasets", shard.repository, "all"))
        in_turn(bench.sizes.long, ours, alone, *peers)
        what = f"{shard.title}: all {bench.sizes.records} images, in order"
        yield beside(what, ours, alone, _AS_FAST)
        for other in peers:
            yield beside(what, ours, other)


# --- the program -------------------------------------------------------------------------------------------

MEASURES: tuple[Callable[[Bench], Iterator[Row]], ...] = (
    mounting,
    from_nothing,
    first_image,
    random_images,
    whole_file,
    whole_shards,
)


def _arguments() -> argparse.Namespace:
    names = [measure.__name__ for measure in MEASURES]
    parser = parser_of("remote", __doc__, names, space="1.1 GB")
    parser.add_argument(
        "--peers-python",
        metavar="PATH",
        default=sys.executable,
        help="a Python that has datasets, huggingface_hub and pyarrow (default: this one)",
    )
    return parsed(parser, names)


def main() -> None:
    arguments = _arguments()
    end_on_signal()
    sizes, python = QUICK if arguments.quick else FULL, arguments.peers_python
    versions = installed(python, _PEERS)
    root = repositories(arguments.work.absolute(), sizes.records, python, versions["datasets"])
    with serving(root, _DISTANCE) as hub:
        rows = measured(MEASURES, arguments.measures, Bench(hub, root, sizes, python))
    tell(rows, "A Hub far away", RESULTS if arguments.save else None, versions)


if __name__ == "__main__":
    main()
