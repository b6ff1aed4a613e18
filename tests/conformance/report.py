"""What came out of reading a file of a suite, counted and printed: shared by the programs for each format."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from shardfs.errors import ShardfsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Of what a peer reads, this part at most may be refused.
MOST_REFUSED = 0.02


class Outcome(Enum):
    """What shardfs made of a file, or of a column of one."""

    EQUAL = "equal"
    REFUSED = "refused"  # with a reason, though the peer reads it
    UNREAD = "unread by both"  # refused with a reason, as the peer does
    ALONE = "read by shardfs alone"  # so that nothing tells whether it is right
    WRONG = "wrong"
    CRASH = "crash"

    @property
    def is_fault(self) -> bool:
        return self in (Outcome.WRONG, Outcome.CRASH)

    @property
    def is_judged(self) -> bool:
        """Whether a peer reads it, so that it counts for how much is refused."""
        return self not in (Outcome.UNREAD, Outcome.ALONE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for *what* (a file, or a file and a column), and its reason or the difference."""

    what: str
    outcome: Outcome
    reason: str = ""


@dataclass(slots=True)
class Tally:
    """All verdicts of a suite."""

    suite: str
    verdicts: list[Verdict] = field(default_factory=list)

    def add(self, what: str, outcome: Outcome, reason: str = "") -> None:
        self.verdicts.append(Verdict(what, outcome, reason))

    def judge(self, what: str, check: Callable[[], Iterator[Verdict]]) -> None:
        """Take in the verdicts of *check*. What it raises is a refusal if shardfs has a name for it, else a crash."""
        try:
            self.verdicts += check()
        except ShardfsError as error:
            self.add(what, Outcome.REFUSED, str(error))
        except Exception as error:  # noqa: BLE001  # which is what this program looks for
            self.add(what, Outcome.CRASH, f"{type(error).__name__}: {error}")

    def count(self, outcome: Outcome) -> int:
        return sum(verdict.outcome is outcome for verdict in self.verdicts)

    @property
    def refused(self) -> float:
        """Which part is refused of what a peer reads."""
        judged = sum(verdict.outcome.is_judged for verdict in self.verdicts)
        return self.count(Outcome.REFUSED) / judged if judged else 0.0

    @property
    def is_fine(self) -> bool:
        has_faults = any(verdict.outcome.is_fault for verdict in self.verdicts)
        return bool(self.verdicts) and not has_faults and self.refused <= MOST_REFUSED


def table(tallies: Sequence[Tally]) -> str:
    """A line a suite, as docs/conformance.md shows them."""
    heads = ["suite", "tried", *(outcome.value for outcome in Outcome), "refused of readable"]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for tally in tallies:
        counts = [str(tally.count(outcome)) for outcome in Outcome]
        lines.append([tally.suite, str(len(tally.verdicts)), *counts, f"{tally.refused:.1%}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def reasons(tallies: Sequence[Tally], shown: Sequence[Outcome]) -> str:
    """What is not equal: outcome, suite, file, and why."""
    return "\n".join(
        f"{verdict.outcome.value}: {tally.suite}: {verdict.what}: {verdict.reason}"
        for tally in tallies
        for verdict in tally.verdicts
        if verdict.outcome in shown
    )


def finish(tallies: Sequence[Tally], *, is_verbose: bool = False) -> int:
    """Print what came out. Returns the exit status: 0 where nothing is wrong and at most 2 % is refused."""
    faults = [Outcome.WRONG, Outcome.CRASH, Outcome.REFUSED]
    told = reasons(tallies, list(Outcome) if is_verbose else faults)
    if told:
        print(told, end="\n\n")
    print(table(tallies))
    return 0 if tallies and all(tally.is_fine for tally in tallies) else 1
