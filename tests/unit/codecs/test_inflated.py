from __future__ import annotations

import gc
import mmap
import random
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis.strategies import integers, lists, tuples

from shardfs.blob import Bytes, no_wait
from shardfs.cache.disk import Room
from shardfs.cache.files import Files
from shardfs.cache.memory import Memory
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.progress import LOOK_BACK, STEP
from shardfs.codecs.zstd import Zstd
from shardfs.errors import Corrupt, TooLarge, Unreadable, WouldBlock

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.codecs import Stream

STORED = zstandard.compress(b"content" * 1000)
# Four megabytes that do not compress, so that what is read of the source says how far the decompression went.
CONTENT = random.Random(7).randbytes(8 * STEP)
LARGE = zstandard.compress(CONTENT, 1)


class Counted(Zstd):
    """zstd that counts its streams and what comes out of them."""

    def __init__(self, pause: float = 0) -> None:
        self.streams = self.bytes = 0
        self.pause = pause

    def stream(self, blob: Blob, most: int, /) -> Stream:  # type: ignore[override]
        self.streams += 1
        return CountedStream(Zstd.stream(blob, most), self)


class CountedStream:
    def __init__(self, stream: Stream, counted: Counted) -> None:
        self._stream, self._counted = stream, counted

    def readinto1(self, target: memoryview, /) -> int:
        time.sleep(self._counted.pause)
        count = self._stream.readinto1(target)
        self._counted.bytes += count
        return count


def inflated(
    stored: bytes, size: int | None, codec: Any = Zstd, memory: int = 1 << 30, limit: int = 1 << 30
) -> Inflated:
    return Inflated(Bytes(stored), codec, size, memory=Memory(memory), limit=limit)


class Other:
    """Holds something else in memory."""


# --- as far as it is read, and once ---


@pytest.mark.parametrize("stop", [1, STEP, STEP + 1, 3 * STEP])
def test_only_the_part_up_to_what_is_read_is_decompressed(stop: int) -> None:
    codec = Counted()
    blob = inflated(LARGE, len(CONTENT), codec)
    assert bytes(blob.read(stop - 1, 1)) == CONTENT[stop - 1 : stop]
    assert stop <= codec.bytes <= stop + STEP
    made = codec.bytes
    assert bytes(blob.read(0, stop)) == CONTENT[:stop]
    assert codec.bytes == made, "what is made is not made again"
    assert bytes(blob.read(0, len(CONTENT))) == CONTENT
    assert (codec.streams, codec.bytes) == (1, len(CONTENT))


def test_many_threads_cost_one_decompression() -> None:
    codec = Counted()
    blob = inflated(LARGE, len(CONTENT), codec)
    barrier = threading.Barrier(32)

    def read(number: int) -> bool:
        barrier.wait()
        offset = number * len(CONTENT) // 32
        return bytes(blob.read(offset, 1000)) == CONTENT[offset : offset + 1000]

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(read, reversed(range(32))))
    assert codec.streams == 1
    assert codec.bytes <= len(CONTENT)


def test_many_threads_that_ask_for_an_unknown_size_cost_one_measurement() -> None:
    codec = Counted(pause=0.001)
    blob = inflated(LARGE, None, codec)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: blob.size(), range(8))) == {len(CONTENT)}
    assert codec.streams == 1


def test_who_reads_the_beginning_does_not_wait_for_who_reads_the_end() -> None:
    codec = Counted(pause=0.02)
    blob = inflated(LARGE, len(CONTENT), codec)
    end = threading.Thread(target=blob.read, args=(len(CONTENT) - 1, 1))
    end.start()
    try:
        assert bytes(blob.read(0, 9)) == CONTENT[:9]
        assert end.is_alive()
    finally:
        end.join()


