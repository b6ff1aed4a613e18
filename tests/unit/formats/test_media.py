"""Tables that name media files."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from shardfs.blob import Bytes, no_wait, read_all
from shardfs.errors import Corrupt, OutsideSource, ShardfsError, Unreadable, WouldBlock
from shardfs.formats.shared.media import Folder, MediaFile, with_media
from shardfs.stores import Entry
from tests.fakes import FakeShard, MemoryStore
from tests.text_files import files, open_shard, records


def picture(suffix: str) -> bytes:
    file = io.BytesIO()
    Image.new("L", (2, 2)).save(file, suffix)
    return file.getvalue()


PNG, JPEG = picture("png"), picture("jpeg")
BESIDE = {"a b.jpg": JPEG, "sub/c.png": PNG, "d.wav": b"RIFF" + bytes(8), "e.npy": b"\x93NUMPY"}


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_files_stand_in_place_of_their_names() -> None:
    table = b"n,file_name,caption\n1,a b.jpg,x\n2,./sub//c.png,y\n"
    shard = open_shard("metadata.csv", table, beside=BESIDE)
    assert list(shard.columns) == ["n", "image", "caption"]
    assert records(shard) == [
        {"n.txt": b"1", "image.jpg": JPEG, "caption.txt": b"x"},
        {"n.txt": b"2", "image.png": PNG, "caption.txt": b"y"},
    ]
    assert (len(shard), shard.key(1), shard.find("000001")) == (2, "000001", 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sub\\c.png", PNG),
        (".\\sub\\\\c.png", PNG),
        ("./sub/../a b.jpg", JPEG),
        ("sub\\..\\a b.jpg", JPEG),
        ("sub//./c.png", PNG),
        ("odd\\name.png", PNG),
        ("SUB\\c.png", Corrupt),
        ("a%20b.jpg", Corrupt),
        ("sub", Corrupt),
        (".", Corrupt),
        ("\\", OutsideSource),
        ("..\\c.png", OutsideSource),
        ("sub\\..\\..\\c.png", OutsideSource),
        ("C:\\sub\\c.png", OutsideSource),
        ("\\\\host\\c.png", OutsideSource),
        ("/sub/c.png", OutsideSource),
        ("http://host/c.png", OutsideSource),
        ("a\0b", OutsideSource),
    ],
)
def test_paths_are_taken_as_any_system_writes_them(name: str, content: object) -> None:
    beside = BESIDE | {"odd\\name.png": PNG}
    shard = open_shard("metadata.jsonl", lines({"file_name": name}), beside=beside)
    (field,) = shard.fields(0)
    if isinstance(content, type):
        with pytest.raises(content):
            field.data.read(0, 1)
    else:
        assert bytes(read_all(field.data)) == content


def test_columns_are_named_after_what_they_hold() -> None:
    row = {"file_name": "d.wav", "mask_file_name": "sub/c.png", "left_file_names": ["a b.jpg"]}
    shard = open_shard("metadata.jsonl", lines(row), beside=BESIDE)
    assert list(shard.columns) == ["audio", "mask", "left"]
    assert list(files(shard, 0)) == ["audio.wav", "mask.png", "left.0.jpg"]


@pytest.mark.parametrize(
    ("name", "column"), [("x.JPG", "image"), ("x.mp4", "video"), ("x.npy", "file"), ("x", "file")]
)
def test_media_are_told_by_the_first_names(name: str, column: str) -> None:
    shard = open_shard("metadata.jsonl", lines({"file_name": None}, {"file_name": name}))
    assert list(shard.columns) == [column]
    shard = open_shard("metadata.jsonl", lines({"file_names": [None, name]}))
    assert list(shard.columns) == [f"{column}s"]


@pytest.mark.parametrize(
    "name",
    [
        "gone.jpg",
        "../a b.jpg",
        "/etc/passwd",
        "sub",
        "a b.jpg/x",
        "https://host/a.jpg",
        ".",
        "x\0y",
    ],
)
def test_what_is_not_there_or_outside_is_an_error(name: str) -> None:
    rows = lines({"file_name": "a b.jpg", "n": 0}, {"file_name": name, "n": 1})
    good, bad = records(open_shard("metadata.jsonl", rows, beside=BESIDE))
    assert good == {"image.jpg": JPEG, "n.txt": b"0\n"}
    assert isinstance(bad, dict)
    assert bad.pop("n.txt") == b"1\n"
    (shown,) = bad
    assert shown.startswith("image")
    assert isinstance(bad[shown], ShardfsError)
    assert bad[shown].errno == Corrupt.errno  # type: ignore[union-attr]


def test_nothing_is_no_file() -> None:
    table = b"file_name,n\n,1\na b.jpg,2\n"
    assert records(open_shard("metadata.csv", table, beside=BESIDE)) == [
        {"n.txt": b"1"},
        {"image.jpg": JPEG, "n.txt": b"2"},
    ]


def test_lists_of_files_are_one_file_an_item() -> None:
    rows = lines(
        {"file_names": ["a b.jpg", None, "gone.jpg", "sub/c.png"]},
        {"file_names": []},
        {"file_names": 1},
    )
    some, none, bad = records(open_shard("metadata.jsonl", rows, beside=BESIDE))
    assert isinstance(some, dict)
    assert (some.pop("images.0.jpg"), some.pop("images.3.png")) == (JPEG, PNG)
    ((name, error),) = some.items()
    assert name == "images.2.bin"
    assert isinstance(error, Corrupt)
    assert none == {}
    assert isinstance(bad, dict)


@pytest.mark.parametrize("names", [[1], [["a"]], ["x"] * 70_000])
def test_lists_of_others_are_errors(names: list[object]) -> None:
    (found,) = records(open_shard("metadata.jsonl", lines({"file_names": names}), beside=BESIDE))
    assert isinstance(found, dict)
    assert [isinstance(each, Corrupt) for each in found.values()] == [True]


def test_other_tables_stay_as_they_are() -> None:
    assert list(open_shard("metadata.csv", b"a,b\n1,2\n").columns) == ["a", "b"]
    assert list(open_shard("other.csv", b"file_name\nx.jpg\n").columns) == ["file_name"]


def test_a_table_in_a_folder_names_files_in_there() -> None:
    store = MemoryStore({"in/metadata.csv": b"", "in/a.jpg": JPEG, "a.jpg": PNG})
    shard = FakeShard([{"file_name": b"a.jpg"}])
    shown = with_media(shard, store, store.stat("in/metadata.csv"))
    assert files(shown, 0) == {"image.jpg": JPEG}
    shown.close()
    assert shard.closed


def test_files_are_looked_for_only_by_who_may_wait() -> None:
    shard = open_shard("metadata.csv", b"file_name\na b.jpg\n", beside=BESIDE)
    assert shard.has(0)
    with no_wait(), pytest.raises(WouldBlock):
        shard.fields(0)
    (field,) = shard.fields(0)
    with no_wait(), pytest.raises(WouldBlock):
        field.data.read(0, 1)
    assert bytes(read_all(field.data)) == JPEG
    with no_wait():
        assert bytes(field.data.read(0, 2)) == JPEG[:2]


def test_a_file_that_changed_is_not_read() -> None:
    store = MemoryStore({"a": b"abc"})
    file = MediaFile(Folder(store, ""), Entry("a", 2, 0, ""))
    assert file.size() == 2
    with pytest.raises(Unreadable, match="changed"):
        file.read(0, 2)


def test_few_files_are_open_at_a_time() -> None:
    store = MemoryStore({str(n): b"x" for n in range(100)})
    folder = Folder(store, "")
    found = [MediaFile(folder, folder.find(str(n))) for n in range(100)]
    assert store.opened == []
    for _ in range(2):
        assert all(bytes(file.read(0, 1)) == b"x" for file in found[:5])
    assert store.opened == ["0", "1", "2", "3", "4"]
    assert all(bytes(file.read(0, 1)) == b"x" for file in found)
    assert folder.open.cache_info().currsize == 32
    assert isinstance(folder.open(store.stat("1")), Bytes)


def test_names_lead_nowhere_else() -> None:
    folder = Folder(MemoryStore({"in/a": b"", "b": b""}), "in")
    assert folder.find("a").path == "in/a"
    with pytest.raises(OutsideSource):
        folder.find("../b")
    with pytest.raises(Corrupt):
        folder.find("b")
