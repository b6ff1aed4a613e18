from __future__ import annotations

import pytest

from shardfs.tree.slicing import sliced
from tests.fakes import FakeDataset, FakeShard


def dataset(*counts: int) -> FakeDataset:
    shards = {
        f"s{number}": FakeShard([{"id": b"%d" % row} for row in range(count)])
        for number, count in enumerate(counts)
    }
    return FakeDataset(shards)


def shown(data: FakeDataset, rank: int, world: int) -> list[tuple[str, str]]:
    """(shard, record) of what a reader gets."""
    part = sliced(data, rank, world)
    found = []
    for number, ref in enumerate(part.shards):
        shard = part.open_shard(number)
        assert [shard.has(index) for index in range(len(shard) + 1)] == [True] * len(shard) + [
            False
        ]
        for index in range(len(shard)):
            key = shard.key(index)
            assert shard.find(key) == index
            assert shard.fields(index)[0].data.size() > 0
            found.append((ref.name, key))
    return found


@pytest.mark.parametrize("world", [0, 1])
def test_one_reader_gets_all(world: int) -> None:
    data = dataset(3, 2)
    assert sliced(data, 0, world) is data


def test_whole_shards_are_shared_out_where_that_is_fair() -> None:
    data = dataset(3, 2, 1, 4)
    assert {name for name, _ in shown(data, 1, 2)} == {"s1", "s3"}
    assert len(shown(data, 1, 2)) == 6


@pytest.mark.parametrize("world", [2, 3, 5, 20])
@pytest.mark.parametrize("counts", [(7,), (3, 0, 5), (1, 1, 1, 1, 1, 1, 1)])
def test_else_each_reader_gets_every_so_manieth_row(world: int, counts: tuple[int, ...]) -> None:
    if len(counts) % world == 0:
        pytest.skip("shared out by shards")
    rows = [
        (f"s{number}", f"{row:06d}") for number, count in enumerate(counts) for row in range(count)
    ]
    parts = [shown(dataset(*counts), rank, world) for rank in range(world)]
    assert parts == [rows[rank::world] for rank in range(world)]


def test_a_record_of_another_reader_is_not_found() -> None:
    shard = sliced(dataset(7), 1, 3).open_shard(0)
    assert [shard.find(f"{row:06d}") for row in range(7)] == [None, 0, None, None, 1, None, None]
    assert shard.find("nothing") is None
