"""Arrow files and streams as shardfs shows them, beside what pyarrow reads of them and the JSON of golden files."""

from __future__ import annotations

import json
import re
import resource
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt
from pyarrow import feather

from shardfs.errors import ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.conformance import expected, golden
from tests.conformance.expected import Different
from tests.conformance.report import Outcome, Tally, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.tree.paths import Node

SUFFIXES = (".arrow", ".arrows", ".arrow_file", ".stream", ".feather", ".ipc")
_FUZZED = ("arrow-ipc-stream", "arrow-ipc-file")
_OPTIONS = Options(disk_cache=False)
# Damaged files may claim any number of rows.
_MOST_ROWS = 2000
# What one file may take: far more than any of the suites needs.
_MOST_SECONDS, _MOST_MEGABYTES = 60, 300


@dataclass(frozen=True, slots=True)
class Column:
    """A column as somebody else reads it.

    Attributes:
        values: of the rows; None where they can't be told.
        is_json: whether each is shown as JSON, whatever it is.
    """

    name: str
    values: Sequence[pa.Scalar] | None
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class Truth:
    """What somebody else reads of a file, or the *problem* with it."""

    columns: Sequence[Column] | None
    rows: int = 0
    problem: str = ""


def files_in(folder: Path) -> list[Path]:
    """Arrow data, by its name, or by that of the folder where files have none of their own."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and (
            path.name.endswith(SUFFIXES)
            or (path.parent.name in _FUZZED and path.name != "README.md")
        )
    )


def run(folder: Path) -> Tally:
    """The outcome of each file in a folder."""
    tally = Tally(f"{folder.name}: Arrow")
    with TemporaryDirectory() as scratch:
        for number, path in enumerate(files_in(folder)):
            name = str(path.relative_to(folder))
            # under a name that tells what it is
            shown = Path(scratch, f"{number}.arrow")
            shown.write_bytes(path.read_bytes())

            def check(
                path: Path = path, name: str = name, shown: Path = shown
            ) -> Iterator[Verdict]:
                yield _judge(path, name, shown)

            tally.judge(name, check)
            shown.unlink()
    return tally


def _judge(path: Path, name: str, shown: Path) -> Verdict:
    started, before = time.monotonic(), _megabytes()
    found, refused = None, ""
    try:
        with closing(open_tree(str(shown), _OPTIONS)) as tree:
            found = _read(tree.root)
    except ShardfsError as error:
        refused = str(error)
    took, more = time.monotonic() - started, _megabytes() - before
    if took > _MOST_SECONDS or more > _MOST_MEGABYTES:
        return Verdict(name, Outcome.CRASH, f"takes {took:.0f} s and {more} MB")
    truths = [truth for truth in (_golden(path), _pyarrow(path)) if truth is not None]
    known = [truth for truth in truths if truth.columns is not None]
    problem = next((truth.problem for truth in truths if truth.problem), "")
    if found is None:
        outcome = Outcome.REFUSED if known else Outcome.UNREAD
        return Verdict(name, outcome, refused + (f" (pyarrow: {problem:.100})" if problem else ""))
    if not known:
        return Verdict(name, Outcome.ALONE, f"pyarrow: {problem:.100}")
    for truth in known:
        outcome, why = _compare(found, truth)
        if outcome is not Outcome.EQUAL:
            return Verdict(name, outcome, why)
    return Verdict(name, Outcome.EQUAL)


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


# --- what others read --------------------------------------------------------------------------------------


def _golden(path: Path) -> Truth | None:
    """What the JSON beside a file says; None where there is none."""
    described = path.with_suffix(".json.gz")
    if not described.exists():
        return None
    rows, columns = golden.columns_of(described)
    return Truth([Column(*column) for column in columns], rows)


def _pyarrow(path: Path) -> Truth:
    try:
        table = _table(path)
        table.validate(full=True)
        names = table.column_names
        shown = table.slice(0, _MOST_ROWS).columns
        columns = [_column(*pair) for pair in zip(names, shown, strict=True)]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return Truth(None, problem=str(error))
    return Truth(columns, min(len(table), _MOST_ROWS))


def _table(path: Path) -> pa.Table:
    data = path.read_bytes()
    if data.startswith(b"FEA1"):
        return feather.read_table(path)
    make = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    return make(pa.BufferReader(data)).read_all()


def _column(name: str, column: pa.ChunkedArray) -> Column:
    kind = column.type
    try:
        values = [expected.plain(value) for value in column]
    except KeyError:  # intervals of other units than pyarrow has values for
        return Column(name, None)
    is_json = pt.is_union(kind) or (pt.is_run_end_encoded(kind) and pt.is_nested(kind.value_type))
    return Column(
        name, values, is_json or (pt.is_dictionary(kind) and pt.is_nested(kind.value_type))
    )


# --- what shardfs shows ------------------------------------------------------------------------------------

Shown = tuple[str, Any]


def _read(root: Node) -> list[list[Shown]]:
    """Names and contents of the files of all records."""
    (shard,) = root.children()
    return [list(_files(record)) for record in islice(shard.children(), _MOST_ROWS)]


def _files(record: Node) -> Iterator[Shown]:
    try:
        files = list(record.children())
    except ShardfsError as error:
        yield "", error
        return
    for file in files:
        try:
            yield file.name, bytes(file.read(0, file.size))
        except ShardfsError as error:
            yield file.name, error


def _compare(found: list[list[Shown]], truth: Truth) -> tuple[Outcome, str]:
    """Compare all cells."""
    if len(found) != truth.rows:
        return Outcome.WRONG, f"{len(found)} instead of {truth.rows} records"
    refused = ""
    for row, files in enumerate(found):
        rest = list(files)
        for column in truth.columns or ():
            try:
                _cell(column, row, rest)
            except Different as error:
                return Outcome.WRONG, f"{column.name}, row {row}: {error}"
            except ShardfsError as error:
                refused = refused or f"{column.name}, row {row}: {error}"
        if rest and not refused:
            return Outcome.WRONG, f"row {row}: nobody else has {rest[0][0]}"
    return (Outcome.REFUSED, refused) if refused else (Outcome.EQUAL, "")


def _cell(column: Column, row: int, files: list[Shown]) -> None:
    """Take the files of a field from the front and compare them. Raises Different, and what its reading raises."""
    stem = re.escape(_escaped(column.name))
    form = re.compile(rf"{stem}(~\d+)?(\.\d+)?(\.[a-z0-9]+)?", re.DOTALL)

    def taken() -> Shown | None:
        if not files or not (form.fullmatch(files[0][0]) or not files[0][0]):
            return None
        found = files.pop(0) if files[0][0] else files[0]
        if isinstance(found[1], ShardfsError):
            raise found[1]
        return found

    if column.values is None:
        taken()
        return
    value = column.values[row]
    if not value.is_valid or (expected.is_media(value.type) and not value["bytes"].is_valid):
        if files and isinstance(files[0][1], ShardfsError):
            taken()
        return  # a file where there is a null is left, and found
    is_several = expected.is_items(value) and not column.is_json
    for item in expected.contents(list(value.values)) if is_several else [value]:
        found = taken()
        if found is None:
            raise Different(f"no file for {item!r}")
        if column.is_json:
            expected.compare(item, json.loads(found[1]))
        else:
            expected.check(item, *found)


def _escaped(name: str) -> str:
    return {"": "%", ".": "%2E", "..": "%2E%2E"}.get(
        name, name.replace("/", "%2F").replace("\0", "%00")
    )
