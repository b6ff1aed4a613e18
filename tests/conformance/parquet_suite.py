"""Parquet files as shardfs shows them, beside what pyarrow and DuckDB read of them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from shardfs.errors import ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.conformance import expected, peers
from tests.conformance.expected import Different
from tests.conformance.report import Outcome, Tally, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree
    from tests.conformance.peers import Column

SUFFIXES = (".parquet", ".parq", ".parquet.encrypted")
_ORDER = (Outcome.CRASH, Outcome.WRONG, Outcome.REFUSED, Outcome.EQUAL)
# What stands in the names of files of which the suite says that readers may differ.
_FREE = "-INVALID"
# Rows that are compared of long files.
_BEGINNING, _END = 2000, 500
_OPTIONS = Options(disk_cache=False)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES))


def run(folder: Path) -> Tally:
    """The outcome of each file in a folder, which is the worst of its columns'."""
    tally = Tally(folder.name)
    for path in files_in(folder):
        name = str(path.relative_to(folder))
        columns, problem = peers.columns_of(path)

        def check(
            path: Path = path, name: str = name, columns: list[Column] = columns
        ) -> Iterator[Verdict]:
            yield _verdict(name, path, columns)

        if _FREE in name:
            tally.add(name, Outcome.ALONE, "no valid file; readers may differ")
        elif problem or all(column.values is None for column in columns):
            tally.verdicts.append(_unread(name, path, problem))
        else:
            tally.judge(name, check)
    return tally


def _unread(name: str, path: Path, problem: str) -> Verdict:
    """The verdict for a file of which no peer reads anything."""
    try:
        with _opened(path) as tree:
            for record in islice(_records(tree.root), _BEGINNING):
                for file in record.children():
                    file.read(0, file.size)
    except ShardfsError as error:
        return Verdict(name, Outcome.UNREAD, f"{error} (peers: {problem:.80})")
    except Exception as error:  # noqa: BLE001
        return Verdict(name, Outcome.CRASH, repr(error))
    return Verdict(name, Outcome.ALONE, problem)


@contextmanager
def _opened(path: Path) -> Iterator[Tree]:
    """The tree of a file, whatever suffix it has."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "file.parquet")
        copyfile(path, copy)
        with closing(open_tree(str(copy), _OPTIONS)) as tree:
            yield tree


def _records(root: Node) -> Iterator[Node]:
    (shard,) = root.children()
    yield from shard.children()


def _verdict(name: str, path: Path, columns: list[Column]) -> Verdict:
    """Compare all cells of a file."""
    outcomes: dict[str, tuple[Outcome, str]] = {}
    with _opened(path) as tree:
        records = list(_records(tree.root))
        rows = max(len(column.values) for column in columns if column.values is not None)
        if len(records) != rows:
            return Verdict(name, Outcome.WRONG, f"{len(records)} instead of {rows} records")
        for number, record in enumerate(records):
            if not _BEGINNING <= number < rows - _END:  # both ends of long files
                _row(record, number, columns, outcomes)
    for outcome in _ORDER:
        found = [f"{key}: {why}" for key, (kind, why) in outcomes.items() if kind is outcome]
        if found:
            return Verdict(name, outcome, "; ".join(found))
    told = "; ".join(f"{key}: {why}" for key, (_, why) in outcomes.items())
    return Verdict(name, Outcome.EQUAL, told)


def _row(
    record: Node, number: int, columns: list[Column], outcomes: dict[str, tuple[Outcome, str]]
) -> None:
    """Compare a record; the first that goes wrong with a column counts."""
    files = list(record.children())
    for column in columns:
        stem = re.escape(_escaped(column.name))
        form = re.compile(rf"{stem}(~\d+)?(\.\d+)?(\.[a-z0-9]+)?", re.DOTALL)
        mine: list[Node] = []
        is_list = column.values is not None and expected.is_list(column.values.type)
        while files and form.fullmatch(files[0].name) and (is_list or not mine):
            mine.append(files.pop(0))
        try:
            _cell(column, number, mine)
        except Different as error:
            outcomes.setdefault(column.name, (Outcome.WRONG, f"row {number}: {error}"))
        except ShardfsError as error:
            kind = Outcome.UNREAD if column.values is None else Outcome.REFUSED
            outcomes.setdefault(column.name, (kind, str(error)))
        except Exception as error:  # noqa: BLE001
            outcomes.setdefault(column.name, (Outcome.CRASH, repr(error)))
    for file in files:
        outcomes.setdefault(file.name, (Outcome.WRONG, f"row {number}: nobody else has this field"))


def _escaped(name: str) -> str:
    return {"": "%", ".": "%2E", "..": "%2E%2E"}.get(
        name, name.replace("/", "%2F").replace("\0", "%00")
    )


def _cell(column: Column, number: int, files: list[Node]) -> None:
    """Compare the files of a field. Raises Different, and what its reading raises."""
    contents = [(file.name, bytes(file.read(0, file.size))) for file in files]
    if column.values is None:
        return
    value: pa.Scalar = expected.plain(column.values[number])
    if column.is_variant and (value.is_valid or contents):
        _variant(value.as_py() or "null", contents)
        return
    if not value.is_valid or (expected.is_media(value.type) and not value["bytes"].is_valid):
        if contents:
            raise Different(f"{contents[0][0]} where there is a null")
        return
    wanted = expected.contents(list(value.values)) if expected.is_items(value) else [value]
    if len(contents) != len(wanted):
        raise Different(f"{len(contents)} files for {value}")
    for (name, data), item in zip(contents, wanted, strict=True):
        shown = data[: len(expected.moment(item))] + b"\n" if column.is_coarse else data
        expected.check(item, name, shown)


def _variant(wanted: str, contents: list[tuple[str, bytes]]) -> None:
    if len(contents) != 1:
        raise Different(f"no file for {wanted}")
    found, right = json.loads(contents[0][1]), json.loads(wanted, parse_float=Decimal)
    if _plain(found) != _plain(right) and _plain(found, _single) != _plain(right, _single):
        raise Different(f"{found!r:.120} instead of {wanted:.120}")


def _single(number: Decimal) -> Decimal:
    """A number as four bytes hold it, which DuckDB makes eight of."""
    return Decimal(float(np.float32(number)))


def _plain(value: object, number: Callable[[Decimal], Decimal] = Decimal) -> object:
    """A variant in one spelling: DuckDB writes times with a space, and bytes that are no text in hexadecimal."""
    if isinstance(value, dict):
        return {key: _plain(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, number) for item in value]
    if isinstance(value, (float, Decimal)):
        return number(Decimal(str(value)))
    if isinstance(value, str):
        text = re.sub(r"^(-?\d{4,}-\d\d-\d\d) (\d\d:)", r"\1T\2", value)
        text = re.sub(r"(:\d\d(?:\.\d+)?\+\d\d)$", r"\1:00", text)
        if re.fullmatch(r"(\\x[0-9A-F]{2})+", text):
            return b64encode(bytes.fromhex(text.replace("\\x", ""))).decode()
        return number(Decimal(text)) if re.fullmatch(r"-?\d+\.\d+", text) else text
    return value
