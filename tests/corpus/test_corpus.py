"""All datasets in tests/data, which real libraries wrote, through the tree of every layout."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.errors import NotFound, ShardfsError
from tests import DATA
from tests.corpus.contents import digest
from tests.corpus.truth import Case, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.tree.paths import Node

CASES = {
    path.relative_to(DATA).as_posix().removesuffix(".truth.json"): path
    for path in sorted(DATA.rglob("*.truth.json"))
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(CASES[request.param])


def test_there_is_a_corpus() -> None:
    assert len(CASES) > 80


def test_the_tree_shows_what_the_dataset_holds(case: Case) -> None:
    assert problems(case) == []


Change = Callable[[dict[str, Any]], object]

WRONG: dict[str, Change] = {
    "other bytes": lambda truth: field(truth, "image").update(stored_sha256="0" * 64),
    "another text": lambda truth: field(truth, "caption").update(stored_sha256="0" * 64, value="x"),
    "another number": lambda truth: field(truth, "label").update(stored_sha256=None, value=5),
    "another extension": lambda truth: field(truth, "image").update(ext=".png"),
    "a value that is null": lambda truth: field(truth, "image").update(null=True),
    "one that must fail": lambda truth: field(truth, "image").update(damaged=True),
    "another name": lambda truth: field(truth, "image").update(name="photo", path=["photo"]),
    "a field more": lambda truth: record(truth)["fields"].append(
        {**field(truth, "image"), "name": "x", "path": ["x"]}
    ),
    "a field less": lambda truth: record(truth)["fields"].pop(),
    "a record more": lambda truth: truth["shards"][0].update(num_records=99),
    "a record that must fail": lambda truth: record(truth).update(damaged=True),
    "another shard": lambda truth: truth["shards"][0].update(name="chunk-9-9.bin"),
    "a refusal": lambda truth: truth.update(expect={"mount": "refused"}),
    "a file": lambda truth: truth.update(files=[{"path": "index.json", "sha256": "0" * 64}]),
}


def record(truth: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = truth["shards"][0]["records"][0]
    return first


def field(truth: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in record(truth)["fields"] if each["name"] == name)


@pytest.mark.parametrize("wrong", WRONG)
def test_the_comparison_notices(wrong: str) -> None:
    case = Case(CASES["litdata/plain_dict"])
    assert problems(case) == []
    WRONG[wrong](case.truth)
    assert len(problems(case)) == 1


@pytest.mark.parametrize("case", [name for name in CASES if "encrypted" in name], indirect=True)
def test_without_the_key_there_is_no_wrong_byte(case: Case) -> None:
    assert case.truth["expect_without_key"]
    assert problems(case, unlock=False) == []


def contents(node: Node) -> Iterator[str]:
    """The hash of each file below a folder that can be read."""
    with contextlib.suppress(ShardfsError):
        for child in node.children():
            if child.is_dir:
                yield from contents(child)
            else:
                with contextlib.suppress(ShardfsError):
                    yield digest(child.read())


# Thousands of records say nothing new here, and take seconds.
LARGE = ("litdata/many_tiny", "mds/many_records")


@pytest.mark.parametrize("case", [name for name in CASES if name not in LARGE], indirect=True)
@pytest.mark.parametrize("layout", ["flat", "field"])
def test_all_layouts_show_the_same_bytes(case: Case, layout: str) -> None:
    for part in case.parts():
        try:
            record = case.open(part)
        except ShardfsError:
            with pytest.raises(ShardfsError):
                case.open(part, layout=layout)
            continue
        other = case.open(part, layout=layout)
        assert Counter(contents(other.root)) == Counter(contents(record.root))


GOOD = [
    name
    for name in CASES
    if name.startswith(("litdata/", "mds/")) and "damaged" not in name and "encrypted" not in name
]


@pytest.mark.parametrize("case", GOOD, indirect=True)
def test_records_are_counted_through_the_whole_dataset(case: Case) -> None:
    by_index = case.open().root / ".shardfs/by-index"
    begin = 0
    for shard in case.shards():
        for number in {0, shard["num_records"] - 1} if shard["num_records"] else ():
            link = (by_index / str(begin + number)).readlink()
            assert int(link.rpartition("/")[2]) == number
            folder = link.removeprefix("../../").rpartition("/")[0]
            assert shard["name"].startswith(folder)
        begin += shard["num_records"]
    with pytest.raises(NotFound):
        by_index / str(begin)
