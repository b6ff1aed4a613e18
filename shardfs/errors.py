"""Every failure that shardfs names, each with the errno that a program on the mount gets.

    ShardfsError (EIO)
    +-- Corrupt (EIO)          stored bytes contradict the format; reading again will not help
    |   +-- TooLarge (EIO)     more bytes than the limits allow
    |   +-- Spoilt (EIO)       a copy in the disk cache is not what was written; nobody outside of the caches sees it
    +-- Unreadable (EIO)       the source could not be read now; reading again may help
    |   +-- Changed (ESTALE)   a file is no longer what was mounted
    +-- Unsupported (EIO)      a variant of a format that shardfs does not read
    +-- MissingPackage (EIO)   the data needs an extra that is not installed
    +-- OutsideSource (EIO)    a name in the data leads out of the source
    +-- NoKey (EACCES)         encrypted data, and no key or a wrong one
    +-- AccessDenied (EACCES)  the source refuses to show it
    +-- NotFound (ENOENT)
    +-- NotAFolder (ENOTDIR)
    +-- IsAFolder (EISDIR)
    +-- NotALink (EINVAL)
    +-- Unexpected (EIO)       an exception that nobody thought of: a fault of shardfs itself
    +-- UsageError (EINVAL)    what the user asked for cannot be done; before anything is read

None is an OSError, since those are what the system says, and mostly caught where it is asked. What reaches programs in
Python comes by way of ``in_python`` and is both.

WouldBlock stands apart: it is no failure but the answer to "only if it costs no waiting".
"""

from __future__ import annotations

import errno
from contextlib import ContextDecorator
from functools import lru_cache
from json import JSONDecodeError
from typing import Any


class ShardfsError(Exception):
    """A failure with a message for people and an errno for programs.

    ``places`` says where it happened, outermost first; each layer that knows more adds its own part. ``told``: the user
    has read of it, so that whoever ends it need not tell it again.
    """

    errno: int = errno.EIO

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.places: list[str] = []
        self.told = False

    def __str__(self) -> str:
        return ": ".join([*self.places, self.message])

    def at(self, *places: str) -> ShardfsError:
        """Itself, with *places* in front of its message, outermost first."""
        for place in reversed(places):
            if place and place not in self.places:
                self.places.insert(0, place)
        return self

    def again(self) -> ShardfsError:
        """A copy to raise: an exception that is kept and raised many times would collect a traceback each time."""
        copy = type(self)(self.message)
        copy.places, copy.told = list(self.places), self.told
        return copy


class Corrupt(ShardfsError):
    """Stored bytes contradict the format; reading again will not help."""


class TooLarge(Corrupt):
    """Data that would take more bytes than the limits allow."""


class Spoilt(Corrupt):
    """A copy in the disk cache that is not what was written. It is gone from there: who asks anew has it made anew."""


class Unreadable(ShardfsError):
    """The source could not be read; reading again may help."""


class Changed(Unreadable):
    """A file is no longer what was mounted."""

    errno = errno.ESTALE

    def __init__(self, message: str = "has changed since it was mounted: mount again") -> None:
        super().__init__(message)


class Unsupported(ShardfsError):
    """A variant of a format that shardfs does not read."""


LASTING = (Corrupt, Unsupported)
"""What reading again will not help."""


class MissingPackage(ShardfsError):
    """The data needs a package that is not installed; the message says which extra brings it."""


class OutsideSource(ShardfsError):
    """A name in the data leads out of the source."""


class NoKey(ShardfsError):
    """Encrypted data without the right key."""

    errno = errno.EACCES


class AccessDenied(ShardfsError):
    """The source refuses to show it."""

    errno = errno.EACCES


class NotFound(ShardfsError):
    """Nothing has that name."""

    errno = errno.ENOENT


class NotAFolder(ShardfsError):
    """A file was used as a folder."""

    errno = errno.ENOTDIR


class IsAFolder(ShardfsError):
    """A folder was used as a file."""

    errno = errno.EISDIR


class NotALink(ShardfsError):
    """Something else was used as a symbolic link."""

    errno = errno.EINVAL


class Unexpected(ShardfsError):
    """An exception that nobody thought of: a fault of shardfs itself, to be reported."""


class UsageError(ShardfsError):
    """What the user asked for cannot be done; the message says what to do instead."""

    errno = errno.EINVAL


class WouldBlock(Exception):
    """Inside ``blob.no_wait()``: the answer needs a disk, a network or a long computation."""


# What programs in Python expect for a failure; OSError for all others.
_PYTHON: dict[type[ShardfsError], type[Exception]] = {
    UsageError: ValueError,
    NotFound: FileNotFoundError,
    NotAFolder: NotADirectoryError,
    IsAFolder: IsADirectoryError,
    NoKey: PermissionError,
    AccessDenied: PermissionError,
}


class in_python(ContextDecorator):
    """A context out of which failures come that are OSErrors or ValueErrors as well, for programs in Python."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ShardfsError) and not isinstance(error, (OSError, ValueError)):
            raise _twofold(type(error), error.message, error.places) from error


def _twofold(kind: type[ShardfsError], message: str, places: list[str]) -> ShardfsError:
    error: ShardfsError = _twofold_class(kind)(message)  # type: ignore[arg-type]  # a class can be hashed
    error.places = list(places)
    return error


@lru_cache
def _twofold_class(kind: Any) -> type[ShardfsError]:
    def reduced(self: ShardfsError) -> tuple[Any, ...]:  # to another process
        return _twofold, (kind, self.message, self.places)

    bases = (kind, _PYTHON.get(kind, OSError))
    return type(kind.__name__, bases, {"__module__": kind.__module__, "__reduce__": reduced})


class located:
    """A context that puts *place* in front of the message of a failure that passes.

    Not a generator-based context manager, since every request enters some.
    """

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ShardfsError):
            error.at(self._place)
        elif isinstance(error, Exception):  # for the guard at the edge, which reports it
            error.__dict__.setdefault("places", []).insert(0, self._place)


def json_fault(error: ValueError | RecursionError) -> str:
    """What is wrong with a text that Python's parser of JSON refused, in words for a user."""
    if isinstance(error, RecursionError):
        return "is JSON that is nested too deeply to be read"
    if isinstance(error, UnicodeDecodeError):
        return f"is no JSON: {utf8_fault(error)}"
    if isinstance(error, JSONDecodeError):
        return f"is no JSON: line {error.lineno}, column {error.colno} is not as it must be"
    if "digits" in str(error):  # as Python calls its limit for the text of a number
        return "is JSON with a number of too many digits"
    return "is no JSON"


def utf8_fault(error: UnicodeError) -> str:
    """Where a text is not what it should be, in words for a user."""
    at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
    return f"is no UTF-8 text{at}"
