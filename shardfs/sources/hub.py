"""Repositories and buckets on the Hugging Face Hub.

Its own library, huggingface_hub, reads what the user wrote, knows the token and what was downloaded before. Requests
are made as to any web server: the library checks no answer to a Range request, has the Hub resolve a file before each
of them, and can wait for minutes that nobody can cut short.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from huggingface_hub import constants, get_token
from huggingface_hub.errors import HfUriError
from huggingface_hub.utils import parse_hf_uri

from shardfs.cache.once import Once
from shardfs.errors import IsAFolder, NotFound, OutsideSource, TooLarge, UsageError
from shardfs.names import expand_braces, only_folder, safe_parts, to_bytes, without_secrets
from shardfs.sources._downloads import Downloads
from shardfs.sources._hub_api import Place, State, next_page, parse_entries, parse_state
from shardfs.sources._ranges import RangeBlob
from shardfs.sources._web import Origin, Web, bearer
from shardfs.stores import Entry, RemoteStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.options import Options

# Pages of everything that are asked for before folders are listed one by one instead: 1,000 entries each.
_FEW_PAGES = 4
# Pages of one listing, and bytes of one answer, that are believed.
_MOST_PAGES, _LARGEST = 10_000, 64 << 20
# A dataset as the Hub's pages show it, by config and split.
_VIEWER = re.compile(r"(https?://[^/]+/datasets/[^/]+/[^/]+)/viewer(/.*)?")


def open_source(source: str, options: Options) -> tuple[HubStore, Sequence[str]]:
    """All of a repository or bucket, or the folder of what *source* names in there, and the names of that."""
    found = [_place(url, options.revision) for url in expand_braces(source)]
    place = only_folder({place for place, _ in found}, source)
    return HubStore(place, options), [name for _, name in found if name]


def _place(source: str, revision: str) -> tuple[Place, str]:
    """The folder of what *source* names, and its name there, "" for all of it."""
    if not source.startswith("hf://"):  # there, a question mark is a part of a name
        source = without_secrets(source).replace("://www.", "://", 1)
    viewed = _VIEWER.fullmatch(source)
    try:
        uri = parse_hf_uri(viewed[1] if viewed else source, endpoint=constants.ENDPOINT)
    except HfUriError as error:
        said = str(error)
        raise UsageError(f"{source}: {said.partition(chr(39) + '. ')[2].strip() or said}") from None
    kind = f"{uri.type}s"
    if uri.type == "model" and re.match(r"hf://(?!models/)", source):
        kind = "datasets"  # those are what people mount
    if revision and (uri.is_bucket or uri.revision not in (None, revision)):
        raise UsageError(f"{source}: it can't have the revision {revision}")
    parts = safe_parts(uri.path_in_repo)
    if parts is None or safe_parts(uri.revision or revision) is None:
        raise OutsideSource(f"{source}: leads outside of the repository")
    place = Place(kind, uri.id, uri.revision or revision, "/".join(parts[:-1]))
    return place, parts[-1] if parts else ""


class HubStore(RemoteStore):
    """A folder of a repository, in the commit that it had at the first look; or of a bucket, which has none."""

    # Bytes: as for web servers.
    least = 256 << 10
    complete = True

    def __init__(self, place: Place, options: Options) -> None:
        self.url = place.url
        # What the Hub has converted to Parquet lies in folders by config and split already.
        is_converted = place.revision.startswith("refs/convert/")
        self.hub_rules = place.kind == "datasets" and not is_converted
        self._place, self._offline = place, options.offline
        self._web, self._downloads = Web(options), Downloads(place)
        self._headers = bearer(options.token or _token() or "", "HF_TOKEN or --token-file")
        self._states: Once[State] = Once()

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        pages = self._pages(prefix, recursive=False)
        found = {entry.path: entry for page, _ in pages for entry in page}
        here = [path for path in found if path.rpartition("/")[0] == prefix]
        if prefix and not here:  # a bucket lists what isn't there, too
            raise NotFound(f"{self.url}/{prefix}: there is no such folder")
        return [found[path] for path in sorted(here, key=to_bytes)]

    def whole(self) -> Sequence[Entry] | None:
        if self._offline:
            state = self._downloads.state()
            return state and [_top(state), *self._downloads.entries(state)]
        found = [self.stat("")]
        is_flat = True  # so far, and then these pages are those of the top folder as well
        for count, (page, is_last) in enumerate(self._pages("", recursive=True), 1):
            found += page
            is_flat &= not any(entry.is_dir or "/" in entry.path for entry in page)
            if count >= _FEW_PAGES and not (is_last or is_flat):
                return None
        return found

    def stat(self, path: str, /) -> Entry:
        state = self._state()
        if not path:
            return _top(state)
        kind, body = self._place.question(path)
        origin = self._origin(self._place.ask_url(state.commit), path, body, kind)
        _, answer = self._web.content(origin, _LARGEST)
        for entry in parse_entries(answer, self._place, state.mtime_ns):
            if entry.path == path:
                return entry
        if self._place.is_bucket and self.list(path):  # it is asked about files only
            return Entry(path, 0, state.mtime_ns, "", is_dir=True)
        raise NotFound(f"{self.url}/{path}: there is no such file")

    def open(self, path: str, /) -> RangeBlob:
        entry = self.stat(path)
        if entry.is_dir:
            raise IsAFolder(path)
        return self.blob(entry)

    def at_hand(self, entry: Entry, /) -> Blob | None:
        state = self._downloads.state() if self._offline else self._states.known("")
        if state is None:
            return None
        return self._downloads.open(state.commit, self._place.inside(entry.path), entry)

    def blob(self, entry: Entry, /) -> RangeBlob:
        """The file *entry* in the commit that was seen, where it can't change; redirects name its digest besides."""
        url = self._place.file_url(self._state().commit, entry.path)
        return RangeBlob(self._web, self._origin(url, entry.path, linked=entry.version), entry.size)

    def counts(self) -> Mapping[str, int]:
        return self._web.counts()

    def close(self) -> None:
        self._web.close()

    def _state(self) -> State:
        return self._states.get("", self._ask_state)

    def _ask_state(self) -> State:
        _, body = self._web.content(self._origin(self._place.state_url()), _LARGEST)
        return parse_state(body, self._place)

    def _pages(self, prefix: str, *, recursive: bool) -> Iterator[tuple[Sequence[Entry], bool]]:
        """The pages of a listing, and whether each is the last."""
        state = self._state()
        url = self._place.list_url(state.commit, prefix, recursive=recursive)
        for _ in range(_MOST_PAGES):
            headers, body = self._web.content(self._origin(url, prefix), _LARGEST)
            url = next_page(headers, self._place)
            yield parse_entries(body, self._place, state.mtime_ns), not url
            if not url:
                return
        raise TooLarge(f"{self.url}/{prefix}: a listing without end")

    def _origin(
        self, url: str, path: str = "", body: bytes | None = None, kind: str = "", linked: str = ""
    ) -> Origin:
        headers = {**self._headers, "Content-Type": kind} if kind else self._headers
        who = "has no access to it" if self._headers else "is missing"
        return Origin(
            url=url,
            name=f"{self.url}/{path}".rstrip("/"),
            headers=headers,
            linked=linked,
            hint=f"if {self._place.page} is private or gated, the token {who} (HF_TOKEN, --token-file)",
            body=body,
        )


def _token() -> str | None:
    """The token that the library finds: in the environment, else where `hf auth login` left it."""
    return None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()


def _top(state: State) -> Entry:
    return Entry("", 0, state.mtime_ns, state.commit, is_dir=True)
