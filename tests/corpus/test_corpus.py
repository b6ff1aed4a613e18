"""All datasets in tests/data, which real libraries wrote, through the tree of every layout."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import ShardfsError
from tests import DATA
from tests.corpus.contents import digest
from tests.corpus.truth import Case, problems

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    "case", [name for name in CASES if "encrypted" in name], indirect=True
)
def test_without_the_key_there_is_no_wrong_byte(case: Case) -> None:
    assert case.truth["expect_without_key"]
    assert problems(case, unlock=False) == []


def contents(node: Node) -> Counter[str]:
    """How often each content stands below a folder. What can't be read is no content."""
    found: Counter[str] = Counter()
    try:
        for child in node.children():
            if child.is_dir:
                found += contents(child)
            else:
                try:
                    found[digest(child.read())] += 1
                except ShardfsError:
                    continue
    except ShardfsError:
        pass
    return found


@pytest.mark.parametrize("layout", ["flat", "field"])
def test_all_layouts_show_the_same_bytes(case: Case, layout: str) -> None:
    for part in case.parts():
        try:
            record = case.open(part)
        except ShardfsError:
            with pytest.raises(ShardfsError):
                case.open(part, layout=layout)
            continue
        expected = contents(record.root)
        assert contents(case.open(part, layout=layout).root) == expected
