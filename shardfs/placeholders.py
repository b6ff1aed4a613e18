"""What may lie where data should: the pointer that Git keeps for a large file, or the page of a server that had none.

Told by the first bytes alone, and only by what can't be meant as data there.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shardfs.blob import Blob

HEAD = 64 << 10
"""How many of the first bytes are looked at."""

POINTER = 1024
"""Pointers have fewer bytes than this (git-lfs, docs/spec.md)."""

_LFS = re.compile(rb"version https?://(git-lfs|hawser)\.github\.com/spec/v\d\r?\n(.*\n)*?oid ")
_ANNEX = re.compile(rb"/annex/objects/[^\0\n]+\r?\n?\Z")
# A byte order mark and blanks may come first, and comments.
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<!--.*?-->|<\?xml.*?\?>)*", re.S)
_HTML = re.compile(rb"<!doctype\s+html\b|<html[\s>]", re.I)
_XML_ERROR = re.compile(rb"<(Error|error|ErrorResponse)[\s>]")
_GZIP = b"\x1f\x8b\x08"

# What the objects of servers say, and nothing else, when there is no file to send.
_KEYS = """
    error errors error_description message msg status statuscode status_code code detail details title type reason
    name path timestamp success instance documentation_url request_id requestid trace_id
"""
_KNOWN = frozenset(_KEYS.split())
_ERRORS, _TELLING = ("error", "errors"), ("message", "msg", "detail")
_STATUS = ("status", "statuscode", "status_code", "code")
_REFUSAL = (
    r"not.?found|unauthori[sz]ed|forbidden|(access|permission) (is )?denied|(rate.?limit|quota).*exceeded"
    r"|too many requests|internal.?(server.?)?error|bad (gateway|request)|(service )?unavailable"
    r"|authentication (is )?required"
)
_REFUSED = re.compile(
    rf"{_REFUSAL}|expired|no such|denied|invalid|missing|restricted|gated|log ?in|sign in|authenticat|permission|failed"
    r"|time.?d? ?out|(does|do|is|are)( not|n.t) |must |can( not|not|'t) |[45]\d\d",
    re.I,
)
_PLAINLY_REFUSED = re.compile(rf"([45]\d\d\W*)?({_REFUSAL})\W*", re.I)
_LONGEST = 80


_BEGINNINGS = frozenset(b"v/<{[ \t\r\n\xef\x1f")


def may_be_placeholder(head: bytes) -> bool:
    """Whether it is worth a look at more of what begins with *head*."""
    return bool(head) and head[0] in _BEGINNINGS


def placeholder(head: bytes, *, text: bool = False) -> str:
    """What begins with *head* instead of data, and what cures it, for the user; "" where it may be data.

    *text*: whether data may be text there. Then a page of HTML is none all the same, and of JSON only what speaks of
    an error.
    """
    if len(head) < POINTER and _LFS.match(head):
        return "is a Git LFS pointer, not the data: run `git lfs pull` where it was cloned"
    if len(head) < POINTER and _ANNEX.match(head):
        return "is a git-annex pointer, not the data: run `git annex get` where it was cloned"
    if head.startswith(_GZIP):
        head = _inflated(head)
    before = _BEFORE.match(head)
    rest = head[before.end() if before else 0 :]
    if _HTML.match(rest) and not (text and b"</html>" in rest.partition(b"\n")[0].lower()):
        return "is an HTML page, not the data, as a server sends for an error or a login: download it again"
    if _XML_ERROR.match(rest):
        return "is an XML error message of a server, not the data: download it again"
    said = _json(rest, text_is_data=text) if rest[:1] in (b"{", b"[") and len(head) < HEAD else None
    if said is None:
        return ""
    quoted = f" ({said})" if said else ""
    return f"is a JSON message{quoted}, not the data, as a server sends for an error: download it again"


def check_pointer(blob: Blob) -> None:
    """Raise Corrupt where a file is a pointer in the place of another one."""
    if blob.size() < POINTER:
        said = placeholder(bytes(blob.read(0, POINTER)), text=True)
        if "pointer" in said:
            raise Corrupt(said)


def _inflated(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


def _json(text: bytes, *, text_is_data: bool) -> str | None:
    """What a JSON text says that is a message; None where it is none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    said = (
        {str(key).lower(): value for key, value in content.items()}
        if isinstance(content, dict)
        else {}
    )
    known = said if _KNOWN.issuperset(said) else {}
    error = _first(known, _ERRORS)
    words = error or _first(known, _TELLING)
    if text_is_data and not (
        _REFUSED.search(error)
        or any(known.get(key) in range(400, 600) for key in _STATUS)
        or _PLAINLY_REFUSED.fullmatch(words)
    ):
        return None
    return " ".join(words.encode("ascii", "replace").decode().split())[:_LONGEST]


def _first(content: Mapping[str, object], keys: Sequence[str]) -> str:
    """The text under the first of *keys* that has any, be it inside of what stands there."""
    texts = (" ".join(_texts(content.get(key))) for key in keys)
    return next(filter(None, texts), "")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
