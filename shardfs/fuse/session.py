"""The life of one mount: from the mount system call to the unmount."""

from __future__ import annotations

import logging
import os
import re
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyfuse3
import trio

from shardfs.fuse.loop import FastLoop
from shardfs.fuse.operations import Operations
from shardfs.system import mount_table
from shardfs.system.environment import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shardfs.options import MountOptions
    from shardfs.tree.tree import Tree

log = logging.getLogger("shardfs")

_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Tasks that wait for requests, at least and at most. A few at hand save starting one for each burst; the upper bound
# only has to exceed what the kernel sends at a time, since tasks that wait for a thread cost next to nothing.
_MIN_TASKS, _MAX_TASKS = 8, 1000
# Seconds that requests under way get to end after a signal or an unmount.
_GRACE = 0.5


def mount(tree: Tree, mountpoint: Path, settings: MountOptions, ready: Callable[[], None]) -> None:
    """Mount *tree* and serve it until it is unmounted or a TERM, INT or HUP arrives; then it is unmounted.

    *ready* is called once the root can be listed and signals end the mount cleanly. Meant to be called once in the
    life of a process, on its main thread.

    Raises:
        UsageError: it could not be mounted, with the reason that libfuse gives.
    """
    loop = FastLoop()
    loop.install()
    # A signal between the mount and the handlers would leave a dead mount behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        with _words_of_libfuse() as words:
            try:
                operations = Operations(tree, settings, loop)
                pyfuse3.init(operations, str(mountpoint), _fuse_options(settings))
            except RuntimeError as error:
                raise refusal(str(mountpoint), words()) from error
        try:
            trio.run(_serve, mountpoint, settings, ready, loop.ended)
        finally:
            pyfuse3.close(unmount=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fuse_options(settings: MountOptions) -> set[str]:
    options = {"ro", "default_permissions", "subtype=shardfs", _option("fsname", settings.fsname)}
    for name in ("allow_other", "allow_root", "auto_unmount", "debug"):
        if getattr(settings, name):
            options.add(name)
    return options


def _option(name: str, value: str) -> str:
    """In libfuse's option strings a backslash takes the meaning from a comma or another backslash."""
    return f"{name}=" + re.sub(r"([\\,])", r"\\\1", value)


async def _serve(
    mountpoint: Path, settings: MountOptions, ready: Callable[[], None], ended: trio.Event
) -> None:
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(*_STOP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
            nursery.start_soon(_end_on_signal, signals, nursery.cancel_scope)
            nursery.start_soon(_end_with_mount, ended, nursery.cancel_scope)
            nursery.start_soon(_announce, mountpoint, settings, ready)
            await pyfuse3.main(_MIN_TASKS, _MAX_TASKS)
            nursery.cancel_scope.cancel()


async def _end_on_signal(signals: object, scope: trio.CancelScope) -> None:
    async for number in cast("trio.abc.ReceiveChannel[int]", signals):
        log.info("%s: unmounting", signal.Signals(number).name)
        pyfuse3.terminate()
        await trio.sleep(_GRACE)
        scope.cancel()


async def _end_with_mount(ended: trio.Event, scope: trio.CancelScope) -> None:
    """Wait no longer for requests whose answers nobody takes any more."""
    await ended.wait()
    await trio.sleep(_GRACE)
    scope.cancel()


async def _announce(mountpoint: Path, settings: MountOptions, ready: Callable[[], None]) -> None:
    # From a thread: this process itself answers the request.
    await trio.to_thread.run_sync(os.listdir, mountpoint, abandon_on_cancel=True)
    _widen_read_ahead(mountpoint, settings.read_ahead)
    ready()


def _widen_read_ahead(mountpoint: Path, size: int) -> None:
    """Set the kernel's read-ahead window, where this process may (as root); its 128 KiB are small for media."""
    # From the mount table: a stat of the mount point would wait for an answer of this very process.
    mounted = mount_table.top(str(mountpoint))
    if mounted is None:
        return
    try:
        Path(f"/sys/class/bdi/{mounted.device}/read_ahead_kb").write_text(str(size >> 10))
    except OSError as error:
        log.debug("read-ahead stays as it is: %s", error)


@contextmanager
def _words_of_libfuse() -> Iterator[Callable[[], str]]:
    """Catch what libfuse and fusermount3 print on stderr; gives a function that returns it as one line."""
    with tempfile.TemporaryFile() as caught:
        stderr = os.dup(2)
        os.dup2(caught.fileno(), 2)

        def words() -> str:
            caught.seek(0)
            lines = caught.read().decode("utf-8", "replace").splitlines()
            return "; ".join(line.strip() for line in lines if line.strip())

        try:
            yield words
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
