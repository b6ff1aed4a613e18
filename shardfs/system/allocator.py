"""The C library's allocator, told to give memory back: a daemon lives for long, and decompresses in many threads."""

from __future__ import annotations

import ctypes

# From malloc.h of the GNU C library.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# Each thread would get an arena of its own (up to 8 a processor), and keep what was free in it.
_ARENAS = 2
# What is larger goes back as soon as it is free. Answers to the kernel, of 1 MiB at most, are made of memory that was
# used before; the windows of decompressors are larger.
_LARGE = 1280 << 10
# How much that is free is kept for the next allocations.
_SPARE = 16 << 20


def give_back() -> None:
    """Have free memory go back to the system. Without effect where the C library is another."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (_ARENA_MAX, _ARENAS),
            (_MMAP_THRESHOLD, _LARGE),
            (_TRIM_THRESHOLD, _SPARE),
        ):
            mallopt(parameter, value)
