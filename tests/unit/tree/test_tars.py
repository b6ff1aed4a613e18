"""``--recursive``: shards and archives among the members of tars."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardfs.blob import read_all
from shardfs.errors import IsAFolder, NotAFolder, NotFound
from shardfs.options import Options
from shardfs.tree.archives import WithArchives
from shardfs.tree.tars import TarStore, open_tar
from tests.fakes import FakeServices, MemoryStore
from tests.tar_files import archive, member
from tests.zip_files import Item, make_zip

if TYPE_CHECKING:
    from shardfs.stores import Store


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    return sink.getvalue()


PLAIN = archive(member("0001.txt", b"one"), member("d/0002.txt", b"two"))
PACKED, PARQUET = gzip.compress(PLAIN), parquet()
OUTER = archive(
    member("in.tar", PLAIN),
    member("d/in.tar.gz", PACKED),
    member("./d/t.parquet", PARQUET),
    member("z.zip", make_zip([Item(name=b"q/x.tar", data=PLAIN)])),
    member("note.txt", b"before"),
    member("note.txt", b"hello"),
    member("d", b"a file called as a folder"),
    member(".hidden", b"h"),
    member("no-suffix", b"n"),
    member("link.txt", kind=b"2", link="note.txt"),
)


def opened(*, recursive: bool = True, **files: bytes) -> tuple[WithArchives, FakeServices]:
    services = FakeServices(Options(recursive=recursive))
    store = MemoryStore({name.replace("__", "."): data for name, data in files.items()})
    return WithArchives(store, services), services


def walk(store: Store, folder: str = "") -> dict[str, Any]:
    """All files by path, folders with `/` behind them and None."""
    found: dict[str, Any] = {}
    for entry in store.list(folder):
        if entry.is_dir:
            found[f"{entry.path}/"] = None
            found |= walk(store, entry.path)
        else:
            found[entry.path] = bytes(read_all(store.open(entry.path)))
    return found


def test_a_tar_with_shards_is_a_folder_of_its_members() -> None:
    store, services = opened(x__tar=OUTER, plain__tar=PLAIN)
    assert not services.reports
    assert walk(store) == {
        "plain.tar": PLAIN,
        "x.tar/": None,
        "x.tar/.hidden": b"h",
        "x.tar/d": b"a file called as a folder",
        "x.tar/d/": None,
        "x.tar/d/in.tar.gz": PACKED,
        "x.tar/d/t.parquet": PARQUET,
        "x.tar/in.tar": PLAIN,
        "x.tar/link.txt": b"hello",
        "x.tar/no-suffix": b"n",
        "x.tar/note.txt": b"hello",
        "x.tar/z.zip/": None,
        "x.tar/z.zip/q/": None,
        "x.tar/z.zip/q/x.tar": PLAIN,
    }
    assert [e.is_archive for e in store.list()] == [False, True]


def test_without_the_option_a_tar_is_a_shard() -> None:
    store, _ = opened(recursive=False, x__tar=OUTER)
    assert [(e.path, e.is_dir) for e in store.list()] == [("x.tar", False)]


@pytest.mark.parametrize("name", ["x__tar__gz", "x__tgz", "x__tar__zst"])
def test_compressed_tars_too(name: str) -> None:
    files = {name: gzip.compress(OUTER)}
    store, _ = opened(recursive=True, **files)
    assert [e.is_archive for e in store.list()] == [True]


def test_a_tar_that_cannot_be_read_stays_a_shard_that_says_so() -> None:
    store, _ = opened(x__tar=b"no tar" * 1000, y__tar=b"")
    assert [(e.path, e.is_dir) for e in store.list()] == [("x.tar", False), ("y.tar", False)]


def test_the_fifth_archive_is_not_opened_and_that_is_told() -> None:
    content = PLAIN
    for number in range(6):
        content = archive(member(f"{number}.tar", content))
    store, services = opened(x__tar=content)
    found = walk(store)
    assert [path for path, data in found.items() if data is not None] == [
        "x.tar/5.tar/4.tar/3.tar/2.tar"
    ]
    (said,) = map(str, services.reports)
    assert "2.tar" in said
    assert "4 deep" in said


def test_as_a_store() -> None:
    services = FakeServices()
    outer = MemoryStore({"deep/x.tar": OUTER})
    entry = outer.stat("deep/x.tar")
    store = TarStore(outer, entry, open_tar(outer, entry, services))
    assert store.stat("note.txt").size == 5
    assert store.stat("note.txt").version == entry.version
    assert store.stat("").is_dir
    for path, kind in (("none", NotFound), ("note.txt", NotAFolder)):
        with pytest.raises(kind):
            store.list(path)
    with pytest.raises(NotFound):
        store.open("none")
    with pytest.raises(IsAFolder):
        store.open("")
