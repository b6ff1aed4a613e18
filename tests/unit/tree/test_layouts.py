"""Every layout against the obvious program: a dictionary of all paths."""

from __future__ import annotations

import string
from collections import Counter
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis.strategies import (
    DrawFn,
    binary,
    composite,
    dictionaries,
    integers,
    just,
    lists,
    sampled_from,
    text,
    tuples,
)

from shardfs.blob import no_wait
from shardfs.cache.memory import Memory
from shardfs.errors import Corrupt, ShardfsError, WouldBlock
from shardfs.model import Plain, ShardRef
from shardfs.names import distinct, escape, shorten, split_extension
from shardfs.options import Options
from shardfs.tree.inodes import DAMAGED, FOLDER, SHARD_ROOT, Places
from shardfs.tree.keys import AT_ONCE
from shardfs.tree.records import KnownRecords, OpenShard
from shardfs.views.present import Presenter
from tests.fakes import FakeShard, KeyedShard, MemberShard, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.model import Field
    from shardfs.tree.layouts import ShardLayout

Layout = Literal["record", "flat", "field"]
LAYOUTS: list[Layout] = ["record", "flat", "field"]
Files = dict[str, bytes | None]
BAD = Corrupt("bad record")


def opened(shard: FakeShard, layout: Layout = "record", fanout: int = 0) -> OpenShard:
    return OpenShard(
        shard,
        ShardRef("shard", "", None, 0, ""),
        Presenter(Memory(1 << 20), raw=False),
        Options(layout=layout, fanout=fanout),
        None,
        KnownRecords(),
        Places(shard.capacity),
    )


def walk(shard: OpenShard, folder: int = SHARD_ROOT, above: str = "") -> Files:
    """All files by path, None for what can't be read. Checks that every listing agrees with itself."""
    check_listing(shard.layout, folder)
    files: Files = {}
    for item in shard.layout.scan(folder, 0):
        path = above + item.name
        if item.field == FOLDER:
            try:
                files |= walk(shard, item.record, f"{path}/")
            except ShardfsError:
                files[path] = None
        else:
            files[path] = content(shard, item.record, item.field)
    return files


def check_places(shard: OpenShard, shown: Files) -> None:
    """The files of each record are where their places say, and in no two of them."""
    places = []
    for record in range(len(shard.shard)):
        try:
            files = shard.files(record)
        except ShardfsError:
            continue
        for field in range(len(files)):
            places.append(shard.layout.place(record, field))
            assert shown[places[-1]] == content(shard, record, field)
    assert len(set(places)) == len(places)


def content(shard: OpenShard, record: int, field: int) -> bytes | None:
    if field == DAMAGED:
        with pytest.raises(ShardfsError):
            shard.files(record)
        return None
    blob = shard.files(record)[field].blob
    return bytes(blob.read(0, blob.size()))


def check_listing(layout: ShardLayout, folder: int) -> None:
    """Whoever goes on from any cookie gets the rest once, and each name leads to what was listed."""
    items = list(layout.scan(folder, 0))
    for position, item in enumerate(items):
        assert list(layout.scan(folder, item.cookie)) == items[position + 1 :]
        assert layout.find(folder, item.name) == (item.record, item.field)
        assert 0 < item.cookie < 2**63
    assert len({item.name for item in items}) == len(items)
    assert layout.find(folder, "no such name") is None


# --- examples ---

RECORDS: list[Record | ShardfsError] = [{"text": b"one", "b": b"1"}, {"text": b"two"}, BAD, {}]


def test_a_folder_a_record() -> None:
    assert walk(opened(FakeShard(RECORDS))) == {
        "000000/text.txt": b"one",
        "000000/b.txt": b"1",
        "000001/text.txt": b"two",
        "000002": None,
    }


def test_flat() -> None:
    assert list(walk(opened(FakeShard(RECORDS), "flat")).items()) == [
        ("000000.text.txt", b"one"),
        ("000000.b.txt", b"1"),
        ("000001.text.txt", b"two"),
        ("000002", None),
    ]


def test_a_folder_a_field() -> None:
    assert list(walk(opened(FakeShard(RECORDS), "field")).items()) == [
        ("text/000000.txt", b"one"),
        ("text/000001.txt", b"two"),
        ("text/000002", None),
        ("b/000000.txt", b"1"),
        ("b/000002", None),
    ]


@pytest.mark.parametrize("layout", ["record", "flat"])
def test_groups_show_the_same_files(layout: Layout) -> None:
    plain = walk(opened(FakeShard(RECORDS), layout))
    grouped = walk(opened(FakeShard(RECORDS), layout, fanout=3))
    assert grouped == {
        ("000003-000003/" if path >= "000003" else "000000-000002/") + path: data
        for path, data in plain.items()
    }


