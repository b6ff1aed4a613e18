from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import (
    AccessDenied,
    Corrupt,
    NoKey,
    NotFound,
    ShardfsError,
    Unexpected,
    WouldBlock,
)
from shardfs.tree import tree as tree_module
from shardfs.tree.inodes import ROOT
from shardfs.tree.tree import BATCH
from tests.fakes import FakeShard, MemoryStore
from tests.toy import ToyDataset, toy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shardfs.model import Field
    from shardfs.tree.inodes import Ino
    from shardfs.tree.nodes import Listed
    from shardfs.tree.tree import Tree

MANY = 3 * BATCH + 7


@pytest.fixture
def tree(open_tree: Callable[..., Tree]) -> Tree:
    many = toy(*({"text": str(number)} for number in range(MANY)))
    return open_tree({"sub/many.toy": many, "sub/one.toy": toy({"text": "1"}), "file": b"12345"})


def below(tree: Tree, *names: str) -> Ino:
    ino = ROOT
    for name in names:
        ino = tree.lookup(ino, name).ino
    return ino


def all_of(tree: Tree, folder: Ino) -> list[Listed]:
    found: list[Listed] = []
    while batch := tree.scan(folder, found[-1].cookie if found else 0):
        found += batch
    return found


def test_a_listing_comes_in_batches(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "PATIENCE", 60)
    folder = below(tree, "sub", "many")
    assert len(tree.scan(folder)) == BATCH
    assert [entry.name for entry in all_of(tree, folder)] == [f"{n:06d}" for n in range(MANY)]
    assert tree.scan(folder, all_of(tree, folder)[-1].cookie) == []


def test_a_slow_listing_hands_out_what_it_has(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "PATIENCE", -1)
    folder = below(tree, "sub", "many")
    assert [entry.name for entry in tree.scan(folder)] == ["000000"]
    assert len(all_of(tree, folder)) == MANY


def test_without_waiting_each_step_either_answers_or_would_block(tree: Tree) -> None:
    """What would block needs to be waited for once, and answers from then on."""
    steps: list[Callable[[], object]] = [
        lambda: tree.attr(ROOT),
        lambda: tree.scan(ROOT),
        lambda: tree.lookup(ROOT, "sub"),
        lambda: tree.scan(below(tree, "sub")),
        lambda: tree.lookup(below(tree, "sub"), "one"),
        lambda: tree.scan(below(tree, "sub", "one")),
        lambda: tree.lookup(below(tree, "sub", "one", "000000"), "text.txt"),
        lambda: tree.attr(below(tree, "sub", "one", "000000", "text.txt")),
        lambda: tree.open(below(tree, "sub", "one", "000000", "text.txt")),
    ]
    blocked = 0
    for step in steps:
        try:
            with no_wait():
                first = step()
        except WouldBlock:
            blocked += 1
            first = step()
        with no_wait():
            again = step()
        assert type(again) is type(first)
    assert blocked == 2, "the folder below the top, and the shard"


def test_a_file_of_the_source_is_opened_with_waiting(tree: Tree) -> None:
    file = below(tree, "file")
    with no_wait(), pytest.raises(WouldBlock):
        tree.open(file)
    assert bytes(tree.open(file).read(0, 9)) == b"12345"


class Interrupted:
    """A space whose listings stop in the middle."""

    def __init__(self, stop: Exception) -> None:
        self._stop = stop

    def __call__(
        self, scan: Callable[[Ino, int], Iterator[Listed]]
    ) -> Callable[..., Iterator[Listed]]:
        def stopped(ino: Ino, start: int) -> Iterator[Listed]:
            for listed in scan(ino, start):
                if listed.cookie == 3:
                    raise self._stop
                yield listed

        return stopped


@pytest.mark.parametrize("stop", [WouldBlock(), Corrupt("bad")])
def test_a_listing_that_stops_hands_out_what_it_has_first(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, stop: Exception
) -> None:
    space = tree._shards
    monkeypatch.setattr("shardfs.tree.tree.PATIENCE", 60)  # the machine may be slow
    monkeypatch.setattr(space, "scan", Interrupted(stop)(space.scan))
    folder = below(tree, "sub", "many")
    first = tree.scan(folder)
    assert [entry.name for entry in first] == ["000000", "000001"]
    with pytest.raises(type(stop)):
        tree.scan(folder, first[-1].cookie)


def test_many_threads_read_the_same_tree(tree: Tree) -> None:
    folder = below(tree, "sub", "many")

    def read(number: int) -> bytes:
        record = tree.lookup(folder, f"{number:06d}").ino
        blob = tree.open(tree.lookup(record, "text.txt").ino)
        return bytes(blob.read(0, blob.size()))

    with ThreadPoolExecutor(8) as pool:
        for number, content in enumerate(pool.map(read, range(MANY))):
            assert content == b"%d" % number


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (Corrupt("a"), 1),
        (Unexpected("a"), 1),
        (NoKey("a"), 1),
        (AccessDenied("a"), 1),
        (NotFound("a"), 0),
    ],
)
def test_only_faults_are_noted(tree: Tree, error: ShardfsError, count: int) -> None:
    tree.note(error)
    assert tree._journal.count == count


def test_closing_lets_go_of_the_shards(
    open_tree: Callable[..., Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = FakeShard([{"text": b"1"}])
    monkeypatch.setattr(ToyDataset, "open_shard", lambda dataset, index: shard)
    tree = open_tree({"a.toy": b""})
    blob = tree.open(below(tree, "a", "000000", "text.txt"))
    tree.close()
    assert shard.closed
    assert bytes(blob.read(0, 1)) == b"1"


def test_work_is_done_for_what_is_asked_and_nothing_else(
    open_tree: Callable[..., Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of very many records costs as much as the first, and a listing does not look into records."""

    class Huge(FakeShard):
        def __init__(self) -> None:
            super().__init__([])

        def __len__(self) -> int:
            return 1_000_000

        def fields(self, index: int, /) -> Sequence[Field]:
            self.records = {index: {"text": b"%d" % index}}  # type: ignore[assignment]
            return super().fields(index)

    shard = Huge()
    monkeypatch.setattr(ToyDataset, "open_shard", lambda dataset, index: shard)
    tree = open_tree(MemoryStore({"a.toy": b""}))
    began = time.process_time()
    blob = tree.open(below(tree, "a", "999999", "text.txt"))
    assert bytes(blob.read(0, 9)) == b"999999"
    assert shard.asked == 1
    assert len(tree.scan(below(tree, "a"), 999_990)) == 10
    assert shard.asked == 1
    assert time.process_time() - began < 0.5
