"""What the API of the Hugging Face Hub is asked, and what its answers say. Nothing in an answer is believed unseen.

The API: huggingface.co/docs/hub/api, and what the library huggingface_hub 2.4 asks.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from huggingface_hub import constants

from shardfs.errors import Unreadable, json_fault
from shardfs.names import from_bytes, to_bytes
from shardfs.sources._values import is_path, size_of, time_ns
from shardfs.stores import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

# Entries of a page of a listing: the most that the Hub sends.
_PAGE = 1000

_NEXT = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?')
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
# What names content: SHA-1, SHA-256, Xet hash.
_DIGEST = re.compile(r"[0-9a-zA-Z]{1,128}")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a repository or bucket.

    Attributes:
        kind: `datasets`, `models`, `spaces`, `kernels` or `buckets`.
        name: `namespace/name`.
        revision: a branch, tag, ref or commit; "" for the main branch. Buckets have none.
        folder: the path of the folder in it, "" for the top.
    """

    kind: str
    name: str
    revision: str = ""
    folder: str = ""

    @property
    def url(self) -> str:
        """What messages call it."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf://{self.kind}/{self.name}{revision}/{self.folder}".rstrip("/")

    @property
    def page(self) -> str:
        """Where people look at it."""
        kind = "" if self.kind == "models" else f"{self.kind}/"
        return f"{constants.ENDPOINT}/{kind}{self.name}"

    @property
    def is_bucket(self) -> bool:
        return self.kind == "buckets"

    @property
    def lead(self) -> str:
        """What the paths in the repository begin with of all that is in the folder."""
        return f"{self.folder}/" if self.folder else ""

    def inside(self, path: str) -> str:
        """The path in the repository of *path* in the folder."""
        return f"{self.folder}/{path}".strip("/")

    def state_url(self) -> str:
        """Where the commit is told, and when that was."""
        if self.is_bucket:
            return self._api()
        revision = ("revision", quote(self.revision, safe="")) if self.revision else ()
        return self._api(*revision) + "?expand=sha&expand=lastModified"

    def list_url(self, commit: str, path: str, *, recursive: bool) -> str:
        """Where a folder is listed, in pages."""
        folder = quote(to_bytes(self.inside(path)), safe="")
        query = f"recursive={str(recursive).lower()}&limit={_PAGE}"
        return f"{self._api('tree', commit, folder)}?{query}"

    def ask_url(self, commit: str) -> str:
        """Where ``question`` is sent to."""
        return self._api("paths-info", commit)

    def question(self, path: str) -> tuple[str, bytes]:
        """(content type, body) that ask for the entry of *path*."""
        inside = self.inside(path)
        if self.is_bucket:
            return "application/json", json.dumps({"paths": [inside]}).encode()
        form = urlencode({"paths": to_bytes(inside), "expand": "false"})
        return "application/x-www-form-urlencoded", form.encode()

    def file_url(self, commit: str, path: str) -> str:
        """Where a file is."""
        return _joined(self.page, "resolve", commit, quote(to_bytes(self.inside(path))))

    def _api(self, *parts: str) -> str:
        return _joined(constants.ENDPOINT, "api", self.kind, self.name, *parts)


def _joined(*parts: str) -> str:
    return "/".join(filter(None, parts))


class State(NamedTuple):
    """What a mount shows: a commit ("" for a bucket, which has none), and its time in nanoseconds since 1970."""

    commit: str
    mtime_ns: int


def parse_state(body: bytes, place: Place) -> State:
    """The state that an answer tells. Raises Unreadable."""
    answer = _json(body, place)
    if not isinstance(answer, dict):
        raise Unreadable(f"{place.url}: the Hub does not say what it is")
    if place.is_bucket:
        return State("", time_ns(answer.get("createdAt")))
    commit = answer.get("sha")
    if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise Unreadable(f"{place.url}: the Hub does not say which commit it is at")
    return State(commit, time_ns(answer.get("lastModified")))


def parse_entries(body: bytes, place: Place, mtime_ns: int) -> list[Entry]:
    """The entries in an answer that lie in the folder of *place*, as old as *mtime_ns* if it does not say.

    Raises:
        Unreadable: it is no list of entries.
    """
    answer = _json(body, place)
    if not isinstance(answer, list):
        raise Unreadable(f"{place.url}: the Hub sent no listing")
    entries = (_entry(item, place, mtime_ns) for item in answer if isinstance(item, dict))
    return [entry for entry in entries if entry is not None]


def next_page(headers: Mapping[str, str], place: Place) -> str:
    """The URL of the next page of a listing, "" behind the last.

    It is asked for where the first page was, since the token goes with it, and since the Hub may stand behind a proxy.
    Raises Unreadable where there is one, but no URL of it.
    """
    found = _NEXT.search(headers.get("Link", ""))
    if found is None:
        return ""
    try:
        url = urlsplit(found[1])
    except ValueError:  # brackets around what is no address
        url = urlsplit("")
    path = url.path.partition(f"/api/{place.kind}/")[2]
    if not path:
        raise Unreadable(f"{place.url}: the Hub does not say where its listing goes on")
    return f"{_joined(constants.ENDPOINT, 'api', place.kind, path)}?{url.query}"


def _json(body: bytes, place: Place) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{place.url}: the Hub's answer {json_fault(error)}") from None


def _entry(item: Mapping[str, Any], place: Place, mtime_ns: int) -> Entry | None:
    """None for what is neither file nor folder, lies elsewhere, or whose name can't be one."""
    path, size = item.get("path"), size_of(item.get("size"))
    if not (isinstance(path, str) and path.startswith(place.lead)):
        return None
    path = from_bytes(to_bytes(path[len(place.lead) :]))
    if not is_path(path):
        return None
    mtime_ns = time_ns(item.get("mtime")) or mtime_ns
    if item.get("type") == "directory":
        return Entry(path, 0, mtime_ns, "", is_dir=True)
    if item.get("type") != "file" or size is None:
        return None
    return Entry(path, size, mtime_ns, _version(item))


def _version(item: Mapping[str, Any]) -> str:
    """What names the content of a file: the digest of a large file, not that of the pointer that stands for it."""
    large = item.get("lfs")
    digests = (
        large.get("oid") if isinstance(large, dict) else None,
        item.get("oid"),
        item.get("xetHash"),
    )
    return next((d for d in digests if isinstance(d, str) and _DIGEST.fullmatch(d)), "")
