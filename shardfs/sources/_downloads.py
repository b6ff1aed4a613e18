"""What the libraries of Hugging Face have downloaded to this machine.

The layout: huggingface.co/docs/huggingface_hub/guides/manage-cache.
`datasets--NAMESPACE--NAME/` with `refs/REVISION` (a file that names a commit), `snapshots/COMMIT/PATH` (a link to
`blobs/DIGEST`, which may be a link itself, or the file where links can't be) and `trees/COMMIT.json` (all files of
the commit, of which not all need be there).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name

from shardfs.localfile import LocalFile
from shardfs.names import safe_parts
from shardfs.sources._hub_api import State
from shardfs.sources._values import is_path, size_of
from shardfs.stores import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.sources._hub_api import Place


class Downloads:
    """The downloaded files of a repository. Buckets are not kept there."""

    def __init__(self, place: Place) -> None:
        self._name, self._type = place.name, place.kind.removesuffix("s")
        self._root = Path(constants.HF_HUB_CACHE)
        self._folder = self._root / repo_folder_name(repo_id=self._name, repo_type=self._type)
        self._revision, self._lead = place.revision or "main", place.lead
        self._is_bucket = place.is_bucket

    def state(self) -> State | None:
        """The commit that was downloaded last of the revision, if there is one."""
        for commit in (self._named_commit(), self._revision):
            snapshot = self._folder / "snapshots" / commit
            if commit and safe_parts(commit) == [commit] and snapshot.is_dir():
                return State(commit, snapshot.stat().st_mtime_ns)
        return None

    def entries(self, state: State) -> list[Entry]:
        """All files of a commit as far as they are known: those that are there, or all if somebody has listed them.

        Only those in the folder of the place, by their paths in there.
        """
        tree = self._folder / "trees" / f"{state.commit}.json"
        try:
            files = json.loads(tree.read_bytes())["files"]
            known = [_entry(path, facts, state.mtime_ns) for path, facts in files.items()]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            known = list(self._downloaded(state))
        here = [entry for entry in known if entry.path.startswith(self._lead)]
        return [entry.at(entry.path.removeprefix(self._lead)) for entry in here]

    def open(self, commit: str, path: str, entry: Entry) -> Blob | None:
        """The file *path* of a commit if it is there and is *entry*."""
        if self._is_bucket or not self._folder.is_dir():
            return None
        try:
            found = try_to_load_from_cache(
                self._name, path, self._root, revision=commit, repo_type=self._type
            )
            if not isinstance(found, str) or _digest(found) not in ("", entry.version):
                return None
            # Links lead to blobs, also those that repositories share, but not out of the cache.
            if not Path(found).resolve().is_relative_to(self._root.resolve()):
                return None
            file = LocalFile(found, path)
        except (OSError, ValueError):
            return None
        return file if file.size() == entry.size else None

    def _named_commit(self) -> str:
        parts = safe_parts(self._revision)
        try:
            return self._folder.joinpath("refs", *(parts or ())).read_text().strip()
        except (OSError, ValueError):
            return ""

    def _downloaded(self, state: State) -> Iterator[Entry]:
        snapshot = self._folder / "snapshots" / state.commit
        for above, _, names in os.walk(snapshot):
            for name in names:
                file = Path(above, name)
                try:
                    status = file.stat()
                except OSError:  # a link to what was deleted
                    continue
                version = _digest(file) or f"{status.st_size:x}-{status.st_mtime_ns:x}"
                path = file.relative_to(snapshot).as_posix()
                yield Entry(path, status.st_size, state.mtime_ns, version)


def _digest(file: str | Path) -> str:
    """What the link *file* says of the content, "" where it is none."""
    return Path(os.readlink(file)).name if os.path.islink(file) else ""


def _entry(path: str, facts: Any, mtime_ns: int) -> Entry:
    """An entry of a tree file. Raises KeyError, TypeError, ValueError where it is none."""
    size, version = size_of(facts["size"]), facts.get("lfs_sha256") or facts["blob_id"]
    if size is None or not isinstance(version, str) or not is_path(path):
        raise ValueError(path)
    return Entry(path, size, mtime_ns, version)
