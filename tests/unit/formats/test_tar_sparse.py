from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.webdataset.sparse import (
    MAX_PARTS,
    Map,
    Sparse,
    checked,
    gnu_map,
    is_extended,
    pax_map,
)
from tests.tar_files import header

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


def nothing(length: int) -> bytes:
    raise AssertionError("the data is not to be read")


def beginning(data: bytes) -> Callable[[int], bytes]:
    return lambda length: data[:length]


def pairs(*numbers: int) -> bytes:
    return b"".join(b"%011o\0" % number for number in numbers)


def test_parts_without_bytes_are_dropped() -> None:
    assert checked(100, 0, [5, 10, 50, 0, 60, 40], 50) == Map(100, 0, array("Q", [5, 10, 60, 40]))
    assert checked(100, 0, [100, 0], 0) == Map(100, 0, array("Q"))


@pytest.mark.parametrize(
    ("size", "numbers", "stored"),
    [
        (100, [60, 10, 50, 10], 20),
        (100, [0, 10, 9, 10], 20),
        (100, [95, 10], 10),
        (100, [0, 10], 9),
        (100, [-5, 10], 10),
        (100, [20, -10], 10),
        (-1, [], 0),
        (1 << 62, [], 0),
        (1 << 62, [0, 1 << 61], 10),
    ],
)
def test_maps_that_lie_are_refused(size: int, numbers: list[int], stored: int) -> None:
    with pytest.raises(Corrupt):
        checked(size, 0, numbers, stored)


def test_a_map_in_headers() -> None:
    tail = bytes(386 - 345) + pairs(0, 512, 4096, 512, 8192, 512, 9000, 512) + b"\1"
    block = header("a", kind=b"S", tail=tail + b"%011o\0" % MIB)
    more = (pairs(10_000, 100) + pairs(20_000, 50)).ljust(504, b"\0") + bytes(8)
    assert is_extended(block, header=True)
    assert not is_extended(more, header=False)
    found = gnu_map(block, [more], 2198)
    assert found.size == MIB
    assert list(found.parts)[-6:] == [9000, 512, 10_000, 100, 20_000, 50]


@pytest.mark.parametrize(
    ("records", "listed"),
    [
        ({b"GNU.sparse.size": b"100"}, [b"5", b"10", b"60", b"40"]),
        ({b"GNU.sparse.size": b"100", b"GNU.sparse.map": b"5,10,60,40"}, []),
    ],
)
def test_maps_in_extended_headers(records: dict[bytes, bytes], listed: list[bytes]) -> None:
    found = pax_map(records, listed, 50, nothing)
    assert found == Map(100, 0, array("Q", [5, 10, 60, 40]))


def test_a_map_before_the_data() -> None:
    records = {b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0", b"GNU.sparse.realsize": b"100"}
    data = b"2\n5\n10\n60\n40\n"
    assert pax_map(records, [], 562, beginning(data.ljust(562, b"\0"))) == Map(
        100, 512, array("Q", [5, 10, 60, 40])
    )
    with pytest.raises(Corrupt, match="are stored"):
        pax_map(records, [], 561, beginning(data.ljust(561, b"\0")))


def test_a_long_map_before_the_data() -> None:
    numbers = [number for part in range(1000) for number in (1000 * part, 10)]
    text = b"".join(b"%d\n" % number for number in [1000, *numbers])
    records = {b"GNU.sparse.major": b"1", b"GNU.sparse.realsize": b"1000000"}
    found = pax_map(records, [], 30_000, beginning(text.ljust(30_000, b"\0")))
    assert found is not None
    assert list(found.parts) == numbers
    assert found.skip == -(-len(text) // 512) * 512


@pytest.mark.parametrize(
    "text",
    [b"", b"2\n5\n10\n", b"x\n", b"-1\n", b"1\n0\nx\n", b"9" * 600, b"1\n" + b"1" * 30 + b"\n1\n"],
)
def test_a_map_that_is_none_is_refused(text: bytes) -> None:
    records = {b"GNU.sparse.major": b"1", b"GNU.sparse.realsize": b"100"}
    with pytest.raises(Corrupt):
        pax_map(records, [], len(text), beginning(text))


def test_an_endless_map_is_given_up() -> None:
    records = {b"GNU.sparse.major": b"1", b"GNU.sparse.realsize": b"100"}
    asked = []

    def digits(length: int) -> bytes:
        asked.append(length)
        return b"1" * length

    with pytest.raises(Corrupt):
        pax_map(records, [], 1 << 40, digits)
    assert max(asked) < 16 * MIB


def test_maps_of_too_many_parts_are_refused() -> None:
    many = [b"0"] * (2 * MAX_PARTS + 2)
    with pytest.raises(TooLarge):
        pax_map({b"GNU.sparse.size": b"1"}, many, 1, nothing)
    with pytest.raises(TooLarge):
        pax_map({b"GNU.sparse.size": b"1", b"GNU.sparse.map": b",".join(many)}, [], 1, nothing)
    with pytest.raises(TooLarge):
        pax_map(
            {b"GNU.sparse.major": b"1", b"GNU.sparse.realsize": b"1"},
            [],
            512,
            beginning(b"%d\n" % (MAX_PARTS + 1)),
        )


def test_other_members_have_no_map() -> None:
    assert pax_map({b"path": b"x"}, [], 10, nothing) is None


def test_a_file_of_holes_takes_no_memory() -> None:
    blob = Sparse(Bytes(b"ab"), 0, 1 << 50, [(1 << 50) - 2, 2])
    assert blob.size() == 1 << 50
    assert bytes(blob.read((1 << 50) - 4, 100)) == b"\0\0ab"
    assert bytes(blob.read(0, 5)) == bytes(5)


def test_a_part_that_is_not_there_is_no_zero() -> None:
    blob = Sparse(Bytes(b"ab"), 0, 100, [10, 5])
    assert bytes(blob.read(0, 10)) == bytes(10)
    assert bytes(blob.read(0, 12)) == bytes(10) + b"ab"
    with pytest.raises(Corrupt):
        blob.read(0, 13)
