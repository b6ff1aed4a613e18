"""What every measurement needs: mounts that are cleared away whatever happens, pairs of repeats, a table.

Two things are compared by doing them in turn, each on a mount of its own that nobody used before; what comes out is
the median of either and the median of the ratios of the pairs, since a busy machine slows both sides of a pair alike.
"""

from __future__ import annotations

import os
import platform
import resource
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from argparse import ArgumentParser, Namespace
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

B = TypeVar("B")

# Seconds that a mount may take to be ready, and a daemon to end.
_PATIENCE = 60.0


# --- mounts ------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """Bytes of memory that a process has now, and had at most (VmRSS, VmHWM)."""

    now: int
    peak: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted tree.

    Attributes:
        path: where it is mounted.
        seconds: from the start of the program until the mount could be used.
    """

    path: Path
    daemon: subprocess.Popen[bytes]
    seconds: float

    def memory(self) -> Memory:
        lines = Path(f"/proc/{self.daemon.pid}/status").read_text().splitlines()
        sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
        return Memory(int(sizes["VmRSS"]) << 10, int(sizes["VmHWM"]) << 10)

    def bytes_read(self) -> int:
        """What the daemon has got from read calls so far (rchar in proc_pid_io(5)), requests of the kernel included."""
        return int(Path(f"/proc/{self.daemon.pid}/io").read_text().split()[1])


@contextmanager
def shardfs(
    source: Path | str, *options: str, given: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Mount]:
    """*source* mounted by shardfs, whose disk cache is empty at first; *given* is for its environment."""
    program = str(Path(sysconfig.get_path("scripts")) / "shardfs")
    with (
        tempfile.TemporaryDirectory() as name,
        socket.socket(type=socket.SOCK_DGRAM, family=socket.AF_UNIX) as ready,
    ):
        folder = Path(name)
        ready.bind(str(folder / "ready"))
        ready.setblocking(False)
        env = {
            **os.environ,
            "NOTIFY_SOCKET": str(folder / "ready"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_RUNTIME_DIR": str(folder),
            **given,
        }
        place = folder / "mnt"
        command = [program, "mount", "-f", "--quiet", *options, str(source), str(place)]
        with running(command, place, lambda: _has_message(ready), env) as mount:
            yield mount


def _has_message(ready: socket.socket) -> bool:
    """Whether the daemon has said that it is ready, sd_notify(3)."""
    try:
        return ready.recv(4096).startswith(b"READY=1")
    except BlockingIOError:
        return False


class Passthrough:
    """libfuse's example that shows a folder as it is, in C: about the least that FUSE costs."""

    _EXAMPLES = Path("/usr/share/doc/libfuse3-dev/examples")

    def __init__(self, folder: Path) -> None:
        """Compile it in *folder*. Raises OSError, CalledProcessError where something for that is missing."""
        self._program = folder / "passthrough_ll"
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"],
            check=True,
            capture_output=True,
            text=True,
        )
        source, output = str(self._EXAMPLES / "passthrough_ll.c"), str(self._program)
        subprocess.run(
            ["cc", "-O2", source, "-o", output, *shlex.split(flags.stdout)],
            check=True,
            capture_output=True,
        )

    @contextmanager
    def mount(self, source: Path) -> Iterator[Mount]:
        """*source* mounted, cached by the kernel as long as the mount lives."""
        with tempfile.TemporaryDirectory() as name:
            place = Path(name) / "mnt"
            place.mkdir()
            command = [str(self._program), "-f", "-o", f"source={source},cache=always", str(place)]
            with running(command, place, lambda: os.path.ismount(place), None) as mount:
                yield mount


def _allow_descriptors() -> None:
    """Let the programs hold a descriptor for each file that the kernel knows of, as passthrough_ll does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (1 << 20, most):  # the first one is for root
        with suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, most)))
            return


@contextmanager
def running(
    command: Sequence[str], place: Path, ready: Callable[[], bool], env: dict[str, str] | None
) -> Iterator[Mount]:
    """What *command* mounts at *place*, from when *ready* says so; ended and unmounted whatever happens."""
    with tempfile.TemporaryFile() as words:
        started = time.perf_counter()
        _allow_descriptors()
        daemon = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=words)
        try:
            while not ready():
                if daemon.poll() is not None or time.perf_counter() - started > _PATIENCE:
                    words.seek(0)
                    reason = words.read().decode(errors="replace").strip()
                    raise RuntimeError(f"{shlex.join(command)}: {reason or 'not ready in time'}")
                time.sleep(0.001)
            yield Mount(place, daemon, time.perf_counter() - started)
        finally:
            _end(daemon, place)


def _end(daemon: subprocess.Popen[bytes], place: Path) -> None:
    """Let a daemon unmount, or make it."""
    daemon.terminate()
    try:
        daemon.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
    mounted = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    if str(place) in mounted:
        subprocess.run(["fusermount3", "-u", "-z", str(place)], check=False)


# --- pairs -------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """One repeat: how long it took, and how much was done (bytes, entries), which must be the same on all sides.

    0 is for a side that does not tell, or does more.
    """

    seconds: float
    done: int = 0


@dataclass(frozen=True, slots=True)
class Pairs:
    """The seconds of repeats done in turn."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as long as theirs ours took: the median of the pairs."""
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs, strict=True))


