"""The RLE and bit-packing hybrid against values that were written in all ways there are."""

from __future__ import annotations

import contextlib
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes
from shardfs.errors import Corrupt
from shardfs.formats.parquet.runs import Runs, RunTable, find_levels, find_runs
from tests import thrift


def repeated(value: int, count: int, width: int) -> bytes:
    return thrift.varint(count << 1) + value.to_bytes(-(-width // 8), "little")


def packed(values: list[int], width: int) -> bytes:
    """Groups of eight values."""
    groups = -(-len(values) // 8)
    bits = sum(value << place * width for place, value in enumerate(values))
    return thrift.varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")


@st.composite
def hybrids(draw: Any, least: int, most: int) -> tuple[int, list[int], bytes]:
    """(width, values, data): runs of all kinds, packed ones of full groups; widths from *least* to *most*."""
    width = draw(st.integers(least, most))
    one = st.integers(0, (1 << width) - 1)
    data, values = b"", []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            value, count = draw(one), draw(st.sampled_from([0, 1, 7, 300]))
            data += repeated(value, count, width)
            values += [value] * count
        else:
            some = draw(st.lists(one, min_size=1, max_size=8))
            many = (some * 40)[: 8 * draw(st.integers(1, 40))]
            many = many[: len(many) // 8 * 8]
            data += packed(many, width)
            values += many
    return width, values, data


@given(hybrids(0, 32), st.data())
def test_values_are_found_where_they_are(hybrid: tuple[int, list[int], bytes], data: Any) -> None:
    width, values, stored = hybrid
    total = data.draw(st.integers(0, len(values)))
    table = find_runs(memoryview(stored), width, total)
    runs = Runs(Bytes(stored), width, total, RunTable.of(Bytes(table.to_bytes())))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, total), st.integers(0, total))))
    assert list(runs.span(start, stop)) == values[start:stop]
    assert list(runs.zeros()) == [at for at, value in enumerate(values[:total]) if not value]
    for at in {0, total // 2, total - 1} if total else ():
        assert runs[at] == values[at]
    with pytest.raises(IndexError):
        runs[total]


@given(hybrids(1, 5))
def test_levels_are_counted(hybrid: tuple[int, list[int], bytes]) -> None:
    width, values, stored = hybrid
    limit = (1 << width) - 1
    table = find_levels(memoryview(stored), limit, len(values))
    runs = Runs(Bytes(stored), width, len(values), RunTable.of(Bytes(table.to_bytes())))
    ranks = [0, *accumulate(value == limit for value in values)]
    assert [runs.rank(stop, limit) for stop in range(len(values) + 1)] == ranks


@given(hybrids(0, 32), st.integers(0, 400))
def test_what_is_cut_off_is_damage(hybrid: tuple[int, list[int], bytes], cut: int) -> None:
    width, values, stored = hybrid
    try:
        find_runs(memoryview(stored[: len(stored) - cut]), width, len(values))
    except Corrupt:
        return
    assert not cut or not values or _can_spare(width, values, stored, cut)


def _can_spare(width: int, values: list[int], stored: bytes, cut: int) -> bool:
    """Whether what was cut off were empty runs, all of it."""
    kept = find_runs(memoryview(stored[: len(stored) - cut]), width, len(values))
    runs = Runs(Bytes(stored[: len(stored) - cut]), width, len(values), kept)
    return list(runs.span(0, len(values))) == values


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 1 << 40))
def test_any_bytes_are_runs_or_damage(stored: bytes, width: int, total: int) -> None:
    with contextlib.suppress(Corrupt):
        table = find_runs(memoryview(stored), width, total)
        runs = Runs(Bytes(stored), width, total, table)
        for at in {0, total // 3, total - 1} if total else ():
            assert 0 <= runs[at] < 1 << max(width, 1)


def test_a_level_above_the_limit_is_damage() -> None:
    for stored in (repeated(3, 5, 2), packed([0, 1, 3, 0, 0, 0, 0, 0], 2)):
        with pytest.raises(Corrupt, match="level of 3"):
            find_levels(memoryview(stored), 2, 5)


def test_a_run_that_claims_any_number_of_values_takes_no_memory() -> None:
    table = find_runs(memoryview(repeated(1, 1 << 60, 1)), 1, 1 << 60)
    assert len(table.firsts) == 1
    assert Runs(Bytes(b""), 1, 1 << 60, table)[1 << 59] == 1
