from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

import shardfs
from shardfs.errors import Corrupt, MissingPackage, Unreadable
from shardfs.work.executors import Here, each, executor, pieces
from shardfs.work.jsonl import all_lines
from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.dataset import Dataset, Shard
    from shardfs.work.executors import Piece

LITDATA = DATA / "litdata" / "plain_dict"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Dataset]:
    with shardfs.open(LITDATA, cache_dir=tmp_path) as dataset:
        yield dataset


def numbers(piece: Piece) -> list[int]:
    return [record["label"] for record in piece.records()]


def late_first(piece: Piece) -> int:
    if piece.start == 0:
        time.sleep(0.2)
    return piece.start


def process_of(_: object) -> int:
    return os.getpid()


def dies(_: object) -> None:
    os._exit(1)


def fails(_: object) -> None:
    raise Corrupt("is damaged").at("here")


def test_pieces_are_all_records_in_order(plain: Dataset) -> None:
    spans = [(piece.shard.path, piece.start, piece.stop) for piece in pieces(plain.shards, 4)]
    assert spans == [
        ("chunk-0-0", 0, 4),
        ("chunk-0-0", 4, 8),
        ("chunk-0-0", 8, 9),
        ("chunk-0-1", 0, 4),
        ("chunk-0-1", 4, 5),
    ]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_are_the_same_whoever_works(plain: Dataset, jobs: int) -> None:
    expected = [record["label"] for record in plain]
    with executor(jobs=jobs) as pool:
        found = list(each(pool, numbers, pieces(plain.shards, 2)))
        assert [label for some in found for label in some] == expected
        assert list(each(pool, late_first, pieces(plain.shards, 2))) == [0, 2, 4, 6, 8, 0, 2, 4]


def test_one_task_needs_no_process(plain: Dataset) -> None:
    with executor(jobs=4, tasks=1) as pool:
        assert isinstance(pool, Here)
    with executor(jobs=2) as pool:
        assert os.getpid() not in each(pool, process_of, plain.shards)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_task_raises_arrives(plain: Dataset, jobs: int) -> None:
    with executor(jobs=jobs) as pool, pytest.raises(Corrupt, match="here: is damaged"):
        list(each(pool, fails, plain.shards))


def test_a_process_that_dies_is_told(plain: Dataset) -> None:
    with executor(jobs=2) as pool, pytest.raises(Unreadable, match=r"a process .* died"):
        list(each(pool, dies, plain.shards))


def test_what_is_not_asked_for_any_more_is_not_done(plain: Dataset) -> None:
    done: list[int] = []

    def note(shard: Shard) -> int:
        done.append(len(shard))
        return len(shard)

    with executor(jobs=1) as pool:
        assert next(each(pool, note, plain.shards)) == 9
    assert done == [9]


def test_without_dask_a_word_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(MissingPackage, match=r"shardfs\[dask\]"),
        executor(dask="tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_lines_are_those_of_the_shards(plain: Dataset, jobs: int) -> None:
    root = plain.tree.root
    kept = [(root / s.path / ".shardfs/records.jsonl").read() for s in plain.shards]
    with executor(jobs=jobs) as pool:
        assert b"".join(all_lines(plain, pool)) == b"".join(kept)
