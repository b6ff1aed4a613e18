from __future__ import annotations

from array import array

import pytest

from shardfs.blob import Bytes
from shardfs.errors import Corrupt, TooLarge
from shardfs.formats.webdataset import growing as _tar_growing
from shardfs.formats.webdataset.growing import GrowingTable, KeySet
from shardfs.formats.webdataset.members import MemberTable, Stored
from shardfs.formats.webdataset.scan import Member
from shardfs.formats.webdataset.sparse import Map

SEED = bytes(range(16))


def file(name: str, offset: int = 512, size: int = 1) -> Member:
    return Member(name.encode(), None, False, offset, size)


def hard(name: str, target: str) -> Member:
    return Member(name.encode(), target.encode(), True, 512, 0)


def symbolic(name: str, target: str) -> Member:
    return Member(name.encode(), target.encode(), False, 512, 0)


def table(*members: Member) -> MemberTable:
    growing = GrowingTable(SEED, 1000)
    for member in members:
        growing.add(member)
    growing.finish()
    return MemberTable(Bytes(growing.pack()))


def shown(found: MemberTable) -> dict[str, list[tuple[str, int]]]:
    """(rest, offset) of all members, by record and behind them by folder."""
    return {
        f"{found.key(group).decode()}{'' if group < found.records else '/'}": [
            (stored.rest.decode(), stored.offset) for stored in found.members(group)
        ]
        for group in range(found.records + found.folders)
    }


def test_members_stand_by_record_in_their_order() -> None:
    found = table(
        file("b.x", 512),
        file("./a//1.x", 1024),
        file("b.y.z", 1536),
        file("README", 2048),
        file("a/1.y", 2560),
        file("b.x", 3072),
        file("a/.z", 3584),
        file("LICENSE", 4096),
    )
    assert shown(found) == {
        "b": [("x", 512), ("y.z", 1536), ("x", 3072)],
        "a/1": [("x", 1024), ("y", 2560)],
        "/": [("README", 2048), ("LICENSE", 4096)],
        "a/": [(".z", 3584)],
    }
    assert (found.find(b"b"), found.find(b"a/1"), found.find(b"a")) == (0, 1, None)
    assert found.nested


def test_only_folders_make_it_nested() -> None:
    assert not table(file("a.x"), file("b.x"), file("README")).nested
    assert table(file("a/b.x")).nested
    assert table(file("a.x"), file("b/README")).nested


def test_an_empty_table() -> None:
    found = table()
    assert (found.records, found.folders, found.nested) == (0, 0, False)
    assert found.find(b"") is None
    assert list(found.rests()) == []
    with pytest.raises(IndexError):
        found.key(0)
    with pytest.raises(IndexError):
        found.members(-1)


def test_what_is_not_plain_is_kept() -> None:
    parts = array("Q", [10, 2, 90, 3])
    growing = GrowingTable(SEED, 10)
    growing.add(file("far.x", 1 << 50, 5))
    growing.add(file("large.x", 512, 1 << 40))
    growing.add(Member(b"sparse.x", None, False, 1024, 517, Map(100, 512, parts)))
    growing.add(Member(b"broken.x", None, False, 1024, -5, None, "has a size of -5 bytes"))
    growing.add(file("cut.x", 2048, 99))
    growing.break_last("the archive ends")
    growing.note("no valid header", 4096)
    found = MemberTable(Bytes(growing.pack()))
    assert [found.members(group) for group in range(5)] == [
        [Stored(b"x", 1 << 50, 5)],
        [Stored(b"x", 512, 1 << 40)],
        [Stored(b"x", 1536, 100, parts)],
        [Stored(b"x", 0, 0, None, "has a size of -5 bytes")],
        [Stored(b"x", 0, 0, None, "the archive ends")],
    ]
    assert found.faults() == [("no valid header", 4096)]


def test_parts_of_sparse_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tar_growing, "_MAX_PARTS", 100)
    large = Map(1000, 0, array("Q", range(16)))
    found = table(Member(b"a.x", None, False, 512, 1000, large))
    assert found.members(0)[0].problem


def test_more_members_than_there_can_be_are_refused() -> None:
    growing = GrowingTable(SEED, 2)
    growing.add(file("a.x"))
    growing.add(file("b.x"))
    with pytest.raises(TooLarge, match="first 2 members"):
        growing.add(file("c.x"))
    assert MemberTable(Bytes(growing.pack())).records == 2