def test_names_of_the_dataset_itself_stay_in_every_layout() -> None:
    def shard() -> MemberShard:
        return MemberShard({"a/1": {"jpg": b"x", "json": b"{}"}, "1": {"jpg": b"y"}})

    assert walk(opened(shard())) == {"a/1/1.jpg": b"x", "a/1/1.json": b"{}", "1/1.jpg": b"y"}
    assert walk(opened(shard(), "flat")) == {"a/1.jpg": b"x", "a/1.json": b"{}", "1.jpg": b"y"}
    assert walk(opened(shard(), "field")) == {
        "jpg/a%2F1.jpg": b"x",
        "jpg/1.jpg": b"y",
        "json/a%2F1.json": b"{}",
    }


@pytest.mark.parametrize("records", [["b", "b/c"], ["b/c", "b"]])
def test_a_record_that_is_a_folder_too(records: list[str]) -> None:
    def shard() -> MemberShard:
        return MemberShard({key: {"txt": key.encode()} for key in records}, {"b": {"README": b"r"}})

    assert walk(opened(shard())) == {"b/b.txt": b"b", "b/c/c.txt": b"b/c", "b/README": b"r"}
    assert walk(opened(shard(), "flat")) == {"b.txt": b"b", "b/c.txt": b"b/c", "b/README": b"r"}
    assert walk(opened(shard(), "field")) == {
        "txt/b.txt": b"b",
        "txt/b%2Fc.txt": b"b/c",
        "b%2FREADME": b"r",
    }


