"""Decompression from the beginning to the end, in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shardfs.codecs import damage_of
from shardfs.errors import LASTING, Corrupt, ShardfsError, TooLarge

if TYPE_CHECKING:
    from shardfs.blob import Blob
    from shardfs.codecs import Codec, Stream

_SKIP = 1 << 20


class Limits(NamedTuple):
    """What is allowed.

    Attributes:
        size: bytes that come out.
        window: bytes that are looked back over.
    """

    size: int
    window: int


class Pass:
    """One pass over the data in a blob. Not to be used by two threads at a time.

    Attributes:
        done: bytes that were handed out.
        ended: whether there are no more.
        failure: why there are no more, where that is not the end of the data.
    """

    def __init__(self, blob: Blob, codec: Codec, limits: Limits) -> None:
        """More bytes than the *limits* are a failure: TooLarge."""
        self._blob, self._codec, self._limits = blob, codec, limits
        self._stream: Stream | None = None
        self.done, self.ended = 0, False
        self.failure: ShardfsError | None = None

    def turn(self, target: memoryview) -> int:
        """Fill *target*; fewer bytes only where the pass ends.

        A failure of the source is raised; the next call goes on where this one began.
        """
        count = 0
        try:
            while count < len(target) and not self.ended:
                if self._stream is None:
                    self._stream = self._begin()
                made = self._stream.readinto1(target[count:])
                count, self.ended = count + made, not made
                if self.done + count > self._limits.size:
                    raise TooLarge(
                        f"decompresses to more than the {self._limits.size} bytes allowed (--max-chunk-size)"
                    )
        except self._codec.damage as error:
            self._fail(Corrupt(damage_of(error, self.done + count)))
        except LASTING as error:
            # A copy: the traceback of the error itself would keep all that it passed alive.
            failure = type(error)(f"{error.message}, after {self.done + count} bytes")
            failure.places = list(error.places)
            self._fail(failure)
        except ShardfsError:
            self._stream = None
            raise
        self.done += count
        return count

    def _begin(self) -> Stream:
        """A stream that stands where this pass does."""
        stream, left = self._codec.stream(self._blob, self._limits.window), self.done
        target = memoryview(bytearray(min(left, _SKIP)))
        while left:
            count = stream.readinto1(target[:left])
            if not count:
                raise Corrupt("decompresses to fewer bytes than before")
            left -= count
        return stream

    def _fail(self, failure: ShardfsError) -> None:
        self.failure, self.ended, self._stream = failure, True, None
