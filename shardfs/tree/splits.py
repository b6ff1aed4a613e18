"""The configs and splits of a source: what the YAML of its README declares, as the Hugging Face Hub reads it.

Rules: huggingface.co/docs/hub/datasets-manual-configuration, checked against the library `datasets` 5.2. Those for
what no YAML declares are in hub_rules.py.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, ShardfsError
from shardfs.names import safe_parts
from shardfs.tree.choice import INDEXES, Choice
from shardfs.tree.hub_rules import Split, inferred_splits
from shardfs.tree.patterns import Walk
from shardfs.tree.readme import declared_configs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shardfs.model import Services
    from shardfs.stores import Store
    from shardfs.tree.readme import Config

# What a `dataset_dict.json` may come to.
_MAX_JSON = 4 << 20

# Behind all names.
_LAST = "\U0010ffff"


def find_splits(
    store: Store,
    names: Sequence[str],
    services: Services,
    files: Sequence[str] | None = None,
    choice: Choice | None = None,
) -> tuple[list[Split], list[Split]]:
    """The splits of *store* that the user asked for, and all others; the default config first.

    Args:
        names: the files at its top.
        files: the paths of all files, where names divide them into splits that nothing declares.
        choice: what the user asked for, where that is not what the options say.
    """
    if not services.options.splits:
        return [], []
    files = None if files is None else sorted(_loose(files))
    splits: list[Split] = []
    walk = Walk(store)
    try:
        for config in declared_configs(store, names, services):
            found = list(_splits(walk, config, files))
            if config.folder and not found:
                place = config.parameters.place
                services.report(Corrupt(f"{place}: no data is there in its data_dir"))
            splits += found
        _tell_empty(splits, services)
    except Corrupt as error:
        services.report(error)
        splits = []
    if not splits and files is not None:
        splits = list(_inferred(walk, "", files))
    return (choice or Choice.of(services.options)).among(splits)


def _tell_empty(splits: Sequence[Split], services: Services) -> None:
    """Report the splits without files in one word."""
    empty = [split for split in splits if not split.files]
    if empty:
        first, place = empty[0], empty[0].parameters.place
        more = f", nor for {len(empty) - 1} other splits" if len(empty) > 1 else ""
        services.report(Corrupt(f"{place}: no file is there for the split {first.name!r}{more}"))


def _splits(walk: Walk, config: Config, files: Sequence[str] | None) -> Iterator[Split]:
    """The splits of a config, which may leave it to the names of the files in its folder."""
    base = f"{config.folder}/" if config.folder else ""
    if config.data_files is not None:
        for split, patterns in config.data_files:
            paths = [path for pattern in patterns for path in walk.matching(base + pattern)]
            yield Split(config.name, split, tuple(dict.fromkeys(paths)), config.parameters)
    elif base or files is not None:
        for found in _inferred(walk, base, files):
            yield replace(found, config=config.name, parameters=config.parameters)


def _inferred(walk: Walk, base: str, files: Sequence[str] | None) -> Iterator[Split]:
    """The splits that the files below *base* fall into by their names; *files*: the store's, sorted, if known."""
    parts = safe_parts(base)
    if parts is None:
        return
    if files is None:
        files = sorted(_loose(list(walk.files("/".join(parts)))))
    base = "".join(f"{part}/" for part in parts)
    first = bisect_left(files, base)  # configs may be many
    last = bisect_left(files, f"{base}{_LAST}", first) if base else len(files)
    for split in inferred_splits([path[len(base) :] for path in files[first:last]]):
        yield replace(split, files=tuple(base + path for path in split.files))


def _loose(files: Sequence[str]) -> Sequence[str]:
    """Those of *files* that lie in no folder which an index makes a dataset of its own.

    That of the top folder doesn't count: whoever looks for splits has seen that it says nothing.
    """
    places = (path.rpartition("/") for path in files)
    indexed = {f"{folder}/" for folder, _, name in places if folder and name in INDEXES}
    if not indexed:
        return files
    return [path for path in files if indexed.isdisjoint(accumulate(re.findall("[^/]*/", path)))]


def split_order(store: Store, names: Sequence[str]) -> list[str]:
    """The folders that a DatasetDict's `dataset_dict.json` names, in its order."""
    if "dataset_dict.json" not in names:
        return []
    try:
        blob = store.open("dataset_dict.json")
        content = json.loads(bytes(blob.read(0, min(blob.size(), _MAX_JSON))))
    except (ShardfsError, ValueError, RecursionError):
        return []
    splits = content.get("splits") if isinstance(content, dict) else None
    return [split for split in splits if isinstance(split, str)] if isinstance(splits, list) else []
