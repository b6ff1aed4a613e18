"""The extension for bytes in some file format: from what was declared, what they begin with, and what they were called.

In this order: the declared suffix, which for media a specific signature overrules; a signature; text; a file
name stored beside the bytes; ``.bin``.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING

from shardfs.names import split_extension
from shardfs.views.media import MEDIA
from shardfs.views.signatures import HEAD, signature

if TYPE_CHECKING:
    from shardfs.blob import Blob

UNKNOWN = ".bin"

_NO_SPELLINGS: frozenset[str] = frozenset()
# A declared suffix that is none of these is believed: `.docx` is a zip, `.cr2` a TIFF, and that says less.
_OVERRULED = frozenset(MEDIA).union(*MEDIA.values())


def extension_of(blob: Blob, declared: str = "", filename: str = "") -> str:
    """The extension for the bytes of *blob*, by one read of its first 4 KB at most."""
    if declared and declared != UNKNOWN and declared.lower() not in _OVERRULED:
        return declared
    return extension(bytes(blob.read(0, HEAD)), blob.size(), declared, filename)


def extension(head: bytes, size: int, declared: str = "", filename: str = "") -> str:
    """The extension, with its dot, for *size* bytes that begin with *head*.

    Args:
        head: the first ``HEAD`` bytes, or all where there are fewer. More are not looked at.
        size: how many bytes there are.
        declared: the suffix of the type that the dataset declares, "" for none.
        filename: a file name stored beside the bytes, "" for none.
    """
    head = head[:HEAD]
    if not declared or declared == UNKNOWN:
        return signature(head, size) or _text(head, size) or suffix_of(filename) or UNKNOWN
    known = declared.lower()
    if known in _OVERRULED:
        found = signature(head, size)
        if found in MEDIA and found != known and known not in MEDIA[found]:
            return found
    return declared


def suffix_of(filename: str) -> str:
    """The extension of a file name or path, "" where what follows its last dot doesn't look like one."""
    suffix = split_extension(filename.rpartition("/")[2])[1]
    return suffix if re.fullmatch(r"\.[A-Za-z0-9_+-]{1,16}", suffix) else ""


# --- text --------------------------------------------------------------------------------------------------

# all that Unicode calls control characters, but tab, LF, FF and CR
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_PROLOG = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>", re.I | re.S)
_ELEMENT = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)")
_JSON = json.JSONDecoder()
# how far before its end a cut JSON text may be found wrong: the longest token is -Infinity
_LONGEST_TOKEN = 9


def _text(head: bytes, size: int) -> str:
    """The extension for text, "" for anything else. Of text that is longer than *head* that much is judged."""
    whole = len(head) >= size
    try:
        text, _ = codecs.utf_8_decode(head, "strict", whole)  # else the last character may be cut
    except UnicodeDecodeError:
        return ""
    if not text or _CONTROL.search(text):
        return ""
    start = text.lstrip("\ufeff \t\r\n\f")
    if start.startswith(("{", "[")) and _is_json(start, whole):
        return ".json"
    return (start.startswith("<") and _markup(start)) or ".txt"


def _is_json(text: str, whole: bool) -> bool:
    """Whether *text* is a JSON object or array, or could be the beginning of one where it is not all."""
    try:
        _, end = _JSON.raw_decode(text)
    except json.JSONDecodeError as error:
        unfinished = error.msg.startswith("Unterminated string")
        return not whole and (unfinished or error.pos >= len(text) - _LONGEST_TOKEN)
    except RecursionError:
        return False
    return not text[end:].strip(" \t\r\n")


def _markup(text: str) -> str:
    """The extension for XML and HTML, "" for other text that begins with `<`: a chat's `<image>` is no markup."""
    at = 0
    while match := _PROLOG.match(text, at):
        at = match.end()
    element = _ELEMENT.match(text, at)
    root = element[1].lower() if element else ""
    if root == "svg":
        return ".svg"
    if root == "html" or re.match(r"\s*<!DOCTYPE\s+html\b", text, re.I):
        return ".html"
    return ".xml" if text.startswith("<?xml") else ""
