from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import zstandard

from shardfs.blob import Bytes, no_wait, read_all
from shardfs.cache.disk import Room
from shardfs.cache.memory import Memory
from shardfs.errors import Corrupt
from shardfs.formats.webdataset.dataset import WebDataset, compression
from shardfs.formats.webdataset.header import END
from shardfs.journal import Journal
from shardfs.mounting import Workshop
from shardfs.options import Options
from shardfs.registry import FORMATS
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices, MemoryStore, SlowBlob
from tests.tar_files import archive, member, pax

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.formats.webdataset.dataset import TarDataset
    from shardfs.model import Services, Shard
    from shardfs.stores import Entry, Store

PLAIN = archive(
    *(member(f"{number:04d}.{field}", os.urandom(700)) for number in range(20) for field in "xy")
)


COMPRESSED = {
    "gz": gzip.compress(PLAIN),
    "zstd": zstandard.compress(PLAIN),
    "xz": lzma.compress(PLAIN),
    "bz2": bz2.compress(PLAIN),
    "lz4": pa.Codec("lz4").compress(PLAIN, asbytes=True),
}
SKIPPED = b"\x50\x2a\x4d\x18" + (600).to_bytes(4, "little") + b"\x1f" * 600


def dataset(files: dict[str, bytes], services: Services | None = None) -> TarDataset:
    store = MemoryStore(files)
    names = [entry.name for entry in store.list() if not entry.is_dir]
    assert WebDataset.detect(store, names)
    return WebDataset.open(store, names, services or FakeServices())


def contents(shard: Shard) -> dict[str, bytes]:
    return {
        f"{shard.key(index)}:{field.filename}": bytes(read_all(field.data))
        for index in range(len(shard))
        for field in shard.fields(index)
    }


def test_shards_are_called_as_their_files_are() -> None:
    row = next(row for row in FORMATS if row.name == "webdataset")
    names = sorted(f"a-000{suffix}" for suffix in row.suffixes)
    found = dataset({name: PLAIN for name in names} | {"b.TAR": PLAIN, "notes.txt": b""})
    assert [ref.name for ref in found.shards] == ["a-000"] * len(names) + ["b"]
    assert [ref.file for ref in found.shards] == [*names, "b.TAR"]
    assert {ref.records for ref in found.shards} == {None}
    assert found.owns("b.TAR")
    assert not found.owns("notes.txt")
    assert found.info() == {"shards": len(names) + 1, "bytes": len(PLAIN) * (len(names) + 1)}


def test_no_archive_is_opened_before_somebody_looks_inside() -> None:
    store = MemoryStore({"a.tar": PLAIN, "b.tar": PLAIN})
    WebDataset.open(store, ["a.tar", "b.tar"], FakeServices())
    assert store.opened == []


def test_a_folder_without_archives_is_none() -> None:
    assert not WebDataset.detect(MemoryStore({"a.txt": b""}), ["a.txt"])
    assert not WebDataset.detect(MemoryStore({"a": b""}), [])


# --- compression ---


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tzst"])
def test_compression_is_seen_in_the_bytes_not_in_the_name(codec: str, name: str) -> None:
    shard = dataset({name: COMPRESSED[codec]}).open_shard(0)
    assert contents(shard) == contents(dataset({"a.tar": PLAIN}).open_shard(0))
    assert shard.capacity == 20
    assert not shard.costly


def test_a_plain_archive_may_be_called_compressed() -> None:
    assert len(dataset({"a.tar.gz": PLAIN}).open_shard(0)) == 20


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (PLAIN, None),
        (END, None),
        (b"", None),
        (b"no archive", None),
        (COMPRESSED["gz"], "gz"),
        (SKIPPED + COMPRESSED["zstd"], "zstd"),
        (SKIPPED + SKIPPED + COMPRESSED["lz4"], "lz4"),
        (SKIPPED, None),
        (SKIPPED * 100 + COMPRESSED["zstd"], None),
        (archive(member("BZh9.txt", b"a")), None),
        (archive(member("\x1f\x08.txt", b"a")), None),
    ],
)
def test_codecs_by_magic_numbers(data: bytes, codec: str | None) -> None:
    assert compression(Bytes(data)) == codec


