"""Fields as files: which view shows which kind, and what is shown where a view can't."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shardfs import names
from shardfs.blob import Blob, Broken, Slice, read_all
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
from shardfs.views.sniff import UNKNOWN, extension_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.cache.memory import Memory
    from shardfs.model import View

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
        other one. Only what may pass is raised: ``WouldBlock``, and ``Unreadable`` where the name depends on
        bytes that could not be read now.
        """
        return [file for field in fields for file in self._present(field)]

    def _present(self, field: Field) -> Sequence[File]:
        if field.filename is not None:
            return (File(*split_filename(field.filename), self._content(field)),)
        ...
