"""A small stand-in for the Hugging Face Hub, for tests and benchmarks (standard library only).

It serves the dataset repositories found under ROOT with the part of the Hub's HTTP API that
``huggingface_hub`` 2.x and ``datasets`` 5.x use to *read* a dataset::

    ROOT/<namespace>/<name>/...                    the files of revision "main"
    ROOT/<namespace>/<name>/.revisions/<rev>/...   other branches, tags, refs or old commits; a "/" in
                                                   the name is written %2F (refs%2Fconvert%2Fparquet)
    ROOT/<namespace>/<name>/.fakehub.json          optional: {"private": bool, "gated": "auto"|"manual"|false,
                                                   "tokens": ["hf_x"], "lfs_min_size": int}

Commit ids are made from the tree's content, so a file that changes makes a new commit of its branch.
Every revision can also be addressed by its commit id (whole, or the first 7 or more digits).
Files of at least ``lfs_min_size`` bytes, and those with a data suffix (.parquet, .arrow, .tar, ...), are
"LFS" files: ``resolve`` answers 302 to a *second port* which plays the CDN with signed URLs, as on the
real Hub. Other files get a 307 to a relative, commit-pinned /api/resolve-cache/ URL, or are sent at once when
empty, private or gated. Xet is never advertised, so clients use plain HTTP.

In a test::

    with FakeHub(root) as hub:
        os.environ["HF_ENDPOINT"] = hub.url        # before huggingface_hub is imported, or endpoint=hub.url
        hub.faults.update(error_every=3)
        ...
        assert hub.bytes_served("train-00000") < 100_000

From a shell: ``fake_hub.py ROOT --port 8080 --latency 0.05 --log requests.jsonl``. A running server is
steered by ``POST /_fake/faults`` (JSON of Faults fields) and ``POST /_fake/reset``, and read by
``GET /_fake/log``. Set HF_HUB_DISABLE_TELEMETRY=1 and HF_UPDATE_DOWNLOAD_COUNTS=0 in the client.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

LFS_SUFFIXES = (".parquet", ".arrow", ".tar", ".zip", ".gz", ".zst", ".bin", ".mds", ".npy", ".jpg", ".png",
                ".wav", ".flac", ".mp3", ".mp4")
DATE = "2026-01-02T03:04:05.000Z"


@dataclasses.dataclass
class Faults:
    """What to do wrong, and to which requests. Everything is off by default; change it at any time."""

    only: str = r"/resolve/|/resolve-cache/|/cdn/"  # the faults below (not rate_limit) touch request paths that match this
    times: int = -1                  # how many faults to inject before stopping; -1: no end
    latency: float = 0.0             # seconds to wait before each answer (not counted in `times`)
    bandwidth: float = 0.0           # bytes per second of each answer's body; 0: unlimited (not counted)
    error_every: int = 0             # every k-th matching request is answered `error_status`
    error_status: int = 500
    drop_every: int = 0              # every k-th file body loses its connection ...
    drop_after: int = 0              # ... after that many bytes of body
    range_mode: str = "ok"           # ok | ignore: 200 and the whole file | shift: the bytes one further on
    #                                  | short: 206 with half the bytes | liar: right bytes, false Content-Range
    no_etag: bool = False            # leave ETag and X-Linked-Etag out (not counted)
    rate_limit: int = 0              # requests allowed per rate_window, all paths but not the CDN; then 429
    rate_window: float = 5.0
    rate_headers: str = "both"       # both | ratelimit | retry-after | none

    def update(self, **changes) -> None:
        """Set several fields at once; an unknown name is an error."""
        for key, value in changes.items():
            if key not in {f.name for f in dataclasses.fields(self)}:
                raise ValueError(f"no such fault: {key}")
            setattr(self, key, value)


class Repo:
    """One repository folder: its revisions, trees and access rules."""

    _oids: dict[tuple, tuple[str, str]] = {}  # (path, size, mtime) -> (git sha1, sha256)

    def __init__(self, repo_id: str, folder: str, lfs_min_size: int):
        self.id, self.folder = repo_id, folder
        try:
            with open(os.path.join(folder, ".fakehub.json"), encoding="utf-8") as f:
                conf = json.load(f)
        except FileNotFoundError:
            conf = {}
        self.private, self.gated = bool(conf.get("private")), conf.get("gated", False)
        self.tokens, self.lfs_min_size = conf.get("tokens", []), conf.get("lfs_min_size", lfs_min_size)

    def revisions(self) -> dict[str, str]:
        """Name of each revision -> folder with its files."""
        found, extra = {"main": self.folder}, os.path.join(self.folder, ".revisions")
        for name in sorted(os.listdir(extra)) if os.path.isdir(extra) else []:
            found[unquote(name)] = os.path.join(extra, name)
        return found

    def find(self, revision: str) -> tuple[str, str] | None:
        """(folder, commit id) of a branch, tag, ref or commit id; None if there is none."""
        folders = self.revisions()
        if revision in folders:
            return folders[revision], self.commit(folders[revision])
        if re.fullmatch(r"[0-9a-f]{7,40}", revision):
            for folder in folders.values():
                if (sha := self.commit(folder)).startswith(revision):
                    return folder, sha
        return None

    def tree(self, folder: str) -> dict[str, dict]:
        """Path in the repo -> entry as the tree API gives it, in the Hub's (depth-first, sorted) order."""
        out: dict[str, dict] = {}

        def walk(rel: str) -> list[str]:
            lines = []
            for name in sorted(os.listdir(os.path.join(folder, rel))):
                path = f"{rel}/{name}" if rel else name
                full = os.path.join(folder, path)
                if not rel and name in (".revisions", ".fakehub.json"):
                    continue
                if os.path.isdir(full):
                    out[path] = entry = {"type": "directory", "oid": "", "size": 0, "path": path}
                    entry["oid"] = hashlib.sha1("\n".join(walk(path)).encode()).hexdigest()
                else:
                    out[path] = entry = self._file_entry(path, full)
                lines.append(f"{entry['oid']} {path}")
            return lines

        walk("")
        return out

    def _file_entry(self, path: str, full: str) -> dict:
        stat = os.stat(full)
        key = (full, stat.st_size, stat.st_mtime_ns)
        if key not in self._oids:
            with open(full, "rb") as f:
                data = f.read()
            self._oids[key] = (hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
                               hashlib.sha256(data).hexdigest())
        sha1, sha256 = self._oids[key]
        entry = {"type": "file", "oid": sha1, "size": stat.st_size, "path": path}
        if stat.st_size >= self.lfs_min_size or path.lower().endswith(LFS_SUFFIXES):
            entry["lfs"] = {"oid": sha256, "size": stat.st_size, "pointerSize": 120 + len(str(stat.st_size))}
        return entry

    def commit(self, folder: str) -> str:
        """The commit id: a digest of the tree."""
        lines = [f"{e['oid']} {e.get('lfs', {}).get('oid', '')} {p}" for p, e in self.tree(folder).items()]
        return hashlib.sha1("\n".join([self.id, *lines]).encode()).hexdigest()