def test_a_small_file_may_not_become_endless_members() -> None:
    block = member("same.x")
    services = FakeServices()
    bomb = zstandard.compress(block * 100_000)
    shard = dataset({"a.tar.zst": bomb}, services).open_shard(0)
    assert shard.capacity < (1 << 20) + len(bomb)


# --- what is no archive ---


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is no tar"),
        (bytes(100), "is no tar"),
        (b"?" * 100_000, "is no tar"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(b"text" * 1000, mtime=0), "is no tar"),
    ],
)
def test_what_is_no_archive_can_not_be_opened(data: bytes, message: str) -> None:
    with pytest.raises(Corrupt, match=message):
        dataset({"a.tar": data}).open_shard(0)


def test_an_archive_of_nothing_has_nothing() -> None:
    shard = dataset({"a.tar": bytes(10240)}).open_shard(0)
    assert (len(shard), shard.loose, shard.columns) == (0, 0, [])


def test_a_damaged_first_header_hides_its_member_only() -> None:
    services = FakeServices()
    shard = dataset({"a.tar": b"?" + PLAIN[1:]}, services).open_shard(0)
    assert len(contents(shard)) == 39
    assert [str(fault) for fault in services.reports] == ["a.tar: at byte 0: no valid header"]


@pytest.mark.parametrize("first", [pax(kind=b"g", comment="1"), pax(path="x.y"), b""])
def test_an_archive_may_begin_with_any_header(first: bytes) -> None:
    assert len(dataset({"a.tar": first + PLAIN}).open_shard(0)) >= 20


# --- what is kept ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.tar").write_bytes(archive(member("a.x", b"a"), b"?" * 512, member("b.x", b"b")))
    (folder / "b.tar.gz").write_bytes(gzip.compress(PLAIN))
    return folder


def workshop(cache: Path, journal: Journal, **options: bool) -> Workshop:
    settings = Options(cache_dir=cache, **options)  # type: ignore[arg-type]
    return Workshop(settings, Memory(1 << 20), Room(cache, 1 << 30), journal)


def test_the_next_mount_scans_nothing(folder: Path, tmp_path: Path) -> None:
    store, seen = LocalStore(str(folder)), []
    for _ in range(2):
        journal = Journal()
        services = workshop(tmp_path, journal)
        found = WebDataset.open(store, ["a.tar", "b.tar.gz"], services)
        shards = [found.open_shard(index) for index in range(2)]
        before = [shard.nested for shard in shards]
        seen.append((before, [contents(shard) for shard in shards], journal.count))
        services.close()
    assert [before for before, _, _ in seen] == [[True, True], [False, False]]
    assert seen[0][1:] == seen[1][1:]
    assert seen[0][2] == 1, "damage is told to those who come later, too"


def test_another_file_has_another_table(folder: Path, tmp_path: Path) -> None:
    for data in (archive(member("a.x")), archive(member("b.x"), member("c.x"))):
        (folder / "a.tar").write_bytes(data)
        found = WebDataset.open(LocalStore(str(folder)), ["a.tar"], workshop(tmp_path, Journal()))
        shard = found.open_shard(0)
        assert shard.nested
        assert len(shard) == len(data) // 512 - 2


