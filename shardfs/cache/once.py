"""Questions that are asked once, however many threads want the answer."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from shardfs.blob import may_wait
from shardfs.errors import NotFound, ShardfsError, WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Once(Generic[T]):
    """Answers by key. "There is none" (``NotFound``) is an answer, too; after other failures it is asked again."""

    def __init__(self) -> None:
        self._answers: dict[str, Future[T]] = {}
        self._lock = threading.Lock()

    def known(self, key: str) -> T | None:
        """The answer, if there was one before."""
        answer = self._answers.get(key)
        is_there = answer is not None and answer.done() and answer.exception() is None
        return answer.result() if answer is not None and is_there else None

    def get(self, key: str, ask: Callable[[], T]) -> T:
        """The answer, which *ask* gets if nobody has it yet. Raises what *ask* raises."""
        with self._lock:
            answer = self._answers.get(key)
            is_mine = answer is None and may_wait()
            if answer is None and is_mine:
                answer = self._answers[key] = Future()
        if answer is None or not (answer.done() or may_wait()):
            raise WouldBlock
        if is_mine:
            self._ask(key, answer, ask)
        try:
            return answer.result()
        except ShardfsError as error:
            raise error.again() from None

    def _ask(self, key: str, answer: Future[T], ask: Callable[[], T]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            if not isinstance(error, NotFound):
                del self._answers[key]
            answer.set_exception(error)
            if not isinstance(error, ShardfsError):
                raise
