"""The configs and splits of a source: what the YAML of its README declares, as the Hugging Face Hub reads it.

Rules: huggingface.co/docs/hub/datasets-manual-configuration, checked against the library `datasets` 5.2. Those for
what no YAML declares are in hub_rules.py.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, NotAFolder, NotFound, ShardfsError
from shardfs.names import safe_parts, to_bytes
from shardfs.registry import FORMATS
from shardfs.tree.hub_rules import IGNORED, SPLIT_NAME, Split, inferred_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.model import Services
    from shardfs.options import Options
    from shardfs.stores import Entry, Store

README = "README.md"
OVERLAY = ".huggingface.yaml"

# A README is text for people; more than this in front of it is not a declaration.
_MAX_YAML = 4 << 20
# Links can lead in circles. More folders, one below the other or in all, are taken for that. Guesses.
_DEEPEST, _MOST_FOLDERS = 40, 200_000

# Files that make a dataset of a folder, whatever else is in it.
_INDEXES = frozenset(name for row in FORMATS for name in row.markers if not has_magic(name))


def find_splits(
    store: Store, names: Sequence[str], services: Services, files: Sequence[str] | None = None
) -> tuple[list[Split], list[Split]]:
    """The splits of *store* that the user asked for, and all others; the default config first.

    Args:
        names: the files at its top.
        files: the paths of all files, where names divide them into splits that nothing declares.

    Raises:
        NotFound: the user asked for a config or split that is not among them.
    """
    if not services.options.splits:
        return [], []
    files = None if files is None else sorted(_loose(files))
    splits: list[Split] = []
    try:
        for config in _configs(store, names, services):
            splits += _splits(store, config, files)
    except Corrupt as error:
        services.report(error)
        splits = []
    if not splits and files is not None:
        splits = list(_inferred(store, "", files))
    return _chosen(splits, services.options)


def _chosen(splits: Sequence[Split], options: Options) -> tuple[list[Split], list[Split]]:
    """What of *splits* the user asked for, and the rest. Raises NotFound."""
    chosen: list[Split] = []
    others: list[Split] = []
    for split in splits:
        is_it = options.config in ("", split.config) and options.split in ("", split.name)
        (chosen if is_it else others).append(split)
    if splits and not chosen:
        have = ", ".join(f"{split.config}/{split.name}" for split in splits)
        raise NotFound(
            f"no config {options.config!r} with split {options.split!r}; there are {have}"
        )
    return chosen, others


def _configs(store: Store, names: Sequence[str], services: Services) -> Sequence[Mapping[str, Any]]:
    """The configs of the YAML, the default one first."""
    for name in (OVERLAY, README):  # the overlay wins
        declared = _yaml(store, name).get("configs") if name in names else None
        if isinstance(declared, list) and declared:
            configs = [config for config in declared if _is_config(config)]
            default = [c for c in configs if c.get("default") or c["config_name"] == "default"]
            if len(default) > 1:  # `datasets` refuses them all
                have = " and ".join(repr(config["config_name"]) for config in default)
                services.report(Corrupt(f"{name}: {have} are each the default config"))
                return configs
            return [*default, *(config for config in configs if config not in default)]
    return []


def _is_config(config: object) -> bool:
    name = config.get("config_name") if isinstance(config, dict) else None
    return isinstance(name, str) and not re.search(r"[<>:/\\|?*]", name)


def _yaml(store: Store, name: str) -> Mapping[str, Any]:
    """The YAML of a file: all of it, or of Markdown what stands between two `---` lines at its beginning."""
    import yaml

    blob = store.open(name)
    text = bytes(blob.read(0, min(blob.size(), _MAX_YAML))).decode("utf-8", "replace")
    if name == README:
        front = re.match(
            r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", text, re.DOTALL | re.MULTILINE
        )
        text = front[1] if front else ""
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise Corrupt(f"{name}: its YAML, splits included, can't be read ({reason})") from error
    return content if isinstance(content, dict) else {}


def _splits(
    store: Store, config: Mapping[str, Any], files: Sequence[str] | None
) -> Iterator[Split]:
    """The splits of a config, which may leave it to the names of the files in its folder."""
    name, folder = config["config_name"], config.get("data_dir")
    base = f"{folder}/" if isinstance(folder, str) and folder else ""
    if config.get("data_files") is not None:
        for split, patterns in _data_files(config["data_files"]):
            paths = [path for pattern in patterns for path in matching(store, base + pattern)]
            yield Split(name, split, tuple(dict.fromkeys(paths)))
    elif base or files is not None:
        for found in _inferred(store, base, files):
            yield replace(found, config=name)


def _inferred(store: Store, base: str, files: Sequence[str] | None) -> Iterator[Split]:
    """The splits that the files below *base* fall into by their names; *files*: the store's, sorted, if known."""
    parts = safe_parts(base)
    if parts is None:
        return
    if files is None:
        files = sorted(_loose(list(_Walk(store).files("/".join(parts)))))
    base = "".join(f"{part}/" for part in parts)
    first = bisect_left(files, base)  # configs may be many
    below = [path[len(base) :] for path in takewhile(lambda p: p.startswith(base), files[first:])]
    for split in inferred_splits(below):
        yield replace(split, files=tuple(base + path for path in split.files))


