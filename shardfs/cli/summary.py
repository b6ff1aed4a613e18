"""What there is in a source, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.cli.console import log
from shardfs.cli.values import show_count

if TYPE_CHECKING:
    from shardfs.tree.tree import Tree

# A mount is not to wait for long to be described. Guesses.
_MOST_FOLDERS, _PATIENCE = 50, 1.0

_TITLES = {
    "litdata": "LitData",
    "litdata-parquet": "LitData",
    "mds": "MDS",
    "webdataset": "WebDataset",
    "arrow": "Arrow",
    "parquet": "Parquet",
    "jsonl": "JSON Lines",
    "json": "JSON",
    "csv": "CSV",
    "text": "text",
    "tfrecord": "TFRecord",
}


def of(tree: Tree, source: str, *, all_of_it: bool) -> str:
    """`LitData, 4 shards, 2,000 records`; "" where that can't be told in a moment.

    Warns where there is no dataset at all; only that is looked for unless *all_of_it* is wanted.
    """
    survey = tree.survey
    survey.look(
        lambda: not all_of_it and bool(survey.datasets),
        most=_MOST_FOLDERS,
        seconds=_PATIENCE,
        archives=False,
    )
    if not survey.datasets:
        if survey.complete:
            files = "1 file passes" if survey.files == 1 else f"{survey.files:,} files pass"
            log.warning("%s: no dataset here; %s through", source, files)
        return ""
    if not all_of_it:
        return ""
    facts = survey.facts()
    formats = dict.fromkeys(_TITLES.get(d["format"], d["format"]) for d in facts["datasets"])
    parts = [" and ".join(formats), show_count(facts["shards"], "shard")]
    if not survey.complete:
        parts.append("and more")
    elif facts["records"] is not None:
        parts.append(show_count(facts["records"], "record"))
    return ", ".join(parts)
