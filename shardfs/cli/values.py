"""Values as people write them on a command line. All parsers raise ValueError, with words for the user."""

from __future__ import annotations

import grp
import os
import pwd
import re
from decimal import Decimal
from pathlib import Path
from typing import get_args

from shardfs.options import INDEFINITE, Layout
from shardfs.registry import source_row

_UNITS = "KMGT"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMGT])(i?B)?|B)?", re.ASCII | re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes: `4096`, `64K`, `1.5 GiB`; K, M, G, T are powers of 1024, KB, MB... are powers of 1000."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size; 512M, 10G and 1GiB are")
    number, unit, tail = found.groups()
    base = 1000 if (tail or "").upper() == "B" else 1024
    power = 1 + _UNITS.index(unit.upper()) if unit else 0
    return int(Decimal(number) * base**power)


def show_size(size: int) -> str:
    """*size* in the largest unit that keeps it at 1 or more: `1.5 GiB`."""
    for power, unit in reversed(list(enumerate(_UNITS, 1))):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f}".removesuffix(".0") + f" {unit}iB"
    return f"{size} B"


def show_count(count: int, what: str) -> str:
    """*count* of *what*: `1 record`, `2,000 records`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def show_time(seconds: float) -> str:
    """A duration in its two largest units: `3 d 4 h`, `12 min 5 s`."""
    left, parts = int(seconds), []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, length)
        parts.append((number, unit))
    first = next((at for at, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2])


def parse_count(text: str, least: int = 0) -> int:
    """A whole number, *least* or more."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"{text!r} is no whole number from {least} up")
    return int(text)


def parse_positive(text: str) -> int:
    """A whole number, 1 or more."""
    return parse_count(text, 1)


def parse_seconds(text: str) -> float:
    """Seconds, or `indefinite`."""
    if text == "indefinite":
        return INDEFINITE
    if not re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        raise ValueError(f"{text!r} is no time in seconds")
    return min(float(text), INDEFINITE)


def parse_mode(text: str) -> int:
    """Octal permissions."""
    if not re.fullmatch(r"0?[0-7]{1,3}", text):
        raise ValueError(f"{text!r} are no octal permissions; 022 and 555 are")
    return int(text, 8)


def parse_user(text: str) -> int:
    """A user's number or name."""
    try:
        return parse_count(text) if text.isdecimal() else pwd.getpwnam(text).pw_uid
    except KeyError as error:
        raise ValueError(f"no user {text!r}") from error


def parse_group(text: str) -> int:
    """A group's number or name."""
    try:
        return parse_count(text) if text.isdecimal() else grp.getgrnam(text).gr_gid
    except KeyError as error:
        raise ValueError(f"no group {text!r}") from error


def parse_path(text: str) -> Path:
    """An absolute path, since a daemon has another working folder."""
    if not text:
        raise ValueError("an empty path")
    return Path(os.path.expanduser(text)).absolute()


def parse_layout(text: str) -> str:
    """One of the layouts."""
    if text not in get_args(Layout):
        raise ValueError(f"{text!r} is none of {', '.join(get_args(Layout))}")
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    names = tuple(name for name in text.split(",") if name)
    if text and not names:
        raise ValueError(f"{text!r} has no names")
    return names


def parse_source(text: str) -> str:
    """*text* as it is where it is a URL, a DOI or the like, else an absolute path, or pattern of paths."""
    is_elsewhere = source_row(text).name != "local" or text.startswith("file:")
    return text if is_elsewhere and not os.path.lexists(text) else os.fspath(parse_path(text))
