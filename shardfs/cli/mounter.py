"""``shardfs mount`` and ``shardfs umount``: the life of a mount from the request to the end."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shardfs.cache.disk import default_folder
from shardfs.cli import answers, console, daemon, mount_point, status, summary
from shardfs.errors import MissingPackage, ShardfsError, Unreadable
from shardfs.names import without_secrets
from shardfs.system import allocator, command_line, environment, mount_table, process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shardfs.cli.request import MountRequest
    from shardfs.tree.tree import Tree


def mount(request: MountRequest, messages: console.Log) -> int:
    """Mount, in the background unless told otherwise; the exit code, in the daemon too.

    Raises:
        ShardfsError: it could not be mounted, with the reason.
    """
    daemon.die_on_signals()
    command_line.show_instead(request.source, without_secrets(request.source))
    if request.run.foreground:
        return _serve(request, messages, lambda: None)
    messages.keep()
    try:
        return daemon.background(
            partial(_serve_unseen, request, messages),
            patience=request.run.wait_timeout,
            log_descriptor=messages.descriptor,
        )
    except (Unreadable, SystemExit):  # too slow or interrupted, so perhaps killed while it mounted
        mount_point.detach_dead(mount_table.locate(request.mount_point))
        raise


def _serve_unseen(request: MountRequest, messages: console.Log, ready: Callable[[], None]) -> int:
    def turn_away() -> None:
        messages.leave_stderr()
        ready()

    return _serve(request, messages, turn_away)


def _serve(request: MountRequest, messages: console.Log, ready: Callable[[], None]) -> int:
    environment.check(request.settings)
    allocator.give_back()
    try:
        from shardfs import fuse
    except ImportError as error:  # of pyfuse3, or by pyfuse3 of libfuse3.so
        is_missing = isinstance(error, ModuleNotFoundError)
        lack = f"{error.name} is not installed" if is_missing else "libfuse3 can't be loaded"
        raise MissingPackage(
            f"mounting needs pyfuse3 and libfuse3: {lack} (docs: README, Install)"
        ) from error
    from shardfs.mounting import open_tree

    place = mount_table.locate(request.mount_point)
    non_empty = request.run.allow_non_empty
    owned = mount_point.check(place, request.source, allow_non_empty=non_empty)
    with (
        closing(open_tree(request.source, request.options)) as tree,
        daemon.signals_kept() as send_signals_again,
        mount_point.present(place, owned=owned),
        _record(request, place, tree, messages.path, made=owned) as leave_record,
    ):
        found = summary.of(tree, without_secrets(request.source), all_of_it=sys.stderr.isatty())

        def announce() -> None:
            leave_record()
            daemon.notify("READY=1")
            console.log.info("%s is mounted on %s", request.settings.fsname, place)
            if found:
                messages.say(f"{found} on {place}")
            ready()
            send_signals_again()  # to the handlers of the mount

        fuse.mount(tree, Path(place), request.settings, announce)
        console.log.info("%s is unmounted", place)
    return 0


@contextmanager
def _record(
    request: MountRequest, place: str, tree: Tree, log: str | None, *, made: bool
) -> Iterator[Callable[[], None]]:
    """A function that leaves a record of the mount and answers questions, which ends with the context."""
    with ExitStack() as until_the_end:

        def leave() -> None:
            mount = mount_table.top(place)
            if mount is None:  # unmounted again already
                return
            options = request.options
            cache = options.cache_dir or default_folder() if options.disk_cache else None
            record = status.Record(
                pid=os.getpid(),
                birth=process.birth(os.getpid()),
                device=mount.device,
                source=without_secrets(request.source),
                mount_point=place,
                since=time.time(),
                cache_dir=None if cache is None else str(cache),
                made=made,
                log=log,
            )
            if status.write(record):
                until_the_end.callback(status.remove, record)
                socket = status.socket_of(record.pid)
                until_the_end.enter_context(answers.given(socket, tree.stats))

        yield leave


def unmount(places: Iterable[Path], *, lazy: bool) -> int:
    """Unmount each of *places*, and tell of faults met; the exit code, which is not 0 if any could not be."""
    code = 0
    for place in places:
        try:
            met = mount_point.release(mount_table.locate(place), lazy=lazy)
        except ShardfsError as error:
            console.tell(error)
            code = console.FAILED
            continue
        if met.get("count"):
            console.log.warning("%s: faults met: %s", place, status.faults(met))
    return code
