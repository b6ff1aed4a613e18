"""A table on disk that is read in many small pieces near one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import clip

if TYPE_CHECKING:
    from shardfs.blob import Blob

_PAGE = 64 << 10
# Pages held of one blob; a listing reads in a few places at a time that move on together.
_HELD = 16


class Paged:
    """Another blob, of which pages are held, so that most reads of a few bytes cost no system call.

    Two generations of dictionaries, as whoever loses a page only reads it again.
    """

    __slots__ = ("_blob", "_old", "_size", "_young")

    def __init__(self, blob: Blob) -> None:
        self._blob, self._size = blob, blob.size()
        self._young: dict[int, memoryview] = {}
        self._old: dict[int, memoryview] = {}

    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int, /) -> memoryview:
        start, stop = clip(offset, length, self._size)
        number, begin = divmod(start, _PAGE)
        if begin + stop - start > _PAGE:
            return self._blob.read(offset, length)
        page = self._young.get(number)
        if page is None:
            page = self._page(number)
        return page[begin : begin + stop - start]

    def _page(self, number: int) -> memoryview:
        page = self._old.get(number)
        if page is None:
            page = self._blob.read(number * _PAGE, _PAGE)
        if len(self._young) >= _HELD:
            self._young, self._old = {}, self._young
        self._young[number] = page
        return page
