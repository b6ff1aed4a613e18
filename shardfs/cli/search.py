"""``grep``: which records hold a text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from shardfs.cli import console
from shardfs.dataset import Dataset
from shardfs.names import to_bytes
from shardfs.work.executors import executor
from shardfs.work.grep import search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.options import Options
    from shardfs.work.grep import Found, Wanted

    Shown = Literal["lines", "paths", "counts"]

MATCHED, NOTHING = 0, 1
"""The exit codes, as those of grep; faults that hide records are 2."""


def grep(
    source: str, wanted: Wanted, options: Options, shown: Shown, *, jobs: int, dask: str
) -> int:
    """Print what matches: lines with their files, paths of records, or how many records in each shard."""
    any_match = any_fault = False
    with Dataset(source, options) as dataset, executor(jobs=jobs, dask=dask) as pool:
        found = search(dataset, wanted, pool, first_only=shown != "lines")
        for some in _by_shard(found) if shown == "counts" else found:
            any_match |= some.records > 0
            any_fault |= bool(some.faults)
            for fault in some.faults:
                console.log.warning("%s", fault)
            for line in _lines(some, shown):
                sys.stdout.buffer.write(to_bytes(line) + b"\n")
    return console.WRONG_USE if any_fault else MATCHED if any_match else NOTHING


def _lines(found: Found, shown: Shown) -> Iterator[str]:
    if shown == "counts":
        yield f"{found.shard}:{found.records}"
    for match in found.matches if shown != "counts" else ():
        yield match.record if shown == "paths" else f"{match.file}:{match.line}"


def _by_shard(found: Iterator[Found]) -> Iterator[Found]:
    """All of a shard together."""
    whole: Found | None = None
    for some in found:
        if whole is not None and whole.shard == some.shard:
            faults = [*whole.faults, *some.faults]
            whole = whole._replace(records=whole.records + some.records, faults=faults)
            continue
        if whole is not None:
            yield whole
        whole = some
    if whole is not None:
        yield whole
