"""In which encoding a text file is: what the source declares, else what a byte order mark says, else UTF-8."""

from __future__ import annotations

import codecs
from dataclasses import replace
from typing import TYPE_CHECKING

from shardfs.formats.shared.compressed import Content, open_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.formats.text.declared import Declared
    from shardfs.model import Services
    from shardfs.stores import Entry, Store, Watch

BOM = codecs.BOM_UTF8

# By the mark that files begin with; that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Those that Python calls text and no file is in.
_NEVER = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
_ASCII = frozenset({"utf-8", "utf-8-sig", "ascii"})
_NATIVE = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_ERRORS = ("ignore", "replace")


class _Inside:
    """A store in which a file has other content: what it decompresses to."""

    def __init__(self, store: Store, codec: str, blob: Blob) -> None:
        self._store, self._blob = store, blob
        self.url = f"{store.url}#{codec}"

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        return self._store.list(prefix)

    def stat(self, path: str, /) -> Entry:
        return replace(self._store.stat(path), size=self._blob.size())

    def open(self, path: str, /) -> Blob:
        return self._blob

    def watch(self, path: str, version: str, /) -> Watch | None:
        return self._store.watch(path, version)


def open_text(
    store: Store, entry: Entry, services: Services, declared: Declared
) -> tuple[Content, str]:
    """The content of the file *entry* in UTF-8, and the encoding that it was in, "" for that.

    Raises Corrupt where an encoding is declared that nobody knows.
    """
    name = encoding_of(declared)
    content = open_content(store, entry, services)
    if name in ("", "utf-8", "utf-8-sig", *_NATIVE):
        head = bytes(content.blob.read(0, 4))
        marked = (charset for mark, charset in _MARKS if head.startswith(mark))
        name = next(marked, _NATIVE.get(name, name))
    if name in ("", *_ASCII):
        return content, ""
    errors = declared.text("encoding_errors", "strict")
    charset = f"{name}:{errors}" if errors in _ERRORS else name
    if content.size is None:
        store = _Inside(store, "unpacked", content.blob)
        entry = replace(entry, size=content.blob.size())
    blob = services.unpack(store, entry, f"charset:{charset}")
    return Content(blob, None, content.stored), charset


def encoding_of(declared: Declared) -> str:
    """The encoding that is declared, by the name that Python gives it; "" where none is. Raises Corrupt."""
    name = declared.text("encoding", "")
    if not name:
        return ""
    known = ""
    try:
        known = codecs.lookup(name).name
        b"a".decode(name, "ignore")  # refuses what makes bytes of bytes
    except UnicodeError:
        pass  # a letter is no text in all of them
    except (LookupError, ValueError):
        known = ""
    if not known or known.replace("-", "_") in _NEVER:
        raise declared.wrong("encoding", "the name of an encoding, such as latin-1 or utf-16")
    return known
