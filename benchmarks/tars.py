"""``python -m benchmarks.tars``: tars mounted by shardfs and by ratarmount, in turn, on the same files."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import zstandard

from benchmarks.harness import (
    Aim,
    Mount,
    Row,
    Sample,
    compared,
    machine,
    megabytes,
    pairs,
    running,
    shardfs,
    table,
    times,
)
from benchmarks.litdata import read_file, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

RESULTS = Path(__file__).parent / "results" / "tars.md"

_AHEAD = Aim(1.0, times)
_THRICE = Aim(1 / 3, times)


# --- the files ---------------------------------------------------------------------------------------------


def make_tar(work: Path, records: int, packing: str) -> Path:
    """A tar of *records* records, each a picture's worth of noise and a caption, plain or compressed."""
    plain = work / f"samples-{records}.tar"
    if not plain.exists():
        aside = plain.with_suffix(".new")
        with tarfile.open(aside, "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(records):
                for name, content in _members(number):
                    member = tarfile.TarInfo(name)
                    member.size, member.mtime, member.mode = len(content), 1_700_000_000, 0o644
                    tar.addfile(member, io.BytesIO(content))
        aside.rename(plain)
    target = plain if packing == "tar" else Path(f"{plain}.{packing.removeprefix('tar.')}")
    if not target.exists():
        aside = Path(f"{target}.new")
        with plain.open("rb") as source, _compressor(aside, packing) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        aside.rename(target)
    return target


def _compressor(path: Path, packing: str) -> io.BufferedIOBase:
    if packing == "tar.gz":
        return gzip.open(path, "wb", compresslevel=1)
    compressor = zstandard.ZstdCompressor(level=3)
    return cast("io.BufferedIOBase", zstandard.open(path, "wb", cctx=compressor))


def _members(number: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(number)
    size = int(100_000 * chance.uniform(0.5, 1.5))
    yield f"sample{number:06d}.jpg", b"\xff\xd8\xff\xe0" + chance.randbytes(size)
    caption = " ".join(
        chance.choices(("a", "red", "bicycle", "wall", "of", "brick", "leaning"), k=40)
    )
    yield f"sample{number:06d}.txt", caption.encode()


# --- the mounts --------------------------------------------------------------------------------------------


class Subject(Protocol):
    """A program that mounts a tar and keeps an index of it."""

    name: str

    def forget(self) -> None:
        """Remove the index."""
        ...

    def mount(self) -> AbstractContextManager[Mount]: ...

    def members(self, mount: Mount) -> Path:
        """The folder that all members stand in."""
        ...


class Ours:
    """shardfs; all members in one folder, as the others have them."""

    name = "shardfs"

    def __init__(self, tar: Path, work: Path) -> None:
        self._tar, self._cache = tar, work / "cache-shardfs"

    def forget(self) -> None:
        shutil.rmtree(self._cache, ignore_errors=True)

    def mount(self) -> AbstractContextManager[Mount]:
        return shardfs(self._tar, "--layout", "flat", "--cache-dir", str(self._cache))

    def members(self, mount: Mount) -> Path:
        return mount.path / self._tar.name.split(".")[0]


class Ratarmount:
    """ratarmount, with its index in a file."""

    name = "ratarmount"

    def __init__(self, program: Path, tar: Path, work: Path) -> None:
        self._program, self._tar, self._index = program, tar, work / "index-ratarmount"

    def forget(self) -> None:
        for path in self._index.parent.glob(f"{self._index.name}*"):
            path.unlink()

    @contextmanager
    def mount(self) -> Iterator[Mount]:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            command = [str(self._program), "-f", "--index-file", str(self._index)]
            command += [str(self._tar), name]
            with running(command, place, lambda: os.path.ismount(place), None) as mount:
                yield mount

    def members(self, mount: Mount) -> Path:
        return mount.path


class Prepared(Ours):
    """shardfs on a folder that Energon has prepared: its index is used."""

    def __init__(self, folder: Path, tar: Path, work: Path) -> None:
        super().__init__(tar, work)
        self._folder = folder

    def mount(self) -> AbstractContextManager[Mount]:
        return shardfs(self._folder, "--layout", "flat", "--cache-dir", str(self._cache))


class Energon:
    """Megatron Energon's own mount of a folder that it has prepared."""

    name = "energon"

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder

    def forget(self) -> None:
        """Do nothing: without its index Energon can't mount."""

    @contextmanager
    def mount(self) -> Iterator[Mount]:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            command = [str(self._program), "mount", str(self._folder), name]
            with running(command, place, lambda: os.path.ismount(place), None) as mount:
                yield mount

    def members(self, mount: Mount) -> Path:
        return mount.path


def prepare(program: Path, tar: Path, work: Path) -> Path:
    """A folder with *tar* alone, prepared by Energon."""
    folder = work / "energon"
    if not (folder / ".nv-meta").exists():
        folder.mkdir(exist_ok=True)
        os.link(tar, folder / tar.name)
        command = [str(program), "prepare", "--non-interactive", "--split-ratio", "1,0,0"]
        subprocess.run(
            [*command, "--skip-dataset-yaml", str(folder)], check=True, capture_output=True
        )
    return folder


# --- the measures ------------------------------------------------------------------------------------------


def first_listing(subject: Subject, *, known: bool) -> Sample:
    """From the start of the program to the names of all members, with an index from before or without one."""
    if not known:
        subject.forget()
    started = time.perf_counter()
    with subject.mount() as mount:
        count = len(os.listdir(subject.members(mount)))
        return Sample(time.perf_counter() - started, count)


def listed(subject: Subject, command: list[str]) -> Sample:
    with subject.mount() as mount:
        return run(command, subject.members(mount))


def all_read(subject: Subject) -> Sample:
    """All members, in the order of their names."""
    with subject.mount() as mount:
        folder = subject.members(mount)
        names = sorted(os.listdir(folder))
        started = time.perf_counter()
        done = sum(read_file(folder / name).done for name in names)
        return Sample(time.perf_counter() - started, done)


def some_read(subject: Subject, count: int) -> Sample:
    """*count* members at random: the median of a read."""
    with subject.mount() as mount:
        folder = subject.members(mount)
        chosen = random.Random(2).sample(sorted(os.listdir(folder)), count)
        samples = [read_file(folder / name) for name in chosen]
        return Sample(statistics.median(s.seconds for s in samples), sum(s.done for s in samples))


def peak(subject: Subject, count: int, *, known: bool) -> float:
    """The most memory, in bytes, that the program had while the tar was listed and *count* members were read."""
    if not known:
        subject.forget()
    with subject.mount() as mount:
        folder = subject.members(mount)
        for name in sorted(os.listdir(folder))[:count]:
            read_file(folder / name)
        return mount.memory().peak


def measure(
    packing: str, ours: Subject, theirs: Subject, repeats: int, opens: int
) -> Iterator[Row]:
    """The lines of the table for one file."""

    def both(what: str, once: Callable[[Subject], Sample], aim: Aim = _AHEAD) -> Row:
        found = pairs(repeats, lambda: once(ours), lambda: once(theirs))
        return compared(f"{packing}: {what}", found, theirs.name, aim)

    fast = _THRICE if packing == "tar" else _AHEAD
    yield both("first mount to all names", lambda s: first_listing(s, known=False), fast)
    yield both("second mount to all names", lambda s: first_listing(s, known=True))
    yield both("`find`", lambda s: listed(s, ["find", ".", "-type", "f"]))
    yield both("`ls -lR`", lambda s: listed(s, ["ls", "-lR", "."]))
    yield both("all members, in order", all_read)
    yield both(f"a member at random, of {opens}", lambda s: some_read(s, opens), _THRICE)
    for what, known in (("first mount", False), ("second mount", True)):
        here = statistics.median(peak(ours, opens, known=known) for _ in range(3))
        there = statistics.median(peak(theirs, opens, known=known) for _ in range(3))
        yield Row(
            f"{packing}: peak memory, {what}",
            megabytes(here),
            f"{megabytes(there)} {theirs.name}",
            times(here / there),
            str(_THRICE),
            _THRICE.judge(here / there),
        )


def beside_energon(ours: Subject, theirs: Subject, repeats: int, opens: int) -> Iterator[Row]:
    """The lines of the table for a plain tar that Energon has prepared."""
    for what, once in (
        ("mount to all names", lambda s: first_listing(s, known=True)),
        ("`find`", lambda s: listed(s, ["find", ".", "-type", "f"])),
        ("`ls -lR`", lambda s: listed(s, ["ls", "-lR", "."])),
        ("all members, in order", all_read),
        (f"a member at random, of {opens}", lambda s: some_read(s, opens)),
    ):
        found = pairs(repeats, partial(once, ours), partial(once, theirs))
        yield compared(f"prepared tar: {what}", found, theirs.name)
    here, there = peak(ours, opens, known=True), peak(theirs, opens, known=True)
    yield Row(
        "prepared tar: peak memory",
        megabytes(here),
        f"{megabytes(there)} {theirs.name}",
        times(here / there),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "shardfs-bench")
    parser.add_argument("--ratarmount", type=Path, default=Path("ratarmount"))
    parser.add_argument("--energon", type=Path, help="the program, to be measured, too")
    parser.add_argument("--quick", action="store_true", help="small files, few repeats")
    parser.add_argument("--only", default="tar,tar.gz,tar.zst")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}, too")
    arguments = parser.parse_args()
    records, opens, repeats = (300, 50, 2) if arguments.quick else (10_000, 1_000, 3)
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for packing in filter(None, arguments.only.split(",")):
        tar = make_tar(arguments.work, records, packing)
        read_file(tar)  # to the page cache
        ours = Ours(tar, arguments.work)
        theirs = Ratarmount(arguments.ratarmount, tar, arguments.work)
        for row in measure(packing, ours, theirs, repeats, opens):
            print(row.what, row.ours, row.reference, row.ratio, row.met, flush=True)
            rows.append(row)
    if arguments.energon is not None:
        tar = make_tar(arguments.work, records, "tar")
        folder = prepare(arguments.energon, tar, arguments.work)
        ours = Prepared(folder, folder / tar.name, arguments.work)
        rows += beside_energon(ours, Energon(arguments.energon, folder), repeats, opens)
    version = subprocess.run(
        [str(arguments.ratarmount), "--version"], capture_output=True, text=True, check=False
    )
    text = f"{machine()}, {' '.join(version.stdout.split()[:2])}\n\n{table(rows)}\n"
    print("\n" + text)
    if arguments.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
