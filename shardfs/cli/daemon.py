"""Life as a daemon: going to the background, telling when ready, ending on signals.

The child behaves as in the foreground and keeps the caller's stderr until it is ready, so messages and failures
need no second way. What the parent needs to know, ready or not, is whether a byte comes through a pipe before it
is closed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from shardfs.cli.console import BY_SIGNAL, FAILED, log
from shardfs.errors import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_GRACE = 2.0  # seconds between asking a child to end and making it


def die_on_signals() -> None:
    """Let TERM, INT and HUP end the process at once: for while there is nothing to put away.

    Also where the caller ignores them, as nohup does and shells do for what they start with ``&``. An exception
    from a handler would be no better: inside an import, Python may turn it into another or lose it.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextmanager
def signals_kept() -> Iterator[Callable[[], None]]:
    """A context in which TERM, INT and HUP are only remembered; gives a function that sends them again.

    It is for the moments in which a mount begins and ends. A signal mask would not do: it is for one thread, and
    signals to the process go to any other.
    """
    kept: list[int] = []

    def keep(number: int, _frame: FrameType | None) -> None:
        kept.append(number)

    def send_again() -> None:
        for number in kept[:1]:
            signal.raise_signal(number)

    for number in STOP_SIGNALS:
        signal.signal(number, keep)
    yield send_again


def background(
    work: Callable[[Callable[[], None]], int], *, patience: float, log_descriptor: int | None
) -> int:
    """Run *work* in a daemon; the exit code for the caller, when the daemon is ready or has failed.

    *work* gets a function to call when it is ready. Returns in both processes: in the daemon when *work* does, with
    its result. Must be called before there are threads.

    Raises:
        Unreadable: not ready within *patience* seconds.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal between the fork and the parent's readiness to pass it on would leave the child behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    child = os.fork()
    if child:
        os.close(writing)
        return _await(child, reading, patience)
    _detach({writing} | ({log_descriptor} if log_descriptor is not None else set()))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def ready() -> None:
        os.dup2(1 if log_descriptor is None else log_descriptor, 2)
        with contextlib.suppress(BrokenPipeError):  # the caller was killed meanwhile
            os.write(writing, b"\0")
        os.close(writing)

    return work(ready)


def _detach(keep: set[int]) -> None:
    """Let go of the caller: its session, folder and descriptors, all but stderr and *keep*."""
    os.setsid()
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
        if descriptor > 2 and descriptor not in keep:
            with contextlib.suppress(OSError):  # the one that listed the folder
                os.close(descriptor)


def _await(child: int, reading: int, patience: float) -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, _end)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        arrived, _, _ = select.select([reading], [], [], patience)
        if not arrived:
            raise Unreadable(f"not ready after {patience:g} seconds (--wait-timeout)")
        if os.read(reading, 1):
            # A signal from here on is too late to mean the mount, and must not make its success look like a failure.
            signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
            return 0
    except (SystemExit, Unreadable):
        _stop(child)
        raise
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        log.error("the daemon was ended by %s", signal.Signals(-code).name)
        return BY_SIGNAL - code
    if code == 0:
        log.error("the daemon ended before it was ready")
    return code or FAILED


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(BY_SIGNAL + number)


def _stop(child: int) -> None:
    os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def notify(state: str) -> None:
    """Tell the service manager, if one listens: sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)  # @: an abstract address
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker, contextlib.suppress(OSError):
        speaker.sendto(state.encode(), address)
