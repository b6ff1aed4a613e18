from __future__ import annotations

import io
import tarfile

import pytest

from shardfs.blob import clip
from shardfs.errors import Corrupt, Unreadable
from shardfs.formats.webdataset.header import END
from shardfs.formats.webdataset.scan import Member, TarReader, next_header
from tests.fakes import FailingBlob, SlowBlob
from tests.tar_files import archive, header, member, pax, walk


class DamagedStream(FailingBlob):
    """What a damaged stream decompresses to: its length can't be known."""

    def size(self) -> int:
        raise Corrupt("injected at its end")


def test_files_and_links_are_found_and_all_else_is_passed_over() -> None:
    found = walk(
        archive(
            header("folder/", 5, b"5"),
            member("a.txt", b"text"),
            header("pipe", 0, b"6"),
            member("b.txt", kind=b"1", link="a.txt"),
            header("c.txt", 99, b"2", link="../x"),
            member("label", b"x" * 600, b"V"),
            member("folder", b"Ya.txt\0", b"D"),
            member("d.txt", b"", b"\0"),
            member("e.txt", b"e", b"7"),
        )
    )
    assert found.members == [
        Member(b"a.txt", None, False, 1024, 4),
        Member(b"b.txt", b"a.txt", True, 2560, 0),
        Member(b"c.txt", b"../x", False, 3072, 0),
        Member(b"d.txt", None, False, 6144, 0),
        Member(b"e.txt", None, False, 6656, 1),
    ]
    assert found.faults == []


@pytest.mark.parametrize("kind", [b"8", b"9", b"Z", b"a", b"A", b"\xff"])
def test_a_member_of_an_unknown_type_is_a_file(kind: bytes) -> None:
    found = walk(archive(member("a.txt", b"one" * 300, kind), member("b.txt", b"two")))
    assert found.members == [
        Member(b"a.txt", None, False, 512, 900),
        Member(b"b.txt", None, False, 2048, 3),
    ]
    assert found.faults == []


def test_the_first_end_block_ends_it() -> None:
    assert walk(archive(member("a.x")) + archive(member("b.x"))).names == [b"a.x"]
    assert walk(member("a.x") + END + member("b.x")).names == [b"a.x"]


@pytest.mark.parametrize("tail", [b"", END, bytes(100), 5 * END, END + b"any text"])
def test_archives_may_end_as_they_like(tail: bytes) -> None:
    found = walk(member("a.x", b"data") + tail)
    assert found == ([Member(b"a.x", None, False, 512, 4)], [], "")


# --- what is said before a member ---


def test_long_names_of_gnu() -> None:
    found = walk(
        archive(
            member("././@LongLink", b"n" * 300 + b"\0", b"L"),
            member("././@LongLink", b"t" * 200 + b"\0", b"K"),
            member("short", kind=b"2", link="short"),
            member("next.x", kind=b"2", link="target"),
        )
    )
    assert [m.name for m in found.members] == [b"n" * 300, b"next.x"]
    assert [m.link for m in found.members] == [b"t" * 200, b"target"]


def test_extended_headers_are_for_the_next_member() -> None:
    found = walk(
        archive(
            pax(path="ä/a.txt", mtime="1.5"),
            member("short", b"a"),
            pax(kind=b"X", linkpath="far"),
            member("b", kind=b"2", link="near"),
            member("c", kind=b"2", link="near"),
        )
    )
    assert found.names == ["ä/a.txt".encode(), b"b", b"c"]
    assert [m.link for m in found.members] == [None, b"far", b"near"]


def test_global_headers_are_for_all_until_they_are_overruled() -> None:
    found = walk(
        archive(
            pax(kind=b"g", path="all", comment="0123"),
            member("a"),
            pax(path="own"),
            member("b"),
            pax(path=""),
            member("c"),
            pax(kind=b"g", path="new"),
            member("d"),
            pax(kind=b"g", path=""),
            member("e"),
        )
    )
    assert found.names == [b"all", b"own", b"c", b"new", b"e"]


def test_the_size_in_an_extended_header_counts() -> None:
    data = b"x" * 700
    wrong = header("a.x", 0) + data.ljust(1024, b"\0")
    found = walk(archive(pax(size="700"), wrong, member("b.x")))
    assert found.members[0] == Member(b"a.x", None, False, 1536, 700)
    assert (found.names, found.faults) == ([b"a.x", b"b.x"], [])


def test_names_end_at_their_first_nul() -> None:
    assert walk(archive(pax(path="a.x\0b"), member("c"))).names == [b"a.x"]