def test_a_file_yields_its_name_to_a_record_or_folder() -> None:
    shard = KeyedShard(
        {"a": {"x": b"1", "y": b"2"}, "a/x.txt": {"z": b"3"}}, {"": {"a": b"4", "n": b"5"}}
    )
    shown = walk(opened(shard))
    assert shown == {
        "a/x.txt/z.txt": b"3",
        "a/x~1.txt": b"1",
        "a/y.txt": b"2",
        "a.txt": b"4",
        "n.txt": b"5",
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_a_record_that_go_by_one_name_are_all_shown(layout: Layout) -> None:
    class Twins(MemberShard):
        def fields(self, index: int, /) -> Sequence[Field]:
            return [*super().fields(index)] * 3

    shown = walk(opened(Twins({"k": {"txt": b"1"}}), layout))
    assert list(shown.values()) == [b"1"] * 3
    assert [path.rpartition("/")[2] for path in shown] == ["k.txt", "k~1.txt", "k~2.txt"]


@pytest.mark.parametrize(("layout", "length"), [("flat", 250), ("field", 260)])
def test_names_that_are_cut_keep_their_extension(layout: Layout, length: int) -> None:
    (path,) = walk(opened(FakeShard([{"x" * length: b"1"}]), layout))
    name = path.rpartition("/")[2]
    assert name.startswith("000000.xxx")
    assert name.endswith(".txt")
    assert len(name) == 255


def test_a_column_that_is_called_as_a_file_gives_its_extension_once() -> None:
    record: Record = {"photo.jpeg": b"1", "photo.jpg": b"2", ".jpg": b"3"}
    shown = {
        layout: list(walk(opened(FakeShard([record], kind=Plain(".jpg")), layout)))
        for layout in LAYOUTS
    }
    assert shown["record"] == ["000000/photo.jpeg", "000000/photo.jpg", "000000/.jpg.jpg"]
    assert shown["flat"] == ["000000.photo.jpeg", "000000.photo.jpg", "000000..jpg.jpg"]
    assert shown["field"] == ["photo.jpeg/000000.jpeg", "photo.jpg/000000.jpg", ".jpg/000000.jpg"]


def test_only_chosen_columns_are_shown() -> None:
    shard = FakeShard([{"a": b"1", "b": b"2"}])
    options = Options(layout="field", columns=("b",))
    shown = OpenShard(
        shard,
        ShardRef("shard", "", None, 0, ""),
        Presenter(Memory(1), raw=False),
        options,
        None,
        KnownRecords(),
        Places(shard.capacity),
    )
    assert walk(shown) == {"b/000000.txt": b"2"}


def test_a_record_is_where_its_path_says() -> None:
    assert opened(FakeShard(RECORDS)).layout.path(1) == "000001"
    assert opened(FakeShard(RECORDS), fanout=2).layout.path(3) == "000002-000003/000003"
    assert opened(FakeShard(RECORDS), "flat").layout.path(1) == ""
    assert opened(FakeShard(RECORDS), "field").layout.path(1) == ""
    nested = {"a/b/1": {"x": b""}}
    assert opened(KeyedShard(nested)).layout.path(0) == "a/b/1"
    assert opened(KeyedShard(nested), "flat").layout.path(0) == "a/b"


def test_a_column_that_is_mostly_empty_is_not_searched_without_waiting() -> None:
    last = 3 * AT_ONCE
    records: list[Record | ShardfsError] = [{"a": b"", "b": b""}, *[{"a": b""}] * last, {"b": b""}]
    layout = opened(FakeShard(records), "field").layout
    found = layout.find(SHARD_ROOT, "b")
    assert found is not None
    with no_wait():
        items = layout.scan(found[0], 0)
        first = next(items)
        with pytest.raises(WouldBlock):
            next(items)
    assert [item.name for item in layout.scan(found[0], first.cookie)] == [f"{last + 1:06d}.txt"]


# --- any shard ---

names = sampled_from(["a", "a.b", "b", "..", "", "%", "a/b", "x" * 260]) | text(
    string.printable, min_size=1, max_size=3
)
record = dictionaries(names, binary(max_size=3), max_size=4) | just(BAD)


@given(lists(record, max_size=6), sampled_from(LAYOUTS), integers(0, 4))
def test_numbered_records(
    records: list[Record | ShardfsError], layout: Layout, fanout: int
) -> None:
    shard = FakeShard(records)
    whole = opened(shard, layout, fanout)
    shown = walk(whole)
    check_places(whole, shown)
    expected = numbered_values(records, layout, len(shard.columns))
    assert Counter(shown.values()) == Counter(expected)
    assert all(0 < len(part.encode()) <= 255 for path in shown for part in path.split("/"))


def numbered_values(
    records: Sequence[Record | ShardfsError], layout: Layout, columns: int
) -> list[bytes | None]:
    """What there must be to read, None for each place that stands for a damaged record."""
    values: list[bytes | None] = []
    for each in records:
        if isinstance(each, ShardfsError):
            values += [None] * (columns if layout == "field" else 1)
        else:
            values += [value for value in each.values() if isinstance(value, bytes)]
    return values


parts = sampled_from(["a", "b", "c", "..", "%", "é" * 200]) | text("ab~%", min_size=1, max_size=2)
keys = lists(parts, min_size=1, max_size=3).map("/".join)
members = dictionaries(
    sampled_from(["txt", "jpg", "b"]), binary(max_size=3), min_size=1, max_size=3
)


@composite
def member_shards(draw: DrawFn) -> MemberShard:
    records = draw(dictionaries(keys, members, max_size=6))
    loose = draw(dictionaries(just("") | keys, members, max_size=3))
    return MemberShard(records, loose)


def file_name(part: str) -> str:
    return shorten(escape(part))


def record_model(shard: MemberShard) -> dict[str, bytes]:
    """All files of a shard of nested keys, where each record is a folder."""
    folders: dict[str, list[tuple[str, bytes]]] = {}
    for index in range(shard.capacity):
        path = "".join(f"{file_name(part)}/" for part in shard.key(index).split("/") if part)
        files = folders.setdefault(path, [])
        files += [
            (field.filename or "", bytes(field.data.read(0, 9))) for field in shard.fields(index)
        ]
    taken = {path[:at] for path in folders for at, c in enumerate(path) if c == "/"}
    model = {}
    for path, files in folders.items():
        own = [name for name, _ in files]
        clashes = [(name, "") for name in own if path + name in taken]
        pairs = [*clashes, *(split_extension(name) for name in own)]
        for name, (_, data) in zip(list(distinct(pairs))[len(clashes) :], files, strict=True):
            model[path + name] = data
    return model


@given(member_shards())
def test_nested_keys_a_folder_a_record(shard: MemberShard) -> None:
    whole = opened(shard)
    shown = walk(whole)
    assert shown == record_model(shard)
    check_places(whole, shown)


@given(member_shards(), sampled_from(["flat", "field"]))
def test_nested_keys_in_other_layouts_show_the_same_bytes(
    shard: MemberShard, layout: Layout
) -> None:
    whole = opened(shard, layout)
    shown = walk(whole)
    assert Counter(shown.values()) == Counter(record_model(shard).values())
    check_places(whole, shown)


@given(member_shards(), sampled_from(LAYOUTS), tuples(integers(0, 6), integers(0, 6)))
@settings(max_examples=50)
def test_a_shard_that_is_still_scanned_looks_the_same(
    shard: MemberShard, layout: Layout, known: tuple[int, int]
) -> None:
    whole = walk(opened(shard, layout))
    shard.known = min(known[0], len(shard))
    assert walk(opened(shard, layout)) == whole
