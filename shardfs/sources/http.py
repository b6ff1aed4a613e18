"""Files on web servers: one by its URL, many by braces in it; all that an index names by the URL of its folder."""

from __future__ import annotations

import base64
import netrc
import os
import posixpath
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from shardfs.cache.once import Once
from shardfs.errors import IsAFolder, NotFound, OutsideSource, ShardfsError, UsageError
from shardfs.names import expand_braces, from_bytes, safe_parts, to_bytes, without_secrets
from shardfs.registry import ARCHIVES, FORMATS
from shardfs.sources._ranges import RangeBlob, probe
from shardfs.sources._web import Origin, Web
from shardfs.stores import Entry, RemoteStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.options import Options

# What stands for a folder, since servers list none: an index of LitData or MosaicML.
_INDEX = "index.json"
# Files of which the end is read first.
_FROM_END = tuple(
    suffix
    for row in (*FORMATS, *ARCHIVES)
    if row.name in ("parquet", "zip")
    for suffix in row.suffixes
)
# Beginnings that are held until they are read: 4 MiB. Most are read at once.
_MOST_BEGUN = 16
# Named files up to so many are all asked for, to tell which are not there: no more than a second's work. A guess.
_MOST_ASKED = 64
# Characters that mean themselves in a path (RFC 3986, 3.3), besides those that `quote` never touches.
_PLAIN = "/!$&'()*+,;=:@"
_HINT = "a user and a password can be given in ~/.netrc"


def open_source(source: str, options: Options) -> tuple[HttpStore, Sequence[str]]:
    """The folder of the files that *source* names, and their names."""
    urls = [urlsplit(url.partition("#")[0]) for url in expand_braces(source)]
    first = urls[0]
    if not first.hostname:
        raise UsageError(f"{without_secrets(source)}: no host in it")
    if any((url.scheme, url.netloc) != (first.scheme, first.netloc) for url in urls):
        raise UsageError(f"{without_secrets(source)}: names files on several hosts")
    paths = [
        url.path + _INDEX if url.path.endswith("/") else url.path or f"/{_INDEX}" for url in urls
    ]
    above = posixpath.commonpath([posixpath.dirname(path) for path in paths]).rstrip("/")
    user, _, host = first.netloc.rpartition("@")
    site = f"{first.scheme}://{host.lower()}"
    files = {
        "/".join(map(_name, path[len(above) + 1 :].split("/"))): _encoded(site + path, url.query)
        for path, url in zip(paths, urls, strict=True)
    }
    headers = _authorization(user, first.hostname)
    store = HttpStore(Web(options), _encoded(site + above), files, headers, options.connections)
    names = list(dict.fromkeys(path.partition("/")[0] for path in files))
    return store, [] if names == [_INDEX] else names


def _name(part: str) -> str:
    """A part of a URL's path as a file name; as it is where its meaning can't be one."""
    name = from_bytes(unquote_to_bytes(to_bytes(part)))
    return name if safe_parts(name) == [name] else part


def _encoded(url: str, query: str = "") -> str:
    """*url* with what must not stand in one encoded, what is encoded already left alone."""
    found = re.split(r"(%[0-9A-Fa-f]{2})", url)
    parts = [part if part.startswith("%") else quote(to_bytes(part), safe=_PLAIN) for part in found]
    return "".join(parts) + (f"?{query}" if query else "")


def _authorization(user: str, host: str) -> dict[str, str]:
    """The header that names the user, from the URL or else ~/.netrc."""
    name, _, password = map(unquote, user.partition(":"))
    if not user:
        try:
            known = netrc.netrc(os.environ.get("NETRC")).authenticators(host)
        except (OSError, netrc.NetrcParseError):
            known = None
        if known is None:
            return {}
        name, _, password = known
    token = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