def test_a_damaged_extended_header_is_reported_and_its_member_shown() -> None:
    found = walk(archive(member("@Pax", b"no records", b"x"), member("a.x", b"data")))
    assert found.names == [b"a.x"]
    assert found.faults == [("an extended header is damaged at its byte 0", 0)]


@pytest.mark.parametrize("size", [5 << 20, -1])
def test_an_extended_header_of_no_possible_size_is_damage(size: int) -> None:
    field = b"\xff" * 12 if size < 0 else b"%011o\0" % size
    found = walk(archive(header("@Pax", kind=b"x", size_field=field), member("a.x")))
    assert found.names == [b"a.x"]
    assert found.faults == [(f"an extended header of {size} bytes", 0)]


def test_names_beyond_all_measure_are_left_out() -> None:
    found = walk(archive(pax(path="n" * 70_000), member("a"), pax(path="d/" * 300), member("b")))
    assert found.members == []
    assert [message.partition(":")[0] for message, _ in found.faults] == ["left out"] * 2


# --- damage ---


def test_behind_a_damaged_header_the_next_one_counts() -> None:
    broken = b"?" + member("b.x", b"b" * 600)[1:]
    found = walk(archive(member("a.x", b"a"), broken, member("c.x", b"c")))
    assert found.names == [b"a.x", b"c.x"]
    assert found.faults == [("no valid header", 1024)]


def test_a_long_way_to_the_next_header() -> None:
    found = walk(archive(member("a.x"), b"?" * (3 << 20), member("b.x")))
    assert found.names == [b"a.x", b"b.x"]


def test_what_was_said_of_a_damaged_member_is_forgotten() -> None:
    found = walk(archive(pax(path="other.x"), b"?" * 512, member("b.x")))
    assert found.names == [b"b.x"]


def test_garbage_behind_the_last_member_is_reported() -> None:
    found = walk(member("a.x", b"a") + b"?" * 1000)
    assert (found.names, found.faults) == ([b"a.x"], [("no valid header", 1024)])


@pytest.mark.parametrize("field", [b"\xff" * 11 + b"\xf0", b"\xc0" + b"\0" * 11, b"nine bytes\0\0"])
def test_a_size_that_is_none_breaks_its_member_only(field: bytes) -> None:
    bad = header("a.x", size_field=field) + b"a" * 512
    found = walk(archive(bad, member("b.x")))
    assert found.names == [b"a.x", b"b.x"]
    assert found.members[0].problem.startswith("has a size of -")
    assert found.faults == [(f"a.x: {found.members[0].problem}", 0)]


def test_a_size_beyond_all_measure_breaks_its_member_only() -> None:
    field = b"\x80" + b"\x7f" * 11
    found = walk(archive(header("a.x", size_field=field), member("b.x")))
    assert found.names == [b"a.x", b"b.x"]
    assert found.members[0].problem


@pytest.mark.parametrize("size", ["", "-5", "x", "9" * 30])
def test_a_size_in_an_extended_header_that_is_none(size: str) -> None:
    found = walk(archive(pax(size=size), member("a.x", b"data"), member("b.x")))
    assert found.names == [b"a.x", b"b.x"]
    assert bool(found.members[0].problem) == bool(size)


def test_in_a_whole_archive_a_size_beyond_the_end_is_a_lie() -> None:
    found = walk(archive(header("a.x", 1 << 30), member("b.x")))
    assert found.names == [b"a.x", b"b.x"]
    assert found.members[0].problem == f"should reach to byte {(1 << 30) + 512} of 2048"
    assert len(found.faults) == 1


def test_a_member_that_was_cut_is_listed_and_the_last_one() -> None:
    nested = archive(member("inner.x", b"y"))
    data = member("a.tar", nested + b"x" * 5000)[:-1000]
    found = walk(data)
    assert found.names == [b"a.tar"]
    assert found.members[0].problem.startswith("should reach to byte")
    assert len(found.faults) == 1


def test_without_its_padding_a_member_is_whole() -> None:
    found = walk(member("a.x", b"data")[:516])
    assert (found.members[0].problem, found.faults, found.cut) == ("", [], "")


@pytest.mark.parametrize("kind", [b"x", b"L", b"0"])
def test_an_archive_that_was_cut_in_a_header_says_so(kind: bytes) -> None:
    found = walk(member("a.x", b"a") + member("b.x", b"b" * 900, kind)[:700])
    assert len(found.faults) == 1
    assert walk(member("a.x") + header("b.x")[:300]).faults == [("ends inside a header", 512)]


