from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import Blob, Bytes, clip, no_wait, read_all
from shardfs.cache.memory import Derived, Memory
from shardfs.errors import Corrupt, TooLarge, Unreadable, WouldBlock
from shardfs.formats.shared import paged
from shardfs.formats.webdataset import members as _tar_members
from shardfs.formats.webdataset import shard as _tar_shard
from shardfs.formats.webdataset.shard import Archive, TarShard, held
from shardfs.model import Encoded
from tests.fakes import SlowBlob
from tests.tar_files import archive, header, member, pax

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future


class Keeper:
    """Keeps tables as the index cache does, or in memory that forgets at once."""

    def __init__(self, *, forgets: bool = False) -> None:
        self.made = 0
        self._memory, self._forgets = Memory(0), forgets

    def __call__(self, build: Callable[[], bytes]) -> Blob:
        def counted() -> bytes:
            self.made += 1
            return build()

        return Derived(counted, self._memory) if self._forgets else Bytes(counted())

    def forget(self) -> None:
        for _ in range(2):  # one value is always kept
            self._memory.put(self, b"", 1)


def shard_of(
    data: bytes | Blob, keep: Keeper | None = None, *, faults: list[str] | None = None
) -> TarShard:
    blob = Bytes(data) if isinstance(data, bytes) else data
    return TarShard(
        Archive(
            blob=blob,
            size=blob.size(),
            capacity=blob.size() // 512,
            by_index=False,
            keep=keep or Keeper(),
            report=lambda message, offset: None if faults is None else faults.append(message),
        ),
        None,
    )