class HttpStore(RemoteStore):
    """The files below a URL. Only those are listed that were named, the others can be asked for."""

    # Bytes: at 50 ms a request, fewer save nothing; what a picture mostly has.
    least = 256 << 10

    def __init__(
        self,
        web: Web,
        url: str,
        files: Mapping[str, str],
        headers: Mapping[str, str],
        connections: int = 8,
    ) -> None:
        """Take *files*, URLs by their paths in the store, for those that are there; *headers* go to their host."""
        self.url = url
        self._web, self._files, self._headers = web, dict(files), headers
        self._folders = {"", *(above for path in files for above in _above(path))}
        self._connections = connections
        self._seen: Once[Mapping[str, Entry | None]] = Once()
        # The beginnings of files that came along when these were asked for, for whoever reads them first.
        self._begun: dict[Entry, bytes] = {}
        self._recalled: set[str] = set()
        self._lock = threading.Lock()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        """The named files that are there. If they are many, only the first of all is asked for."""
        if prefix not in self._folders:
            raise NotFound(f"{self.url}/{prefix}")
        lead = f"{prefix}/" if prefix else ""
        names = {
            path[len(lead) :].partition("/")[0] for path in self._files if path.startswith(lead)
        }
        found = (self._listed(lead + name) for name in sorted(names, key=to_bytes))
        return [entry for entry in found if entry is not None]

    def stat(self, path: str, /) -> Entry:
        listed = self._listed(path) if path in self._folders or path in self._files else None
        if listed is not None and (listed.is_dir or listed.version):
            return listed
        comes = path not in self._recalled and not path.lower().endswith(_FROM_END)
        return self._ask(path, self.least if comes else 1)

    def open(self, path: str, /) -> RangeBlob:
        entry = self.stat(path)
        if entry.is_dir:
            raise IsAFolder(path)
        return self.blob(entry)

    def recall(self, path: str, /) -> None:
        self._recalled.add(path)

    def blob(self, entry: Entry, /) -> RangeBlob:
        """The file *entry*, in the version that was seen."""
        with self._lock:
            begin = self._begun.pop(entry, b"")
        return RangeBlob(self._web, self._origin(entry.path), entry.size, entry.version, begin)

    def counts(self) -> Mapping[str, int]:
        return self._web.counts()

    def close(self) -> None:
        self._web.close()

    def _listed(self, path: str) -> Entry | None:
        """A folder, or a file, None where there is none; of one that was not asked for hardly anything is known."""
        seen = self._seen.get("", self._look)
        if path in seen:
            return seen[path]
        # It is as old as the first one, we say.
        mtime_ns = next(entry.mtime_ns for entry in seen.values() if entry is not None)
        return Entry(path, 0, mtime_ns, "", is_dir=path in self._folders)

    def _look(self) -> Mapping[str, Entry | None]:
        """What was asked for: all files if these are few, else the first that is there. Raises NotFound."""
        seen: dict[str, Entry | None] = {}
        if 1 < len(self._files) <= _MOST_ASKED:
            with ThreadPoolExecutor(self._connections) as pool:
                answers = pool.map(self._glance, self._files)
        else:
            answers = map(self._glance, islice(self._files, _MOST_ASKED))
        first: Entry | None = None
        missing: NotFound | None = None
        for path, answer in zip(self._files, answers, strict=False):
            if isinstance(answer, NotFound):
                seen[path], missing = None, missing or answer
            elif isinstance(answer, ShardfsError):
                if first is None:
                    raise answer
            else:
                seen[path], first = answer, first or answer
                if len(self._files) > _MOST_ASKED:
                    break
        if first is None and missing is not None:
            raise missing
        return seen

    def _glance(self, path: str) -> Entry | ShardfsError:
        # An index is read at once, of shards perhaps none.
        comes = "" not in self._recalled and path.rpartition("/")[2] == _INDEX
        try:
            return self._ask(path, self.least if comes else 1)
        except ShardfsError as error:
            return error

    def _ask(self, path: str, length: int) -> Entry:
        """The entry of a file, of which the first *length* bytes come along."""
        facts = probe(self._web, self._origin(path), length)
        is_weak = not facts.validator.endswith('"') and "?" in self._files.get(path, "")
        version = "" if is_weak else facts.validator  # the query may choose the file
        entry = Entry(path, facts.size, facts.mtime_ns, version)
        if facts.begin:
            with self._lock:
                self._begun[entry] = facts.begin
                if len(self._begun) > _MOST_BEGUN:
                    del self._begun[next(iter(self._begun))]
        return entry

    def _origin(self, path: str) -> Origin:
        name = f"{self.url}/{path}"
        if safe_parts(path) is None:
            raise OutsideSource(f"{path!r} leads outside of the source")
        url = self._files.get(path) or f"{self.url}/{quote(to_bytes(path), safe=_PLAIN)}"
        return Origin(url=url, name=name, headers=self._headers, hint=_HINT)


def _above(path: str) -> Sequence[str]:
    """The folders that *path* lies in."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