# --- compressed archives, whose length is not known ---


def test_a_stream_that_is_cut_inside_a_member() -> None:
    data = member("a.x", b"a") + member("b.x", b"b" * 5000)[:2000]
    found = walk(data, size_is_known=False)
    assert found.names == [b"a.x", b"b.x"]
    assert [m.problem for m in found.members] == ["", ""]
    assert found.cut == "the archive ends inside its data"
    assert len(found.faults) == 1


def test_a_stream_that_ends_with_its_last_member() -> None:
    found = walk(member("a.x", b"a" * 5000), size_is_known=False)
    assert (found.names, found.faults, found.cut) == ([b"a.x"], [], "")


@pytest.mark.parametrize(("at", "is_cut"), [(2999, True), (3000, False), (3072, False)])
def test_a_damaged_stream_is_read_to_the_damage(at: int, is_cut: bool) -> None:
    data = archive(member("a.x", b"a"), member("b.x", b"b" * 1464), member("c.x"))
    found = walk(DamagedStream(data, at), size_is_known=False)
    assert found.names == [b"a.x", b"b.x"]
    assert bool(found.cut) == is_cut
    assert found.faults == [(f"{'b.x: ' * is_cut}injected at {at}", 3072)]


def test_damage_at_the_very_end_is_reported_and_harms_nothing() -> None:
    data = archive(member("a.x", b"a"))
    found = walk(DamagedStream(data, len(data)), size_is_known=False)
    assert (found.names, found.cut) == ([b"a.x"], "")
    assert found.faults == [("injected at its end", 1024)]


def test_the_search_for_a_header_goes_up_to_the_damage() -> None:
    data = b"?" * 1024 + archive(member("a.x"))
    assert next_header(FailingBlob(data, 1536), 0) == 1024
    with pytest.raises(Corrupt):
        next_header(FailingBlob(data, 1535), 0)


# --- reading ---


def test_a_read_a_member_is_enough() -> None:
    blob = SlowBlob(archive(*(pax(mtime="1.5") + member(f"{n}.x", b"x" * 5000) for n in range(50))))
    assert len(walk(blob).members) == 50
    assert len(blob.reads) <= 52
    assert max(length for _, length in blob.reads) <= 1536


def test_small_members_are_read_together() -> None:
    blob = SlowBlob(archive(*(member(f"{n}.x", b"x") for n in range(150))))
    assert len(walk(blob).members) == 150
    assert len(blob.reads) < 15


class Flaky:
    """The first read at each place fails, as those from a network may."""

    def __init__(self, data: bytes) -> None:
        self._data, self._read = data, set[int]()

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int, /) -> memoryview:
        if offset not in self._read:
            self._read.add(offset)
            raise Unreadable("not now")
        start, stop = clip(offset, length, len(self._data))
        return memoryview(self._data)[start:stop]


def test_after_a_failure_that_passes_it_goes_on_where_it_was() -> None:
    data = archive(
        pax(path="long.x"),
        member("short", b"x" * 5000),
        b"?" * 512,
        member("big.x", b"x" * 5000),
        pax(GNU__sparse__major="1", GNU__sparse__realsize="9"),
        member("sparse.x", b"0\n" + bytes(5000)),
        member("last.x", b"x" * 9000)[:600],
    )
    reader = TarReader(Flaky(data), len(data), lambda message, offset: None)
    names, failures = [], 0
    while True:
        try:
            found = reader.next()
        except Unreadable:
            failures += 1
            continue
        if found is None:
            break
        names.append(found.name)
    assert names == [m.name for m in walk(data).members]
    assert failures > 3


def test_a_long_name_tells_files_from_folders_not_its_beginning() -> None:
    name = "a.txt/" + "a" * 93 + "/b.txt"  # whose first 100 bytes end in a slash
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo(name)
        info.size, info.type = 1, tarfile.AREGTYPE
        tar.addfile(info, io.BytesIO(b"1"))
        tar.addfile(tarfile.TarInfo("c.txt"))
    walked = walk(file.getvalue())
    assert [member.name.decode() for member in walked.members] == [name, "c.txt"]
    assert walked.faults == []


def test_old_archives_mark_folders_by_a_slash() -> None:
    found = walk(archive(member("a/", kind=b"\0"), member("a/b.txt", b"1", b"\0")))
    assert [each.name for each in found.members] == [b"a/b.txt"]
    assert found.faults == []
