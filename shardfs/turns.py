"""Long work that one thread does for all who wait for parts of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from shardfs.blob import may_wait
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns:
    """Work in turns: after each of them everybody looks whether it has brought what he needs.

    A lock around each turn would not do: who has just let go of it mostly gets it again, and others wait to the end.
    """

    __slots__ = ("_condition", "_is_busy")

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._is_busy = False

    def until(self, is_there: Callable[[], bool], turn: Callable[[], None]) -> None:
        """Take turns, or wait for those of others, until *is_there*. Raises what *turn* or *is_there* raises.

        Raises WouldBlock inside ``no_wait()``.
        """
        while not is_there():
            if not may_wait():
                raise WouldBlock
            with self._condition:
                if self._is_busy:
                    self._condition.wait()
                    continue
                if is_there():
                    return
                self._is_busy = True
            try:
                turn()
            finally:
                with self._condition:
                    self._is_busy = False
                    self._condition.notify_all()
