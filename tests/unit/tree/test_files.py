from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import lists, sampled_from, sets

from shardfs.names import NAME_MAX, from_bytes, to_bytes
from shardfs.stores import Entry
from shardfs.tree.files import Files

if TYPE_CHECKING:
    from collections.abc import Collection


def files(*names: str, taken: Collection[str] = ()) -> Files:
    return Files([Entry(name, number, number, "") for number, name in enumerate(names)], taken)


def shown(of: Files) -> list[str]:
    return [of.name(position) for position in range(len(of))]


def test_files_are_what_their_entries_say() -> None:
    made = Files([Entry("b", 5, 7, "v"), Entry("a", 1 << 40, -3, "v", problem="lost")], ())
    assert shown(made) == ["a", "b"]
    assert [made.size(n) for n in range(2)] == [1 << 40, 5]
    assert [made.mtime_ns(n) for n in range(2)] == [-3, 7]
    assert [made.problem(n) for n in range(2)] == ["lost", ""]


@pytest.mark.parametrize(
    "name", ["a", "x.txt.txt", "é", from_bytes(b"\xff.jpg"), "new\nline", "%2E", "a b", "~1"]
)
def test_names_stay_as_they_are(name: str) -> None:
    made = files("A", name, "zz")
    assert name in shown(made)
    position = made.find(name)
    assert position is not None
    assert made.stored_name(position) == name


@pytest.mark.parametrize(
    ("names", "taken", "expected"),
    [
        (["a"], ["a"], ["a~1"]),
        (["a", "a~1"], ["a"], ["a~2", "a~1"]),
        (["a.txt", "b.txt"], ["a.txt", "a~1.txt"], ["a~2.txt", "b.txt"]),
        (["a", "a", "a"], [], ["a", "a~1", "a~2"]),
        (["..", "%2E%2E"], [], ["%2E%2E", "%2E%2E~1"]),
    ],
)
def test_a_name_that_is_taken_or_can_be_none_is_another(
    names: list[str], taken: list[str], expected: list[str]
) -> None:
    made = files(*names, taken=taken)
    assert sorted(shown(made)) == sorted(expected)
    for position, name in enumerate(shown(made)):
        assert made.find(name) == position
    for name in taken:
        assert made.find(name) is None


def test_names_that_are_too_long_are_cut() -> None:
    made = files("x" * 300 + ".jpg", "x" * 301 + ".jpg")
    assert len(set(shown(made))) == 2
    for name in shown(made):
        assert len(name) == NAME_MAX
        assert name.endswith(".jpg")
        position = made.find(name)
        assert position is not None
        assert len(made.stored_name(position)) > 300


NAMES = sampled_from(["a", "b", "a~1", "b.x", "b~1.x", "..", "%2E%2E", "é", "x" * 260])


@given(names=lists(NAMES, max_size=9), taken=sets(NAMES))
def test_every_file_is_found_by_a_name_of_its_own(names: list[str], taken: set[str]) -> None:
    made = files(*names, taken=taken)
    every = shown(made)
    assert len(set(every)) == len(names)
    assert not taken & set(every)
    assert [made.find(name) for name in every] == list(range(len(names)))
    stored = [made.stored_name(position) for position in range(len(names))]
    assert stored == sorted(names, key=to_bytes)
    for name in {"c", *names} - set(every):
        assert made.find(name) is None


def test_a_million_files_take_little_memory() -> None:
    chance = random.Random(1)
    entries = [Entry(f"{chance.randrange(1 << 60):020}.jpg", 1, 1, "") for _ in range(10_000)]
    made = Files(entries, ())
    columns = (made._names, made._ends, made._sizes, made._times)
    assert sum(map(sys.getsizeof, columns)) < 60 * len(entries)
    assert not made._shown