def pairs(repeats: int, ours: Callable[[], Sample], theirs: Callable[[], Sample]) -> Pairs:
    """*repeats* pairs of both, each pair in the other order than the one before."""
    return Pairs(*rounds(repeats, (ours, theirs)))


def rounds(repeats: int, sides: Sequence[Callable[[], Sample]]) -> list[tuple[float, ...]]:
    """The seconds of each of the *sides*, done in turn, each time in the other order than the time before."""
    took: list[list[float]] = [[] for _ in sides]
    for number in range(repeats):
        order = list(enumerate(sides))[:: -1 if number % 2 else 1]
        done = set()
        for side, once in order:
            sample = once()
            took[side].append(sample.seconds)
            done.add(sample.done)
        if len(done - {0}) > 1:
            raise RuntimeError(f"not all sides did the same: {sorted(done)}")
    return [tuple(seconds) for seconds in took]


# --- the table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure should be: at most *limit*, or at least that."""

    limit: float
    show: Callable[[float], str]
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.show(self.limit)}"

    def judge(self, figure: float) -> str:
        return "yes" if (figure >= self.limit) == self.at_least or figure == self.limit else "NO"


class Row(NamedTuple):
    """A line of the table."""

    what: str
    ours: str
    reference: str = ""
    ratio: str = ""
    aim: str = ""
    met: str = ""


_HEAD = Row("measure", "shardfs", "reference", "ratio", "aim", "met")


def compared(what: str, found: Pairs, reference: str, aim: Aim | None = None) -> Row:
    """A line of *found*: the times of both, and how many times as long ours took (for an aim of at least: as fast)."""
    ratio = 1 / found.ratio if aim is not None and aim.at_least else found.ratio
    return Row(
        what,
        seconds(statistics.median(found.ours)),
        f"{seconds(statistics.median(found.theirs))} {reference}",
        times(ratio),
        *(("", "") if aim is None else (str(aim), aim.judge(ratio))),
    )


def table(rows: Iterable[Row]) -> str:
    """The lines as a table in Markdown that can be read as it is, too."""
    lines = [_HEAD, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    rule = Row(*("-" * width for width in widths))
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in [_HEAD, rule, *lines[1:]]
    )


def times(value: float) -> str:
    return f"{value:.2f} ×"


def seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB"


def machine() -> str:
    """The machine and the programs that were measured, in a line."""
    info = Path("/proc/cpuinfo").read_text()
    models = [
        line.partition(": ")[2] for line in info.splitlines() if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    load = os.getloadavg()[0]
    programs = [f"{name} {version(name)}" for name in ("shardfs", "pyfuse3", "trio", "zstandard")]
    return ", ".join(
        [
            f"{os.cpu_count()} × {models[0] if models else platform.machine()}",
            f"{memory / (1 << 30):.0f} GiB",
            f"Linux {platform.release()}",
            f"Python {platform.python_version()}",
            *programs,
            f"load {load:.1f}",
        ]
    )


# --- the programs ------------------------------------------------------------------------------------------


def parser_of(
    program: str, description: str | None, measures: Sequence[str], *, space: str
) -> ArgumentParser:
    """What the programs take alike; *space* is what their files need on the disk."""
    parser = ArgumentParser(prog=f"python -m benchmarks.{program}", description=description)
    parser.add_argument(
        "measures", nargs="*", metavar="MEASURE", help=f"some of {', '.join(measures)}"
    )
    parser.add_argument("--quick", action="store_true", help="little data: to see that it works")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument(
        "--work",
        type=Path,
        default=cache / "shardfs-benchmarks",
        help=f"where the files are kept, about {space} (default: %(default)s)",
    )
    parser.add_argument("--save", action="store_true", help="write the table to results/, too")
    return parser


def parsed(parser: ArgumentParser, measures: Sequence[str]) -> Namespace:
    """The arguments, of which the measures are known ones."""
    arguments = parser.parse_args()
    if unknown := set(arguments.measures) - set(measures):
        parser.error(f"no such measure: {', '.join(unknown)}")
    return arguments


def measured(
    measures: Sequence[Callable[[B], Iterator[Row]]], wanted: Sequence[str], bench: B
) -> list[Row]:
    """The rows of the measures that are *wanted* by name, or of all, each told as soon as it is there."""
    rows = []
    for measure in measures:
        if not wanted or measure.__name__ in wanted:
            for row in measure(bench):
                print(*filter(None, row), sep="; ", file=sys.stderr, flush=True)
                rows.append(row)
    return rows


def end_on_signal() -> None:
    """Let a signal end the program as an error does, so that no mounts are left behind."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def tell(
    rows: Sequence[Row], title: str, file: Path | None, peers: Mapping[str, str] | None = None
) -> None:
    """Print the table of *rows*, measured beside *peers* (versions by name); and write it to *file*."""
    beside = ", ".join(f"{name} {version}" for name, version in (peers or {}).items())
    result = f"{table(rows)}\n\n{machine()}" + (f"; beside it {beside}" if beside else "")
    print(result)
    if file is not None:
        file.parent.mkdir(exist_ok=True)
        head = f"# {title}: what a mount costs\n\nWhat each row means: ../README.md.\n\n"
        file.write_text(f"{head}{result}\n", encoding="utf-8")
