"""Many records: what is asked for is all that it costs."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.mount import big

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mount.conftest import Runner

HUGE, MANY, SOME = 1_000_000, 200_000, 20_000


@pytest.fixture(scope="module")
def daemon(shared: Runner) -> int:
    """The daemon of a fresh mount of three chunks."""
    big.plain(shared.source, huge=HUGE, many=MANY, some=SOME)
    return shared.mount()


# The order of the tests matters: the first one needs a daemon that has seen nothing yet.


def test_the_last_of_very_many_records_comes_first(shared: Runner, daemon: int) -> None:
    before, began = shared.memory(daemon), time.monotonic()
    file = shared.place / f"huge/{HUGE - 1:06d}/text.txt"
    assert file.stat().st_size == 7
    assert file.read_bytes() == b"%07d" % (HUGE - 1)
    assert time.monotonic() - began < 2
    assert shared.memory(daemon) < before + 8, "no table of the records"
    assert shared.memory(daemon) < 150


def test_the_first_names_do_not_wait_for_the_last(shared: Runner, daemon: int) -> None:
    began = time.monotonic()
    with os.scandir(shared.place / "huge") as entries:
        assert [entry.name for entry in islice(entries, 3)] == ["000000", "000001", "000002"]
    assert time.monotonic() - began < 2


def test_each_of_many_names_is_listed_once_and_costs_the_same(shared: Runner, daemon: int) -> None:
    cost = {}
    for chunk, count in (("some", SOME), ("many", MANY)):
        before = shared.work(daemon)
        with os.scandir(shared.place / chunk) as entries:
            names = [entry.name for entry in entries]
        cost[chunk] = (shared.work(daemon) - before) / count
        assert names == [f"{number:06d}" for number in range(count)]
    # A clock tick is 10 ms, so that the smaller listing is known only roughly.
    assert cost["many"] < 1.4 * cost["some"] + 2e-6
    assert shared.memory(daemon) < 150


def test_a_folder_is_listed_again_from_the_beginning(shared: Runner, daemon: int) -> None:
    descriptor = os.open(shared.place / "some", os.O_RDONLY)
    try:
        for _ in range(2):  # listdir rewinds
            assert len(os.listdir(descriptor)) == SOME
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(("layout", "count"), [("flat", 20_000), ("record", 1500)])
def test_memory_does_not_grow_with_what_was_seen(shardfs: Runner, layout: str, count: int) -> None:
    shardfs.place_source(big.plain(shardfs.folder / "big", chunk=count))
    daemon = shardfs.mount("--layout", layout)
    held = []
    for _ in range(3):
        assert list(walk(shardfs.place / "chunk")) == [7] * count
        held.append(shardfs.memory(daemon))
    assert held[2] <= 1.05 * held[0]
    assert held[2] < 150


def walk(folder: Path) -> Iterator[int]:
    """The sizes of all files below a folder."""
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from walk(Path(entry.path))
        else:
            yield entry.stat().st_size


def test_no_extended_attributes_are_asked_for_again_and_again(shardfs: Runner) -> None:
    shardfs.place_source(big.plain(shardfs.folder / "big", many=5000))
    log = shardfs.folder / "log"
    with log.open("wb") as stderr:
        arguments = ["mount", shardfs.source, shardfs.place, "-f", "--layout", "flat", "--debug"]
        daemon = subprocess.Popen(shardfs.command(*arguments), stderr=stderr, env=shardfs.env)
    assert shardfs.wait_until(lambda: shardfs.mounts(shardfs.place), 10)
    run = subprocess.run(["ls", "-l", shardfs.place / "many"], capture_output=True, check=True)
    assert run.stdout.count(b"\n") > 5000
    assert run.stderr == b""
    with pytest.raises(OSError, match="not supported"):
        os.getxattr(shardfs.place / "many", "user.x")
    assert shardfs("umount", shardfs.place).returncode == 0
    assert daemon.wait(10) == 0
    requests = log.read_text(errors="replace")
    assert requests.count("READDIRPLUS") > 10
    assert requests.count("XATTR") <= 2
