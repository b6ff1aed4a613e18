"""Compressed chunks under many readers. What work was done is told by the time that the daemon has computed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.mount import big

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mount.conftest import Runner

# One decompression of the chunk `many` takes 0.1 to 0.3 s.
RECORDS = 128
LARGE = 48


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return big.zipped(
        tmp_path_factory.mktemp("zipped") / "source",
        many=(RECORDS, 1),
        one=(1, LARGE),
        long=(12, 40),
    )


@pytest.fixture
def daemon(shardfs: Runner, source: Path) -> int:
    shardfs.place_source(source)
    return shardfs.mount()


def decompression(source: Path, chunk: str) -> float:
    """The seconds that it takes to decompress a chunk, by the program zstd's library."""
    import zstandard

    began = time.process_time()
    with (source / f"{chunk}.zstd.bin").open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while reader.read(1 << 20):
            pass
    return time.process_time() - began


def test_many_processes_cost_one_decompression(shardfs: Runner, source: Path, daemon: int) -> None:
    script = "for n in $(seq -f %06.0f 0 4 127); do sha256sum many/$n/data.bin & done; wait"
    before = shardfs.work(daemon)
    run = subprocess.run(
        ["sh", "-c", script], cwd=shardfs.place, capture_output=True, text=True, check=True
    )
    spent = shardfs.work(daemon) - before
    sums = dict(line.split("  ")[::-1] for line in run.stdout.splitlines())
    assert sums == {
        f"many/{number:06d}/data.bin": hashlib.sha256(big.record(number, 1)).hexdigest()
        for number in range(0, RECORDS, 4)
    }
    # Twice would be within the bound of what else there is to do; 32 times would not be.
    assert spent < 1.5 * decompression(source, "many") + 0.5


def test_the_first_record_does_not_wait_for_the_last(
    shardfs: Runner, source: Path, daemon: int
) -> None:
    before = shardfs.work(daemon)
    assert (shardfs.place / "long/000000/data.bin").read_bytes()[:8] == b"00000000"
    # Opening takes 0.1 s at most, all of the chunk 0.25 s more.
    assert shardfs.work(daemon) - before < 0.5 * decompression(source, "long") + 0.1
    assert shardfs.memory(daemon) < 250


def test_small_reads_cost_about_what_large_ones_do(shardfs: Runner, daemon: int) -> None:
    file = shardfs.place / "one/000000/data.bin"
    content = big.record(0, LARGE)
    assert file.read_bytes() == content
    spent = {}
    for size in ("1M", "4k"):
        with file.open("rb") as handle:
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = shardfs.work(daemon)
        run = subprocess.run(
            ["dd", f"if={file}", f"bs={size}", "status=none"], capture_output=True, check=True
        )
        spent[size] = shardfs.work(daemon) - before
        assert run.stdout == content
    assert spent["4k"] <= 2 * spent["1M"] + 0.2


def test_nobody_waits_for_the_decompression_of_another(
    shardfs: Runner, source: Path, daemon: int
) -> None:
    other = shardfs.place / "many"
    (other / "000000/data.bin").read_bytes()
    done = threading.Event()

    def read_the_end() -> None:
        with (shardfs.place / "long/000011/data.bin").open("rb") as file:
            assert file.read(8) == b"00000011"
        done.set()

    reader = threading.Thread(target=read_the_end)
    reader.start()
    longest, looks, start = 0.0, 0, time.monotonic()
    while not done.wait(0.002):
        began = time.monotonic()
        assert len(os.listdir(other)) == RECORDS
        with (other / "000000/data.bin").open("rb") as file:
            assert file.read(8) == b"00000000"
        longest = max(longest, time.monotonic() - began)
        looks += 1
    reader.join()
    assert looks > 3, "the decompression took too little time to say anything"
    # On a busy machine all takes longer.
    assert longest < max(0.5, (time.monotonic() - start) / 2)


def test_what_was_evicted_is_right_when_it_is_read_again(shardfs: Runner, source: Path) -> None:
    shardfs.place_source(source)
    shardfs.mount("--memory-limit", "16M")
    files = [shardfs.place / f"many/{number:06d}/data.bin" for number in (100, 3, 127)]
    handles = [file.open("rb", buffering=0) for file in files]
    try:
        for _ in range(2):
            for handle, number in zip(handles, (100, 3, 127), strict=True):
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                assert os.pread(handle.fileno(), 4 << 20, 0) == big.record(number, 1)
            assert (shardfs.place / "one/000000/data.bin").stat().st_size == 8 + LARGE * big.BLOCK
            with (shardfs.place / "one/000000/data.bin").open("rb") as file:
                file.seek(LARGE * big.BLOCK)
                assert file.read() == big.PATTERN[-8:]
    finally:
        for handle in handles:
            handle.close()
