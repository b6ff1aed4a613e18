"""zlib's inflate where Python's own module does not reach: it stops at block borders and begins inside a byte.

That is what places to start from in a gzip file take (zlib's examples/zran.c). It is the system's library, through its
stable C interface (zlib.h); where there is none, ``library`` says so and callers do without.
"""

from __future__ import annotations

import ctypes
from functools import cache

from shardfs.errors import Corrupt

WINDOW = 32 << 10
"""How far back deflate data may refer."""

_NO_FLUSH, _BLOCK = 0, 5
_OK, _STREAM_END, _NO_PROGRESS = 0, 1, -5
# inflateInit2's windowBits: the largest window; negative for bare deflate data, 16 more for gzip members.
_RAW, _GZIP = -15, 31
# data_type after inflate: bits not used of the last byte, in the last block, at a block's border.
_SPARE, _IN_LAST, _AT_BORDER = 7, 64, 128

# What zlib says (inflate.c) of data that are readable to their end.
_WRONG = {
    b"incorrect data check": " with a checksum that is not that of its content",
    b"incorrect length check": " with a length that is not that of its content",
}


class _Stream(ctypes.Structure):
    """zlib's z_stream."""

    _fields_ = (
        ("next_in", ctypes.c_void_p),
        ("avail_in", ctypes.c_uint),
        ("total_in", ctypes.c_ulong),
        ("next_out", ctypes.c_void_p),
        ("avail_out", ctypes.c_uint),
        ("total_out", ctypes.c_ulong),
        ("msg", ctypes.c_char_p),
        ("state", ctypes.c_void_p),
        ("zalloc", ctypes.c_void_p),
        ("zfree", ctypes.c_void_p),
        ("opaque", ctypes.c_void_p),
        ("data_type", ctypes.c_int),
        ("adler", ctypes.c_ulong),
        ("reserved", ctypes.c_ulong),
    )


@cache
def library() -> ctypes.CDLL | None:
    """The system's zlib, None where there is none."""
    try:
        found = ctypes.CDLL("libz.so.1")
    except OSError:
        return None
    stream = ctypes.POINTER(_Stream)
    found.zlibVersion.restype = ctypes.c_char_p
    found.inflateInit2_.argtypes = (stream, ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
    found.inflate.argtypes = (stream, ctypes.c_int)
    found.inflatePrime.argtypes = (stream, ctypes.c_int, ctypes.c_int)
    found.inflateSetDictionary.argtypes = (stream, ctypes.c_char_p, ctypes.c_uint)
    found.inflateEnd.argtypes = (stream,)
    return found


class Inflater:
    """One gzip member, or bare deflate data from a block border on.

    Attributes:
        ended: whether its end was reached.
        border: how many bits of the last byte belong to the next block, where ``run`` stopped between two blocks.
    """

    def __init__(self, *, raw: bool, window: bytes = b"", bits: int = 0, value: int = 0) -> None:
        """Begin anew, or behind *window* with the *bits* bits in *value*."""
        found = library()
        if found is None:
            raise OSError("no zlib")
        self._zlib, self._stream = found, _Stream()
        self._state = ctypes.byref(self._stream)
        self.ended = False
        self.border: int | None = None
        self._call(
            found.inflateInit2_(
                self._state,
                _RAW if raw else _GZIP,
                found.zlibVersion(),
                ctypes.sizeof(_Stream),
            )
        )
        self._end = found.inflateEnd
        if bits:
            self._call(found.inflatePrime(self._state, bits, value))
        if window:
            self._call(found.inflateSetDictionary(self._state, window, len(window)))

    def __del__(self) -> None:
        if hasattr(self, "_end"):
            self._end(self._state)

    def run(
        self, source: bytes, at: int, target: memoryview, *, to_border: bool = False
    ) -> tuple[int, int]:
        """Decompress *source* from *at* on into *target*; (bytes used, bytes made).

        Stops where either is used up, at the end, and at the next border between blocks if that is wanted. Raises
        Corrupt on damage, once all bytes before it were handed out.
        """
        stream = self._stream
        given = ctypes.c_char_p(source)
        taken = ctypes.c_char.from_buffer(target)
        stream.next_in = (ctypes.cast(given, ctypes.c_void_p).value or 0) + at
        stream.next_out = ctypes.addressof(taken)
        stream.avail_in, stream.avail_out = len(source) - at, len(target)
        code = self._zlib.inflate(self._state, _BLOCK if to_border else _NO_FLUSH)
        made = len(target) - stream.avail_out
        self.ended = code == _STREAM_END
        if not made:
            self._call(code)
        kind = stream.data_type
        at_border = to_border and kind & _AT_BORDER and not kind & _IN_LAST
        self.border = kind & _SPARE if at_border else None
        return len(source) - at - stream.avail_in, made

    def _call(self, code: int) -> None:
        if code not in (_OK, _STREAM_END, _NO_PROGRESS):
            what = _WRONG.get(self._stream.msg, "")
            raise Corrupt(f"damaged compressed data{what}: fetch or write the file anew")
