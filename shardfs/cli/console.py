"""What the user of the command line sees: one-line messages, the log, and exit codes."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from dataclasses import dataclass
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from shardfs.errors import ShardfsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

log = logging.getLogger("shardfs")

FAILED = 1
WRONG_USE = 2
BY_SIGNAL = 128
"""Added to a signal's number, as shells do."""


def printable(text: str) -> str:
    """*text* in one line that can't steer a terminal: names in datasets are hostile."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class _OneLine(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Options that decide what is told, and where."""

    verbose: int = 0
    quiet: bool = False
    debug: bool = False
    log_file: Path | None = None

    @property
    def level(self) -> int:
        """The log level for how talkative the user wants it."""
        if self.debug:
            return logging.DEBUG
        if self.quiet:
            return logging.ERROR
        return max(logging.DEBUG, logging.WARNING - 10 * self.verbose)


# What a daemon's log may come to before it is put aside in place of the one before. A guess: some 10,000 lines.
_MAX_LOG = 1 << 20


def state_folder() -> Path:
    """Where daemons keep their log: the user's folder for what programs keep."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "shardfs"


class _DaemonLog(WatchedFileHandler):
    """A file that several daemons write to. The one that fills it puts it aside, which the others notice."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            there = os.stat(self.baseFilename)
            # Nobody else has put it aside meanwhile, or this would push out the lines before.
            if there.st_size > _MAX_LOG and there.st_ino == self.ino:
                os.replace(self.baseFilename, f"{self.baseFilename}.1")
        super().emit(record)


class Log:
    """Where messages go: stderr, until ``leave_stderr``, and a file if there is one."""

    def __init__(self) -> None:
        self._options = LogOptions()
        self._stderr = logging.StreamHandler()
        self._stderr.setFormatter(_OneLine("shardfs: %(message)s"))
        logging.getLogger().addHandler(self._stderr)
        self._file: WatchedFileHandler | None = None

    def configure(self, options: LogOptions) -> None:
        """Do as the user wants it. Raises OSError where the file can't be opened."""
        self._options = options
        logging.getLogger().setLevel(options.level)
        file = options.log_file
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            # One that notices that its file was moved away, so that logrotate needs no signal.
            self._add(WatchedFileHandler(file, encoding="utf-8", errors="backslashreplace"))

    def keep(self) -> None:
        """Write to the user's log as well, unless there is a file already; without it life goes on."""
        if self._file is not None:
            return
        file = state_folder() / "shardfs.log"
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._add(_DaemonLog(file, encoding="utf-8", errors="backslashreplace"))
        except OSError as error:
            log.warning(
                "no log is kept: %s: %s (--log-file FILE has another)", file, error.strerror
            )
            return
        # Where nobody sees the mounts of a day come and go, the log should have them.
        self._stderr.setLevel(self._options.level)
        logging.getLogger().setLevel(min(self._options.level, logging.INFO))

    def _add(self, handler: WatchedFileHandler) -> None:
        handler.setFormatter(_OneLine("%(asctime)s %(process)d %(levelname)s %(message)s"))
        logging.getLogger().addHandler(handler)
        self._file = handler

    def say(self, text: str) -> None:
        """Tell a person at a terminal, and nobody else, that all is well."""
        if sys.stderr.isatty() and not self._options.quiet:
            print(f"shardfs: {printable(text)}", file=sys.stderr)

    @property
    def path(self) -> str | None:
        """The log file."""
        return None if self._file is None else self._file.baseFilename

    @property
    def descriptor(self) -> int | None:
        """The open log file."""
        stream = None if self._file is None else self._file.stream
        return None if stream is None else stream.fileno()

    def leave_stderr(self) -> None:
        """Write to the file only, if anywhere: whoever started the program has turned away."""
        logging.getLogger().removeHandler(self._stderr)

    def close(self) -> None:
        """Take everything back."""
        self.leave_stderr()
        if self._file is not None:
            logging.getLogger().removeHandler(self._file)
            self._file.close()


def run(work: Callable[[Log], int]) -> int:
    """The exit code of *work*, the whole program; a failure becomes one line, also one that nobody foresaw."""
    sys.excepthook = _unforeseen
    messages = Log()
    try:
        code = work(messages)
        sys.stdout.flush()
    except BrokenPipeError:  # `shardfs cat ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the flush at exit would complain again
        code = BY_SIGNAL + signal.SIGPIPE
    except KeyboardInterrupt:
        code = BY_SIGNAL + signal.SIGINT
    except ShardfsError as error:
        tell(error)
        code = WRONG_USE if isinstance(error, UsageError) else FAILED
    except OSError as error:
        tell(error)
        code = FAILED
    messages.close()
    return code


def _unforeseen(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    debug = log.isEnabledFor(logging.DEBUG)
    details = (kind, error, traceback) if debug else None
    hint = "" if debug else " (--debug shows where)"
    log.critical("internal error: %s: %s%s", kind.__name__, error, hint, exc_info=details)


def tell(error: ShardfsError | OSError) -> None:
    """One line for *error* unless it was told before, with the traceback only for those who debug."""
    if isinstance(error, ShardfsError) and error.told:
        return
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    log.error("%s", text, exc_info=log.isEnabledFor(logging.DEBUG))
