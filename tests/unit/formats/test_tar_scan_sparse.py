"""Sparse members of tar archives, in all the forms that GNU tar has written."""

from __future__ import annotations

from array import array

from shardfs.formats.webdataset.header import BLOCK
from shardfs.formats.webdataset.sparse import Map
from tests.tar_files import archive, header, member, pax, pax_records, walk


def test_all_forms_of_sparse_files() -> None:
    parts = array("Q", [10, 2, 90, 3])
    in_data = b"2\n10\n2\n90\n3\n".ljust(512, b"\0") + b"abcde"
    tail = bytes(41) + b"".join(b"%011o\0" % number for number in parts) + bytes(49)
    found = walk(
        archive(
            header("old.bin", 5, b"S", magic=b"ustar  \0", tail=tail + b"%011o\0" % 100)
            + b"abcde".ljust(512, b"\0"),
            pax_records(
                ("GNU.sparse.size", "100"),
                ("GNU.sparse.numblocks", "2"),
                ("GNU.sparse.offset", "10"),
                ("GNU.sparse.numbytes", "2"),
                ("GNU.sparse.offset", "90"),
                ("GNU.sparse.numbytes", "3"),
            ),
            member("first.bin", b"abcde"),
            pax(
                GNU__sparse__name="second.bin",
                GNU__sparse__size="100",
                GNU__sparse__map="10,2,90,3",
            ),
            member("GNUSparseFile.0/second.bin", b"abcde"),
            pax(
                GNU__sparse__major="1",
                GNU__sparse__minor="0",
                GNU__sparse__name="third.bin",
                GNU__sparse__realsize="100",
            ),
            member("GNUSparseFile.0/third.bin", in_data),
            member("last.txt", b"x"),
        )
    )
    assert found.faults == []
    assert found.names == [b"old.bin", b"first.bin", b"second.bin", b"third.bin", b"last.txt"]
    skips = [member.map and member.map.skip for member in found.members]
    assert skips == [0, 0, 0, 512, None]
    assert [m.map for m in found.members[:3]] == [Map(100, 0, parts)] * 3


def test_a_map_in_further_blocks() -> None:
    pairs = [number for part in range(30) for number in (100 * part, 1)]
    fields = [b"%011o\0" % number for number in pairs]
    tail = bytes(41) + b"".join(fields[:8]) + b"\1" + b"%011o\0" % 5000
    first = b"".join(fields[8:50]).ljust(504, b"\0") + b"\1".ljust(8, b"\0")
    second = b"".join(fields[50:]).ljust(512, b"\0")
    block = header("a.bin", 30, b"S", magic=b"ustar  \0", tail=tail)
    found = walk(archive(block + first + second + b"x" * 30 + bytes(482), member("b.txt")))
    assert found.names == [b"a.bin", b"b.txt"]
    assert found.members[0].offset == 3 * BLOCK
    assert found.members[0].map == Map(5000, 0, array("Q", pairs))


def test_a_sparse_file_that_lies_is_listed_with_the_reason() -> None:
    found = walk(
        archive(pax(GNU__sparse__size="100", GNU__sparse__map="10,9"), member("a.x", b"abcde"))
        + member("b.x")
    )
    assert found.members[0].problem == "a sparse file has parts of 9 bytes, but 5 bytes are stored"
    assert found.faults == [(f"a.x: {found.members[0].problem}", 1024)]


def test_a_map_without_an_end_is_given_up() -> None:
    endless = bytes(504) + b"\1".ljust(8, b"\0")
    block = header("a.bin", 5, b"S", tail=bytes(137) + b"\1" + b"%011o\0" % 100)
    found = walk(block + endless * 4000)
    assert "more than" in found.members[0].problem
    assert "ends inside the map" in walk(block + endless).members[0].problem