def test_faults_are_bounded() -> None:
    growing = GrowingTable(SEED, 2)
    for offset in range(5000):
        growing.note("no valid header", offset)
    assert len(MemberTable(Bytes(growing.pack())).faults()) == 1000


# --- links ---


def test_hard_links_show_what_came_before_them() -> None:
    found = table(
        file("a.x", 512),
        file("a.x", 1024),
        hard("b.x", "./a.x"),
        file("a.x", 1536),
        hard("later.x", "z.x"),
        file("README", 2048),
        hard("c.x", "README"),
        hard("LICENSE", "b.x"),
        file("z.x", 2560),
    )
    assert shown(found) == {
        "a": [("x", 512), ("x", 1024), ("x", 1536)],
        "b": [("x", 1024)],
        "c": [("x", 2048)],
        "z": [("x", 2560)],
        "/": [("README", 2048), ("LICENSE", 1024)],
    }


def test_symbolic_links_show_what_they_lead_to_wherever_it_is() -> None:
    found = table(
        symbolic("a/1.x", "../b/./1.x"),
        symbolic("two.x", "a/1.x"),
        file("b/1.x", 512),
        symbolic("a/2.x", "1.x"),
        symbolic("three.x", "b/../two.x"),
    )
    assert {key: [rest for _, rest in members] for key, members in shown(found).items()} == {
        "b/1": [512],
        "a/1": [512],
        "two": [512],
        "a/2": [512],
        "three": [512],
    }


def test_links_that_lead_to_no_file_are_left_out() -> None:
    found = table(
        file("a/1.x"),
        hard("b.x", "c.x"),
        symbolic("c.x", "b.x"),
        symbolic("d.x", "d.x"),
        symbolic("e.x", "/a/1.x"),
        symbolic("f.x", "../../a/1.x"),
        symbolic("g.x", "a"),
        symbolic("h.x", ""),
    )
    assert list(shown(found)) == ["a/1"]


def test_a_record_that_is_still_a_link_is_no_record_yet() -> None:
    growing = GrowingTable(SEED, 10)
    assert not growing.add(symbolic("a.x", "b.x"))
    assert (len(growing), growing.find(b"a")) == (0, None)
    assert growing.add(file("b.x"))
    growing.finish()
    assert [growing.key(index) for index in range(len(growing))] == [b"b", b"a"]


def test_links_to_a_broken_member_are_broken() -> None:
    broken = Member(b"a.x", None, False, 512, 5, None, "why")
    found = table(broken, hard("b.x", "a.x"))
    assert found.members(1)[0].problem == "why"


@pytest.mark.parametrize("limit", ["_MAX_PENDING", "_MAX_STEPS"])
def test_links_that_take_too_long_are_left_out_and_reported(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(_tar_growing, limit, 3)
    growing = GrowingTable(SEED, 1000)
    for number in range(20):
        growing.add(symbolic(f"link{number}.x", "zz.missing"))
        growing.add(file(f"zz.{number}"))
    with pytest.raises(TooLarge, match="links were not followed"):
        growing.finish()
    assert len(growing) == 1


# --- keys ---


def test_keys_that_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tar_growing, "key_hash", lambda key, seed: 7)
    keys = KeySet(SEED)
    assert [keys.add(b"%d" % number) for number in range(200)] == list(range(200))
    assert [keys.find(b"%d" % number) for number in range(200)] == list(range(200))
    assert keys.find(b"200") is None


def test_many_keys_are_found() -> None:
    found = table(*(file(f"{number:05d}.x") for number in range(1000)))
    assert [found.find(b"%05d" % number) for number in range(1000)] == list(range(1000))
    assert found.find(b"1") is None


# --- damage to the table itself ---


@pytest.mark.parametrize("cut", [0, 10, 60, -1])
def test_what_is_no_table_is_refused(cut: int) -> None:
    growing = GrowingTable(SEED, 10)
    growing.add(file("a.x"))
    content = growing.pack()
    with pytest.raises(Corrupt):
        MemberTable(Bytes(content[:cut]))
    with pytest.raises(Corrupt):
        MemberTable(Bytes(b"?" + content[1:]))
