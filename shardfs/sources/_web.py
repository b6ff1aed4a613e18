"""Requests to web servers: few connections a host, limits on time, tries again, and no secret in any message.

Redirects are followed here, not by the library, so that tokens go to the host they are meant for and nowhere else, and
so that a signed URL that a server redirected to is used until it expires.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urljoin, urlsplit

from cachetools import LRUCache
from urllib3 import exceptions

from shardfs.blob import may_wait
from shardfs.errors import (
    AccessDenied,
    NotFound,
    TooLarge,
    Unreadable,
    UsageError,
    WouldBlock,
    located,
)
from shardfs.sources._connections import Connections
from shardfs.sources._waits import Gates, Transient, Tries, asked_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from urllib3 import BaseHTTPResponse

    from shardfs.options import Options

T = TypeVar("T")

# Its messages have whole URLs in them, and those may be signed.
logging.getLogger("urllib3").setLevel(logging.CRITICAL)

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 8
# Where the Hub says what content a redirect leads to: a digest of it, and that of its storage, Xet.
_LINKED = ("X-Linked-ETag", "X-Xet-Hash")
# What a server says to a signed URL that has expired.
_EXPIRED = (400, 401, 403, 404, 410)
# Those that the Hub's own client tries again, and "too early".
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)

# Files whose redirects are remembered.
_TARGETS = 10_000
# Bytes that are read at a time at most, and those of an answer that nobody wants that are read to keep the connection:
# no more than come with its head.
_PIECE, _RATHER_READ = 256 << 10, 4 << 10
# Bytes per second below which an answer is given up.
_SLOWEST = 16 << 10
# Characters of what a server says that go into a message.
_LONGEST_WORD = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where something is on the web, and what to send for it.

    Attributes:
        url: where to ask; may be signed.
        name: what messages call it; no secrets.
        headers: what to send to the host of *url*, and to no other: a token.
        linked: the digest of the content that a redirect to it must name, if it names any.
        md5: of the content, in hex; an answer's ETag that is an MD5 must be this one.
        hint: what the user can do where access is denied.
        body: what to send by POST; None to GET.
    """

    url: str = field(repr=False)
    name: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    linked: str = ""
    md5: str = ""
    hint: str = ""
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a server has redirected to; *moved*: whether it has."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    moved: bool = False

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def is_stale(self, status: int) -> bool:
        """Whether an answer with *status* says that it is to be asked for anew where it leads."""
        return status in _REDIRECTS or (self.moved and status in _EXPIRED)


class _Known:
    """Where an origin leads to, as far as it is known; whoever finds out holds the lock."""

    def __init__(self) -> None:
        self.target: _Target | None = None
        self.lock = threading.Lock()


class Answer:
    """An answer whose body was not read yet."""

    def __init__(self, response: BaseHTTPResponse, host: str, web: Web) -> None:
        self._response, self.host, self._web = response, host, web
        self.status, self.headers = response.status, response.headers
        self._is_whole = True  # until somebody begins to read, and does not come to the end

    @property
    def length(self) -> int | None:
        """How many bytes the body has, None where the answer does not say."""
        said = self.headers.get("Content-Length", "")
        return int(said) if said.isascii() and said.isdigit() else None

    def body(self, length: int | None) -> Iterator[bytes]:
        """*length* bytes, or all there are, in pieces as they come. Raises Transient where they don't."""
        self._is_whole = False
        deadline = time.monotonic() + self._web.timeout + (length or 0) / _SLOWEST
        while length is None or length > 0:
            try:
                data = self._response.read1(_PIECE if length is None else min(length, _PIECE))
            except exceptions.HTTPError as error:
                raise Transient(_reason(error)) from None
            if not data and length is None:
                break
            if not data:
                raise Transient("the connection was cut")
            if time.monotonic() > deadline:
                raise Transient("the answer comes too slowly")
            self._web.bytes += len(data)
            length = None if length is None else length - len(data)
            yield data
        self._is_whole = True

    def close(self) -> None:
        """Give the connection back, or end it where more of the body would come than is quickly read."""
        left = self._response.length_remaining
        if self._is_whole and left is not None and left <= _RATHER_READ:
            with contextlib.suppress(exceptions.HTTPError):
                self._response.drain_conn()
        self._response.close()
        self._response.release_conn()


