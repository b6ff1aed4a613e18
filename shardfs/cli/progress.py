"""How far long work has come: a line that is written over on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

from shardfs.cli.console import log
from shardfs.cli.values import show_time

# Seconds between two looks: of a person, and of a file. Guesses.
_ON_TERMINAL, _ELSEWHERE = 0.1, 10.0


class Progress:
    """Tells of work on a known number of things on stderr; nothing where that is quiet, or where it takes no time.

    A context, so that the line is gone when the work is done or stopped.
    """

    def __init__(self, doing: str, things: str, *, quiet: bool) -> None:
        self._doing, self._things, self._quiet = doing, things, quiet
        self._is_terminal = sys.stderr.isatty()
        self._every = _ON_TERMINAL if self._is_terminal else _ELSEWHERE
        self._began = self._told = time.monotonic()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def __call__(self, done: int, total: int) -> None:
        """Tell that *done* of *total* are done, if it is time to."""
        now = time.monotonic()
        if self._quiet or now - self._told < self._every:
            return
        self._told, spent = now, now - self._began
        text = f"{self._doing}: {done:,} of {total:,} {self._things}"
        if done:
            rate, left = done / spent, spent / done * (total - done)
            text += f", {rate:,.1f}/s, {show_time(left)} left"
        if self._is_terminal:
            self._write(text)
        else:
            log.warning("%s", text)

    def _write(self, text: str) -> None:
        if self._is_terminal and (text or self._width):
            sys.stderr.write(f"\r{text:{self._width}}" + ("" if text else "\r"))
            sys.stderr.flush()
            self._width = len(text)
