"""xz streams, one or several, and the older .lzma format: https://tukaani.org/xz/xz-file-format.txt."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._careful import Careful
from shardfs.codecs._members import Members
from shardfs.codecs._xz_windows import is_xz, limited
from shardfs.errors import TooLarge, Unsupported

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Stream

# Enough that a call's own cost does not count.
_STEP = 64 << 10
# liblzma's word for LZMA_OPTIONS_ERROR, by which the module does not tell it from damage.
_NOT_KNOWN = "unsupported options"


class Xz:
    """The codec `xz`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (lzma.LZMAError, EOFError)

    @staticmethod
    def stream(blob: Blob, most: int) -> Stream:
        def begin(head: bytes) -> tuple[_Decompressor, bytes]:
            head, said = limited(head, most)
            form = lzma.FORMAT_XZ if is_xz(head) else lzma.FORMAT_ALONE
            return _Decompressor(form, most, said), head

        return Careful(lambda _: Members(blob, begin, step=_STEP), Xz.damage)

    @staticmethod
    def content_size(blob: Blob) -> int | None:
        """None: only the index at the end of a stream says."""
        return None


class _Decompressor:
    """The library's, which tells its limits from damage."""

    def __init__(self, form: int, most: int, said: int | None) -> None:
        """It looks back over *most* bytes only, where the data say the larger size *said*."""
        self._inner = lzma.LZMADecompressor(form)
        self._left, self._said = most, said

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return self._inner.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._said is not None:
            max_length = min(max_length, max(self._left, 1))
        try:
            output = self._inner.decompress(data, max_length)
        except lzma.LZMAError as error:
            if _NOT_KNOWN in str(error):
                raise Unsupported(
                    "an xz filter that the liblzma of this Python does not know is not supported: pack it anew with xz"
                ) from error
            raise
        self._left -= len(output)
        if self._said is not None and self._left < 0:
            raise TooLarge(
                f"an xz dictionary of {self._said} bytes, more than --max-chunk-size allows"
            )
        return output
