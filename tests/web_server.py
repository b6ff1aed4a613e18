"""A web server on this machine that misbehaves on demand, and remembers what it was asked."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

from shardfs.names import from_bytes, to_bytes

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from email.message import Message
    from pathlib import Path

CHANGED = "Mon, 02 Jan 2023 03:04:05 GMT"
CHANGED_NS = 1_672_628_645 * 10**9


@dataclass
class Request:
    """A request, filled in while it is answered."""

    path: str
    query: str
    headers: Message
    status: int = 0
    sent: int = 0

    @property
    def range(self) -> str:
        return str(self.headers.get("Range", ""))


@dataclass
class Faults:
    """What to do wrong, and to how many requests of files (-1: to all). Latency alone does not count as wrong."""

    times: int = 0
    latency: float = 0.0
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # bytes of the body; -1: not even the head comes
    stall_after: int | None = None
    trickle: bool = False
    mode: str = ""  # whole: 200; shifted, short, lying: wrong parts; gzip: encoded; long: more than asked for


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        web = self.server.web
        url = urlsplit(self.path)
        request = Request(from_bytes(unquote_to_bytes(url.path)), url.query, self.headers)
        with web.lock:
            web.requests.append(request)
            web.active += 1
            wrong = web.faults if web.faults.times else Faults()
            web.faults.times -= bool(web.faults.times > 0)
        time.sleep(web.faults.latency)
        try:
            self._answer(web, request, wrong)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with web.lock:
                web.active -= 1

    def _answer(self, web: WebServer, request: Request, wrong: Faults) -> None:
        if wrong.cut_after == -1:
            self._cut()
            return
        if wrong.status:
            self._head(request, wrong.status, {"Content-Length": "9", **wrong.headers})
            self.wfile.write(b"not today")
            return
        if request.path in web.answers:
            status, headers = web.answers[request.path]
            self._head(request, status, {"Content-Length": "0", **headers})
            return
        if web.password and self.headers.get("Authorization") != web.password:
            self._head(request, 401, {"Content-Length": "0"})
            return
        content = web.content(request.path)
        if content is None:
            self._head(request, 404, {"Content-Length": "0"})
            return
        if web.moves_to is not None:
            location = web.moves_to.signed(request.path)
            self._head(request, 302, {"Location": location, "Content-Length": "5"})
            self.wfile.write(b"moved")
            return
        if web.signatures is not None and request.query not in web.signatures:
            self._head(request, 403, {"Content-Length": "0"})
            return
        self._part(web, request, wrong, content)

    def _part(self, web: WebServer, request: Request, wrong: Faults, content: bytes) -> None:
        headers = web.validators(content)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", request.range)
        condition = self.headers.get("If-Range")
        if not found or wrong.mode == "whole" or condition not in (None, *headers.values()):
            self._send(request, 200, headers, content, wrong)
            return
        start, stop = int(found[1]), min(int(found[2]) + 1, len(content))
        if start >= len(content):
            self._head(
                request, 416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"}
            )
            return
        shown, body = (start, stop - 1), content[start:stop]
        if wrong.mode == "shifted":
            shown, body = (start + 1, stop), content[start + 1 : stop + 1]
        elif wrong.mode == "short":
            body = body[: len(body) // 2]
            shown = (start, start + len(body) - 1)
        elif wrong.mode == "lying":
            body = content[start + 1 : stop + 1]
        elif wrong.mode == "cropped":  # a head that is right, and a body that is not
            body = body[: len(body) // 2]
        elif wrong.mode == "gzip":
            headers["Content-Encoding"] = "gzip"
        headers["Content-Range"] = f"bytes {shown[0]}-{shown[1]}/{len(content)}"
        self._send(request, 206, headers, body, wrong)

    def _send(
        self, request: Request, status: int, headers: dict[str, str], body: bytes, wrong: Faults
    ) -> None:
        self._head(request, status, {**headers, "Content-Length": str(len(body))})
        end = wrong.stall_after if wrong.cut_after is None else wrong.cut_after
        step = 1 if wrong.trickle else 1 << 16
        for at in range(0, len(body) if end is None else min(end, len(body)), step):
            piece = body[at : min(at + step, len(body) if end is None else end)]
            request.sent += len(piece)
            self.wfile.write(piece)
            if wrong.trickle:
                time.sleep(0.02)
        if wrong.stall_after is not None:
            self.server.web.closing.wait(20)
        if end is not None:
            self._cut()

    def _head(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        request.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, web: WebServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web = web

    def handle_error(self, *_: object) -> None:
        """Clients that go away are no news."""


class WebServer:
    """Serves *files* by path, or a folder. Use it as a context manager.

    Attributes:
        answers: status and headers of what is answered by nothing else, by path.
        password: the Authorization header that requests must have, "" for none.
        moves_to: another server, which has the files; requests are redirected there by signed URLs.
        validates: what answers tell of the version: both, etag, time, none.
    """

    def __init__(self, files: Mapping[str, bytes] | Path, *, signed: bool = False) -> None:
        self.files = files
        self.faults = Faults()
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.answers: dict[str, tuple[int, dict[str, str]]] = {}
        self.password = ""
        self.validates = "both"
        self.active = 0
        self.moves_to: WebServer | None = None
        self.signatures: set[str] | None = set() if signed else None
        self._signed = 0
        self._listener = _Listener(self)
        self.host = f"127.0.0.1:{self._listener.server_address[1]}"
        self.url = f"http://{self.host}"

    def __enter__(self) -> WebServer:
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._listener.shutdown()
        self._listener.server_close()

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Speak TLS, before it is entered."""
        # Not on the thread that accepts: a client that says nothing would hold up the others.
        self._listener.socket = context.wrap_socket(
            self._listener.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://{self.host}"

    def content(self, path: str) -> bytes | None:
        path = path.lstrip("/")
        if isinstance(self.files, dict):
            return self.files.get(path)
        place = self.files / path  # type: ignore[operator]
        return place.read_bytes() if "\0" not in path and place.is_file() else None

    def validators(self, content: bytes) -> dict[str, str]:
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        both = {"ETag": tag, "Last-Modified": CHANGED}
        wanted = {"both": both, "etag": {"ETag": tag}, "time": {"Last-Modified": CHANGED}}
        return dict(wanted.get(self.validates, {}))

    def signed(self, path: str) -> str:
        """A URL that is good until ``expire``."""
        self._signed += 1
        query = f"Signature=SECRET{self._signed}"
        if self.signatures is not None:
            self.signatures.add(query)
        return f"{self.url}{quote(to_bytes(path))}?{query}"

    def expire(self) -> None:
        """Let no signed URL be good any more."""
        if self.signatures is not None:
            self.signatures.clear()

    def fail(self, times: int = -1, **what: Any) -> None:
        """Do wrong to the next requests."""
        self.faults = Faults(times=times, **what)

    def forget(self) -> None:
        """Forget all requests, once they are answered."""
        self.settle()
        self.requests.clear()

    def settle(self) -> None:
        """Wait until there has been nothing to do for a moment: some is fetched that nobody waits for."""
        quiet, deadline = 0, time.monotonic() + 10
        while quiet < 5 and time.monotonic() < deadline:
            time.sleep(0.004)
            quiet = 0 if self.active else quiet + 1

    def sent(self) -> int:
        """Bytes of bodies."""
        return sum(request.sent for request in self.requests)

    def data(self) -> list[Request]:
        """The requests for more than a first byte."""
        return [r for r in self.requests if r.range != "bytes=0-0" and r.status in (200, 206)]
