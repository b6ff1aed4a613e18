"""Which records hold a text: lines that match in what their fields show as text, numbers or JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from shardfs.blob import read_all
from shardfs.errors import ShardfsError, Unreadable, UsageError
from shardfs.views.values import is_text
from shardfs.work.executors import each, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from shardfs.dataset import Dataset, Record
    from shardfs.tree.records import ShownField
    from shardfs.work.executors import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for: a regular expression, or a *fixed* text, in all fields or some."""

    pattern: str
    fixed: bool = False
    ignore_case: bool = False
    fields: frozenset[str] = frozenset()

    def compiled(self) -> re.Pattern[str]:
        """Raises UsageError where it is no regular expression."""
        text = re.escape(self.pattern) if self.fixed else self.pattern
        try:
            return re.compile(text, re.IGNORECASE if self.ignore_case else 0)
        except re.error as error:
            where = "" if error.pos is None else f", from its character {error.pos + 1} on"
            raise UsageError(
                f"{self.pattern!r} is no regular expression{where} (-F takes it as it is)"
            ) from error


class Match(NamedTuple):
    """A line that matches: of which *record*, in which *file* of it (paths in the tree)."""

    record: str
    file: str
    line: str


class Found(NamedTuple):
    """What was found in some records of a shard.

    *faults* are those records and fields that could not be read, as (what, error) for people.
    """

    shard: str
    records: int
    matches: list[Match]
    faults: list[str]


def search(
    dataset: Dataset, wanted: Wanted, pool: Executor, *, first_only: bool
) -> Iterator[Found]:
    """What is found in the records of *dataset*, in their order; with *first_only*, one line a record.

    Raises UsageError: no regular expression, or a field that the first shard hasn't.
    """
    wanted.compiled()
    if wanted.fields and dataset.shards:
        dataset.shards[0].check(wanted.fields)
    return each(pool, partial(_search, wanted, first_only), pieces(dataset.shards))


def _search(wanted: Wanted, first_only: bool, piece: Piece) -> Found:
    pattern, matches, faults, records = wanted.compiled(), list[Match](), list[str](), 0
    for record in piece.records(wanted.fields):
        before = len(matches)
        try:
            for match in _matches(record, pattern, faults):
                matches.append(match)
                if first_only:
                    break
        except Unreadable:
            raise
        except ShardfsError as error:
            faults.append(str(error.at(record.path)))
        records += len(matches) > before
    return Found(piece.shard.path, records, matches, faults)


def _matches(record: Record, pattern: re.Pattern[str], faults: list[str]) -> Iterator[Match]:
    for shown in record.shown():
        try:
            texts = list(_texts(shown))
        except Unreadable:
            raise
        except ShardfsError as error:
            faults.append(f"{record.path}/{shown.names[0] if shown.names else ''}: {error.message}")
            continue
        for name, text in texts:
            if pattern.search(text):
                path = record.path
                for line in text.removesuffix("\n").split("\n"):
                    if pattern.search(line):
                        yield Match(path, f"{path}/{name}", line)


def _texts(shown: ShownField) -> Iterator[tuple[str, str]]:
    """(file name, content) of the files that show text, numbers or JSON."""
    for name, file in zip(shown.names, shown.files, strict=True):
        if is_text(shown.field, file):
            yield name, str(read_all(file.blob), "utf-8", "surrogateescape")
