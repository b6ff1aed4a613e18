"""Fields as files: which view shows which kind, and what is shown where a view can't."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from shardfs import names
from shardfs.blob import Broken, Bytes, Lazy, Slice, read_all
from shardfs.cache.memory import Derived
from shardfs.errors import ShardfsError, Unreadable
from shardfs.model import (
    Array,
    Encoded,
    Field,
    File,
    Items,
    Kind,
    Pixels,
    Plain,
    Rendered,
    Scalar,
)
from shardfs.views import image, npy, text
from shardfs.views.sniff import UNKNOWN, extension_of, suffix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.blob import Blob
    from shardfs.cache.memory import Memory
    from shardfs.model import View

# Stored bytes that are rendered at once; a guess at what takes no longer than a thread hop (0.1 ms).
_SMALL = 4096
# What rendering holds at a time, in times of the stored bytes. A guess: these, objects of them, and text.
_COPIES = 4

_EXTENSIONS: dict[type[Kind], str] = {
    Scalar: text.EXTENSION,
    Array: npy.EXTENSION,
    Pixels: image.EXTENSION,
}


class Presenter:
    """Makes files of the fields of a record. Thread-safe; reads obey ``blob.no_wait``.

    Args:
        memory: holds what has to be rendered.
        raw: show the stored bytes of every field, under `.bin` where its kind has no file form of its own.
    """

    def __init__(self, memory: Memory, *, raw: bool) -> None:
        self._memory = memory
        self._views: dict[type[Kind], View] = {Plain: _plain, Encoded: _encoded}
        if not raw:
            self._views |= {
                Scalar: text.present,
                Array: npy.present,
                Pixels: image.present,
                Items: self._items,
                Rendered: self._rendered,
            }

    def files(self, fields: Sequence[Field]) -> list[File]:
        """The files that show *fields*, in their order.

        A field whose bytes can't be read is a file all the same, of a ``Broken`` blob, so that it hides no
        other one. Only what may pass is raised, ``WouldBlock`` and ``Unreadable``: a name that was made without
        a look at the bytes would change when they come.
        """
        return [file for field in fields for file in self._present(field)]

    def _present(self, field: Field) -> Sequence[File]:
        if field.filename is not None:
            return (File(field.filename, "", self._content(field)),)
        view = self._views.get(type(field.kind))
        if view is None:
            return (File(field.name, UNKNOWN, field.data),)
        if isinstance(field.data, Broken):
            return (File(field.name, _expected(field.kind), field.data),)
        try:
            files = view(field)
        except Unreadable:
            raise
        except ShardfsError as error:
            return (File(field.name, _expected(field.kind), Broken(error.again())),)
        return (File(field.name, UNKNOWN, field.data),) if files is None else files

    def _content(self, field: Field) -> Blob:
        """What a file shows that the dataset itself names: the stored bytes, unless its kind is one file of others."""
        if isinstance(field.kind, (Plain, Encoded)):
            return field.data
        files = self._present(field._replace(filename=None))
        return files[0].blob if len(files) == 1 else field.data

    def _items(self, field: Field) -> Sequence[File] | None:
        kind = field.kind
        if not isinstance(kind, Items):
            return None
        return [
            File(field.name, f".{index}{file.extension}", file.blob)
            for index, span in enumerate(kind.spans)
            if span is not None
            for file in self._present(Field(field.name, kind.kind, Slice(field.data, *span)))
        ]

    def _rendered(self, field: Field) -> Sequence[File] | None:
        kind, data = field.kind, field.data
        if not isinstance(kind, Rendered):
            return None
        render = partial(_render, kind, data)
        blob: Blob = Derived(render, self._memory, _COPIES * data.size())
        if (
            data.size() <= _SMALL
        ):  # made where it is asked for, which costs less than another thread
            blob = Lazy(lambda: Bytes(render()))
        return (File(field.name, _legal(kind.suffix), blob),)


def _render(kind: Rendered, data: Blob) -> bytes:
    return kind.render(read_all(data))


def _plain(field: Field) -> Sequence[File] | None:
    kind = field.kind
    return (File(field.name, _legal(kind.suffix), field.data),) if isinstance(kind, Plain) else None


def _encoded(field: Field) -> Sequence[File] | None:
    kind = field.kind
    if not isinstance(kind, Encoded):
        return None
    extension = extension_of(field.data, kind.suffix, kind.hint)
    return (File(field.name, _legal(extension), field.data),)


def _expected(kind: Kind) -> str:
    """The extension that a field of *kind* would have if its bytes could be read."""
    if isinstance(kind, Items):
        return _expected(kind.kind)
    if isinstance(kind, Encoded):
        return _legal(kind.suffix or suffix_of(kind.hint)) or UNKNOWN
    if isinstance(kind, (Plain, Rendered)):
        return _legal(kind.suffix) or UNKNOWN
    return _EXTENSIONS.get(type(kind), UNKNOWN)


@lru_cache
def _legal(suffix: str) -> str:
    """*suffix* as it may stand in a file name: datasets declare what they like."""
    return names.escape(suffix) if suffix else ""
