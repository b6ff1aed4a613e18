"""Zenodo on this machine, with one record; what it answers has the shape of what Zenodo has answered."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from shardfs.names import to_bytes
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MODIFIED = "2024-02-03T04:05:06.789012+00:00"
MODIFIED_NS = 1_706_933_106 * 10**9
LEGACY = "legacy"
# Links to nowhere and checksums without a name, as some months of 2023 had them.
DEAD_LINKS = "dead links"
# Files that another answer lists, and files by their keys: InvenioRDM.
LISTED, MAPPED = "listed", "mapped"
SHAPES = (LEGACY, DEAD_LINKS, LISTED, MAPPED)


class ZenodoServer(WebServer):
    """A record with *files*, by key. Use it as a context manager.

    Attributes:
        record: the id of the version, *concept* the one of all versions; *revision* counts its changes.
        shape: how the record looks.
        access: who may read the files, as the record says; others are not told of them without a token.
        has_search: whether the record can be found by its concept.
    """

    def __init__(self, files: Mapping[str, bytes], *, shape: str = LEGACY) -> None:
        super().__init__({})
        self.contents = dict(files)
        self.record, self.revision, self.concept = "123", 4, "122"
        self.shape, self.access, self.has_search = shape, "open", True

    def __enter__(self) -> ZenodoServer:
        super().__enter__()
        return self

    def content(self, path: str) -> bytes | None:
        at = path.removeprefix("/api/records")
        found = re.fullmatch(f"/{self.record}/files/(.+)/content", at, re.DOTALL)
        if found:
            return self.contents.get(found[1])
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "": self.hits,
            f"/{self.record}": self.described,
            f"/{self.record}/versions/latest": self.described,
            f"/{self.record}/files": lambda: {"enabled": True, "entries": self.entries()},
        }
        answer = answers.get(at)
        return None if answer is None or at == path else json.dumps(answer()).encode()

    def validators(self, content: bytes) -> dict[str, str]:
        """Those of Zenodo, and both headers that it has been seen to send about ranges."""
        tag = {"ETag": f'"md5:{hashlib.md5(content).hexdigest()}"'}
        return {**tag, "Accept-Ranges": "none", "accept-ranges": "bytes"}

    @property
    def tells(self) -> bool:
        """Whether the files are told: to everybody, or since nobody comes as far as here without a token."""
        return self.access == "open" or bool(self.password) or self.signatures is not None

    def hits(self) -> dict[str, Any]:
        """The answer to a search."""
        found = [self.described()] if self.has_search else []
        return {"hits": {"hits": found, "total": len(found)}}

    def described(self) -> dict[str, Any]:
        """The record."""
        page = f"{self.url}/api/records/{self.record}"
        common: dict[str, Any] = {
            "created": "2024-01-01T00:00:00+00:00",
            "revision": self.revision,
            "links": {"self": page},
        }
        if self.shape in (LISTED, MAPPED):
            files: dict[str, Any] = {"enabled": True, "count": len(self.contents)}
            if self.shape == MAPPED and self.tells:
                files["entries"] = {
                    entry["key"]: {k: v for k, v in entry.items() if k != "key"}
                    for entry in self.entries()
                }
            return {
                "id": self.record,
                "parent": {"id": self.concept},
                "updated": MODIFIED,
                "access": {"record": "public", "files": self.access, "status": self.access},
                "files": files,
                **common,
            }
        about = {"access_right": self.access, "title": "A record", "embargo_date": "2031-02-03"}
        record: dict[str, Any] = {
            "id": int(self.record),
            "conceptrecid": self.concept,
            "modified": MODIFIED,
        }
        if self.tells:
            record["files"] = self.entries()
        return {**record, **common, "metadata": about}

    def entries(self) -> list[dict[str, Any]]:
        """What the record says of its files."""
        return [self.entry(key, content) for key, content in self.contents.items()]

    def entry(self, key: str, content: bytes) -> dict[str, Any]:
        """What the record says of a file."""
        number, digest = str(uuid5(NAMESPACE_URL, key)), hashlib.md5(content).hexdigest()
        above = f"{self.url}/api/records/{self.record}/files"
        place = f"{above}/{quote(to_bytes(key), safe='')}/content"
        entry: dict[str, Any] = {
            "id": number,
            "key": key,
            "size": len(content),
            "checksum": f"md5:{digest}",
        }
        if self.shape == DEAD_LINKS:
            return {**entry, "checksum": digest, "links": {"self": f"{above}/{number}"}}
        if self.shape == LEGACY:
            return {**entry, "links": {"self": place}}
        links = {"self": place.removesuffix("/content"), "content": place}
        return {**entry, "mimetype": "application/zip", "links": links}
