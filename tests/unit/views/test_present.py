from __future__ import annotations

import gc
import json
import struct
from typing import TYPE_CHECKING

import pytest

from shardfs import names
from shardfs.blob import Blob, Broken, Bytes, Slice, may_wait, no_wait, read_all
from shardfs.cache.memory import Memory
from shardfs.errors import Corrupt, NoKey, ShardfsError, Unreadable, WouldBlock
from shardfs.model import (
    Array,
    Encoded,
    Field,
    File,
    Items,
    Kind,
    Pixels,
    Plain,
    Rendered,
    Scalar,
)
from shardfs.views.present import Presenter

if TYPE_CHECKING:
    from collections.abc import Callable

GIF = b"GIF89a\1\0\1\0\0\0\0;"
PIXELS = struct.pack("<3I", 2, 1, 1) + b"L" + b"\x10\x20"


def shout(data: memoryview) -> bytes:
    return bytes(data).upper()


KINDS: list[tuple[Kind, bytes, str]] = [
    (Plain(".txt"), b"text", ".txt"),
    (Plain(""), b"text", ""),
    (Encoded(), GIF, ".gif"),
    (Encoded(".png"), GIF, ".gif"),
    (Encoded("", "take.raw"), bytes(5), ".raw"),
    (Scalar("<i4"), b"\1\0\0\0", ".txt"),
    (Array("<i4", (1,)), b"\1\0\0\0", ".npy"),
    (Array("bfloat16", (2,)), b"\1\0\0\0", ".safetensors"),
    (Pixels(), PIXELS, ".tif"),
    (Rendered(".json", shout), b"yes", ".json"),
]
DEVIANT: list[tuple[Kind, bytes]] = [
    (Scalar("<i4"), b"\1\0\0"),
    (Array("<i4", (2,)), b"\1\0\0\0"),
    (Pixels(), PIXELS[:-1]),
]


@pytest.fixture
def presenter() -> Presenter:
    return Presenter(Memory(1 << 20), raw=False)


def content(file: File) -> bytes:
    return bytes(read_all(file.blob))


