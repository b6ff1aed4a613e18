"""What the command line asked for, as values: defaults filled in, paths absolute, no strings left to parse."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shardfs.errors import UsageError
from shardfs.names import without_secrets
from shardfs.options import MountOptions, Options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options that decide how the mounting program runs.

    Attributes:
        foreground: stay in the foreground.
        wait_timeout: seconds after which a mount that is not ready has failed.
        allow_non_empty: mount over a folder that has something in it.
    """

    foreground: bool = False
    wait_timeout: float = 30.0
    allow_non_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MountRequest:
    """All that ``shardfs mount`` was told."""

    source: str
    mount_point: Path
    options: Options
    settings: MountOptions
    run: RunOptions


def pick(kind: Callable[..., T], arguments: argparse.Namespace) -> T:
    """A dataclass *kind* with those of its fields set that *arguments* have."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in vars(arguments).items() if name in names})


def tree_options(arguments: argparse.Namespace) -> Options:
    """The options of a tree, with password and token from where the user put them.

    Raises:
        UsageError: the file of one can't be read, or there is no such reader.
    """
    options = pick(Options, arguments)
    if options.rank and options.rank >= options.world:
        raise UsageError(
            f"--rank {options.rank} needs a --world of more readers, as they count from 0"
        )
    password = _take_from_environment("SHARDFS_PASSWORD")
    if arguments.password_file is not None:
        password = _first_line(arguments.password_file)
    token = None if arguments.token_file is None else _first_line(arguments.token_file).strip()
    return replace(options, password=password, token=token)


def mount_request(arguments: argparse.Namespace) -> MountRequest:
    """What *arguments* ask for. Raises UsageError as ``tree_options``."""
    fsname = arguments.fsname or f"shardfs:{without_secrets(arguments.source)}"
    settings = replace(pick(MountOptions, arguments), fsname=fsname)
    run = pick(RunOptions, arguments)
    return MountRequest(
        source=arguments.source,
        mount_point=arguments.mount_point,
        options=tree_options(arguments),
        settings=settings,
        run=replace(run, foreground=run.foreground or settings.debug),
    )


def open_listing(name: str) -> AbstractContextManager[Iterable[bytes]]:
    """The lines of a file, of standard input for `-`."""
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(f"{file}: {reason}") from error


def _take_from_environment(name: str) -> str | None:
    """The value of a variable, which is gone afterwards, also from /proc/PID/environ and from child processes."""
    value = os.environ.get(name)
    if value is not None:
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_void_p
        address = getenv(name.encode())
        if address:
            ctypes.memset(address, 0, len(os.fsencode(value)))
        del os.environ[name]
    return value
