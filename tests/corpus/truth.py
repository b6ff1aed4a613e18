"""Compares a tree with what a truth file says must be in it; finds files by the rules of docs/tree.md alone.

What the keys of truth files mean stands in tests/data/README.md.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shardfs.errors import NotFound, ShardfsError
from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.corpus.contents import Field, difference, digest, item_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from shardfs.tree.paths import Node
    from shardfs.tree.tree import Tree

SUFFIX = re.compile(
    r"(\.zstd\.bin|\.bin|\.mds|\.tar|\.t[gx]z|\.tzst|\.tbz2|\.parquet|\.arrows?|\.feather|\.ipc"
    r"|\.jsonl?|\.ndjson|\.[ctx]sv|\.txt|\.tfrecords?|\.zip)?(\.(gz|zst|zstd|xz|bz2|br|snappy|lz4))?$"
)
# Extensions that say the same.
SAME = [{".jpg", ".jpeg"}, {".tif", ".tiff"}, {".m4a", ".mp4"}, {".ogg", ".opus", ".oga"}]
ESCAPED = {"": "%", ".": "%2E", "..": "%2E%2E"}


def escaped(name: str) -> str:
    return ESCAPED.get(name) or name.replace("/", "%2F").replace("\0", "%00")


def cut(text: str) -> tuple[str, str]:
    dot = text.rfind(".")
    return (text[:dot], text[dot:]) if dot > 0 else (text, "")


@dataclass
class Case:
    """A dataset and its truth."""

    path: Path
    truth: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.truth = json.loads(self.path.read_text())

    @property
    def source(self) -> Path:
        return self.path.with_name(self.path.name.removesuffix(".truth.json"))

    @property
    def expect(self) -> dict[str, Any]:
        return self.truth.get("expect") or {}

    def parts(self) -> list[str]:
        """What is to be opened one by one: mostly the whole case."""
        whole = [""] if self.truth.get("files") else []
        return list(dict.fromkeys([*(s.get("source", "") for s in self.shards()), *whole])) or [""]

    def shards(self) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = self.truth["shards"]
        return shards

    def open(self, part: str = "", *, unlock: bool = True, **options: Any) -> Tree:
        settings = self.options(unlock=unlock, disk_cache=False, **options)
        return open_tree(str(self.source / part), settings)

    def options(self, *, unlock: bool = True, **options: Any) -> Options:
        """What it is to be mounted with."""
        options |= _long_options(self.truth.get("mount_options", ()))
        if unlock and "key_file" in self.truth:
            options["key_file"] = self.path.with_name(self.truth["key_file"])
            options["password"] = self.truth["password"]
        return Options(**options)


def _long_options(words: list[str]) -> dict[str, Any]:
    """`--block-size 64` and the like as fields of Options."""
    options: dict[str, Any] = {}
    rest = list(words)
    while rest:
        name = rest.pop(0).removeprefix("--").replace("-", "_")
        value = rest.pop(0) if rest and not rest[0].startswith("--") else True
        options[name] = int(value) if str(value).isdigit() else value
    return options


def problems(
    case: Case, *, unlock: bool = True, root: Callable[[str], Node] | None = None
) -> list[str]:
    """What disagrees with the truth; nothing where all is well. *root* gives another top folder of a part."""
    found: list[str] = []
    for part in case.parts():
        wanted = case.expect.get("mount", "ok") if unlock else "either"
        try:
            top = root(part) if root else case.open(part, unlock=unlock).root
        except ShardfsError as error:
            words = case.expect.get("message_mentions_any_of") or [""]
            if wanted == "ok" and not case.truth.get("accept_refusal"):
                found.append(f"refused: {error}")
            elif not any(word.lower() in str(error).lower() for word in words):
                found.append(f"refused with {str(error)!r}, which has none of {words}")
            continue
        if wanted == "refused":
            found.append("should have been refused")
        for shard in case.shards():
            if shard.get("source", "") == part:
                told = ShardCheck(case, top, shard, strict=unlock).problems()
                found += [f"{shard['name']}: {problem}" for problem in told]
        if not part:
            found += _file_problems(top, case.truth.get("files", ()))
    return found


def _file_problems(top: Node, files: list[Mapping[str, Any]]) -> Iterator[str]:
    """Files that pass through do so unchanged; those without a hash must not be readable."""
    for each in files:
        try:
            got = digest((top / each["path"]).read())
        except ShardfsError:
            got = None
        if got != each["sha256"]:
            yield f"{each['path']}: {'unreadable' if got is None else 'other bytes'}"


class ShardCheck:
    """One shard against its truth."""

    def __init__(self, case: Case, top: Node, shard: dict[str, Any], *, strict: bool) -> None:
        self._case, self._root, self._shard, self._strict = case, top, shard, strict
        rules = case.expect.get("shards", ())
        self._rule: Mapping[str, Any] = next(
            (rule for rule in rules if rule["name"] == shard["name"]), {}
        )
        self._count = shard.get("num_records") or len(shard["records"])

    def problems(self) -> list[str]:
        records = self._records()
        try:
            folder = self._folder()
            listed = [child.name for child in folder.children()]
        except NotFound:
            missing = bool(records) and not (self._may_miss() or self._shard.get("optional"))
            return ["not shown"] if missing else []
        except ShardfsError as error:
            fine = self._shard.get("expected_error") or not any(
                self._verdict(record) == "ok" for record in records
            )
            return [] if fine else [f"cannot be listed: {error}"]
        if self._shard.get("expected_error") and not records:
            return [] if not listed and self._shard.get("optional") else ["should be an error"]
        found = self._listing_problems(listed, records)
        for record in records:
            problem = RecordCheck(folder, record, self._count, self._verdict(record)).problem()
            found += [f"record {record['key']!r}: {problem}"] if problem else []
        return found

    def _may_miss(self) -> bool:
        return bool(self._case.expect.get("absent_ok")) or bool(self._shard.get("expected_error"))

    def _folder(self) -> Node:
        if "at" in self._shard:
            return self._root / str(self._shard["at"])
        above, _, base = self._shard["name"].rpartition("/")
        stem = SUFFIX.sub("", base) or base
        name = self._raw_twin(stem) or stem
        return self._root / (f"{above}/{name}" if above else name)

    def _raw_twin(self, stem: str) -> str:
        """The full file name where two shards would get one name."""
        above = self._shard["name"].rpartition("/")[0]
        all_names = (shard["name"].rpartition("/") for shard in self._case.shards())
        stems = Counter(SUFFIX.sub("", base) for folder, _, base in all_names if folder == above)
        return self._shard["name"].rpartition("/")[2] if stems[stem] > 1 else ""

    def _records(self) -> list[dict[str, Any]]:
        """The records by the folder that they stand in."""
        if not self._shard.get("plain"):
            records: list[dict[str, Any]] = self._shard["records"]
            return records
        folders: dict[str, dict[str, Any]] = {}
        for member in self._shard[
            "records"
        ]:  # of an archive whose members stand under their own paths
            above, _, base = member["key"].rpartition("/")
            record = folders.setdefault(above, {"key": above, "fields": [], "open": True})
            record["fields"].append({**member["fields"][0], "member": base})
        return list(folders.values())

    def _verdict(self, record: Mapping[str, Any]) -> str:
        if not self._strict:
            return "either"
        for word in ("fail", "either"):
            if self._rule.get(word) == "all" or record["key"] in (self._rule.get(word) or ()):
                return word
        return "fail" if record.get("damaged") else "ok"

    def _listing_problems(self, listed: list[str], records: list[dict[str, Any]]) -> list[str]:
        found = [f"{name!r} twice" for name, times in Counter(listed).items() if times > 1]
        ghosts = self._case.expect.get("phantom_records_must_not_exist", {})
        for number in ghosts.get(self._shard["name"], ()):
            found += [f"record {number} does not exist"] if f"{number:06d}" in listed else []
        numbered = records and all(isinstance(record["key"], int) for record in records)
        unsure = self._rule.get("either") or self._may_miss() or self._shard.get("damaged_after")
        if numbered and not unsure and len(listed) != self._count:
            found.append(f"{len(listed)} records listed instead of {self._count}")
        if numbered and listed != sorted(listed):
            found.append("not in storage order")
        return found


class RecordCheck:
    """One record: `ok`: all is right. `either`: right or an error, each. `fail`: an error, and nothing wrong."""

    def __init__(self, shard: Node, record: dict[str, Any], count: int, verdict: str) -> None:
        self._shard, self._record, self._verdict = shard, record, verdict
        self._path = self._folder_path(count)
        self._failed: ShardfsError | None = None

    def _folder_path(self, count: int) -> str:
        key = _raw(self._record, "key")
        is_key = any("member" in each for each in self._record["fields"])
        if re.fullmatch(r"0|[1-9]\d*", key) and not is_key:
            return f"{int(key):0{max(6, len(str(count - 1)))}d}"
        return "/".join(escaped(part) for part in key.split("/") if part not in ("", "."))

    def problem(self) -> str:
        wrong = ""
        try:
            folder = self._reach()
            names = [child.name for child in folder.children() if not child.is_dir]
            for each in self._record["fields"]:
                wrong = wrong or self._field_problem(folder, names, each)
            if names and self._verdict == "ok" and not self._record.get("open"):
                wrong = wrong or f"files of no field: {names[:3]}"
        except ShardfsError as error:
            self._failed = error
        if self._failed and self._verdict == "ok":
            optional = all(each.get("optional") for each in self._record["fields"])
            return wrong or ("" if optional else f"cannot be read: {self._failed}")
        if self._verdict == "fail" and not self._failed:
            return wrong or "should be an error"
        return wrong

    def _reach(self) -> Node:
        """The folder of the record; names that were cut are found by what is left of them."""
        node = self._shard
        for part in self._path.split("/") if self._path else ():
            if len(part.encode("utf-8", "surrogateescape")) > 255:
                part = _shortened([child.name for child in node.children()], part) or part
            node = node / part
        return node

    def _field_problem(self, folder: Node, names: list[str], each: Field) -> str:
        label = f"field {each['name']!r}"
        if "parts" in each:
            return self._items_problem(folder, names, each)
        name = _file_of(each, names)
        if name is not None:
            names.remove(name)
        if any(each.get(word) for word in ("null", "missing", "null_bytes")):
            return f"{label}: {name!r} stands for nothing" if name else ""
        if name is None:
            return "" if each.get("optional") or self._verdict != "ok" else f"{label}: no file"
        must_fail = bool(each.get("damaged") or each.get("read_error"))
        try:
            data = bytes((folder / name).read())
        except ShardfsError as error:
            if not must_fail:
                self._failed = error
            return ""
        if must_fail:
            raw = name.endswith(".bin") and digest(data) == each.get("stored_sha256")
            return "" if raw else f"{label}: should be an error"
        if (folder / name).size != len(data):
            return f"{label}: {len(data)} bytes in a file of {(folder / name).size}"
        extension = cut(name)[1]
        if "member" not in each and not _good_extension(extension, each, name):
            return f"{label}: is {name!r}, not {_extensions(each)}"
        wrong = difference(data, extension, each)
        return f"{label}: {wrong}" if wrong else ""

    def _items_problem(self, folder: Node, names: list[str], each: Field) -> str:
        stem = escaped(_stems(each)[0])
        for number, item in enumerate(each["parts"]):
            start = f"{stem}.{number}."
            name = next(
                (n for n in names if n.startswith(start) and "." not in n[len(start) :]), ""
            )
            if not name:
                return (
                    f"field {each['name']!r}: no file for item {number}"
                    if self._verdict == "ok"
                    else ""
                )
            names.remove(name)
            try:
                wrong = item_difference(bytes((folder / name).read()), item)
            except ShardfsError as error:
                self._failed, wrong = error, ""
            if wrong or not _good_extension(cut(name)[1], each, name):
                return f"{name!r}: {wrong or 'another extension'}"
        return ""


def _raw(entry: Mapping[str, Any], key: str) -> str:
    coded = entry.get(f"{key}_b64")
    return base64.b64decode(coded).decode("utf-8", "surrogateescape") if coded else str(entry[key])


def _stems(each: Field) -> list[str]:
    path = each.get("path")
    joined = ".".join(map(str, path)) or "data" if isinstance(path, list) else str(each["name"])
    return list(dict.fromkeys([joined, str(each["name"])]))


def _extensions(each: Field) -> list[str]:
    found: list[str] = [*(each.get("ext_any") or each.get("ext_ok") or ())]
    found += [each["ext"]] if each.get("ext") is not None else []
    return [*found, *([".nii.gz"] if ".gz" in found else [])]


def _good_extension(extension: str, each: Field, name: str) -> bool:
    good = _extensions(each)
    same = any(extension in group and set(good) & group for group in SAME)
    return not good or same or any(name.endswith(each) for each in good)


def _file_of(each: Field, names: list[str]) -> str | None:
    """The first file that may show a field, of those which no field before it has taken."""
    if "member" in each:
        stem, extension = cut(escaped(_raw(each, "member").rstrip("/").rpartition("/")[2]))
        return _marked(names, stem, [extension])
    extensions = _extensions(each) or [".bin"]
    extensions = [e for e in extensions if e] + [""] * ("" in extensions)
    for stem in map(escaped, _stems(each)):
        plain = [stem.removesuffix(e) if e and stem != e else stem for e in extensions]
        for base, extension in zip(plain, extensions, strict=True):
            name = _marked(names, base, [extension])
            if name is not None:
                return name
        beginning = (n for n in names if n.startswith(f"{stem}.") and "." not in n[len(stem) + 1 :])
        name = next(beginning, None)
        if name is not None:
            return name
    return None


def _marked(names: list[str], stem: str, extensions: list[str]) -> str | None:
    """`stem.ext`, else `stem~1.ext` and so on; else one that was cut."""
    for extension in extensions:
        for mark in ("", *(f"~{number}" for number in range(1, len(names) + 1))):
            if f"{stem}{mark}{extension}" in names:
                return f"{stem}{mark}{extension}"
        found = _shortened(names, stem, extension)
        if found:
            return found
    return None


def _shortened(names: list[str], stem: str, extension: str = "") -> str | None:
    if len((stem + extension).encode("utf-8", "surrogateescape")) <= 255:
        return None
    form = re.compile(rf"(.*)~[0-9a-f]{{8}}(~\d+)?{re.escape(extension)}", re.DOTALL)
    matches = ((name, form.fullmatch(name)) for name in names)
    return next((name for name, m in matches if m and m[1] and stem.startswith(m[1])), None)
