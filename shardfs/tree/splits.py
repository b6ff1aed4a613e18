"""The configs and splits that a source declares in the YAML of its README, as the Hugging Face Hub reads it.

Rules: huggingface.co/docs/hub/datasets-manual-configuration, checked against the library `datasets` 5.2.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt, NotAFolder, NotFound, ShardfsError
from shardfs.names import safe_parts, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.model import Services, Store

README = "README.md"
OVERLAY = ".huggingface.yaml"

# A README is text for people; more than this in front of it is not a declaration.
_MAX_YAML = 4 << 20


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a config, and the paths of its files in order."""

    config: str
    name: str
    files: tuple[str, ...]

    def folder(self, *, alone: bool) -> tuple[str, ...]:
        """Where it stands in the tree; *alone*: its config is the only one, which then is no folder."""
        return (self.name,) if alone else (self.config, self.name)


def declared_splits(store: Store, names: Sequence[str], services: Services) -> list[Split]:
    """The splits that the files of *store* declare, the default config first; none where they declare none.

    Raises:
        NotFound: the user asked for a config or split that is not among them.
    """
    options = services.options
    if not options.splits:
        return []
    splits: list[Split] = []
    try:
        for config in _configs(store, names):
            splits += _splits(store, config)
    except Corrupt as error:
        services.report(error)
        return []
    if not splits:
        return []
    chosen = [
        split
        for split in splits
        if options.config in ("", split.config) and options.split in ("", split.name)
    ]
    if not chosen:
        have = ", ".join(f"{split.config}/{split.name}" for split in splits)
        raise NotFound(
            f"no config {options.config!r} with split {options.split!r}; there are {have}"
        )
    return chosen


def _configs(store: Store, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The configs of the YAML that have files of their own, the default one first."""
    configs: list[Mapping[str, Any]] = []
    for name in (OVERLAY, README):  # the overlay wins
        if name in names and not configs:
            found = _yaml(store, name).get("configs")
            if isinstance(found, list):
                configs = [c for c in found if isinstance(c, dict) and _has_files(c)]
    is_default = [c.get("default") is True or c.get("config_name") == "default" for c in configs]
    return sorted(configs, key=lambda c: not is_default[configs.index(c)])


def _has_files(config: Mapping[str, Any]) -> bool:
    name = config.get("config_name")
    return isinstance(name, str) and not re.search(r"[<>:/\\|?*]", name) and "data_files" in config


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
        raise Corrupt(f"{name}: its YAML can't be read ({reason}); splits are not shown") from error
    return content if isinstance(content, dict) else {}


def _splits(store: Store, config: Mapping[str, Any]) -> Iterator[Split]:
    base = config.get("data_dir")
    base = f"{base}/" if isinstance(base, str) and base else ""
    for split, patterns in _data_files(config["data_files"]):
        files = [path for pattern in patterns for path in matching(store, base + pattern)]
        yield Split(config["config_name"], split, tuple(dict.fromkeys(files)))


def _data_files(declared: object) -> Iterator[tuple[str, list[str]]]:
    """(split, patterns) of the key `data_files`: a pattern, a list of them, or a list of splits with theirs."""
    if isinstance(declared, dict):
        declared = [{"split": split, "path": path} for split, path in declared.items()]
    items: list[Any] = declared if isinstance(declared, list) else [declared]
    if all(isinstance(item, str) for item in items):
        yield "train", items
        return
    for item in items:
        if isinstance(item, dict) and re.fullmatch(r"\w+(\.\w+)*", str(item.get("split"))):
            path = item.get("path")
            patterns = path if isinstance(path, list) else [path]
            yield str(item["split"]), [pattern for pattern in patterns if isinstance(pattern, str)]


def matching(store: Store, pattern: str) -> list[str]:
    """The files that a glob pattern names, sorted; a folder stands for all files below it.

    `*` stays within a folder, `**` does not. Hidden files and what leads outside is never matched.
    """
    parts = safe_parts(pattern)
    if not parts:
        return []
    return sorted(set(_walk(store, "", parts)), key=to_bytes)


def _walk(store: Store, folder: str, parts: list[str]) -> Iterator[str]:
    first, rest = parts[0], parts[1:]
    if first == "**" and rest:
        yield from _walk(store, folder, rest)
    try:
        entries = store.list(folder)
    except (NotFound, NotAFolder):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.problem:
            continue
        if first == "**":
            if entry.is_dir:
                yield from _walk(store, entry.path, parts)
            elif not rest:
                yield entry.path
        elif fnmatchcase(entry.name, first):
            if entry.is_dir:
                yield from _walk(store, entry.path, rest or ["**"])
            elif not rest:
                yield entry.path


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
