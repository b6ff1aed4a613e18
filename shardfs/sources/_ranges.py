"""Files on web servers, read by ranges. No answer is believed before its status and headers were looked at.

RFC 9110, sections 8.8 (validators), 13.1.5 (If-Range), 14 (range requests).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from shardfs.blob import Stored, clip, may_wait
from shardfs.errors import Unreadable, WouldBlock
from shardfs.sources._waits import Transient
from shardfs.sources._web import bare

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from shardfs.sources._web import Answer, Origin, Web

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_EMPTY = "bytes */0"
# ETags that tell the content: those of Zenodo, and those of object stores for what came in one part.
_MD5 = re.compile(r"(?:md5:)?([0-9a-f]{32})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of a file.

    Attributes:
        size: its length in bytes.
        validator: an ETag, or the time of its last change as the server writes it; "" where it tells neither.
        mtime_ns: that time in nanoseconds since 1970, 0 where it does not tell.
        begin: the first bytes of the file, if more than one of them was asked for.
    """

    size: int
    validator: str
    mtime_ns: int
    begin: bytes = field(default=b"", repr=False)


def probe(web: Web, origin: Origin, length: int = 1) -> Facts:
    """What the server says of a file: a request for its first *length* bytes, since not all answer HEAD as they do GET.

    Raises:
        Unreadable: it serves no ranges, or does not say how long the file is; and as ``Web.ask``.
    """
    asked = {"Range": f"bytes=0-{length - 1}"}
    return web.ask(origin, asked, lambda answer: _facts(answer, origin, length))


def _facts(answer: Answer, origin: Origin, length: int) -> Facts:
    headers, begin = answer.headers, b""
    validator = headers.get("ETag") or headers.get("Last-Modified") or ""
    said = headers.get("Content-Range", "").strip()
    found = _CONTENT_RANGE.fullmatch(said)
    if answer.status == 206 and found and _is_begin(found, length):
        size, came = int(found[3]), int(found[2]) + 1
        if length > 1 and answer.length == came and _is_plain(headers):
            begin = b"".join(answer.body(came))
    elif (answer.status == 416 and said == _EMPTY) or (answer.status == 200 and not answer.length):
        size = 0
    elif answer.status == 200:
        raise Unreadable(_no_ranges(origin, answer))
    else:
        raise Unreadable(f"{origin.name}: {answer.host} does not say how long it is")
    return Facts(size, validator, _mtime_ns(headers), begin)


def _is_begin(found: re.Match[str], length: int) -> bool:
    """Whether a Content-Range is of the first bytes of a file, *length* of them at most."""
    return found[3] != "*" and int(found[1]) == 0 and int(found[2]) < min(length, int(found[3]))


def _is_plain(headers: Mapping[str, str]) -> bool:
    """Whether the body of an answer is the bytes of the file, in no other encoding."""
    return headers.get("Content-Encoding", "identity") == "identity"


def _mtime_ns(headers: Mapping[str, str]) -> int:
    try:
        when = parsedate_to_datetime(headers.get("Last-Modified", ""))
        return int(when.timestamp()) * 10**9
    except (ValueError, TypeError, OverflowError):
        return 0


def _no_ranges(origin: Origin, answer: Answer) -> str:
    return (
        f"{origin.name}: {answer.host} serves no parts of files (Range requests); download it first"
    )


class RangeBlob(Stored):
    """A file on a web server, in the version that *validator* names ("": in any); *begin* of it has come already."""

    __slots__ = ("_begin", "_origin", "_size", "_validator", "_web")

    def __init__(
        self, web: Web, origin: Origin, size: int, validator: str = "", begin: bytes = b""
    ) -> None:
        self._web, self._origin, self._size, self._validator = web, origin, size, validator
        self._begin = begin

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        if start == stop:
            return memoryview(b"")
        if not may_wait():
            raise WouldBlock
        return memoryview(b"".join(self.stream(start, stop - start)))

    def stream(self, offset: int, length: int, /) -> Generator[bytes, None, None]:
        """The bytes of a range in pieces as they come; where they stop coming, the rest is asked for again."""
        begin = self._begin[offset : offset + length]
        if begin:
            yield begin
        offset, length = offset + len(begin), length - len(begin)
        tries = self._web.tries(self._origin)
        while length > 0:
            came = 0
            try:
                with self._web.answer(self._origin, self._headers(offset, length)) as answer:
                    self._check(answer, offset, length)
                    for piece in answer.body(length):
                        came += len(piece)
                        yield piece
            except Transient as problem:
                tries.failed(problem, progress=came)
                self._web.retries += 1
            offset, length = offset + came, length - came

    def _headers(self, offset: int, length: int) -> dict[str, str]:
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if self._validator and not self._validator.startswith("W/"):
            headers["If-Range"] = self._validator
        return headers

    def _check(self, answer: Answer, offset: int, length: int) -> None:
        """Raise Unreadable or Transient where *answer* is not the asked part of the right version."""
        headers, name = answer.headers, self._origin.name
        if answer.status == 416 or not self._is_same(headers):
            raise Unreadable(f"{name}: has changed since it was mounted")
        if not _is_plain(headers):
            raise Unreadable(f"{name}: {answer.host} sends it in another encoding than asked for")
        is_whole = offset == 0 and length == self._size
        if answer.status == 200 and not (is_whole and answer.length == length):
            raise Unreadable(_no_ranges(self._origin, answer))
        if answer.status == 206:
            said = headers.get("Content-Range", "").strip()
            found = _CONTENT_RANGE.fullmatch(said)
            if found and found[3] not in ("*", str(self._size)):
                raise Unreadable(f"{name}: has changed since it was mounted")
            if not found or (int(found[1]), int(found[2])) != (offset, offset + length - 1):
                raise Transient(f"{answer.host} sent another part than asked for ({said})")
        if answer.length not in (None, length):
            raise Transient(f"{answer.host} sent {answer.length} bytes instead of {length}")

    def _is_same(self, headers: Mapping[str, str]) -> bool:
        """Whether an answer is of the right version, as far as it says."""
        digest = _MD5.fullmatch(bare(headers.get("ETag", ""))) if self._origin.md5 else None
        if digest and digest[1].lower() != self._origin.md5:
            return False
        if not self._validator:
            return True
        is_tag = self._validator.endswith('"')
        said = headers.get("ETag" if is_tag else "Last-Modified", "")
        return not said or bare(said) == bare(self._validator)