def many(count: int) -> bytes:
    return archive(*(member(f"{number:06d}.txt", b"%d" % number) for number in range(count)))


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan stops behind every member."""
    monkeypatch.setattr(_tar_shard, "_TURN", 0.0)


def test_a_record_has_its_members_as_fields() -> None:
    shard = shard_of(archive(member("d/a.left.JPG", b"left"), member("d/a.txt", b"text")))
    fields = shard.fields(0)
    assert [field.name for field in fields] == ["left.JPG", "txt"]
    assert [field.filename for field in fields] == ["a.left.JPG", "a.txt"]
    assert [bytes(read_all(field.data)) for field in fields] == [b"left", b"text"]
    assert fields[0].kind == Encoded()
    assert shard.columns == ["left.JPG", "txt"]
    assert (shard.key(0), shard.find("d/a"), shard.find("a")) == ("d/a", 0, None)


def test_loose_files_stand_behind_the_records() -> None:
    shard = shard_of(archive(member("d/README", b"1"), member("a.txt"), member(".hidden", b"2")))
    assert (len(shard), shard.loose, shard.capacity) == (1, 2, 3)
    assert [shard.key(index) for index in (1, 2)] == ["d", ""]
    for index, name, content in ((1, "README", b"1"), (2, ".hidden", b"2")):
        (field,) = shard.fields(index)
        assert (field.filename, bytes(read_all(field.data))) == (name, content)
    assert not shard.has(1)
    assert shard.find("d") is None


def test_undecodable_names_come_and_go() -> None:
    shard = shard_of(archive(header("é/ü.jpg", encoding="latin-1")))
    assert shard.key(0) == "\udce9/\udcfc"
    assert shard.find("\udce9/\udcfc") == 0
    assert shard.fields(0)[0].filename == "\udcfc.jpg"


def test_sparse_members_are_whole_files() -> None:
    shard = shard_of(
        archive(pax(GNU__sparse__size="10", GNU__sparse__map="2,3"), member("a.bin", b"abc"))
    )
    assert bytes(read_all(shard.fields(0)[0].data)) == b"\0\0abc\0\0\0\0\0"


def test_a_member_that_was_cut_is_never_short() -> None:
    faults: list[str] = []
    shard = shard_of((member("a.txt", b"a") + member("a.bin", b"b" * 5000))[:3000], faults=faults)
    whole, cut = shard.fields(0)
    assert bytes(read_all(whole.data)) == b"a"
    with pytest.raises(Corrupt, match="should reach to byte"):
        cut.data.size()
    with pytest.raises(Corrupt):
        cut.data.read(0, 1)
    assert len(faults) == 1


def test_a_stream_that_was_cut_breaks_its_last_member() -> None:
    class Stream(Bytes):
        def size(self) -> int:
            return 3000

    blob = Stream((member("a.txt", b"a") + member("a.bin", b"b" * 5000))[:3000])
    keep = Keeper()
    shard = TarShard(Archive(blob, None, 10, False, keep, lambda message, offset: None), None)
    with pytest.raises(Corrupt, match="ends inside"):
        shard.fields(0)[1].data.size()


def test_more_members_than_can_be_are_reported() -> None:
    faults: list[str] = []
    data = many(5)
    shard = TarShard(
        Archive(Bytes(data), len(data), 3, False, Keeper(), lambda m, offset: faults.append(m)),
        None,
    )
    assert len(shard) == 3
    assert faults == ["only the first 3 members are shown"]


def test_groups_of_many_members_are_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tar_members, "_MANY", 3)
    monkeypatch.setattr(_tar_members, "_MAX_TOGETHER", 4)
    shard = shard_of(archive(*(member(f"{key}.{n}") for key in range(3, 6) for n in range(key))))
    assert [len(shard.fields(number)) for number in (0, 1)] == [3, 4]
    with pytest.raises(TooLarge, match="5 members"):
        shard.fields(2)
    with no_wait():
        assert len(shard.fields(0)) == 3
        with pytest.raises(WouldBlock):
            shard.fields(1)


# --- a scan that goes on ---


@pytest.mark.usefixtures("short_turns")
def test_the_scan_goes_no_further_than_somebody_asks() -> None:
    blob = SlowBlob(archive(*(member(f"{n}.bin", b"x" * 9000) for n in range(50))))
    shard = shard_of(blob)
    assert not blob.reads
    assert shard.nested
    assert shard.has(0)
    assert shard.key(1) == "1"
    assert shard.find("3") == 3
    assert len(blob.reads) <= 6
    assert not shard.has(50)
    assert (len(shard), shard.nested) == (50, False)


@pytest.mark.usefixtures("short_turns")
def test_without_waiting_only_what_is_known_is_told() -> None:
    shard = shard_of(many(20))
    for ask in (
        lambda: shard.has(0),
        lambda: shard.key(0),
        lambda: shard.find("000000"),
        lambda: len(shard),
        lambda: shard.loose,
        lambda: shard.columns,
        lambda: shard.fields(0),
    ):
        with no_wait(), pytest.raises(WouldBlock):
            ask()
    assert shard.has(3)
    with no_wait():
        assert shard.has(2)
        assert shard.key(2) == "000002"
        assert shard.find("000002") == 2
        for late in (lambda: shard.find("none"), lambda: shard.has(19), lambda: shard.fields(0)):
            with pytest.raises(WouldBlock):
                late()
    assert len(shard) == 20
    with no_wait():
        assert shard.find("none") is None
        assert not shard.has(20)
        assert len(shard.fields(0)) == 1


class Gate:
    """Bytes behind a gate: reads wait for it, and are counted."""

    def __init__(self, data: bytes) -> None:
        self._data, self.opened, self.reads = data, threading.Event(), 0

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int, /) -> memoryview:
        self.reads += 1
        if not self.opened.wait(30):
            raise Unreadable("nobody opened the gate")
        start, stop = clip(offset, length, len(self._data))
        return memoryview(self._data)[start:stop]


@pytest.mark.usefixtures("short_turns")
def test_many_who_wait_make_one_scan() -> None:
    gate, keep = Gate(many(300)), Keeper()
    shard = shard_of(gate, keep)
    with ThreadPoolExecutor(12) as pool:
        answers: list[Future[Any]] = [
            *[pool.submit(shard.find, f"{number:06d}") for number in (0, 7, 150, 299)],
            *[pool.submit(shard.key, number) for number in (0, 7, 150, 299)],
            *[pool.submit(shard.__len__) for _ in range(2)],
            *[pool.submit(lambda n: len(shard.fields(n)), number) for number in (0, 299)],
        ]
        gate.opened.set()
        found = [answer.result(30) for answer in answers]
    assert found == [0, 7, 150, 299, "000000", "000007", "000150", "000299", 300, 300, 1, 1]
    assert keep.made == 1
    alone = Gate(many(300))
    alone.opened.set()
    len(shard_of(alone))
    assert gate.reads == alone.reads


def test_a_failure_that_passes_ends_nobodys_scan() -> None:
    class Failing(Bytes):
        fails = 2

        def read(self, offset: int, length: int, /) -> memoryview:
            if offset and self.fails:
                self.fails -= 1
                raise Unreadable("not now")
            return super().read(offset, length)

    shard = shard_of(Failing(archive(*(member(f"{n}.bin", b"x" * 9000) for n in range(9)))))
    for _ in range(2):
        with pytest.raises(Unreadable):
            len(shard)
    assert len(shard) == 9
    assert [shard.key(index) for index in range(9)] == [str(index) for index in range(9)]


# --- tables that are kept ---


def test_a_table_that_memory_gave_up_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged, "_PAGE", 1)  # no part of it is held elsewhere
    keep = Keeper(forgets=True)
    shard = shard_of(archive(*(member(f"{n:06d}.x", b"%d" % n) for n in range(6000))), keep)
    assert len(shard) == 6000
    assert keep.made == 1
    keep.forget()
    assert shard.find("005999") == 5999
    assert bytes(read_all(shard.fields(5999)[0].data)) == b"5999"
    assert keep.made > 1
    keep.forget()
    with no_wait(), pytest.raises(WouldBlock):
        shard.key(0)


def test_a_known_table_needs_no_scan() -> None:
    data, kept = many(20), []

    def keep(build: Callable[[], bytes]) -> Blob:
        kept.append(Bytes(build()))
        return kept[-1]

    def report(message: str, offset: int) -> None:
        raise AssertionError(message)

    len(TarShard(Archive(Bytes(data), len(data), 99, False, keep, report), None))
    blob = SlowBlob(data)
    shard = TarShard(Archive(blob, len(data), 99, False, keep, report), held(kept[0]))
    with no_wait():
        assert (len(shard), shard.capacity, shard.nested, shard.loose) == (20, 20, False, 0)
        assert shard.find("000007") == 7
        (field,) = shard.fields(7)
        assert field.data.size() == 1
    assert blob.reads == []
    assert bytes(read_all(field.data)) == b"7"
    assert len(kept) == 1


def test_a_file_is_found_while_the_scan_has_not_come_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tar_shard, "_TURN", 0)
    blob = SlowBlob(many(20_000))
    shard = shard_of(blob)
    record = shard.find("000002")
    assert record == 2
    fields = shard.early(record, "000002.txt")
    assert fields is not None
    assert [(field.filename, bytes(read_all(field.data))) for field in fields] == [
        ("000002.txt", b"2")
    ]
    assert max(offset + length for offset, length in blob.reads) < blob.size() / 2


def test_a_file_that_is_not_there_is_missed_only_when_all_is_known() -> None:
    data = archive(
        member("a.txt", b"1"), member("b.txt", b"2"), member("a.cls", b"3"), member("c.txt", b"4")
    )
    shard = shard_of(data)
    early = shard.early(0, "a.cls")
    assert early is None or [field.filename for field in early] == ["a.txt", "a.cls"]
    assert shard.early(0, "a.png") is None
    assert [field.filename for field in shard.fields(0)] == ["a.txt", "a.cls"]
    assert shard.early(0, "a.txt") is None  # all is known
