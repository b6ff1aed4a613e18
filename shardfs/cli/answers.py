"""What a daemon says of its mount when it is asked through a socket, beside the record of it that it has left.

Not through the mount: whoever asks that waits as long as the daemon does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

log = logging.getLogger("shardfs")

# A live daemon answers in a millisecond; people look at the list of all mounts, and one may be stopped.
_PATIENCE = 0.2
_LARGEST = 1 << 20


@contextmanager
def given(place: Path, facts: Callable[[], Mapping[str, object]]) -> Iterator[None]:
    """A context in which whoever connects to the socket *place* gets *facts* as JSON."""
    try:
        listener = _listen(place)
    except OSError as error:
        log.warning("no answers for `shardfs status`: %s: %s", place, error.strerror)
        yield
        return
    threading.Thread(target=_answer, args=(listener, facts), daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        place.unlink(missing_ok=True)


def _listen(place: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        place.unlink(missing_ok=True)
        with _short(place) as name:
            listener.bind(name)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _short(place: Path) -> Iterator[str]:
    """*place* in fewer bytes than the 108 that an address has room for."""
    folder = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{place.name}"
    finally:
        os.close(folder)


def _answer(listener: socket.socket, facts: Callable[[], Mapping[str, object]]) -> None:
    while True:
        try:
            speaker, _ = listener.accept()
        except OSError:  # closed
            return
        with speaker, contextlib.suppress(OSError):
            speaker.settimeout(1)
            speaker.sendall(json.dumps(facts(), default=str).encode())


def asked(place: Path) -> dict[str, Any] | None:
    """What the daemon that listens at *place* says; None where it does not answer in time."""
    try:
        with socket.socket(socket.AF_UNIX) as speaker, _short(place) as name:
            speaker.settimeout(_PATIENCE)
            speaker.connect(name)
            text = b""
            while len(text) < _LARGEST and (more := speaker.recv(_LARGEST)):
                text += more
        answer = json.loads(text)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None
