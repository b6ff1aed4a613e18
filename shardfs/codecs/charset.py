"""Text in other encodings as UTF-8: a codec like those of compression, since lengths change as much.

Its name is followed by that of the encoding as Python calls it: `charset:cp1252`. Bytes that the encoding has no
character for stay as they are, so that nothing is lost; behind `:ignore` or `:replace` they go or become U+FFFD.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, ClassVar

from shardfs.codecs._source import Source
from shardfs.codecs.pieces import Piece, Unsuited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.blob import Blob
    from shardfs.codecs import Codec, Stream

_STEP = 64 << 10
# Bytes between two places to start from. A guess: a few milliseconds of work.
_SPACING = 1 << 20

# Encodings in which a character's bytes depend on what came before.
_STATEFUL = ("iso2022", "hz", "utf_7", "utf-7")
_WIDE = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}


class Charset:
    """The codec `charset`."""

    damage: ClassVar[tuple[type[Exception], ...]] = (UnicodeError,)

    def __init__(self, argument: str) -> None:
        self.name, _, errors = argument.partition(":")
        as_stored = "replace" if self.name in _WIDE else "surrogateescape"
        self._errors = errors or as_stored

    def stream(self, blob: Blob, most: int, /) -> Stream:
        return _Recoded(blob, codecs.getincrementaldecoder(self.name)(self._errors))

    def content_size(self, blob: Blob, /) -> int | None:
        """None: only a look at all of it tells."""
        return None

    def recoded(self, data: bytes) -> bytes:
        """Whole characters in UTF-8. Raises UnicodeError."""
        return _utf8(data.decode(self.name, self._errors))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class _Recoded:
    """What *decoder* makes of a blob."""

    def __init__(self, blob: Blob, decoder: codecs.IncrementalDecoder) -> None:
        self._source, self._decoder = Source(blob), decoder
        self._left, self._ended = memoryview(b""), False

    def readinto1(self, target: memoryview, /) -> int:
        while not self._left and not self._ended:
            data = self._source.read(_STEP)
            self._ended = not data
            self._left = memoryview(_utf8(self._decoder.decode(data, final=not data)))
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class CharsetPieces:
    """Pieces of text that ends its characters where a line ends. A piece needs no state."""

    def __init__(self, argument: str) -> None:
        self._charset = Charset(argument)

    def pieces(self, blob: Blob, largest: int, /) -> Iterator[Piece]:
        if self._charset.name.startswith(_STATEFUL):
            raise Unsuited(f"text in {self._charset.name}")
        at, size = 0, blob.size()
        step = min(_SPACING, max(largest // 8, 1))
        while at < size:
            data = bytes(blob.read(at, step))
            if at + len(data) < size:
                data = data[: self._whole(data)]
            if not data:
                raise Unsuited("text without ends of lines")
            content = self._charset.recoded(data)
            if content:
                yield Piece(at, at + len(data), len(content), b"", content)
            at += len(data)

    def _whole(self, data: bytes) -> int:
        """How many bytes of *data* are whole characters for certain."""
        width = _WIDE.get(self._charset.name)
        if width is None:
            return data.rfind(b"\n") + 1
        end = len(data) - len(data) % width
        if width == 2 and end:  # not between the halves of a surrogate pair
            high = data[end - 1] if self._charset.name.endswith("le") else data[end - 2]
            end -= 2 * (0xD8 <= high < 0xDC)
        return end

    def open(self, part: Blob, state: bytes, /) -> tuple[Blob, Codec]:
        return part, self._charset
