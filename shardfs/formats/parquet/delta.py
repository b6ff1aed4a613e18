"""Encodings of Parquet pages other than PLAIN and dictionaries, rewritten as PLAIN.

https://parquet.apache.org/docs/file-format/data-pages/encodings/
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from shardfs.errors import Corrupt, TooLarge, Unsupported
from shardfs.formats.parquet.convert import Physical
from shardfs.formats.parquet.runs import unpack
from shardfs.formats.parquet.thrift import varint, zigzag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardfs.formats.parquet.schema import Leaf

    Decoder = Callable[[memoryview, Leaf, int, int], bytes]

# Values at most in such a page. A few bytes can claim any number of them; writers begin a new page long before.
_MAX_VALUES = 1 << 22
_LENGTH = struct.Struct("<I")
_CODES = {Physical.INT32: ("i", 32), Physical.INT64: ("q", 64)}


def as_plain(encoding: int, data: memoryview, leaf: Leaf, count: int, limit: int) -> bytes:
    """*count* values in another *encoding*, in PLAIN.

    Raises:
        Corrupt: *data* is not that.
        TooLarge: they would take more than *limit* bytes.
        Unsupported: there is no such encoding, or not of values of this type.
    """
    if count > _MAX_VALUES:
        raise TooLarge(f"a Parquet page of {count} values, more than {_MAX_VALUES}")
    decode, types = _DECODERS.get(encoding, (None, ()))
    if decode is None or leaf.physical not in types:
        raise Unsupported(
            f"a Parquet column of {leaf.physical.name} in encoding {encoding}, which is not supported"
        )
    if not count:
        return b""
    try:
        return decode(data, leaf, count, limit)
    except IndexError:
        raise Corrupt(f"a Parquet page that ends before its {count} values do") from None


def delta_numbers(data: memoryview, at: int, count: int) -> tuple[list[int], int]:
    """*count* integers in DELTA_BINARY_PACKED from *at* on, not wrapped yet, and where they end.

    Raises:
        Corrupt, IndexError: *data* is not that.
    """
    block, at = varint(data, at)
    parts, at = varint(data, at)
    total, at = varint(data, at)
    first, at = varint(data, at)
    size = block // parts if parts else 0
    if total != count or not size or size % 8 or size * parts != block:
        raise Corrupt(f"a Parquet page of {total} instead of {count} numbers, in blocks of {block}")
    deltas = [zigzag(first)]
    while len(deltas) < count:
        least, at = varint(data, at)
        least = zigzag(least)
        widths, at = data[at : at + parts], at + parts
        for width in widths[: -(-(count - len(deltas)) // size)]:
            number = min(size, count - len(deltas))
            if width > 64 or (len(data) - at) * 8 < number * width:
                raise IndexError
            deltas += [least + delta for delta in _packed(data[at:], width, number)]
            at += size * width // 8
        if len(widths) < parts:
            raise IndexError
    return list(accumulate(deltas))[:count], at


def _packed(data: memoryview, width: int, number: int) -> Sequence[int]:
    return unpack(data, width, number) if width else [0] * number


def _delta_integers(data: memoryview, leaf: Leaf, count: int, limit: int) -> bytes:
    code, bits = _CODES[leaf.physical]
    numbers, _ = delta_numbers(data, 0, count)
    # Differences wrap as the machine's integers do.
    half, whole = 1 << (bits - 1), 1 << bits
    return struct.pack(f"<{count}{code}", *((n + half) % whole - half for n in numbers))


def _delta_lengths(data: memoryview, at: int, count: int) -> tuple[list[memoryview], int]:
    """The byte strings in DELTA_LENGTH_BYTE_ARRAY from *at* on, and where they end."""
    lengths, at = delta_numbers(data, at, count)
    if min(lengths, default=0) < 0 or sum(lengths) > len(data) - at:
        raise Corrupt(f"texts of {sum(lengths)} bytes in a Parquet page that has {len(data) - at}")
    ends = list(accumulate(lengths, initial=at))
    return [data[a:b] for a, b in pairwise(ends)], ends[-1]


def _delta_length_strings(data: memoryview, leaf: Leaf, count: int, limit: int) -> bytes:
    values, _ = _delta_lengths(data, 0, count)
    return b"".join(part for value in values for part in (_LENGTH.pack(len(value)), value))


def _delta_strings(data: memoryview, leaf: Leaf, count: int, limit: int) -> bytes:
    """DELTA_BYTE_ARRAY: each begins with so many bytes of the one before."""
    prefixes, at = delta_numbers(data, 0, count)
    suffixes, _ = _delta_lengths(data, at, count)
    parts: list[bytes] = []
    value, total = b"", 0
    for prefix, suffix in zip(prefixes, suffixes, strict=True):
        if not 0 <= prefix <= len(value):
            raise Corrupt(f"a Parquet text that begins with {prefix} bytes of {len(value)}")
        value = value[:prefix] + bytes(suffix)
        total += len(value)
        if total > limit:
            raise TooLarge(f"a Parquet page of more than {limit} bytes of texts")
        if leaf.physical is Physical.BYTE_ARRAY:
            parts.append(_LENGTH.pack(len(value)))
        elif len(value) != leaf.width:
            raise Corrupt(f"a Parquet value of {len(value)} instead of {leaf.width} bytes")
        parts.append(value)
    return b"".join(parts)


def _split(data: memoryview, leaf: Leaf, count: int, limit: int) -> bytes:
    """BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones."""
    if count * leaf.width != len(data):
        raise Corrupt(f"{count} Parquet values of {leaf.width} bytes in {len(data)}")
    joined = bytearray(len(data))
    for place in range(leaf.width):
        joined[place :: leaf.width] = data[place * count : (place + 1) * count]
    return bytes(joined)


_NUMBERS = frozenset(Physical) - {Physical.BOOLEAN, Physical.INT96, Physical.BYTE_ARRAY}
_DECODERS: dict[int, tuple[Decoder, frozenset[Physical]]] = {
    5: (_delta_integers, frozenset(_CODES)),
    6: (_delta_length_strings, frozenset({Physical.BYTE_ARRAY})),
    7: (_delta_strings, frozenset({Physical.BYTE_ARRAY, Physical.FIXED})),
    9: (_split, _NUMBERS),
}
