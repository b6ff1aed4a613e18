"""A long file behind a network, and ways to read it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob

DATA = bytes(os.urandom(1 << 20)) * 40 + b"the end"


def soon(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def read(blob: Blob, offset: int, length: int) -> None:
    assert bytes(blob.read(offset, length)) == DATA[offset : offset + length]


def in_order(blob: Blob, stop: int, step: int = 128 << 10) -> None:
    for at in range(0, stop, step):
        read(blob, at, min(step, stop - at))
