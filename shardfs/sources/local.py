"""Files on this machine."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from itertools import accumulate
from typing import TYPE_CHECKING

from shardfs.blob import may_wait
from shardfs.errors import (
    Changed,
    NotFound,
    OutsideSource,
    Unreadable,
    WouldBlock,
)
from shardfs.localfile import LocalFile, named_error
from shardfs.names import expand_braces, from_bytes, only_folder, safe_parts, to_bytes
from shardfs.stores import Entry
from shardfs.system.file_systems import FileSystems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.options import Options
    from shardfs.stores import Watch

_LINK_PROBLEMS = {
    errno.ENOENT: "is a link that leads nowhere",
    errno.ENOTDIR: "is a link that leads nowhere",
    errno.ELOOP: "is a link that leads back to itself (a loop)",
}
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def open_source(source: str, options: Options) -> tuple[LocalStore, Sequence[str]]:
    """The folder *source*; or the folder of a file, or of files by a glob or brace pattern, and their names."""
    place = os.path.abspath(source.removeprefix("file://"))
    if os.path.isdir(place):
        boundary = _hub_cache(place)
        return LocalStore(place, follow_links=options.follow_links, boundary=boundary), []
    places, missing = ([place], []) if os.path.exists(place) else _expand(place)
    if not places:
        raise NotFound(f"{source}: no such file or folder")
    folder = only_folder({os.path.dirname(found) for found in places}, source)
    # A file that the user named is what it is, wherever its link leads.
    follow = options.follow_links or any(os.path.islink(found) for found in places)
    names = [os.path.relpath(each, folder) for each in (*places, *missing)]
    return LocalStore(folder, follow_links=follow), names


def _hub_cache(place: str) -> str | None:
    """The Hub's cache folder that *place* lies in: a snapshot there is made of links to files elsewhere in the cache.

    Layout: huggingface.co/docs/huggingface_hub/guides/manage-cache.
    """
    parts = os.path.realpath(place).split("/")
    for number, part in enumerate(parts):
        snapshots = "/".join([*parts[: number + 1], "snapshots"])
        if re.fullmatch(r"(datasets|models|spaces)--.+--.+", part) and os.path.isdir(snapshots):
            return "/".join(parts[:number]) or "/"
    return None


def _expand(pattern: str) -> tuple[list[str], list[str]]:
    """The files that a pattern names: braces as in a shell (`{000..099}`, `{a,b}`), then `*`, `?` and `[...]`.

    And the names, and patterns of one part of the braces, of which there is no file.
    """
    found: dict[str, None] = {}
    missing = []
    for spelled in expand_braces(pattern):
        matches = [spelled]
        if not os.path.exists(spelled) and glob.has_magic(spelled):
            matches = sorted(glob.glob(spelled), key=to_bytes)
        files = [place for place in matches if os.path.isfile(place)]
        found.update(dict.fromkeys(files))
        if not files:
            missing.append(spelled)
    return list(found), missing


class LocalStore:
    """A folder. Symbolic links are followed while they stay inside *boundary* (by default the folder itself)."""

    def __init__(
        self, root: str, *, follow_links: bool = False, boundary: str | None = None
    ) -> None:
        self.root = os.path.realpath(root)
        self._boundary = None if follow_links else os.path.realpath(boundary or root)
        self.systems = FileSystems()
        self.url = f"file://{self.root}"

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        entries = []
        try:
            place = self._place(prefix)
            above = self._above(prefix)
            with os.scandir(to_bytes(place)) as found:
                for item in found:
                    path = f"{prefix}/{from_bytes(item.name)}" if prefix else from_bytes(item.name)
                    if entry := self._listed(path, item, above):
                        entries.append(entry)
        except OSError as error:
            raise named_error(error, prefix or self.root) from error
        entries.sort(key=lambda entry: to_bytes(entry.path))
        return entries

    def stat(self, path: str, /) -> Entry:
        try:
            entry = self._entry(path, os.stat(to_bytes(self._place(path))))
        except OSError as error:
            raise named_error(error, path) from error
        if entry is None:
            raise Unreadable(f"{path}: neither a file nor a folder")
        return entry

    def open(self, path: str, /) -> LocalFile:
        place = self._place(path)
        try:
            return LocalFile(place, path)
        except OSError as error:
            raise named_error(error, path) from error

    def watch(self, path: str, version: str, /) -> Watch | None:
        return _Watch(self, path, version).look

    def _above(self, prefix: str) -> frozenset[tuple[int, int]]:
        """Which folders (device, number) one goes through on the way into the folder *prefix*, itself included."""
        places = accumulate(filter(None, prefix.split("/")), "{}/{}".format, initial=self.root)
        found = (os.stat(to_bytes(place)) for place in places)
        return frozenset((status.st_dev, status.st_ino) for status in found)

    def _listed(
        self, path: str, item: os.DirEntry[bytes], above: frozenset[tuple[int, int]]
    ) -> Entry | None:
        """The entry of what stands in a folder, a link as what it leads to, perhaps with what is wrong with it."""
        is_link = item.is_symlink()
        try:
            status = os.stat(to_bytes(self._place(path))) if is_link else item.stat()
        except OutsideSource as error:
            problem = error.message
        except OSError as error:
            if error.errno == errno.ENOENT and not is_link:  # removed meanwhile
                return None
            problem = f"can't be looked at: {error.strerror}"
            if is_link:
                problem = _LINK_PROBLEMS.get(error.errno or 0, problem)
        else:
            problem = self._loop(status, above, is_link=is_link)
            if not problem:
                return self._entry(path, status)
        return Entry(path, 0, 0, "", problem=problem)

    def _loop(
        self, status: os.stat_result, above: frozenset[tuple[int, int]], *, is_link: bool
    ) -> str:
        """What is wrong with a folder that leads back to where one came from, so that there would be no end."""
        if not stat.S_ISDIR(status.st_mode):
            return ""
        traits = self.systems.traits(status.st_dev, self.root)
        # Without a link, it is another mount of a folder above; but numbers that don't last may be the same by chance.
        if (status.st_dev, status.st_ino) in above and (is_link or traits.numbered):
            return "leads back to a folder above itself (a loop)"
        is_other = all(status.st_dev != device for device, _ in above)
        return (
            "is a mount of shardfs, perhaps this one (a loop)" if traits.ours and is_other else ""
        )

    def _entry(self, path: str, status: os.stat_result) -> Entry | None:
        """None for what can't be read like a file: devices, sockets, pipes."""
        if stat.S_ISDIR(status.st_mode):
            return Entry(path, 0, status.st_mtime_ns, "", is_dir=True)
        if not stat.S_ISREG(status.st_mode):
            return None
        return Entry(path, status.st_size, status.st_mtime_ns, self.version(status))

    def version(self, status: os.stat_result) -> str:
        """What changes with the content of a file; with its number, where a rename could put another in its place."""
        version = f"{status.st_size:x}-{status.st_mtime_ns:x}"
        is_numbered = self.systems.traits(status.st_dev, self.root).numbered
        return f"{version}-{status.st_ino:x}" if is_numbered else version

    def _place(self, path: str) -> str:
        """Where *path* really is. Raises OutsideSource."""
        parts = safe_parts(path)
        if parts is None:
            raise OutsideSource(f"{path!r} leads outside of the source")
        place = "/".join([self.root, *parts])
        if self._boundary is None:
            return place
        real = from_bytes(os.path.realpath(to_bytes(place)))
        if real != self._boundary and not real.startswith(self._boundary.rstrip("/") + "/"):
            raise OutsideSource(f"{path!r} is a link that leads outside of the source")
        return real


class _Watch:
    """A look whether a file is still of its version; it costs a question to the kernel and little more."""

    __slots__ = ("_as_seen", "_named", "_path", "_store", "_version")

    def __init__(self, store: LocalStore, path: str, version: str) -> None:
        self._store, self._path, self._version = store, path, version
        self._named = to_bytes(
            f"{store.root}/{path}"
        )  # a link on the way may come to lead elsewhere
        # Of a file that was looked at before and lies near by, so that the next look is short.
        self._as_seen: tuple[int, int, int] | None = None

    def look(self) -> None:
        """Raise Changed where it is not; WouldBlock where asking may take long."""
        if self._as_seen is None and not may_wait():
            raise WouldBlock
        try:
            status = os.stat(self._named)
        except OSError as error:
            if error.errno in _GONE:
                raise Changed("is gone since it was mounted: mount again") from error
            raise named_error(error, self._path) from error
        now = status.st_size, status.st_mtime_ns, status.st_ino
        if now == self._as_seen:
            return
        if self._store.version(status) != self._version:
            raise Changed
        if self._store.systems.traits(status.st_dev, self._store.root).nearby:
            self._as_seen = now