class Web:
    """Makes the requests of one mount. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self._connections = Connections(options.connections, options.timeout)
        self.timeout, self._tries = options.timeout, 1 + options.retries
        self._offline = options.offline
        self._gates = Gates()
        self._known: LRUCache[str, _Known] = LRUCache(_TARGETS)
        self._reached: set[str] = set()
        self._lock = threading.Lock()
        self._agent = f"shardfs/{version('shardfs')}"
        self.requests = self.retries = self.bytes = 0

    def counts(self) -> Mapping[str, int]:
        """What it took so far."""
        return {"requests": self.requests, "retries": self.retries, "bytes": self.bytes}

    def close(self) -> None:
        """Let go of all connections. Requests under way fail, as do later ones."""
        self._gates.close()
        self._connections.close()

    # --- requests, with tries ---

    def ask(self, origin: Origin, headers: Mapping[str, str], use: Callable[[Answer], T]) -> T:
        """What *use* makes of the answer, which is 2xx or 416.

        Raises:
            AccessDenied, NotFound, Unreadable: the server says so, or says nothing, all tries included.
        """
        tries = self.tries(origin)
        while True:
            try:
                with self.answer(origin, headers) as answer:
                    return use(answer)
            except Transient as problem:
                tries.failed(problem)
                self.retries += 1

    def content(self, origin: Origin, limit: int) -> tuple[Mapping[str, str], bytes]:
        """The headers and the whole body of an answer, for listings and the like.

        Raises:
            TooLarge: it has more than *limit* bytes.
            AccessDenied, NotFound, Unreadable: as ``ask``.
        """
        return self.ask(origin, {}, lambda answer: (answer.headers, _whole(answer, limit, origin)))

    def tries(self, origin: Origin) -> Tries:
        """The tries of a request that the caller makes himself by ``answer``."""
        return Tries(origin.name, self._tries, self._gates)

    @contextmanager
    def answer(self, origin: Origin, headers: Mapping[str, str]) -> Iterator[Answer]:
        """The answer to one request, 2xx or 416.

        Raises:
            Transient: another try may go better.
            AccessDenied, NotFound, Unreadable: it will not.
        """
        answer = self._answer(origin, headers)
        try:
            _check_status(answer, origin)
            yield answer
        finally:
            answer.close()

    # --- one request ---

    def _answer(self, origin: Origin, headers: Mapping[str, str]) -> Answer:
        """The answer from where *origin* leads to; one that it redirects to is asked directly from then on."""
        with self._lock:
            known = self._known.setdefault(origin.url, _Known())
        before = known.target
        if before is not None:
            answer = self._send(before, headers, origin)
            if not before.is_stale(answer.status):
                return answer
            answer.close()
        with known.lock:
            target = known.target
            if target is None or target is before:
                return self._follow(origin, headers, known)
        return self._send(target, headers, origin)  # another thread has found out

    def _follow(self, origin: Origin, headers: Mapping[str, str], known: _Known) -> Answer:
        target = _Target(origin.url, origin.headers)
        for _ in range(_MAX_REDIRECTS):
            answer = self._send(target, headers, origin)
            location = answer.headers.get("Location", "")
            if answer.status not in _REDIRECTS or not location:
                # A server that fails says nothing of where its files are.
                is_known = answer.status < 400 or (target.moved and answer.status not in _EXPIRED)
                known.target = target if is_known else None
                return answer
            answer.close()
            linked = {bare(answer.headers.get(name, "")) for name in _LINKED} - {""}
            if origin.linked and linked and bare(origin.linked) not in linked:
                raise Unreadable(f"{origin.name}: has changed since it was mounted")
            url = urljoin(target.url, location)
            stays = _site(url) == _site(target.url)
            target = _Target(url, target.headers if stays else {}, moved=True)
        raise Unreadable(f"{origin.name}: redirects in a circle")

    def _send(self, target: _Target, headers: Mapping[str, str], origin: Origin) -> Answer:
        if not may_wait():
            raise WouldBlock
        if self._offline:
            raise Unreadable(f"{origin.name}: offline")
        if urlsplit(target.url).scheme not in ("http", "https"):
            raise Unreadable(f"{origin.name}: redirects to what is no web server")
        with located(origin.name):
            self._gates.pass_through(target.host)
        # Compressed, it would have other lengths and offsets.
        always = {"User-Agent": self._agent, "Accept-Encoding": "identity"}
        self.requests += 1
        try:
            response = self._connections.ask(
                target.url, {**always, **target.headers, **headers}, origin.body
            )
        except exceptions.HTTPError as error:
            reason = f"{target.host}: {_reason(error)}"
            # A host that never was there is a slip of the pen, and no reason to wait.
            is_new = target.host not in self._reached
            if isinstance(error, exceptions.SSLError) or (is_new and isinstance(error, _AWAY)):
                raise Unreadable(f"{origin.name}: {reason}") from None
            raise Transient(reason) from None
        self._reached.add(target.host)
        wait = asked_wait(response.status, response.headers)
        if wait is not None:
            self._gates.shut(target.host, wait)
        return Answer(response, target.host, self)


def bearer(token: str, where: str) -> dict[str, str]:
    """The header that shows *token*, none without one. Raises UsageError, which tells *where* it is from, no more."""
    if not re.fullmatch(r"[!-~]*", token):
        raise UsageError(f"the token ({where}) has characters that none has")
    return {"Authorization": f"Bearer {token}"} if token else {}


def bare(tag: str) -> str:
    """An ETag without quotes and the mark of weak ones."""
    return tag.removeprefix("W/").strip('"')


def _site(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


def _check_status(answer: Answer, origin: Origin) -> None:
    status = answer.status
    if status < 400 or status == 416:
        if not (200 <= status < 300 or status == 416):
            raise Unreadable(f"{origin.name}: {answer.host} answered HTTP {status}")
        return
    word = answer.headers.get("X-Error-Message", "")[:_LONGEST_WORD].rstrip(".")
    said = f"{answer.host} answered HTTP {status}" + (f", {word}" if word else "")
    hint = f"; {origin.hint}" if origin.hint else ""
    if status in (401, 403):
        raise AccessDenied(f"{origin.name}: access denied: {said}{hint}")
    if status in (404, 410):
        what = "deleted" if status == 410 else "not there"
        # So the Hub says of what the token may not see.
        is_hidden = answer.headers.get("X-Error-Code") == "RepoNotFound"
        raise NotFound(f"{origin.name}: {what}: {said}{hint if is_hidden else ''}")
    if status in _TRANSIENT:
        raise Transient(said, asked_wait(status, answer.headers))
    raise Unreadable(f"{origin.name}: {said}")


def _whole(answer: Answer, limit: int, origin: Origin) -> bytes:
    """The whole body of an answer."""
    body = bytearray()
    for piece in answer.body(answer.length):
        body += piece
        if len(body) > limit:
            raise TooLarge(f"{origin.name}: an answer of more than {limit} bytes")
    return bytes(body)


_REASONS: tuple[tuple[type[exceptions.HTTPError], str], ...] = (
    (exceptions.NameResolutionError, "no such host"),
    (exceptions.NewConnectionError, "no connection"),
    (exceptions.ConnectTimeoutError, "no connection in time"),
    (exceptions.ReadTimeoutError, "no answer in time"),
    (exceptions.EmptyPoolError, "all connections are in use"),
    (exceptions.SSLError, "no secure connection (TLS)"),
    (exceptions.ProxyError, "no connection by way of the proxy"),
)
_AWAY = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyError)


def _reason(error: exceptions.HTTPError) -> str:
    """What went wrong, in words without a URL."""
    words = (word for kind, word in _REASONS if isinstance(error, kind))
    return next(words, "the connection was cut")
