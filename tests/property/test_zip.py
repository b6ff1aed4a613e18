from __future__ import annotations

import io
import random
import zipfile
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis.strategies import binary, dictionaries, integers, lists, sampled_from, text, tuples

from shardfs.blob import Bytes, read_all
from shardfs.errors import ShardfsError
from shardfs.sources._zip_records import END_SIZE, MAX_COMMENT, ends
from shardfs.sources._zip_table import FOLDER, Table, TableBuilder
from shardfs.sources.zip import ZipStore
from tests.contract.formats import damaged
from tests.fakes import FakeServices, MemoryStore
from tests.zip_files import LINK_MODE, METHODS, Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.sources._zip_records import Member

PARTS = text(sampled_from("ab.é\n~1"), min_size=1, max_size=3).filter(
    lambda p: p not in (".", "..")
)
PATHS = lists(PARTS, min_size=1, max_size=3).map("/".join)
WRITTEN = sampled_from(
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)


def opened(content: bytes) -> ZipStore:
    store = MemoryStore({"x.zip": content})
    return ZipStore(store, store.stat("x.zip"), FakeServices())


def files(store: ZipStore, prefix: str = "") -> Iterator[str]:
    for entry in store.list(prefix):
        if entry.is_dir:
            yield from files(store, entry.path)
        else:
            yield entry.path


@settings(max_examples=60, deadline=None)
@given(
    content=dictionaries(PATHS, tuples(binary(max_size=3000), WRITTEN), max_size=8),
    comment=binary(max_size=30),
    prefix=binary(max_size=30),
    offset=integers(0, 4000),
    length=integers(0, 4000),
)
def test_archives_of_the_standard_library_read_like_themselves(
    content: dict[str, tuple[bytes, int]], comment: bytes, prefix: bytes, offset: int, length: int
) -> None:
    folders = {"/".join(p.split("/")[:n]) for p in content for n in range(1, p.count("/") + 1)}
    content = {path: data for path, data in content.items() if path not in folders}
    target = io.BytesIO(prefix)
    target.seek(0, io.SEEK_END)
    with zipfile.ZipFile(target, "a") as writer:
        writer.comment = comment
        for path, (data, method) in content.items():
            writer.writestr(path, data, method)
    store = opened(target.getvalue())
    assert sorted(files(store)) == sorted(content)
    for path, (data, _) in content.items():
        blob = store.open(path)
        assert store.stat(path).size == blob.size() == len(data)
        assert bytes(blob.read(offset, length)) == data[offset : offset + length]
        assert bytes(read_all(blob)) == data


@settings(max_examples=200, deadline=None)
@given(seed=integers(0, 2**32))
def test_damage_of_any_kind_is_an_error_that_has_a_name(seed: int) -> None:
    chance = random.Random(seed)
    items = [
        Item(name=b"d/%d" % n, data=chance.randbytes(n * 20) + bytes(n * 100), method=method)
        for n, method in enumerate(METHODS)
    ]
    items += [Item(name=b"link", data=b"d/0", mode=LINK_MODE), Item(name=b"empty/")]
    content = make_zip(items, zip64=chance.random() < 0.5, comment=b"c" * chance.randrange(9))
    for _ in range(chance.choice((1, 1, 2, 5))):
        content = damaged(content, chance)
    try:
        store = opened(content)
        found = list(files(store))
    except ShardfsError:
        return
    for path in found:
        try:
            blob = store.open(path)
            assert len(blob.read(0, 1 << 20)) == min(blob.size(), 1 << 20)
        except ShardfsError:
            continue


@given(tail=binary(max_size=200), cut=integers(0, 30))
def test_whatever_stands_at_the_end_the_search_ends(tail: bytes, cut: int) -> None:
    content = tail.replace(b"\0", b"PK\5\6") + make_zip([], comment=tail)[cut:]
    for at, end in ends(content[-END_SIZE - MAX_COMMENT :]):
        assert content[at : at + 4] == b"PK\5\6"
        assert end.entries >= 0


def member(name: bytes, size: int) -> Member:
    from shardfs.sources._zip_records import Member

    return Member(name, False, False, False, 0, 0, size, size, 0, 0, 0)


@given(
    names=lists(lists(sampled_from([b"a", b"a~1", b"b", b"..", b".", b""]), max_size=3), max_size=9)
)
def test_every_member_is_found_once_under_a_path_of_its_own(names: list[list[bytes]]) -> None:
    builder = TableBuilder()
    given_names = [b"/".join(parts) for parts in names]
    for number, name in enumerate(given_names):
        builder.add(member(name, number))
    table = Table(Bytes(builder.finish()))
    found: list[tuple[bytes, ...]] = []
    sizes: list[int] = []

    def walk(parts: tuple[bytes, ...]) -> None:
        folder = table.find(parts)
        assert folder is not None
        rows = list(table.children(folder))
        assert [row.name for row in rows] == sorted({row.name for row in rows})
        for row in rows:
            assert table.find((*parts, row.name)) == row
            if row.type == FOLDER:
                walk((*parts, row.name))
            else:
                found.append((*parts, row.name))
                sizes.append(row.size)

    walk(())
    assert sorted(sizes) == [n for n, name in enumerate(given_names) if not name.endswith(b"/")]
