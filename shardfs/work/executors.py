"""Where the work on shards is done: in this process, in others, or on a Dask cluster; the results are the same.

A task is a function that can be pickled and takes a ``Piece`` of a shard, which opens the source where it arrives: no
bytes of data go out from here.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections import deque
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from shardfs.dataset import Record
from shardfs.errors import MissingPackage, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from shardfs.dataset import Shard

Task = TypeVar("Task")
Result = TypeVar("Result")

# Shards that are given out ahead of the one whose result is next, for each that is worked on at a time. A guess: enough
# that nobody waits for a slow one, few enough that results which wait for their turn stay small.
_AHEAD = 4
_UNKNOWN_WORKERS = 16


class Here(Executor):
    """Does each task at once, in this process."""

    def submit(self, function, /, *args, **more):  # type: ignore[no-untyped-def]
        future: Future[object] = Future()
        try:
            future.set_result(function(*args, **more))
        except Exception as error:  # noqa: BLE001  # it is raised to whoever asks for the result
            future.set_exception(error)
        return future


@contextmanager
def executor(*, jobs: int = 0, dask: str = "", tasks: int | None = None) -> Iterator[Executor]:
    """What works on shards.

    Args:
        jobs: how many processes; 0 for as many as there are processors.
        dask: the address of a Dask cluster to work there instead, "" for none.
        tasks: how many tasks there will be, if that is known: one needs no processes.

    Raises:
        MissingPackage: Dask is not installed.
        Unreadable: the cluster doesn't answer.
    """
    if dask:
        with _cluster(dask) as found:
            yield found
        return
    count = min(jobs or len(os.sched_getaffinity(0)), tasks if tasks is not None else 1 << 10)
    if count <= 1:
        yield Here()
        return
    # Not forked from here: this process may have threads and connections.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["shardfs.dataset"])
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_be_quiet)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPackage("--dask needs Dask: pip install shardfs[dask]") from error
    try:
        client: Any = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise Unreadable(f"{address}: no Dask scheduler answers there") from error
    with client:
        found: Executor = client.get_executor(pure=False)
        yield found


def _be_quiet() -> None:
    """Faults come back with results; the process that asked tells them."""
    logging.getLogger("shardfs").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Piece:
    """The records from *start* to *stop* of a shard."""

    shard: Shard
    start: int
    stop: int

    def records(self, fields: Collection[str] = ()) -> Iterator[Record]:
        """These records, in order; of *fields* alone, if there are any."""
        return (Record(self.shard, index, fields) for index in range(self.start, self.stop))


def pieces(shards: Iterable[Shard], size: int = 2000) -> Iterator[Piece]:
    """Shards in pieces of at most *size* records: results stay small, and one shard can be work for many.

    Counts the records of each shard, which may wait for a scan; what that finds is kept for whoever works on it.
    """
    for shard in shards:
        count = len(shard)
        yield from (Piece(shard, at, min(at + size, count)) for at in range(0, count, size))


def each(pool: Executor, task: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results of *task* for shards or pieces of them, in their order.

    Raises what the task raises, and Unreadable where a process died of it.
    """
    workers = getattr(pool, "_max_workers", None) or _UNKNOWN_WORKERS
    ahead = 0 if isinstance(pool, Here) else _AHEAD * workers
    waiting: deque[Future[Result]] = deque()
    try:
        for one in tasks:
            waiting.append(pool.submit(task, one))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise Unreadable(
            "a process that worked on a shard died (out of memory?): try --jobs 1"
        ) from error
