"""Thrift's compact protocol, written: for Parquet files that no library writes."""

from __future__ import annotations

from typing import Any


class I32(int):
    """An integer that is declared as one of 32 bits; all others are of 64."""


def struct(fields: dict[int, Any]) -> bytes:
    """A struct: its fields by their numbers, those that are None left out."""
    parts, before = [], 0
    for number, value in sorted(fields.items()):
        if value is None:
            continue
        kind = (1 if value else 2) if isinstance(value, bool) else _kind(value)
        step = number - before
        parts.append(bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + integer(number))
        parts.append(b"" if isinstance(value, bool) else _value(value))
        before = number
    return b"".join([*parts, b"\0"])


def integer(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _kind(value: Any) -> int:
    if isinstance(value, int):
        return 5 if isinstance(value, I32) else 6
    return 8 if isinstance(value, bytes) else 9 if isinstance(value, list) else 12


def _value(value: Any) -> bytes:
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, dict):
        return struct(value)
    kind = _kind(value[0]) if value else 12
    count = len(value)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([240 | kind]) + varint(count)
    return head + b"".join(map(_value, value))