class _Stop(Exception):
    """Raised by a handler after it has answered."""


class _Handler(BaseHTTPRequestHandler):
    """Answers for both ports; `server.role` says whether this one is the hub or the CDN."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's acknowledgement
    server_version, sys_version = "FakeHub/1", ""

    def log_message(self, *args) -> None:
        """Quiet: the hub keeps its own log."""

    # ---- one request, from line to log entry

    def _serve(self) -> None:
        hub: FakeHub = self.server.hub
        url = urlsplit(self.path)
        self.query = parse_qs(url.query, keep_blank_values=True)
        self.entry = {"t": round(time.time() - hub.started, 4), "role": self.server.role, "method": self.command,
                      "path": unquote(url.path), "query": url.query, "range": self.headers.get("Range"),
                      "auth": "Authorization" in self.headers, "status": 0, "bytes": 0, "fault": None}
        self.faulty, self.drop_at = False, None
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else b""
        admin = url.path.startswith("/_fake/")
        try:
            if admin:
                self._admin(url.path[7:])
            hub.log.append(self.entry)  # seen at once, and filled in as the answer is sent
            self._faults_before()
            self._route(url.path)
        except _Stop:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self.entry["fault"] = self.entry["fault"] or "client went away"
            self.close_connection = True
        finally:
            if not admin:
                hub.record(self.entry)

    do_GET = do_HEAD = do_POST = _serve

    def _reply(self, status: int, headers: dict | None = None, body: bytes = b"", length: int | None = None) -> None:
        """Send head and a body held in memory."""
        self._head(status, {"Content-Length": len(body) if length is None else length, **(headers or {})})
        if self.command != "HEAD" and body:
            self._send(body)
        raise _Stop

    def _head(self, status: int, headers: dict) -> None:
        self.entry["status"] = status
        self.send_response(status)
        for key, value in headers.items():
            if not (self.server.hub.faults.no_etag and key in ("ETag", "X-Linked-Etag")):
                self.send_header(key, str(value))
        self.end_headers()

    def _send(self, data: bytes) -> None:
        """Write body bytes; obeys the bandwidth and drops the connection where a fault says so."""
        rate = self.server.hub.faults.bandwidth
        if self.drop_at is not None:
            data = data[:max(0, self.drop_at - self.entry["bytes"])]
        step = max(1, int(rate / 20)) if rate else 1 << 18
        for i in range(0, len(data), step):
            self.entry["bytes"] += len(data[i:i + step])  # before the write: a client that has the bytes sees the count
            self.wfile.write(data[i:i + step])
            if rate:
                time.sleep(len(data[i:i + step]) / rate)
        if self.drop_at is not None and self.entry["bytes"] >= self.drop_at:
            self.entry["fault"] = "drop"
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            raise _Stop

    def _json(self, value, headers: dict | None = None) -> None:
        self._reply(200, {"Content-Type": "application/json; charset=utf-8", **(headers or {})},
                    json.dumps(value).encode())

    def _error(self, status: int, code: str | None, message: str, headers: dict | None = None) -> None:
        extra = {"X-Error-Message": message, "Content-Type": "application/json", **(headers or {})}
        if code:
            extra["X-Error-Code"] = code
        self._reply(status, extra, json.dumps({"error": message}).encode())

    # ---- faults

    def _faults_before(self) -> None:
        hub, f = self.server.hub, self.server.hub.faults
        if f.rate_limit and self.server.role == "hub" and (wait := hub.over_limit()):
            headers, left = {}, max(1, round(wait))
            if f.rate_headers in ("both", "ratelimit"):
                headers = {"RateLimit": f'"resolvers";r=0;t={left}',
                           "RateLimit-Policy": f'"fixed window";"resolvers";q={f.rate_limit};w={round(f.rate_window)}'}
            if f.rate_headers in ("both", "retry-after"):
                headers["Retry-After"] = left
            self.entry["fault"] = "rate limit"
            self._error(429, None, "We had to rate limit you.", headers)
        self.faulty = bool(re.search(f.only, self.entry["path"]))
        if not self.faulty:
            return
        if f.latency:
            time.sleep(f.latency)
        if f.error_every and hub.count("errors") % f.error_every == 0 and hub.take_fault():
            self.entry["fault"] = f"status {f.error_status}"
            self._error(f.error_status, None, "Injected server error")

    def _admin(self, what: str) -> None:
        hub = self.server.hub
        if what == "log":
            self._json(hub.log)
        if what == "faults" and self.command == "POST":
            hub.faults.update(**json.loads(self.body or b"{}"))
        if what == "reset" and self.command == "POST":
            hub.reset()
        self._json(dataclasses.asdict(hub.faults))

    # ---- the API

    def _route(self, path: str) -> None:
        if self.server.role == "cdn":
            self._cdn(path)
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"] and len(parts) >= 4:
            repo, rest = self._repo(unquote(parts[2]), unquote(parts[3])), parts[4:]
            revision = self._take_revision(rest[1:])[0] if len(rest) > 1 else "main"
            if not rest or rest[0] == "revision":
                self._info(repo, revision)
            if rest[0] == "refs":
                self._refs(repo)
            if rest[0] == "commits":
                self._commits(repo, revision)
            if rest[0] == "tree":
                self._tree(repo, revision, "/".join(map(unquote, self._take_revision(rest[1:])[1])))
            if rest[0] == "paths-info" and self.command == "POST":
                self._paths_info(repo, revision)
        if parts[0] == "datasets" and len(parts) >= 6 and parts[3] == "resolve":
            revision, rest = self._take_revision(parts[4:])
            self._resolve(self._repo(unquote(parts[1]), unquote(parts[2])), revision, unquote("/".join(rest)))
        if parts[:3] == ["api", "resolve-cache", "datasets"] and len(parts) >= 7:
            self._resolve(self._repo(unquote(parts[3]), unquote(parts[4])), parts[5], unquote("/".join(parts[6:])), True)
        if parts[:2] == ["api", "datasets"] and len(parts) == 3:
            self._repo("", parts[2])  # an id without a namespace: no such repo here
        if path == "/api/whoami-v2":
            self._json({"type": "user", "name": "tester", "auth": {"type": "access_token"}}) if self._token() else \
                self._error(401, None, "Invalid username or password.")
        self._error(404, None, "Not Found")

    @staticmethod
    def _take_revision(parts: list[str]) -> tuple[str, list[str]]:
        """Split [revision, path...]; the special refs may also come with their slashes unquoted."""
        if parts and parts[0] == "refs" and len(parts) >= 3:
            return "/".join(parts[:3]), parts[3:]
        return (unquote(parts[0]), parts[1:]) if parts else ("main", [])

    def _token(self) -> str | None:
        value = self.headers.get("Authorization", "")
        return value[7:] if value.startswith("Bearer ") else None

    def _repo(self, namespace: str, name: str) -> Repo:
        """The repo, or the Hub's answer for one that is missing or hidden from this caller."""
        hub, folder = self.server.hub, os.path.join(self.server.hub.root, namespace, name)
        repo = None
        if namespace and ".." not in (namespace, name) and os.path.isdir(folder):
            repo = Repo(f"{namespace}/{name}", folder, hub.lfs_min_size)
        if repo is None or (repo.private and self._token() not in repo.tokens):
            if self._token():
                self._error(404, "RepoNotFound", "Repository not found")
            self._error(401, "RepoNotFound", "Invalid username or password.")
        return repo

    def _revision(self, repo: Repo, revision: str) -> tuple[str, str]:
        found = repo.find(revision)
        if found is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    def _info(self, repo: Repo, revision: str) -> None:
        folder, sha = self._revision(repo, revision)
        siblings = []
        for path, entry in repo.tree(folder).items():
            if entry["type"] == "file":
                siblings.append({"rfilename": path})
                if "blobs" in self.query:
                    siblings[-1].update(size=entry["size"], blobId=entry["oid"])
                    if "lfs" in entry:
                        siblings[-1]["lfs"] = {"sha256": entry["lfs"]["oid"], "size": entry["size"],
                                               "pointerSize": entry["lfs"]["pointerSize"]}
        self._json({"_id": "0", "id": repo.id, "author": repo.id.split("/")[0], "sha": sha, "private": repo.private,
                    "gated": repo.gated, "disabled": False, "lastModified": DATE, "createdAt": DATE, "downloads": 0,
                    "likes": 0, "tags": [], "siblings": siblings})

    def _refs(self, repo: Repo) -> None:
        out = {"branches": [], "converts": [], "tags": [], "pullRequests": []}
        for name, folder in repo.revisions().items():
            item = {"name": name, "ref": f"refs/heads/{name}", "targetCommit": repo.commit(folder)}
            kind = "branches"
            if name.startswith("refs/"):
                kind = "converts" if name.startswith("refs/convert/") else "pullRequests"
                item.update(ref=name, name=name.split("/", 2)[-1])
            elif re.match(r"v?\d", name):
                kind, item["ref"] = "tags", f"refs/tags/{name}"
            out[kind].append(item)
        self._json(out)

    def _commits(self, repo: Repo, revision: str) -> None:
        _, sha = self._revision(repo, revision)
        self._json([{"id": sha, "title": "commit", "message": "", "authors": [{"user": "tester"}], "date": DATE}])

    def _expand(self, entry: dict, sha: str, expand: bool) -> dict:
        extra = {"lastCommit": {"id": sha, "title": "commit", "date": DATE}} if expand else {}
        return {**entry, **extra}

    def _tree(self, repo: Repo, revision: str, under: str) -> None:
        """The listing of a folder, page by page; the next page's URL is in the Link header."""
        folder, sha = self._revision(repo, revision)
        tree = repo.tree(folder)
        if under and tree.get(under, {}).get("type") != "directory":
            self._error(404, "EntryNotFound", f"{under} does not exist on \"{revision}\"", {"X-Repo-Commit": sha})
        flag = lambda name: self.query.get(name, ["false"])[0].lower() in ("true", "1")
        prefix = under + "/" if under else ""
        found = [self._expand(e, sha, flag("expand")) for p, e in tree.items()
                 if p.startswith(prefix) and (flag("recursive") or "/" not in p[len(prefix):])]
        size = min(50, self.server.hub.page_size) if flag("expand") else self.server.hub.page_size
        start = int(self.query.get("cursor", ["0"])[0])
        headers = {"X-Repo-Commit": sha}
        if start + size < len(found):
            where = self.path.split("?")[0]
            keep = "&".join(f"{k}={v[0]}" for k, v in self.query.items() if k != "cursor")
            headers["Link"] = f'<{self.server.hub.url}{where}?{keep}&cursor={start + size}>; rel="next"'
        self._json(found[start:start + size], headers)

    def _paths_info(self, repo: Repo, revision: str) -> None:
        """Entries of the asked paths; those that do not exist are left out."""
        folder, sha = self._revision(repo, revision)
        if "json" in self.headers.get("Content-Type", ""):
            form = json.loads(self.body)
            paths, expand = form.get("paths", []), bool(form.get("expand"))
        else:
            form = parse_qs(self.body.decode())
            paths, expand = form.get("paths", []), form.get("expand", ["false"])[0].lower() == "true"
        tree = repo.tree(folder)
        self._json([self._expand(tree[p], sha, expand) for p in paths if p in tree], {"X-Repo-Commit": sha})

    def _resolve(self, repo: Repo, revision: str, path: str, pinned: bool = False) -> None:
        """A file: its bytes, or a redirect to the CDN (large) or to the pinned URL (small and public)."""
        hub = self.server.hub
        if repo.gated and self._token() not in repo.tokens:
            status = 403 if self._token() else 401
            self._error(status, "GatedRepo", f"Access to dataset {repo.id} is restricted.")
        folder, sha = self._revision(repo, revision)
        entry = repo.tree(folder).get(path)
        common = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if entry is None or entry["type"] != "file":
            self._error(404, "EntryNotFound", "Entry not found", common)
        full = os.path.join(folder, path)
        if "lfs" in entry and hub.cdn_url:
            expires = time.time() + hub.url_ttl
            hub.signed[f"{entry['lfs']['oid']}-{expires:.3f}"] = full
            location = (f"{hub.cdn_url}/cdn/{entry['lfs']['oid']}/{quote(path)}"
                        f"?Expires={expires:.3f}&Signature=fake")
            self._reply(302, {**common, "Location": location, "X-Linked-Size": entry["size"],
                              "X-Linked-Etag": f'"{entry["lfs"]["oid"]}"', "ETag": f'"{entry["lfs"]["oid"]}"'},
                        f"Found. Redirecting to {location}".encode())
        etag = entry["lfs"]["oid"] if "lfs" in entry else entry["oid"]
        if hub.resolve_cache and not (pinned or repo.private or repo.gated or not entry["size"]):
            location = f"/api/resolve-cache/datasets/{repo.id}/{sha}/{quote(path)}?etag=%22{etag}%22"
            self._reply(307, {**common, "Location": location, "ETag": f'"{etag}"', "X-Linked-Size": entry["size"]},
                        f"Temporary Redirect. Redirecting to {location}".encode())
        self._file(full, etag, common)

    def _cdn(self, path: str) -> None:
        """A file by its digest; the URL is good until it expires, then 403."""
        hub, parts = self.server.hub, path.split("/")
        expires = self.query.get("Expires", ["0"])[0]
        full = hub.signed.get(f"{parts[2] if len(parts) > 2 else ''}-{expires}")
        if full is None or float(expires) < time.time():
            self._reply(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
        self._file(full, parts[2], {"Accept-Ranges": "bytes"})

    def _file(self, full: str, etag: str, headers: dict) -> None:
        """Send a file or one byte range of it, with the wrongs that the faults ask for."""
        hub, size = self.server.hub, os.path.getsize(full)
        headers = {**headers, "ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}
        if self.headers.get("If-None-Match", "").strip('"') == etag:
            self._reply(304, headers, length=0)
        start, end, status = 0, size, 200
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match and match.group(0) != "bytes=-":
            first, last = match.groups()
            start, end = (int(first), min(size, int(last) + 1 if last else size)) if first else \
                (max(0, size - int(last)), size)
            if start >= size or start >= end:
                self._reply(416, {**headers, "Content-Range": f"bytes */{size}"})
            status = 206
        shown_start, shown_end, mode = start, end, hub.faults.range_mode
        if status == 206 and self.faulty and mode != "ok" and hub.take_fault():
            self.entry["fault"] = f"range {mode}"
            if mode == "ignore":
                start, end, status = 0, size, 200
            elif mode == "shift":
                start, end = (start + 1, end + 1) if end < size else (max(0, start - 1), end - 1)
            elif mode == "short":
                end = shown_end = start + max(1, (end - start) // 2)
            elif mode == "liar":
                shown_start, shown_end = start + 7, end + 7
        headers["Content-Length"] = end - start
        if status == 206:
            headers["Content-Range"] = f"bytes {shown_start}-{shown_end - 1}/{size}"
        self._head(status, headers)
        if self.command != "HEAD":
            every = hub.faults.drop_every
            if self.faulty and every and hub.count("bodies") % every == 0 and hub.take_fault():
                self.drop_at = hub.faults.drop_after
            with open(full, "rb") as f:
                f.seek(start)
                while start < end and (data := f.read(min(end - start, 1 << 18))):
                    start += len(data)
                    self._send(data)
        raise _Stop


class _Server(ThreadingHTTPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def __init__(self, address, hub: "FakeHub", role: str):
        super().__init__(address, _Handler)
        self.hub, self.role = hub, role

    def handle_error(self, request, client_address) -> None:
        """A client that closes its socket is no news."""


class FakeHub:
    """The server: two ports on one address, in threads of this process. Use it as a context manager."""

    def __init__(self, root: str, host: str = "127.0.0.1", port: int = 0, cdn_port: int = 0, cdn: bool = True,
                 resolve_cache: bool = True, page_size: int = 1000, lfs_min_size: int = 10 << 20, url_ttl: float = 3600.0,
                 log_file: str | None = None, **faults):
        self.root, self.page_size, self.lfs_min_size, self.url_ttl = os.fspath(root), page_size, lfs_min_size, url_ttl
        self.resolve_cache, self.faults = resolve_cache, Faults()
        self.faults.update(**faults)
        self.signed: dict[str, str] = {}
        self._lock, self._log_file = threading.Lock(), open(log_file, "a", encoding="utf-8") if log_file else None
        self._servers = [_Server((host, port), self, "hub")] + ([_Server((host, cdn_port), self, "cdn")] if cdn else [])
        self.url = f"http://{host}:{self._servers[0].server_address[1]}"
        self.cdn_url = f"http://{host}:{self._servers[1].server_address[1]}" if cdn else None
        self.reset()

    def reset(self) -> None:
        """Forget the log and all counters; the faults stay as they are."""
        with self._lock:
            self.started, self.log, self._counts, self._injected = time.time(), [], {}, 0
            self._window, self._in_window = time.time(), 0

    def __enter__(self) -> "FakeHub":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        if self._log_file:
            self._log_file.close()

    # ---- used by the handlers

    def record(self, entry: dict) -> None:
        """Write a finished request to the log file."""
        if self._log_file:
            with self._lock:
                self._log_file.write(json.dumps(entry) + "\n")
                self._log_file.flush()

    def count(self, what: str) -> int:
        """1 for the first call with that name, 2 for the next ..."""
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + 1
            return self._counts[what]

    def take_fault(self) -> bool:
        """True if one more fault may be injected; counts it."""
        with self._lock:
            if 0 <= self.faults.times <= self._injected:
                return False
            self._injected += 1
            return True

    def over_limit(self) -> float:
        """Seconds until the next rate window when this one is used up, else 0."""
        with self._lock:
            now = time.time()
            if now - self._window >= self.faults.rate_window:
                self._window, self._in_window = now, 0
            self._in_window += 1
            return self._window + self.faults.rate_window - now if self._in_window > self.faults.rate_limit else 0.0

    # ---- used by tests

    def requests(self, path_part: str = "", method: str | None = None) -> list[dict]:
        """The log entries whose path holds `path_part` (and with that method)."""
        return [e for e in list(self.log) if path_part in e["path"] and method in (None, e["method"])]

    def bytes_served(self, path_part: str = "") -> int:
        """Body bytes sent for the paths that hold `path_part`."""
        return sum(e["bytes"] for e in self.requests(path_part))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="folder of repositories: ROOT/<namespace>/<name>/")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one, which is printed")
    parser.add_argument("--cdn-port", type=int, default=0)
    parser.add_argument("--no-cdn", action="store_true", help="send large files from the hub port, with no redirect")
    parser.add_argument("--no-resolve-cache", action="store_true", help="send small files with no redirect")
    parser.add_argument("--page-size", type=int, default=1000, help="entries per page of a tree listing")
    parser.add_argument("--lfs-min-size", type=int, default=10 << 20)
    parser.add_argument("--url-ttl", type=float, default=3600.0, help="seconds that a CDN URL stays good")
    parser.add_argument("--log", dest="log_file", help="append one JSON line for each request")
    for field in dataclasses.fields(Faults):
        name, default = "--" + field.name.replace("_", "-"), field.default
        if isinstance(default, bool):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, type=type(default), default=default, help=f"fault (default {default!r})")
    args = vars(parser.parse_args())
    args["cdn"], args["resolve_cache"] = not args.pop("no_cdn"), not args.pop("no_resolve_cache")
    with FakeHub(**args) as hub:
        print(json.dumps({"url": hub.url, "cdn": hub.cdn_url}), flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
