"""Two sides of a comparison that cost memory and reads as well as time, and libraries as one of them."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Aim, Row, Sample, megabytes, pairs, seconds, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_READER = Path(__file__).with_name("huggingface_reader.py")


# --- sides -------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a repeat took besides time: bytes of memory at most (VmHWM), bytes from read calls (rchar)."""

    peak: int
    read: int


class Side:
    """One of the two that are compared, by what does a repeat; and what the repeats cost."""

    def __init__(self, name: str, once: Callable[[], tuple[Sample, Cost | None]]) -> None:
        self.name, self._once = name, once
        self.costs: list[Cost] = []

    def once(self) -> Sample:
        sample, cost = self._once()
        if cost is not None:
            self.costs.append(cost)
        return sample

    def tell(self, took: Sequence[float]) -> str:
        """What the repeats took and cost, for the table."""
        words = f"{self.name} {seconds(statistics.median(took))}".lstrip()
        if not self.costs:
            return words
        peak = max(cost.peak for cost in self.costs)
        read = statistics.median(cost.read for cost in self.costs)
        return f"{words}, {megabytes(peak)}, read {megabytes(read)}"


def side_by_side(what: str, repeats: int, sides: tuple[Side, Side], aim: Aim | None = None) -> Row:
    """A line of the table; the ratio is how many times as fast the first side was."""
    ours, theirs = sides
    found = pairs(repeats, ours.once, theirs.once)
    ratio = 1 / found.ratio
    judged = ("", "") if aim is None else (str(aim), aim.judge(ratio))
    return Row(what, ours.tell(found.ours), theirs.tell(found.theirs), times(ratio), *judged)


# --- libraries ---------------------------------------------------------------------------------------------


def installed(python: str, names: Sequence[str]) -> dict[str, str]:
    """The versions of those of the packages *names* that a Python has, in this order."""
    program = (
        "from importlib import metadata; import json, sys; there = metadata.distributions();"
        "print(json.dumps({d.name: d.version for d in there if d.name in sys.argv}))"
    )
    command = [python, "-I", "-c", program, *names]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {name: found[name] for name in names if name in found}


class Reader:
    """A library that reads a file, in a program that stays: how long it takes to import is not measured."""

    def __init__(self, program: subprocess.Popen[str], kept: Path) -> None:
        """Take a program that runs ``huggingface_reader.py`` and the folder of what the library keeps for itself."""
        self._program, self.kept = program, kept

    def ask(self, task: Mapping[str, object], *, opening: bool = False) -> tuple[Sample, Cost]:
        """Let it carry out a task of ``huggingface_reader.py``; *opening*: the opening of the file is timed, too."""
        if self._program.stdin is None or self._program.stdout is None:
            raise RuntimeError("a reader without pipes")
        self._program.stdin.write(json.dumps(task) + "\n")
        self._program.stdin.flush()
        line = self._program.stdout.readline()
        if not line:
            raise RuntimeError(f"a reader ended with status {self._program.wait()}")
        answer = json.loads(line)
        took = answer["took"] + (answer["opened"] if opening else 0.0)
        return Sample(took, answer["done"]), Cost(answer["peak"], answer["read"])

    def forget(self) -> None:
        """Remove what the library has made of the file."""
        shutil.rmtree(self.kept)
        self.kept.mkdir()


@contextmanager
def reading(python: str, kind: str, file: Path, column: str, work: Path) -> Iterator[Reader]:
    """The library *kind*, in this Python, with all that it needs loaded; it keeps what it makes in *work*."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        kept = Path(name) / "kept"
        kept.mkdir()
        program = subprocess.Popen(
            # -I: `import datasets` must not find the module of that name beside the program.
            [python, "-I", str(_READER), kind, str(file), column],
            env={**os.environ, "HF_HOME": str(kept), "HF_HUB_OFFLINE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with program:  # closes its input, which ends it
            reader = Reader(program, kept)
            reader.ask({"some": [0]})
            yield reader