def test_a_table_can_be_made_anew(folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        services = workshop(tmp_path, Journal(), rebuild_index=True)
        shard = WebDataset.open(LocalStore(str(folder)), ["a.tar"], services).open_shard(0)
        assert shard.nested
        assert len(shard) == 2


def test_a_damaged_table_is_made_anew(folder: Path, tmp_path: Path) -> None:
    services = workshop(tmp_path, Journal())
    store = LocalStore(str(folder))
    services.remember(store, store.stat("a.tar"), "tar members 1", lambda: b"no table")
    shard = WebDataset.open(store, ["a.tar"], services).open_shard(0)
    assert [shard.key(index) for index in range(2)] == ["a", "b"]


def test_groups_of_records_wait_for_the_end_of_the_scan() -> None:
    shard = dataset({"a.tar": PLAIN}, FakeServices(Options(fanout=10))).open_shard(0)
    assert not shard.nested


# --- WIDS ---


def wids(*urls: str, **more: object) -> bytes:
    shards = [{"url": url, "nsamples": 1} for url in urls]
    return json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": shards} | more).encode()


def test_shards_stand_in_the_order_of_an_index() -> None:
    files = {name: PLAIN for name in ("a.tar", "b.tar", "c.tar", "d/a.tar", "d/b.tar")}
    index = wids("c.tar", "https://host/x/a.tar?", "gone.tar", "d/b.tar", "../../b.tar", "c.tar")
    found = dataset(files | {"shardindex.json": index.replace(b"?", b"")})
    assert [ref.name for ref in found.shards] == ["c", "a", "d/b", "b"]
    assert found.owns("d/b.tar")
    assert not found.owns("d/a.tar")
    assert not found.owns("shardindex.json")


def test_parts_of_an_index() -> None:
    part = json.loads(wids("b.tar"))
    index = wids("c.tar", datasets=[part, {"source_url": "elsewhere"}])
    files = {name: PLAIN for name in ("a.tar", "b.tar", "c.tar")}
    found = dataset(files | {"shardindex.json": index})
    assert [ref.name for ref in found.shards] == ["c", "b", "a"]


def test_an_index_of_folders_only() -> None:
    files = {"d/a.tar": PLAIN, "shardindex.json": wids("d/a.tar", "d/e.tar", "f/a.tar")}
    assert [ref.name for ref in dataset(files).shards] == ["d/a"]
    for index in (b"{}", b"[]", b"no JSON"):
        store = MemoryStore(files | {"shardindex.json": index})
        assert not WebDataset.detect(store, ["shardindex.json"])


@pytest.mark.parametrize("index", [b"", b"[]", b'{"shardlist": 3}', b'{"shardlist": [{}]}'])
def test_a_damaged_index_costs_the_order_only(index: bytes) -> None:
    services = FakeServices()
    files = {"a.tar": PLAIN, "b.tar": PLAIN, "shardindex.json": index}
    found = dataset(files, services)
    assert [ref.name for ref in found.shards] == ["a", "b"]
    assert [str(fault).partition(":")[0] for fault in services.reports] == ["shardindex.json"]


class Remembering(FakeServices):
    """Keeps what it is to remember, by what that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, bytes] = {}

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        if what not in self.kept:
            self.kept[what] = build()
        return Bytes(self.kept[what])


class Slow(MemoryStore):
    """Files that are not at hand."""

    def open(self, path: str, /) -> SlowBlob:
        return SlowBlob(self.files[path])


def test_a_plain_archive_whose_table_is_known_is_not_looked_at() -> None:
    services, store = Remembering(), Slow({"a.tar": PLAIN})
    expected = contents(WebDataset.open(store, ["a.tar"], services).open_shard(0))
    with no_wait():
        shard = WebDataset.open(store, ["a.tar"], services).open_shard(0)
        assert (len(shard), shard.key(7)) == (20, "0007")
    assert contents(shard) == expected


def test_a_known_table_of_a_compressed_archive_is_not_one_of_a_plain_one() -> None:
    services = Remembering()
    for codec, data in COMPRESSED.items():
        for _ in range(2):
            shard = dataset({"a.tar": data}, services).open_shard(0)
            assert bytes(read_all(shard.fields(3)[1].data)) == PLAIN[7 * 1536 + 512 :][:700], codec
            len(shard)
    assert len(services.kept) == len(COMPRESSED)
