"""Records of Zenodo: https://developers.zenodo.org.

Zenodo allows 60 requests a minute and 2,000 an hour, so that requests are what is saved here: one tells all files of a
record, and what is read comes in large parts. A mount shows the version of the record that it has seen first.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, quote, unquote_to_bytes, urlencode

from shardfs.cache.once import Once
from shardfs.errors import (
    AccessDenied,
    IsAFolder,
    NotAFolder,
    NotFound,
    OutsideSource,
    Unreadable,
    UsageError,
    located,
)
from shardfs.names import (
    expand_braces,
    from_bytes,
    only_folder,
    safe_parts,
    to_bytes,
    without_secrets,
)
from shardfs.sources._ranges import RangeBlob
from shardfs.sources._web import Origin, Web, bearer
from shardfs.sources._zenodo_api import (
    File,
    Record,
    md5_of,
    parse_files,
    parse_newest,
    parse_record,
    placed,
)
from shardfs.stores import Entry, RemoteStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shardfs.options import Options

_SITE, _SANDBOX = "https://zenodo.org", "https://sandbox.zenodo.org"
# Bytes of an answer that are believed: some hundred a file.
_LARGEST = 16 << 20

# What users write, before the query. The prefix of a DOI tells the site, 10.5072 is for tests.
_RECORD = r"(?P<record>[0-9]{1,18})"
_PAGES = r"https?://(?:www\.|(?P<sandbox>sandbox\.))?zenodo\.org"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for form in (
        rf"zenodo:(?://)?{_RECORD}(?:/(?P<key>.*))?",
        rf"(?:doi:\s*|https?://(?:dx\.|www\.)?doi\.org/|{_PAGES}/doi/)?"
        rf"10\.(?:5281|(?P<tests>5072))/zenodo\.{_RECORD}/?",
        rf"{_PAGES}/records?/{_RECORD}(?:/(?P<latest>latest)|/files/(?P<key>.+))?/?",
        rf"{_PAGES}/api/records/{_RECORD}(?:/files/(?P<key>.+?)(?:/content)?)?/?",
    )
)
_EXPECTED = "zenodo:RECORD[/FILE], https://zenodo.org/records/RECORD[/files/FILE] or a DOI 10.5281/zenodo.RECORD"
# Where the content of files is today; for some months of 2023 records named places that answered 404.
_CONTENT = re.compile(r"/api/records/[!\"$->@-~]+/content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A record as a user names it.

    Attributes:
        site: where it is asked for.
        record: its id: that of a version, or the one that stands for all of them.
        latest: whether its newest version is meant, if that is another.
        key: a file or folder in it, percent-encoded, with braces for several; "" for all.
        token: of a link by which somebody shares it.
    """

    site: str
    record: str
    latest: bool = False
    key: str = ""
    token: str = field(default="", repr=False)


class _Contents(NamedTuple):
    """A version of a record, and its files by path: as they are shown, and as they are asked for."""

    record: Record
    entries: Mapping[str, Entry]
    files: Mapping[str, File]


def open_source(source: str, options: Options) -> tuple[ZenodoStore, Sequence[str]]:
    """All of a record, or the folder of what *source* names in it, and the names of that."""
    reference = parse_reference(source)
    keys = [from_bytes(unquote_to_bytes(to_bytes(key))) for key in expand_braces(reference.key)]
    paths = [safe_parts(key) for key in keys]
    if None in paths:
        raise OutsideSource(f"{without_secrets(source)}: leads outside of the record")
    folders = {"/".join(parts[:-1]) for parts in paths if parts is not None}
    store = ZenodoStore(reference, only_folder(folders, source), options)
    return store, [parts[-1] for parts in paths if parts]


def parse_reference(source: str) -> Reference:
    """What *source* names. Raises UsageError where that is no record of Zenodo."""
    place, _, query = source.partition("?")
    if "://" in place:
        place = place.partition("#")[0]
    found = next(filter(None, (form.fullmatch(place) for form in _FORMS)), None)
    if found is None:
        raise UsageError(f"{without_secrets(source)}: no record of Zenodo; expected {_EXPECTED}")
    said = found.groupdict()
    is_test = said.get("sandbox") or said.get("tests")
    return Reference(
        site=_SANDBOX if is_test else _site(),
        record=said["record"],
        latest=bool(said.get("latest")),
        key=said.get("key") or "",
        token=parse_qs(query.partition("#")[0]).get("token", [""])[0],
    )


def _site() -> str:
    """Where Zenodo is: itself, or what stands for it."""
    site = os.environ.get("SHARDFS_ZENODO_URL", "").rstrip("/") or _SITE
    if not re.match("https?://[^/]", site):
        raise UsageError("SHARDFS_ZENODO_URL is no URL of a web server")
    return site


