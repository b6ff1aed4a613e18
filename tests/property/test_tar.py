"""Tar archives against random input: what tarfile writes is read as tarfile reads it; all else fails by name."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from shardfs.blob import Bytes, read_all
from shardfs.errors import Corrupt, ShardfsError
from shardfs.formats.webdataset.dataset import WebDataset
from shardfs.formats.webdataset.growing import GrowingTable, KeySet
from shardfs.formats.webdataset.header import has_checksum, number, parse_header, parse_pax
from shardfs.formats.webdataset.keys import link_target, normal, place
from shardfs.formats.webdataset.members import MemberTable
from shardfs.formats.webdataset.scan import Member, TarReader
from shardfs.formats.webdataset.sparse import Sparse, checked
from tests.fakes import FakeServices, MemoryStore
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from shardfs.model import Shard

SEED = bytes(16)

characters = st.characters(codec="utf-8", exclude_characters="\0")
parts = st.one_of(
    st.sampled_from(["a", "b", "a.txt", "b.jpg", "b.seg.png", "..", ".", ".x", "noext", "k.gz"]),
    st.text(characters.filter(lambda c: c != "/"), min_size=1, max_size=40),
    st.text("ab.", min_size=90, max_size=300),
)
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
# What tells the rules for names apart.
odd_names = st.text("ab._/\n", max_size=12).map(str.encode)


@st.composite
def members(draw: st.DrawFn) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(draw(paths))
    data = draw(st.binary(max_size=1500))
    kinds = [tarfile.REGTYPE] * 4 + [tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.AREGTYPE]
    info.type = draw(st.sampled_from(kinds))
    if info.type == tarfile.AREGTYPE and len(info.name.encode("utf-8", "surrogateescape")) > 99:
        info.type = (
            tarfile.REGTYPE
        )  # tarfile takes one for a folder if its cut name ends in a slash
    info.size = len(data) if info.isreg() else 0
    info.mtime = draw(st.one_of(st.integers(0, 1 << 40), st.floats(0, 1e10)))
    info.uid = draw(st.sampled_from([0, 1000, 1 << 30]))
    return info, data


def written(content: list[tuple[tarfile.TarInfo, bytes]], form: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for info, data in content:
            try:
                tar.addfile(info, io.BytesIO(data))
            except ValueError:  # too long a name or number for ustar
                continue
    return file.getvalue()


def opened(data: bytes) -> tuple[Shard, FakeServices]:
    store, services = MemoryStore({"a.tar": data}), FakeServices()
    return WebDataset.open(store, ["a.tar"], services).open_shard(0), services


def shown(shard: Shard) -> list[tuple[str, str, bytes]]:
    """(folder or key, file name, content) of all files of a shard."""
    return [
        (shard.key(index), field.filename or "", bytes(read_all(field.data)))
        for index in range(len(shard) + shard.loose)
        for field in shard.fields(index)
    ]


@given(
    st.lists(members(), max_size=12),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_archives_are_read_as_tarfile_reads_them(
    content: list[tuple[tarfile.TarInfo, bytes]], form: int
) -> None:
    data = written(content, form)
    expected = []
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
        for info in tar:
            if info.isreg():
                extracted = tar.extractfile(info)
                assert extracted is not None
                where = place(info.name.encode("utf-8", "surrogateescape"))
                path = [p for p in info.name.split("/") if p not in ("", ".")]
                folder = where.folder.decode("utf-8", "surrogateescape")
                expected.append((folder, path[-1] if path else "", extracted.read()))
    shard, services = opened(data)
    assert sorted(shown(shard)) == sorted(expected)
    assert services.reports == []
    keys = [shard.key(index) for index in range(len(shard))]
    assert [shard.find(key) for key in keys] == list(range(len(keys)))


@given(st.binary(max_size=3000))
def test_no_file_is_more_than_a_tar_or_none(data: bytes) -> None:
    with contextlib.suppress(ShardfsError):
        shown(opened(data)[0])


@given(
    st.lists(st.binary(max_size=1500), min_size=2, max_size=5),
    st.data(),
    st.integers(0, 511),
    st.integers(1, 255),
)
def test_a_damaged_header_harms_its_own_member_only(
    contents: list[bytes], draw: st.DataObject, place: int, change: int
) -> None:
    blocks = [member(f"{number}.x", content) for number, content in enumerate(contents)]
    harmed = draw.draw(st.integers(0, len(blocks) - 1))
    block = bytearray(blocks[harmed])
    block[place] ^= change
    blocks[harmed] = bytes(block)
    shard, services = opened(archive(*blocks))
    found = shown(shard)
    whole = [(str(number), f"{number}.x", content) for number, content in enumerate(contents)]
    if place in (154, 155):  # what ends the number
        assert found == whole or len(services.reports) == 1
    else:
        assert found == whole[:harmed] + whole[harmed + 1 :]
        assert [str(fault).split(": ")[0] for fault in services.reports] == ["a.tar"]


@given(st.lists(members(), min_size=1, max_size=4), st.data())
def test_a_cut_archive_shows_no_short_files(
    content: list[tuple[tarfile.TarInfo, bytes]], draw: st.DataObject
) -> None:
    data = written(content, tarfile.PAX_FORMAT)
    whole = shown(opened(data)[0])
    try:
        shard, _ = opened(data[: draw.draw(st.integers(0, len(data)))])
        count = len(shard) + shard.loose
    except ShardfsError:
        return
    for index in range(count):
        for field in shard.fields(index):
            try:
                found = (shard.key(index), field.filename or "", bytes(read_all(field.data)))
            except Corrupt:
                continue
            assert found in whole


# --- names ---

KEY = re.compile(rb"^((?:.*/|)[^.]+)[.]([^/]*)$")
META = re.compile(rb"^__[^/]*__($|/)")


@given(st.one_of(odd_names, paths.map(str.encode)))
def test_keys_are_those_of_webdataset(name: bytes) -> None:
    where = place(name)
    match = None if META.match(name) else KEY.match(name)
    if match is None or match[1].endswith(b"/"):
        assert not where.has_key
        assert normal(where.folder + b"/" + where.rest) == normal(name)
    else:
        assert where == (normal(match[1]), match[2], True)


@given(st.one_of(odd_names, st.binary(max_size=20)), odd_names)
def test_links_stay_in_the_archive(name: bytes, link: bytes) -> None:
    target = link_target(name, link)
    if target is not None:
        assert not target.startswith(b"/")
        assert target == normal(target)


# --- tables ---


@given(st.lists(st.binary(max_size=3), max_size=200))
def test_keys_are_numbered_as_they_come(keys: list[bytes]) -> None:
    found = KeySet(SEED)
    numbers = [found.add(key) for key in keys]
    order = list(dict.fromkeys(keys))
    assert numbers == [order.index(key) for key in keys]
    assert [found[number] for number in range(len(found))] == order
    assert [found.find(key) for key in order] == list(range(len(order)))
    assert found.find(b"more than three") is None


names = st.sampled_from(["a.x", "a.y", "b.x", "c/a.x", "c/a", "a", "./a.x", "d/.e", "b.x.y"])
files = st.builds(
    lambda name, offset, size: Member(name.encode(), None, False, offset, size),
    names,
    st.one_of(st.integers(0, 1 << 50), st.integers(0, 1 << 32).map(lambda block: 512 * block)),
    st.one_of(st.integers(0, 1 << 50), st.integers(0, 1 << 31)),
)


@given(st.lists(files, max_size=40))
def test_a_packed_table_is_what_was_put_into_it(content: list[Member]) -> None:
    growing = GrowingTable(SEED, 1000)
    groups: dict[tuple[bool, bytes], list[tuple[bytes, int, int]]] = {}
    for file in content:
        assert growing.add(file)
        where = place(file.name)
        group = groups.setdefault((not where.has_key, where.folder), [])
        group.append((where.rest, file.offset, file.size))
    keys = [key for is_loose, key in groups if not is_loose]
    assert [growing.key(number) for number in range(len(growing))] == keys
    table = MemberTable(Bytes(growing.pack()))
    order = sorted(groups, key=lambda group: group[0])  # stable
    assert (table.records, table.records + table.folders) == (len(keys), len(order))
    for index, (is_loose, key) in enumerate(order):
        assert table.key(index) == key
        assert [stored[:3] for stored in table.members(index)] == groups[is_loose, key]
        assert is_loose or table.find(key) == growing.find(key) == index
    assert table.find(b"nothing") is None
    assert table.nested == any(b"/" in key or (key and loose) for loose, key in groups)
    assert list(table.rests()) == [rest for key in keys for rest, _, _ in groups[False, key]]


# --- parsers ---


@given(st.binary(min_size=512, max_size=512))
def test_blocks_are_headers_or_none(block: bytes) -> None:
    try:
        parse_header(block)
    except Corrupt:
        assert not has_checksum(block)


@given(st.binary(min_size=1, max_size=12))
def test_fields_are_numbers_or_none(field: bytes) -> None:
    with contextlib.suppress(Corrupt):
        assert isinstance(number(field), int)


@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.sampled_from([b"9 ", b"a=", b"b\n", b"5 "])).map(b"".join),
    )
)
def test_extended_headers_are_records_or_none(body: bytes) -> None:
    with contextlib.suppress(Corrupt):
        for key, value in parse_pax(body):
            assert key + b"=" + value in body


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8),
    st.integers(0, 300),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_sparse_files_read_like_bytes(
    gaps: list[tuple[int, int]], tail: int, offset: int, length: int
) -> None:
    numbers, whole, stored = [], b"", b""
    for gap, size in gaps:
        numbers += [len(whole) + gap, size]
        part = bytes((len(stored) + at) % 255 + 1 for at in range(size))
        whole, stored = whole + bytes(gap) + part, stored + part
    whole += bytes(tail)
    found = checked(len(whole), 0, numbers, len(stored))
    blob = Sparse(Bytes(b"head" + stored), 4, found.size, found.parts)
    assert blob.size() == len(whole)
    assert bytes(blob.read(offset, length)) == whole[offset : offset + length]


def test_a_reader_of_nothing_has_nothing() -> None:
    faults: list[object] = []
    assert TarReader(Bytes(b""), 0, lambda *fault: faults.append(fault)).next() is None
    assert faults == []
