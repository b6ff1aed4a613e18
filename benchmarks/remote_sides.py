"""What is compared where the bytes are far away: mounts, libraries, and curl, which only downloads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Aim, Row, Sample, megabytes, rounds, seconds, shardfs, times

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.harness import Mount
    from benchmarks.hub import Hub, Trips
    from benchmarks.repositories import Span

# Seconds that a download may take.
_PATIENCE = 120.0

_READER = Path(__file__).with_name("remote_reader.py")


# --- sides -------------------------------------------------------------------------------------------------


@dataclass
class Side:
    """One of those that are compared, by what does a repeat.

    Attributes:
        name: what the table calls it.
        is_counted: whether the table says how often it asked the Hub.
        took: the seconds of each repeat.
        trips: what each asked the Hub.
    """

    name: str
    hub: Hub
    work: Callable[[], Sample]
    is_counted: bool = False
    took: list[float] = field(default_factory=list)
    trips: list[Trips] = field(default_factory=list)

    def once(self) -> Sample:
        self.hub.forget()
        sample = self.work()
        self.trips.append(self.hub.trips())
        self.took.append(sample.seconds)
        return sample

    def most(self) -> Trips:
        """The repeat with the most round trips."""
        return max(self.trips, key=lambda trips: (trips.in_a_row, trips.requests))

    def tell(self, size: int = 0) -> str:
        """What the repeats took, for the table; how fast that was, where it says that *size* bytes were read."""
        took = statistics.median(self.took)
        words = [f"{self.name} {seconds(took)}".lstrip()]
        if self.is_counted:
            most = self.most()
            words.append(f"{most.in_a_row} of {most.requests}")
        if size:
            words.append(f"{megabytes(size / took)}/s")
        return ", ".join(words)


def in_turn(repeats: int, *sides: Side) -> None:
    """Let all sides do their repeats."""
    rounds(repeats, [side.once for side in sides])


def beside(what: str, ours: Side, theirs: Side, aim: Aim | None = None, *, size: int = 0) -> Row:
    """A line of the table; the ratio is how many times as fast the first side was: the median of the rounds."""
    ratio = statistics.median(b / a for a, b in zip(ours.took, theirs.took, strict=True))
    judged = ("", "") if aim is None else (str(aim), aim.judge(ratio))
    return Row(what, ours.tell(size), theirs.tell(size), times(ratio), *judged)


# --- how repeats are done ----------------------------------------------------------------------------------


def mounted(
    hub: Hub, repository: str, work: Callable[[Mount], Sample], options: Sequence[str] = ()
) -> Sample:
    """Do *work* on a mount of a repository that nobody has seen before."""
    with (
        hub.client() as env,
        shardfs(f"hf://datasets/{repository}", *options, given=env) as mount,
    ):
        return work(mount)


def library(
    hub: Hub,
    python: str,
    kind: str,
    source: str,
    task: str,
    *arguments: object,
    opening: bool = False,
) -> Sample:
    """Let a program in *python* carry out a task of ``remote_reader.py``; *opening*: that is timed, too."""
    # -I: `import datasets` must not find the module of that name beside the program.
    command = [python, "-I", str(_READER), kind, source, task]
    with hub.client() as env:
        done = subprocess.run(
            command,
            input=json.dumps(arguments),
            env={**os.environ, **env},
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    answer = json.loads(done.stdout)
    return Sample(answer["took"] + (answer["opened"] if opening else 0.0), answer["done"])


def curl(url: str, spans: Sequence[Span] = (), connections: int = 1) -> Sample:
    """Download *spans* of a file (none: all of it) by so many connections, with the program that everybody has."""
    ranges = [f'range = "{start}-{stop - 1}"' for start, stop in spans] or [""]
    always = (
        f'url = "{url}"\noutput = "/dev/null"\nlocation\nfail\nwrite-out = "%{{size_download}}\\n"'
    )
    config = "\nnext\n".join(f"{always}\n{one}" for one in ranges)
    command = ["curl", "-q", "-s", "-Z", "--parallel-max", str(connections), "-K", "-"]
    started = time.perf_counter()
    done = subprocess.run(
        command, input=config, check=True, text=True, capture_output=True, timeout=_PATIENCE
    )
    return Sample(time.perf_counter() - started, sum(map(int, done.stdout.split())))


def redirected(url: str) -> str:
    """Where a URL leads to, as *curl* is told that knows already."""
    command = ["curl", "-q", "-s", "-f", "-o", "/dev/null", "-w", "%{redirect_url}", url]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout
