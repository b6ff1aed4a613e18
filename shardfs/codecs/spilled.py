"""A compressed file without places to start from: decompressed once, into a file of the disk cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import clip
from shardfs.cache.disk import NoRoom
from shardfs.codecs._pass import Limits, Pass
from shardfs.codecs.pieces import Unsuited
from shardfs.turns import Turns

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.cache.spill import Spill
    from shardfs.codecs import Codec

# One turn of decompression, between two looks at who else waits.
_STEP = 512 << 10


class Spilled:
    """The decompressed bytes of a blob: readers make what they need on disk, and all others find it made.

    Raises Unsuited where there is no room for more.
    """

    def __init__(
        self, blob: Blob, codec: Codec, spill: Spill, *, limits: Limits, keep: bool
    ) -> None:
        """With *keep*, the file stays for later mounts once it is whole."""
        self._pass, self._spill, self._keep = Pass(blob, codec, limits), spill, keep
        self._turns = Turns()
        self._ended = False
        """Whether all that the pass made is written, and no more will come."""
        self._problem = ""
        """Why there is no room for more."""

    def size(self) -> int:
        self._reach(None)
        return self._spill.size

    def read(self, offset: int, length: int, /) -> memoryview:
        self._reach(max(offset, 0) + max(length, 0))
        start, stop = clip(offset, length, self._spill.size)
        return self._spill.read(start, stop - start)

    def _reach(self, stop: int | None) -> None:
        """Have all bytes before *stop*, or simply all."""
        self._turns.until(lambda: self._is_there(stop), self._turn)

    def _is_there(self, stop: int | None) -> bool:
        if stop is not None and self._spill.size >= stop:
            return True
        if self._problem:
            raise Unsuited(self._problem)
        if self._ended and self._pass.failure is not None:
            raise self._pass.failure.again()
        return self._ended

    def _turn(self) -> None:
        target = memoryview(bytearray(_STEP))
        count = self._pass.turn(target)
        try:
            self._spill.append(target[:count])
        except NoRoom as error:
            self._problem = str(error)
            return
        if self._keep and self._pass.ended and self._pass.failure is None:
            self._spill.finish()
        self._ended = self._pass.ended
