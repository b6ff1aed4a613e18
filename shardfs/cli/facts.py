"""``info``: what a source is, for programs and for people."""

from __future__ import annotations

import json
import math
from contextlib import closing
from typing import TYPE_CHECKING, Any

from shardfs.cli import console
from shardfs.cli.progress import Progress
from shardfs.cli.values import show_size
from shardfs.mounting import open_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.options import Options
    from shardfs.tree.survey import Survey

# Datasets of which an example is looked at, and that are shown to a person. Guesses.
_MOST_ASKED, _MOST_SHOWN = 64, 20


def info(source: str, options: Options, *, as_json: bool, count: bool, quiet: bool) -> int:
    """Print what is known of a source; *count*: all its records, however long that takes."""
    with closing(open_tree(source, options)) as tree:
        survey = tree.survey
        _look(survey, count=count, quiet=quiet or as_json)
        facts = {**tree.info(), "faults": tree.stats()["faults"]}
        code = console.FAILED if survey.uncountable else 0
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(map(console.printable, _lines(facts))))
    return code


def _look(survey: Survey, *, count: bool, quiet: bool) -> None:
    if count:
        survey.look(most=math.inf, seconds=math.inf, report=True)
    else:
        survey.look(report=True)
    for known in survey.datasets[:_MOST_ASKED]:
        survey.fields(known)
    with Progress("counting", "shards", quiet=quiet) as progress:
        survey.count(all_of_it=count, progress=progress)


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"source: {facts['source']}"
    if "revision" in facts:
        yield f"revision: {facts['revision']}"
    if facts["splits"]:
        splits = [f"{split['config']}/{split['split']}".lstrip("/") for split in facts["splits"]]
        yield f"splits: {', '.join(splits[:_MOST_SHOWN])}{_more(splits)}"
    seen = "" if facts["complete"] else " in what was looked at (--count looks at all)"
    yield f"shards: {facts['shards']:,}{seen}"
    yield f"records: {_number(facts['records'])}"
    yield f"bytes: {facts['bytes']:,} ({show_size(facts['bytes'])})"
    if facts["files"]:
        yield f"other files: {facts['files']:,}"
    if facts["faults"]["count"]:
        last = facts["faults"]["last"]
        yield f"faults: {facts['faults']['count']:,}, the last: {last['message']}"
    for dataset in facts["datasets"][:_MOST_SHOWN]:
        yield ""
        yield from _dataset(dataset)
    if _more(facts["datasets"]):
        yield f"\n{_more(facts['datasets']).strip()} datasets (--json has all)"


def _dataset(dataset: Mapping[str, Any]) -> Iterator[str]:
    yield f"{dataset['format']}: {dataset['url']}"
    for name, value in dataset.items():
        if name in ("format", "url", "fields") or value in ("", None, [], {}):
            continue
        text = f"{value:,}" if type(value) is int else value
        yield f"  {name}: {text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)}"
    if dataset["records"] is None:
        yield f"  records: {_number(None)}"
    rows = [_field(field) for field in dataset["fields"]]
    if rows:
        yield "  fields:"
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
    for name, kind, example in rows:
        yield f"    {name:{widths[0]}}  {kind:{widths[1]}}  {example}".rstrip()


def _field(field: Mapping[str, Any]) -> tuple[str, str, str]:
    kind = field["type"] + (" or null" if field["nullable"] else "")
    return field["name"], kind, field["example"] or ""


def _number(count: int | None) -> str:
    return "not counted yet (--count counts them)" if count is None else f"{count:,}"


def _more(things: Sequence[object]) -> str:
    return f" and {len(things) - _MOST_SHOWN:,} more" if len(things) > _MOST_SHOWN else ""