def _loose(files: Sequence[str]) -> Sequence[str]:
    """Those of *files* that lie in no folder which an index makes a dataset of its own.

    That of the top folder doesn't count: whoever looks for splits has seen that it says nothing.
    """
    places = (path.rpartition("/") for path in files)
    indexed = {f"{folder}/" for folder, _, name in places if folder and name in _INDEXES}
    if not indexed:
        return files
    return [path for path in files if indexed.isdisjoint(accumulate(re.findall("[^/]*/", path)))]


def _data_files(declared: object) -> Iterator[tuple[str, list[str]]]:
    """(split, patterns) of the key `data_files`: a pattern, a list of them, or a list of splits with theirs."""
    if isinstance(declared, dict):
        declared = [{"split": split, "path": path} for split, path in declared.items()]
    items: list[Any] = declared if isinstance(declared, list) else [declared]
    if all(isinstance(item, str) for item in items):
        yield "train", items
        return
    for item in items:
        if isinstance(item, dict) and SPLIT_NAME.fullmatch(str(item.get("split"))):
            path = item.get("path")
            patterns = path if isinstance(path, list) else [path]
            yield str(item["split"]), [pattern for pattern in patterns if isinstance(pattern, str)]


def matching(store: Store, pattern: str) -> list[str]:
    """The files that a glob pattern names, sorted; a folder stands for all files below it.

    `*` stays within a folder, `**` does not. Hidden files and what leads outside is never matched, nor are folders
    `__so` and files that say something about data, unless the pattern names them. Raises Corrupt.
    """
    parts = safe_parts(pattern)
    if not parts:
        return []
    ignored = IGNORED - {parts[-1]}
    found = _Walk(store).matching("", parts)
    return sorted({path for path in found if path.rpartition("/")[2] not in ignored}, key=to_bytes)


class _Walk:
    """One walk through the folders of a store."""

    def __init__(self, store: Store) -> None:
        self._store, self._folders = store, 0

    def matching(self, folder: str, parts: list[str]) -> Iterator[str]:
        """The files in *folder* of which the path from there on matches *parts*."""
        first, rest = parts[0], parts[1:]
        if first == "**" and rest:
            yield from self.matching(folder, rest)
        for entry in self._visible(folder):
            if entry.is_dir and entry.name.startswith("__") and not first.startswith("__"):
                continue
            if first == "**":
                if entry.is_dir:
                    yield from self.matching(entry.path, parts)
                elif not rest:
                    yield entry.path
            elif fnmatchcase(entry.name, first):
                if entry.is_dir:
                    yield from self.matching(entry.path, rest or ["**"])
                elif not rest:
                    yield entry.path

    def files(self, folder: str) -> Iterator[str]:
        """All files below *folder*. An archive is one."""
        for entry in self._visible(folder):
            if entry.is_dir and not entry.is_archive:
                yield from self.files(entry.path)
            else:
                yield entry.path

    def _visible(self, folder: str) -> list[Entry]:
        """What is in a folder, nothing where there is none, less what is hidden or leads outside."""
        self._folders += 1
        if folder.count("/") > _DEEPEST or self._folders > _MOST_FOLDERS:
            raise Corrupt(
                f"{folder[:99]}: too many folders, perhaps links in a circle; splits are not shown"
            )
        try:
            entries = self._store.list(folder)
        except (NotFound, NotAFolder):
            return []
        return [entry for entry in entries if not entry.name.startswith(".") and not entry.problem]


def split_order(store: Store, names: Sequence[str]) -> list[str]:
    """The folders that a DatasetDict's `dataset_dict.json` names, in its order."""
    if "dataset_dict.json" not in names:
        return []
    try:
        blob = store.open("dataset_dict.json")
        content = json.loads(bytes(blob.read(0, min(blob.size(), _MAX_YAML))))
    except (ShardfsError, ValueError, RecursionError):
        return []
    splits = content.get("splits") if isinstance(content, dict) else None
    return [split for split in splits if isinstance(split, str)] if isinstance(splits, list) else []
