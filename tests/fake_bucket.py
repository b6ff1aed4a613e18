"""A bucket of the Hugging Face Hub on this machine: files by path, without commits.

Answers have the shapes that huggingface_hub 2.4 reads (`list_bucket_tree`, `get_bucket_paths_info`, `bucket_info`,
`get_bucket_file_metadata`), and the ways that it works around: a prefix is matched by letters, not by folders; a
listing of what isn't there is empty; a recursive one has no folders in it, and nobody can ask about a folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

from shardfs.names import from_bytes, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "org/bucket"
MADE, CHANGED = "2026-01-02T03:04:05.000Z", "2026-01-02T03:04:06.000Z"
CHANGED_NS = 1_767_323_046 * 10**9


def xet(content: bytes) -> str:
    """What stands for the hash of content, which is not the SHA-256 of it."""
    return hashlib.sha3_256(content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        bucket, url = self.server.bucket, urlsplit(self.path)
        has_token = "Authorization" in self.headers
        bucket.log.append((f"{self.command} {unquote(url.path)}", has_token))
        api, page = f"/api/buckets/{NAME}", f"/buckets/{NAME}/resolve/"
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.path.startswith("/xet/"):
            self._part(bucket.contents[url.path[5:]])
        elif bucket.token and self.headers.get("Authorization") != f"Bearer {bucket.token}":
            self._send(401, b"", {"X-Error-Message": "Invalid username or password."})
        elif url.path == api:
            facts = {"id": NAME, "private": False, "createdAt": MADE, "size": 1, "totalFiles": 1}
            self._json(facts)
        elif url.path == f"{api}/paths-info" and self.command == "POST":
            paths = [from_bytes(to_bytes(path)) for path in json.loads(body)["paths"]]
            self._json([bucket.entry(path) for path in paths if path in bucket.files])
        elif re.fullmatch(f"{api}/tree(/[^/]*)?", url.path):
            self._tree(url.path[len(api) + 6 :], parse_qs(url.query))
        elif url.path.startswith(page):
            self._resolve(from_bytes(unquote_to_bytes(url.path[len(page) :])))
        else:
            self._send(404, b"")

    do_POST = do_GET

    def _tree(self, prefix: str, query: Mapping[str, list[str]]) -> None:
        bucket, start = self.server.bucket, int(query.get("cursor", ["0"])[0])
        found = bucket.listing(unquote_to_bytes(prefix), query["recursive"] == ["true"])
        headers, stop = {}, start + bucket.page_size
        if stop < len(found):
            more = f"recursive={query['recursive'][0]}&cursor={stop}"
            headers["Link"] = f'<{bucket.url}{urlsplit(self.path).path}?{more}>; rel="next"'
        self._json(found[start:stop], headers)

    def _resolve(self, path: str) -> None:
        bucket = self.server.bucket
        content = bucket.files.get(path)
        if content is None:
            self._send(404, b"")
            return
        where = bucket.url.replace("127.0.0.1", "localhost")
        headers = {
            "Location": f"{where}/xet/{xet(content)}?Signature=1",
            "X-Linked-Size": str(len(content)),
            "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Xet-Hash": xet(content),
        }
        self._send(302, b"", headers)

    def _part(self, content: bytes) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found is None:
            self._send(200, content)
            return
        start, stop = int(found[1]), min(int(found[2]) + 1, len(content))
        shown = f"bytes {start}-{stop - 1}/{len(content)}"
        self._send(206, content[start:stop], {"Content-Range": shown})

    def _json(self, value: object, headers: Mapping[str, str] | None = None) -> None:
        self._send(200, json.dumps(value).encode(), headers or {})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, bucket: FakeBucket) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bucket = bucket


class FakeBucket:
    """A Hub with one bucket, NAME. Use it as a context manager.

    Attributes:
        files: what is in it.
        token: what it takes to see it, "" for nothing.
        log: (method and path, whether a token came with it) of each request.
    """

    def __init__(self, files: Mapping[str, bytes], page_size: int = 1000) -> None:
        self.files, self.page_size, self.token = dict(files), page_size, ""
        self.log: list[tuple[str, bool]] = []
        self._listener = _Listener(self)
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self) -> FakeBucket:
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    @property
    def contents(self) -> dict[str, bytes]:
        return {xet(content): content for content in self.files.values()}

    def entry(self, path: str) -> dict[str, object]:
        content = self.files[path]
        facts = {"size": len(content), "xetHash": xet(content), "mtime": CHANGED}
        return {"type": "file", "path": path, "uploadedAt": MADE, **facts}

    def listing(self, prefix: bytes, recursive: bool) -> list[dict[str, object]]:
        """Entries below a prefix, and those whose paths merely begin with it."""
        found: dict[str, dict[str, object]] = {}
        depth = prefix.count(b"/") + 1 if prefix else 0
        for path in sorted(self.files, key=to_bytes):
            if to_bytes(path).startswith(prefix):
                parts = path.split("/")
                if recursive or len(parts) <= depth + 1:
                    found[path] = self.entry(path)
                else:
                    folder = "/".join(parts[: depth + 1])
                    found[folder] = {"type": "directory", "path": folder, "uploadedAt": MADE}
        return list(found.values())