def test_what_is_made_needs_no_waiting_and_the_rest_does() -> None:
    blob = inflated(LARGE, len(CONTENT))
    with no_wait():
        assert blob.size() == len(CONTENT)
        assert bytes(blob.read(len(CONTENT), 5)) == b""
        with pytest.raises(WouldBlock):
            blob.read(0, 1)
    blob.read(0, 1)
    with no_wait():
        assert bytes(blob.read(0, 100)) == CONTENT[:100]
        with pytest.raises(WouldBlock):
            blob.read(len(CONTENT) - 1, 1)
    with no_wait(), pytest.raises(WouldBlock):
        inflated(LARGE, None).size()


@settings(max_examples=30, deadline=None)
@given(lists(tuples(integers(0, len(CONTENT) + 9), integers(0, 2 * STEP)), max_size=6))
def test_reads_in_any_order_are_right(reads: list[tuple[int, int]]) -> None:
    blob = inflated(LARGE, len(CONTENT))
    for offset, length in reads:
        assert bytes(blob.read(offset, length)) == CONTENT[offset : offset + length]


# --- under a budget ---


def test_an_eviction_while_it_is_read_harms_nobody() -> None:
    memory, codec = Memory(len(CONTENT) // 2), Counted()
    blob = Inflated(Bytes(LARGE), codec, len(CONTENT), memory=memory, limit=1 << 30)
    other = Other()
    view = blob.read(0, STEP)
    memory.put(other, "value", len(CONTENT))
    assert memory.get(blob) is None
    assert bytes(view) == CONTENT[:STEP]
    assert bytes(blob.read(5, 100)) == CONTENT[5:105]
    assert codec.streams == 2


def test_evictions_under_many_readers_give_right_bytes() -> None:
    """Two chunks that do not fit into memory together, read by turns."""
    memory, codec = Memory(len(CONTENT) + 1), Counted()
    contents = [CONTENT, CONTENT[::-1]]
    blobs = [
        Inflated(
            Bytes(zstandard.compress(content, 1)), codec, len(content), memory=memory, limit=1 << 30
        )
        for content in contents
    ]

    def read(number: int) -> bool:
        which, offset = number % 2, number * 40_009 % (len(CONTENT) - 1000)
        got = blobs[which].read(offset, 1000)
        return bytes(got) == contents[which][offset : offset + 1000]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(64)))
    assert memory.total <= 2 * len(CONTENT)


def test_what_is_made_counts_as_it_grows() -> None:
    memory = Memory(1 << 30)
    blob = Inflated(Bytes(LARGE), Zstd, len(CONTENT), memory=memory, limit=1 << 30)
    blob.read(0, 1)
    assert LOOK_BACK < memory.total <= LOOK_BACK + STEP
    blob.read(0, len(CONTENT))
    assert memory.total == len(CONTENT)
    del blob
    gc.collect()
    assert memory.total == 0


# --- what is wrong ---


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
def test_the_beginning_of_what_has_another_size_can_be_read(size: int) -> None:
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(CONTENT)
    blob = inflated(unsized, size)
    assert bytes(blob.read(0, 100)) == CONTENT[:100]
    for _ in range(2):
        with pytest.raises(Corrupt):
            blob.read(0, size)


def test_a_size_that_the_data_denies_is_refused_before_it_is_made() -> None:
    codec = Counted()
    with pytest.raises(Corrupt, match=f"says it decompresses to {len(CONTENT)}"):
        inflated(LARGE, 100, codec).read(0, 1)
    assert codec.streams == 0


