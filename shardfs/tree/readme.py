"""What the YAML of a README declares: configs, their files, and how these are to be read.

It is checked as `datasets` 5.2 checks it (utils/metadata.py), but for that a config that is wrong is left out alone,
with a word, where the library refuses all of them.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardfs.errors import Corrupt
from shardfs.model import Parameters
from shardfs.names import safe_parts
from shardfs.tree.hub_rules import SPLIT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.model import Services
    from shardfs.stores import Store

README = "README.md"
OVERLAY = ".huggingface.yaml"

# A README is text for people; more than this in front of it is not a declaration.
_MAX_YAML = 4 << 20
# What an anchor names may stand in many places, so that a short text can declare a lot. Guesses.
_MAX_ALIASES, _MAX_MERGED, _MAX_ITEMS = 1000, 10_000, 500_000

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
# About as many as there are: some of these may stand in quoted text.
_ALIAS = re.compile(r"(?:^|[\s,\[{])\*[^\s,\]}*]", re.MULTILINE)
_BAD_IN_NAMES = re.compile(r"[<>:/\\|?*]")
# Keys of a config that say nothing of how files are read.
_OWN = frozenset({"config_name", "data_files", "data_dir", "default", "description", "version"})

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 60, 60


_WRONG_TAGS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class Config:
    """A config that is declared.

    Attributes:
        folder: the one that its files lie in, "" for the top.
        data_files: (split, patterns) in order; None where the names of files divide them into splits.
        parameters: how the files are to be read.
    """

    name: str
    folder: str
    data_files: Sequence[tuple[str, Sequence[str]]] | None
    parameters: Parameters


class _WrongError(Exception):
    """Something in a config is not as it must be."""


def declared_configs(store: Store, names: Sequence[str], services: Services) -> list[Config]:
    """The configs that the YAML among the files *names* at the top of *store* declares, the default one first.

    What is wrong with one of them is reported, and it is left out. Raises Corrupt where nothing can be read.
    """
    for name in (OVERLAY, README):  # the overlay wins
        declared = _yaml(store, name).get("configs") if name in names else None
        if declared is None or declared == []:
            continue
        if not isinstance(declared, list):
            raise Corrupt(f"{name}: configs must be a list, not {_short.repr(declared)}")
        return _Reader(name, services).configs(declared)
    return []


class _Reader:
    """Reads the configs of the file *name*."""

    def __init__(self, name: str, services: Services) -> None:
        self._name, self._services = name, services
        self._items = 0

    def configs(self, declared: Sequence[object]) -> list[Config]:
        found: dict[str, Config] = {}
        defaults: list[str] = []
        for number, each in enumerate(declared, 1):
            title = each.get("config_name") if isinstance(each, dict) else None
            place = f"config {title[:99]!r}" if isinstance(title, str) else f"config {number}"
            try:
                config = self._config(each, place)
            except _WrongError as error:
                self._report(f"{place}: {error}; its splits are not shown")
                continue
            if config.name in found:  # as for `datasets`
                self._report(f"{place} is declared twice: the later one counts")
            found[config.name] = config
            is_default = isinstance(each, dict) and each.get("default")
            if (is_default or config.name == "default") and config.name not in defaults:
                defaults.append(config.name)
        if len(defaults) > 1:  # `datasets` refuses them all
            have = " and ".join(repr(name[:99]) for name in defaults)
            self._report(f"{have} are each the default config")
        elif defaults:
            return [found.pop(defaults[0]), *found.values()]
        return list(found.values())

    def _config(self, declared: object, place: str) -> Config:
        if not isinstance(declared, dict):
            raise _WrongError(f"must have keys and values, not be {_short.repr(declared)}")
        name = declared.get("config_name")
        if not isinstance(name, str) or not name:
            raise _WrongError("has no config_name that is text")
        if _BAD_IN_NAMES.search(name):
            raise _WrongError(r"a name may not have any of < > : / \ | ? * in it")
        folder = declared.get("data_dir")
        if not isinstance(folder, str | None):
            raise _WrongError(f"data_dir must be text, not {_short.repr(folder)}")
        if folder and safe_parts(folder) is None:
            raise _WrongError("its data_dir leads out of the source")
        files = declared.get("data_files")
        splits = None if files is None else list(self._data_files(files, place))
        values = {_key(key): value for key, value in declared.items() if key not in _OWN}
        parameters = Parameters(f"{self._name}: {place}", values)
        return Config(name, folder or "", splits, parameters)

    def _data_files(self, declared: object, place: str) -> Iterator[tuple[str, list[str]]]:
        """(split, patterns): a pattern, a list of them, or a list of splits with theirs."""
        if isinstance(declared, dict):  # the library takes this where it doesn't come from YAML
            declared = [{"split": split, "path": path} for split, path in declared.items()]
        items: list[Any] = declared if isinstance(declared, list) else [declared]
        self._take(len(items))
        if all(isinstance(item, str) for item in items):
            yield "train", items
            return
        known = set()
        for item in items:
            if not isinstance(item, dict):
                raise _WrongError(
                    "data_files must be a path, a list of paths or a list of items with"
                    f" split and path, not {_short.repr(item)}"
                )
            split = item.get("split")
            if split is None:
                raise _WrongError(f"an item of data_files has no split: {_short.repr(item)}")
            if not isinstance(split, str) or not SPLIT_NAME.fullmatch(split):
                raise _WrongError(
                    f"data_files: a split can't be called {_short.repr(split)}:"
                    " letters, digits, _ and dots between them"
                )
            if split in known:
                raise _WrongError(f"data_files: the split {split[:99]!r} is declared twice")
            known.add(split)
            for key in item.keys() - {"split", "path"}:
                self._report(f"{place}: data_files: the key {_short.repr(key)} is not known")
            yield split, self._patterns(split, item.get("path"))

    def _patterns(self, split: str, path: object) -> list[str]:
        paths: list[Any] = path if isinstance(path, list) else [path]
        self._take(len(paths))
        for pattern in paths:
            if not isinstance(pattern, str):
                raise _WrongError(
                    f"data_files: the path of the split {split[:99]!r} must be text or a list"
                    f" of it, not {_short.repr(pattern)}"
                )
        return paths

    def _take(self, count: int) -> None:
        self._items += count
        if self._items > _MAX_ITEMS:
            raise Corrupt(f"{self._name}: declares more than {_MAX_ITEMS} files and patterns")

    def _report(self, what: str) -> None:
        self._services.report(Corrupt(f"{self._name}: {what}"))


def _key(key: object) -> str:
    return key if isinstance(key, str) else _short.repr(key)


def _yaml(store: Store, name: str) -> Mapping[str, Any]:
    """The YAML of a file: all of it, or of Markdown what stands between two `---` lines at its beginning."""
    blob = store.open(name)
    text = bytes(blob.read(0, min(blob.size(), _MAX_YAML))).decode("utf-8", "replace")
    if name == README:
        front = _FRONT.match(text)
        if front is None and text[:4].startswith(("---", "\ufeff---")) and blob.size() > _MAX_YAML:
            raise Corrupt(f"{name}: YAML of more than {_MAX_YAML >> 20} MiB is not read")
        text = front[1] if front else ""
    content = _loaded(name, text)
    return content if isinstance(content, dict) else {}


def _loaded(name: str, text: str) -> object:
    """What a text in YAML stands for. Raises Corrupt."""
    import yaml

    if len(_ALIAS.findall(text)) > _MAX_ALIASES:
        raise Corrupt(f"{name}: its YAML uses anchors more than {_MAX_ALIASES} times")
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # that of libyaml is ten times faster

    class Loader(base):  # type: ignore[misc]
        """Plain values only, and no mapping that grows by what is merged into it again and again."""

        def flatten_mapping(self, node: Any) -> None:
            own = len(node.value)
            super().flatten_mapping(node)
            if len(node.value) > own + _MAX_MERGED:
                raise yaml.YAMLError

    try:
        return yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" in line {mark.line + 2 if name == README else mark.line + 1}" if mark else ""
        raise Corrupt(f"{name}: its YAML can't be read{line}: correct it there") from error
    # By far not all that is wrong is a YAMLError: `!!int x`, `!!timestamp x`, `!!bool x`, a date of month 13.
    except (yaml.YAMLError, *_WRONG_TAGS) as error:
        raise Corrupt(f"{name}: its YAML can't be read") from error