class ZenodoStore(RemoteStore):
    """A folder of a record, in the version that it had at the first look."""

    # Bytes. Requests are what Zenodo counts.
    least = 4 << 20
    complete = True

    def __init__(self, reference: Reference, folder: str, options: Options) -> None:
        """Take the token from the environment. Raises UsageError where it is none."""
        page = f"{reference.site}/records/{reference.record}" + "/latest" * reference.latest
        self.url = without_secrets(f"{page}/{folder}".rstrip("/"))
        self._reference, self._folder, self._offline = reference, folder, options.offline
        self._web = Web(options)
        self._headers = bearer(os.environ.get("ZENODO_TOKEN", "").strip(), "ZENODO_TOKEN")
        self._known: Once[_Contents] = Once()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        contents = self._contents()
        lead = f"{prefix}/" if prefix else ""
        found: dict[str, Entry] = {}
        for path, entry in contents.entries.items():
            if path == prefix:
                raise NotAFolder(f"{self.url}/{prefix}")
            if path.startswith(lead):
                place = lead + path[len(lead) :].partition("/")[0]
                found[place] = entry if place == path else self._directory(place, contents)
        if prefix and not found:
            raise self._none(prefix)
        return [found[path] for path in sorted(found, key=to_bytes)]

    def stat(self, path: str, /) -> Entry:
        contents = self._contents()
        entry = contents.entries.get(path)
        if entry is not None and entry.problem:
            raise Unreadable(f"{self.url}/{path}: {entry.problem}")
        if entry is not None:
            return entry
        if path and not any(other.startswith(f"{path}/") for other in contents.entries):
            raise self._none(path)
        return self._directory(path, contents)

    def open(self, path: str, /) -> RangeBlob:
        entry = self.stat(path)
        if entry.is_dir:
            raise IsAFolder(path)
        return self.blob(entry)

    def whole(self) -> Sequence[Entry] | None:
        if self._offline:
            return None
        contents = self._contents()
        return [self._directory("", contents), *contents.entries.values()]

    def blob(self, entry: Entry, /) -> RangeBlob:
        """The file *entry* in the version that was seen. Raises NotFound where nothing was seen of it."""
        contents = self._known.known("")
        file = None if contents is None else contents.files.get(entry.path)
        if contents is None or file is None:
            raise self._none(entry.path)
        origin = Origin(
            url=self._content_url(file, contents.record),
            name=f"{self.url}/{entry.path}",
            headers=self._headers,
            hint=self._hint(contents.record.denied),
            md5=md5_of(entry.version),
        )
        return RangeBlob(self._web, origin, entry.size)

    def counts(self) -> Mapping[str, int]:
        return self._web.counts()

    def close(self) -> None:
        self._web.close()

    # --- the record ---

    def _contents(self) -> _Contents:
        return self._known.get("", self._ask_contents)

    def _ask_contents(self) -> _Contents:
        record = self._ask_record()
        files = record.files
        may_ask = not record.denied or self._headers or self._reference.token
        if files is None and may_ask:
            with located(self.url):
                files = parse_files(
                    self._ask(f"/{record.id}/files", record.denied), record.revision
                )
        if not files and record.denied:
            raise AccessDenied(f"{self.url}: {self._hint(record.denied)}")
        found = placed(files or (), self._folder)
        if self._folder and not found:
            raise NotFound(f"{self.url}: there is no such folder in the record")
        entries = {
            path: Entry(path, file.size, record.mtime_ns, file.version, problem=file.problem)
            for path, file in found.items()
        }
        return _Contents(record, entries, found)

    def _ask_record(self) -> Record:
        """The version that is to be shown.

        The id that stands for all versions has been answered by the newest, by a redirect to it, and by 404.
        """
        number, is_latest = self._reference.record, self._reference.latest
        try:
            return self._parsed(f"{number}/versions/latest" if is_latest else number)
        except NotFound:
            newest = self._newest()
            if not newest:
                raise
        return self._parsed(newest)

    def _newest(self) -> str:
        """The id of the newest version, as a search tells; "" where it finds none."""
        concept = self._reference.record
        with suppress(NotFound):
            if self._reference.latest:
                concept = self._parsed(concept).concept or concept
        with suppress(NotFound), located(self.url):
            return parse_newest(self._ask(f"?q=conceptrecid:{concept}"), concept)
        return ""

    def _parsed(self, path: str) -> Record:
        body = self._ask(f"/{path}")
        with located(self.url):
            return parse_record(body)

    def _ask(self, path: str, denied: str = "") -> bytes:
        """The answer of the API to a question about records."""
        origin = Origin(
            url=self._signed(f"{self._reference.site}/api/records{path}"),
            name=self.url,
            headers={"Accept": "application/json", **self._headers},
            hint=self._hint(denied),
        )
        return self._web.content(origin, _LARGEST)[1]

    def _content_url(self, file: File, record: Record) -> str:
        """Where the bytes of a file are: where its record says, if that can be."""
        site = self._reference.site
        if file.link.startswith(site) and _CONTENT.fullmatch(file.link[len(site) :]):
            return self._signed(file.link)
        key = quote(to_bytes(file.key), safe="")
        return self._signed(f"{site}/api/records/{record.id}/files/{key}/content")

    def _signed(self, url: str) -> str:
        token = self._reference.token
        return f"{url}{'&' if '?' in url else '?'}{urlencode({'token': token})}" if token else url

    def _hint(self, denied: str) -> str:
        """Why access is denied, as far as that is known, and what to do."""
        why = f"its files are {denied}; " if denied else ""
        if self._headers:
            return f"{why}the token in ZENODO_TOKEN has no access"
        return f"{why}put a token that has access into ZENODO_TOKEN"

    def _directory(self, path: str, contents: _Contents) -> Entry:
        record = contents.record
        return Entry(path, 0, record.mtime_ns, "" if path else record.revision, is_dir=True)

    def _none(self, path: str) -> NotFound:
        return NotFound(f"{self.url}/{path}: there is no such file in the record")