class Failing:
    """Bytes that can't be read, though their size is known."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def size(self) -> int:
        return 4

    def read(self, offset: int, length: int, /) -> memoryview:
        raise self._error


@pytest.mark.parametrize(("kind", "data", "extension"), KINDS)
def test_every_kind_has_its_extension(
    presenter: Presenter, kind: Kind, data: bytes, extension: str
) -> None:
    (file,) = presenter.files([Field("name", kind, Bytes(data))])
    assert (file.stem, file.extension) == ("name", extension)
    assert (content(file) == data) == isinstance(kind, (Plain, Encoded))


def test_what_is_stored_as_a_file_is_not_touched(presenter: Presenter) -> None:
    blob = Bytes(GIF)
    (plain, encoded) = presenter.files([Field("a", Plain(".x"), blob), Field("b", Encoded(), blob)])
    assert plain.blob is blob
    assert encoded.blob is blob


def test_fields_keep_their_order(presenter: Presenter) -> None:
    fields = [Field(str(index), kind, Bytes(data)) for index, (kind, data, _) in enumerate(KINDS)]
    assert [file.stem for file in presenter.files(fields)] == [field.name for field in fields]


@pytest.mark.parametrize(("kind", "data"), DEVIANT)
def test_bytes_that_contradict_their_kind_are_shown_as_stored(
    presenter: Presenter, kind: Kind, data: bytes
) -> None:
    blob = Bytes(data)
    assert presenter.files([Field("x", kind, blob)]) == [File("x", ".bin", blob)]


@pytest.mark.parametrize(("kind", "data", "extension"), KINDS)
def test_raw_shows_the_stored_bytes(kind: Kind, data: bytes, extension: str) -> None:
    blob = Bytes(data)
    (file,) = Presenter(Memory(0), raw=True).files([Field("x", kind, blob)])
    assert file.blob is blob
    assert file.extension == (extension if isinstance(kind, (Plain, Encoded)) else ".bin")


def test_raw_names_do_not_depend_on_damage() -> None:
    broken = Broken(Corrupt("bad"))
    fields = [Field("x", Scalar("<i4"), broken), Field("y", Encoded(".jpg"), broken)]
    files = Presenter(Memory(0), raw=True).files(fields)
    assert [file.extension for file in files] == [".bin", ".jpg"]


def test_raw_lists_are_one_file() -> None:
    blob = Bytes(GIF + GIF)
    field = Field("x", Items(Encoded(), ((0, 14), (14, 14))), blob)
    assert Presenter(Memory(0), raw=True).files([field]) == [File("x", ".bin", blob)]


# --- lists -------------------------------------------------------------------------------------------------


def test_a_list_is_one_file_an_item(presenter: Presenter) -> None:
    field = Field(
        "x", Items(Encoded(".jpg"), ((1, 14), (15, 4), (19, 0))), Bytes(b"_" + GIF + b"abcd")
    )
    files = presenter.files([field])
    assert [(file.stem, file.extension) for file in files] == [
        ("x", ".0.gif"),
        ("x", ".1.jpg"),
        ("x", ".2.jpg"),
    ]
    assert [content(file) for file in files] == [GIF, b"abcd", b""]
    assert list(names.distinct((file.stem, file.extension) for file in files)) == [
        "x.0.gif",
        "x.1.jpg",
        "x.2.jpg",
    ]


def test_an_empty_list_has_no_file(presenter: Presenter) -> None:
    assert presenter.files([Field("x", Items(Pixels(), ()), Bytes(b""))]) == []


def test_a_null_in_a_list_has_no_file(presenter: Presenter) -> None:
    files = presenter.files([Field("x", Items(Encoded(), (None, (0, 14), None)), Bytes(GIF))])
    assert [(file.extension, content(file)) for file in files] == [(".1.gif", GIF)]


def test_items_of_any_kind(presenter: Presenter) -> None:
    spans = ((0, len(PIXELS)), (0, 3))
    pixels = presenter.files([Field("x", Items(Pixels(), spans), Bytes(PIXELS))])
    assert [file.extension for file in pixels] == [".0.tif", ".1.bin"]
    nested = Items(Items(Scalar("|u1"), ((0, 1), (1, 1))), ((0, 2),))
    numbers = presenter.files([Field("x", nested, Bytes(b"\7\x08"))])
    assert [(file.extension, content(file)) for file in numbers] == [
        (".0.0.txt", b"7\n"),
        (".0.1.txt", b"8\n"),
    ]


def test_one_bad_item_leaves_the_others(presenter: Presenter) -> None:
    spans = ((0, 14), (14, 99), (0, 14))
    files = presenter.files([Field("x", Items(Encoded(), spans), Bytes(GIF))])
    assert [file.extension for file in files] == [".0.gif", ".1.bin", ".2.gif"]
    with pytest.raises(Corrupt):
        files[1].blob.read(0, 1)


# --- what is made ------------------------------------------------------------------------------------------


def test_rendered_once_and_kept_under_the_budget() -> None:
    calls: list[bytes] = []
    big = bytes(5000)

    def render(data: memoryview) -> bytes:
        calls.append(bytes(data))
        return json.dumps(len(data)).encode()

    memory = Memory(1 << 10)
    (file,) = Presenter(memory, raw=False).files(
        [Field("x", Rendered(".json", render), Bytes(big))]
    )
    assert calls == [], "nothing is made before it is asked for"
    assert (file.blob.size(), content(file), calls) == (4, b"5000", [big])
    assert memory.total == 4
    del file
    gc.collect()
    assert memory.total == 0


def test_a_renderer_may_find_damage(presenter: Presenter) -> None:
    def render(data: memoryview) -> bytes:
        raise Corrupt("no tag 77")

    (file,) = presenter.files([Field("x", Rendered(".json", render), Bytes(b"abc"))])
    assert file.extension == ".json"
    with pytest.raises(Corrupt, match="no tag 77"):
        file.blob.size()


# --- names that the dataset gives --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filename",
    [
        "0001.jpg",
        "0001.left.png",
        "README",
        ".hidden",
        "a.",
        "a..",
        "...",
        "..jpg",
        "..jpg.jpg",
        "x.jpg.jpg",
        "x.jpg.jpg.jpg.jpg",
        "x.JPG.jpg",
        "x.jpg.JPG",
        ".jpg.jpg",
        "a.tar.gz",
        "j p g.j p g",
        "gr\u00f6\u00dfe.\u00fcn\u00ef",
        "undecodable\udcff.\udcfe",
        "l" * 250 + ".jpg",
    ],
)
def test_a_given_name_stays_as_it_is(presenter: Presenter, filename: str) -> None:
    (file,) = presenter.files([Field("jpg", Encoded(".jpg"), Bytes(GIF), filename)])
    assert (file.stem, file.extension) == (filename, "")


def test_the_content_of_a_named_file_follows_its_kind(presenter: Presenter) -> None:
    blob = Bytes(b"\7")
    (number,) = presenter.files([Field("cls", Scalar("|u1"), blob, "0001.cls")])
    assert (number.stem, number.extension, content(number)) == ("0001.cls", "", b"7\n")
    (wrong,) = presenter.files([Field("cls", Scalar("<i8"), blob, "0001.cls")])
    assert wrong.blob is blob
    (several,) = presenter.files([Field("x", Items(Encoded(), ((0, 1), (0, 1))), blob, "0001.x")])
    assert (several.stem, several.extension, several.blob) == ("0001.x", "", blob)


def test_a_named_file_is_not_looked_into(presenter: Presenter) -> None:
    blob = Failing(Corrupt("looked"))
    (file,) = presenter.files([Field("jpg", Encoded(".jpg"), blob, "0001.jpg")])
    assert (file.stem, file.extension, file.blob) == ("0001.jpg", "", blob)


def test_declared_suffixes_can_not_lead_out_of_the_folder(presenter: Presenter) -> None:
    for kind in (Plain("./../x"), Encoded("./../x"), Rendered("./../x", shout)):
        (file,) = presenter.files([Field("x", kind, Bytes(b"1"))])
        assert "/" not in file.extension
        (broken,) = presenter.files([Field("x", kind, Broken(Corrupt("bad")))])
        assert "/" not in broken.extension


# --- faults ------------------------------------------------------------------------------------------------

BROKEN: list[Callable[[ShardfsError], Blob]] = [
    Broken,
    lambda error: Slice(Broken(error), 0, 4),
    Failing,
]


@pytest.mark.parametrize("make", BROKEN)
@pytest.mark.parametrize(
    ("kind", "extension"),
    [
        (Plain(".txt"), ".txt"),
        (Encoded(), ".bin"),
        (Encoded(".jpg"), ".jpg"),
        (Scalar("<i4"), ".txt"),
        (Pixels(), ".tif"),
        (Rendered(".json", shout), ".json"),
    ],
)
def test_a_broken_field_is_a_file_that_fails_and_hides_no_other(
    presenter: Presenter, kind: Kind, extension: str, make: Callable[[ShardfsError], Blob]
) -> None:
    fields = [
        Field("before", Plain(".txt"), Bytes(b"1")),
        Field("bad", kind, make(Corrupt("overruns"))),
        Field("after", Encoded(), Bytes(GIF)),
    ]
    before, bad, after = presenter.files(fields)
    assert (content(before), content(after)) == (b"1", GIF)
    assert (bad.stem, bad.extension) == ("bad", extension)
    with pytest.raises(Corrupt, match="overruns"):
        bad.blob.read(0, 1)


@pytest.mark.parametrize(
    "kind", [Array("<i4", (1,)), Items(Encoded(".jpg"), ()), Items(Pixels(), ((0, 1),))]
)
def test_a_field_known_to_be_broken_is_a_file(presenter: Presenter, kind: Kind) -> None:
    blob = Broken(NoKey("encrypted"))
    (file,) = presenter.files([Field("x", kind, blob)])
    assert file.blob is blob
    (named,) = presenter.files([Field("x", kind, blob, "0001.x")])
    assert (named.stem, named.extension, named.blob) == ("0001.x", "", blob)


def test_a_broken_file_keeps_no_traceback_alive(presenter: Presenter) -> None:
    (file,) = presenter.files([Field("x", Encoded(), Failing(Corrupt("bad")))])
    assert isinstance(file.blob, Broken)
    assert file.blob.error.__traceback__ is None


def test_what_may_pass_is_raised_since_the_name_would_change(presenter: Presenter) -> None:
    with pytest.raises(Unreadable):
        presenter.files([Field("x", Encoded(), Failing(Unreadable("timed out")))])
    (file,) = presenter.files([Field("x", Encoded(), Broken(Unreadable("gone")))])
    assert file.extension == ".bin"


class Slow(Bytes):
    def read(self, offset: int, length: int, /) -> memoryview:
        if not may_wait():
            raise WouldBlock
        return super().read(offset, length)


@pytest.mark.parametrize(
    "kind", [Encoded(), Scalar("|b1"), Pixels(), Items(Encoded(), ((0, 1),))], ids=str
)
def test_would_block_passes(presenter: Presenter, kind: Kind) -> None:
    field = Field("x", kind, Slow(b"1"))
    with no_wait(), pytest.raises(WouldBlock):
        presenter.files([field])
    assert len(presenter.files([field])) == 1


def test_nothing_is_read_where_the_kind_says_it_all(presenter: Presenter) -> None:
    with no_wait():
        files = presenter.files(
            [
                Field("a", Plain(".txt"), Slow(b"1")),
                Field("b", Array("|u1", (1,)), Slow(b"1")),
                Field("c", Rendered(".json", shout), Slow(b"1")),
                Field("d", Encoded(".docx"), Slow(b"1")),
                Field("e", Scalar("|u1"), Slow(b"1")),
            ]
        )
    assert [file.extension for file in files] == [".txt", ".npy", ".json", ".docx", ".txt"]
    with no_wait(), pytest.raises(WouldBlock):
        files[4].blob.size()
    assert content(files[4]) == b"49\n"


def test_a_file_that_can_not_be_read_is_called_as_its_name_says(presenter: Presenter) -> None:
    (file,) = presenter.files([Field("image", Encoded(hint="a/b.PNG"), Failing(Corrupt("bad")))])
    assert file.stem + file.extension == "image.PNG"