def test_damage_leaves_what_comes_before_it() -> None:
    blob = inflated(LARGE[: len(LARGE) // 2], len(CONTENT))
    assert bytes(blob.read(0, STEP)) == CONTENT[:STEP]
    with pytest.raises(Corrupt):
        blob.read(0, len(CONTENT))
    assert bytes(blob.read(0, STEP)) == CONTENT[:STEP]


def test_damage_is_met_once_and_told_to_all() -> None:
    codec = Counted()
    blob = inflated(LARGE[: len(LARGE) // 2], len(CONTENT), codec)

    def read(number: int) -> type[Exception] | None:
        try:
            blob.read(len(CONTENT) - 1, 1)
        except Corrupt as error:
            return type(error)
        return None

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(8))) == {Corrupt}
    assert codec.streams == 1


def test_a_bomb_takes_no_memory() -> None:
    bomb = zstandard.compress(bytes(256 << 20))
    assert len(bomb) < 50_000
    codec, limit = Counted(), 1 << 20
    for size in (None, 256 << 20):
        blob = inflated(bomb, size, codec, limit=limit)
        with pytest.raises(TooLarge, match="max-chunk-size"):
            blob.read(0, 1)
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(256 << 20))
    with pytest.raises(TooLarge):
        inflated(unsized, None, codec, limit=limit).size()
    assert codec.bytes <= limit + STEP


def test_memory_that_is_not_there_is_said_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(number: int, size: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    blob = inflated(STORED, 7000)
    with monkeypatch.context() as patched:
        patched.setattr(mmap, "mmap", none)
        with pytest.raises(Unreadable, match="no memory for 7000"):
            blob.read(0, 1)
    assert bytes(blob.read(0, 7)) == b"content"


def test_an_unknown_size_counts_all_frames() -> None:
    two = zstandard.compress(b"first ") + zstandard.compress(b"second")
    blob = inflated(two, None)
    assert blob.size() == 12
    assert bytes(blob.read(0, 99)) == b"first second"


def test_nothing_decompresses_to_nothing() -> None:
    for size in (0, None):
        blob = inflated(zstandard.compress(b""), size)
        assert blob.size() == 0
        assert bytes(blob.read(0, 10)) == b""


@pytest.mark.parametrize("stored", [b"", b"\x28\xb5\x2f", b"garbage" * 9])
@pytest.mark.parametrize("size", [10, None])
def test_garbage_is_damage(stored: bytes, size: int | None) -> None:
    with pytest.raises(Corrupt):
        inflated(stored, size).read(0, 1)


def test_damage_that_was_met_keeps_nobody_alive() -> None:
    def meet() -> weakref.ref[Inflated]:
        blob = Inflated(Bytes(STORED[:-9]), Zstd, 7000, memory=Memory(1 << 20), limit=1 << 20)
        with pytest.raises(Corrupt):
            blob.read(0, 7000)
        return weakref.ref(blob)

    met = meet()
    gc.collect()
    assert met() is None


def test_a_source_that_failed_is_asked_again() -> None:
    class Flaky(Bytes):
        good = False

        def read(self, offset: int, length: int, /) -> memoryview:
            if offset and not self.good:
                raise Unreadable("no network")
            return super().read(offset, length)

    source = Flaky(LARGE)
    blob = Inflated(source, Zstd, len(CONTENT), memory=Memory(1 << 30), limit=1 << 30)
    for _ in range(2):
        with pytest.raises(Unreadable):
            blob.read(0, len(CONTENT))
    source.good = True
    assert bytes(blob.read(0, len(CONTENT))) == CONTENT


# --- what does not fit in memory ---


def with_files(folder: Path, limit: int, disk: int = 1 << 30) -> Memory:
    return Memory(limit, Files(Room(folder, disk), disk))


def kept(folder: Path) -> int:
    """Bytes in files."""
    return sum(place.stat().st_size for place in folder.rglob("*") if place.is_file())


def test_what_is_larger_than_the_limit_lies_in_a_file(tmp_path: Path) -> None:
    codec, memory = Counted(), with_files(tmp_path, LOOK_BACK)
    blob = Inflated(Bytes(LARGE), codec, len(CONTENT), memory=memory, limit=1 << 30)
    for offset in (0, len(CONTENT) - 100, 5 * STEP, 10):
        assert bytes(blob.read(offset, 100)) == CONTENT[offset : offset + 100]
    assert codec.streams == 1
    assert kept(tmp_path) == len(CONTENT)
    assert memory.total <= LOOK_BACK
    with no_wait():
        assert bytes(blob.read(0, len(CONTENT))) == CONTENT
    del blob
    gc.collect()
    assert kept(tmp_path) == 0


def test_what_comes_back_after_an_eviction_lies_in_a_file(tmp_path: Path) -> None:
    codec, memory = Counted(), with_files(tmp_path, 2 * len(CONTENT))
    first, second = (
        Inflated(Bytes(LARGE), codec, len(CONTENT), memory=memory, limit=1 << 30) for _ in range(2)
    )
    for blob in (first, second) * 4:
        assert bytes(blob.read(0, len(CONTENT))) == CONTENT
    assert codec.streams <= 4
    assert kept(tmp_path) >= len(CONTENT)


def test_a_stream_that_memory_let_go_begins_again_where_it_was(tmp_path: Path) -> None:
    codec, memory = Counted(), with_files(tmp_path, LOOK_BACK + 1000)
    blob = Inflated(Bytes(LARGE), codec, len(CONTENT), memory=memory, limit=1 << 30)
    assert bytes(blob.read(0, 100)) == CONTENT[:100]
    other = Other()
    memory.put(other, "other", LOOK_BACK)
    assert bytes(blob.read(0, len(CONTENT))) == CONTENT
    assert codec.streams == 2


@pytest.mark.parametrize("disk", [0, 100_000, len(CONTENT) // 2])
def test_without_room_on_disk_it_is_read_all_the_same(tmp_path: Path, disk: int) -> None:
    told: list[str] = []
    memory = with_files(tmp_path, LOOK_BACK, disk) if disk else Memory(LOOK_BACK)
    memory.tell = told.append
    blob = Inflated(Bytes(LARGE), Zstd, len(CONTENT), memory=memory, limit=1 << 30)
    for offset in (0, len(CONTENT) - 100, 5 * STEP, 10):
        assert bytes(blob.read(offset, 100)) == CONTENT[offset : offset + 100]
    assert memory.total <= 2 * LOOK_BACK
    (text,) = told
    assert "--memory-limit" in text
    assert kept(tmp_path) == 0


@pytest.mark.parametrize("size", [len(CONTENT) - 1, len(CONTENT) + 1])
@pytest.mark.parametrize("files", [True, False])
def test_another_size_is_damage_wherever_it_lies(tmp_path: Path, size: int, files: bool) -> None:
    memory = with_files(tmp_path, LOOK_BACK) if files else Memory(LOOK_BACK)
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(CONTENT)
    blob = Inflated(Bytes(unsized), Zstd, size, memory=memory, limit=1 << 30)
    assert bytes(blob.read(0, 100)) == CONTENT[:100]
    for _ in range(2):
        with pytest.raises(Corrupt):
            blob.read(size - 50, 50)


@pytest.mark.parametrize("files", [True, False])
def test_many_readers_of_many_chunks_stay_within_the_limit(tmp_path: Path, files: bool) -> None:
    limit = 3 * len(CONTENT)
    memory = with_files(tmp_path, limit) if files else Memory(limit)
    blobs = [
        Inflated(Bytes(LARGE), Zstd, len(CONTENT), memory=memory, limit=1 << 30) for _ in range(8)
    ]
    most: list[int] = []

    def read(seed: int) -> bool:
        dice, good = random.Random(seed), True
        for _ in range(15):
            offset = dice.randrange(len(CONTENT))
            good &= bytes(dice.choice(blobs).read(offset, 90_000)) == CONTENT[offset:][:90_000]
            most.append(memory.total)
        return good

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(read, range(12)))
    assert max(most) <= limit
    for blob in blobs:
        assert bytes(blob.read(0, 10)) == CONTENT[:10], "nobody waits for what is not in use"
