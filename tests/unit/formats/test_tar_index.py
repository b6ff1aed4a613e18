"""Indexes beside archives: one that fits spares the scan, one that does not is not believed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import tests
from shardfs.blob import Bytes, read_all
from shardfs.errors import Corrupt
from shardfs.formats.webdataset.dataset import WebDataset
from shardfs.formats.webdataset.indexes import Checked, Indexes, Part, fitting
from shardfs.sources.local import LocalStore
from tests.fakes import FakeServices, MemoryStore, SlowBlob
from tests.tar_files import archive, header, member, pax

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.stores import Entry, Store

DATA = tests.DATA / "webdataset"
PLAIN = archive(member("a.jpg", b"x" * 700), member("a.txt", b"text"), member("b.txt", b""))
EXTENDED = archive(
    *(pax(mtime="1.5") + member(name, b"data") for name in ("a.jpg", "a.txt", "b.txt"))
)
PLAIN_PARTS = [Part(b"a.jpg", 512, 700), Part(b"a.txt", 2048, 4), Part(b"b.txt", 3072, 0)]
EXTENDED_PARTS = [Part(b"a.jpg", 1536, 4), Part(b"a.txt", 3584, 4), Part(b"b.txt", 5632, 4)]


def sidecar(data: bytes, parts: list[Part], **more: object) -> bytes:
    files = {part.name.decode(): {"offset": part.offset, "size": part.size} for part in parts}
    return json.dumps({"filesize": len(data), "files": files} | more).encode()


class FarStore(MemoryStore):
    """Counts the reads in archives."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files, "https://far.test")
        self.blobs: list[SlowBlob] = []

    def open(self, path: str, /) -> Blob:
        if not path.endswith(".tar"):
            return super().open(path)
        self.blobs.append(SlowBlob(self.files[path]))
        return self.blobs[-1]


def indexed(store: Store, path: str = "a.tar") -> list[Part] | None:
    return Indexes(store, 2).read(store.stat(path), store.open(path))


def test_an_index_that_fits() -> None:
    assert fitting(reversed(PLAIN_PARTS), Bytes(PLAIN), is_local=True) == PLAIN_PARTS
    assert fitting(EXTENDED_PARTS, Bytes(EXTENDED), is_local=False) == EXTENDED_PARTS
    assert fitting([], Bytes(archive()), is_local=True) == []
    assert fitting(PLAIN_PARTS[:1], Bytes(PLAIN[:1536]), is_local=True) == PLAIN_PARTS[:1]


def test_extended_headers_may_hide_members_of_a_local_archive() -> None:
    with pytest.raises(Corrupt):
        fitting(EXTENDED_PARTS, Bytes(EXTENDED), is_local=True)
    hidden = archive(member("z.x"), header("y.x", kind=b"2", link="z.x"), member("a.jpg", b"x"))
    with pytest.raises(Corrupt, match="another member lies before"):
        fitting([Part(b"a.jpg", 1536, 1)], Bytes(hidden), is_local=False)


@pytest.mark.parametrize(
    "parts",
    [
        PLAIN_PARTS[:-1],
        PLAIN_PARTS[1:],
        [PLAIN_PARTS[0], PLAIN_PARTS[2]],
        [*PLAIN_PARTS, Part(b"c.txt", 3584, 0)],
        [*PLAIN_PARTS[:2], Part(b"b.txt", 3072, 1 << 40)],
        [*PLAIN_PARTS[:2], Part(b"b.txt", 3072, -1)],
        [Part(b"other.jpg", 512, 700), *PLAIN_PARTS[1:]],
        [PLAIN_PARTS[0], Part(b"a.txt", 2048, 5), PLAIN_PARTS[2]],
        [Part(b"a.jpg", 512, 512), *PLAIN_PARTS[1:]],
        [Part(b"a.jpg", -512, 700), *PLAIN_PARTS[1:]],
        [],
    ],
)
def test_an_index_of_another_archive(parts: list[Part]) -> None:
    with pytest.raises(Corrupt):
        fitting(parts, Bytes(PLAIN), is_local=False)


def test_a_header_is_looked_at_when_its_member_is_read() -> None:
    data = archive(*(member(f"{n}.x", b"data") for n in range(5)))
    parts = [Part(b"%d.x" % n, 512 + 1024 * n, 4) for n in range(5)]
    parts[1] = Part(b"other.x", *parts[1][1:])
    assert fitting(parts, Bytes(data), is_local=True) == parts
    blob = SlowBlob(data)
    right, wrong = Checked(blob, parts[0]), Checked(blob, parts[1])
    assert (right.size(), blob.reads) == (4, [])
    assert bytes(right.read(1, 2)) == b"at"
    assert bytes(right.read(0, 9)) == b"data"
    assert blob.reads == [(0, 512), (513, 2), (512, 4)]
    with pytest.raises(Corrupt, match="the archive has not"):
        wrong.read(0, 1)


def test_long_names_stand_elsewhere() -> None:
    name = "n" * 150
    data = archive(pax(path=name) + member(name[:100], b"x"), pax(path="ä.x") + member("?.x", b"y"))
    parts = [Part(name.encode(), 1536, 1), Part("ä.x".encode(), 3584, 1)]
    assert fitting(parts, Bytes(data), is_local=False) == parts


# --- hfutils ---


def test_a_far_archive_with_a_sidecar_is_not_scanned() -> None:
    names = [f"{number:04d}.bin" for number in range(200)]
    data = archive(*(pax(mtime="1.5") + member(name, b"x" * 3000) for name in names))
    parts = [Part(name.encode(), 1536 + 4608 * at, 3000) for at, name in enumerate(names)]
    store = FarStore({"a.tar": data, "a.json": sidecar(data, parts)})
    shard = WebDataset.open(store, ["a.tar"], FakeServices()).open_shard(0)
    assert len(shard) == 200
    (field,) = shard.fields(77)
    assert (field.filename, field.data.size()) == ("0077.bin", 3000)
    assert sum(len(blob.reads) for blob in store.blobs) < 10
    assert bytes(read_all(field.data)) == b"x" * 3000


def test_a_sidecar_of_another_file_is_not_believed() -> None:
    wrong: list[dict[str, object]] = [
        {"filesize": 1},
        {"files": []},
        {"files": {"a.jpg": 3}},
        {"files": {"a.jpg": {"offset": "512", "size": 700}}},
    ]
    for more in wrong:
        store = MemoryStore({"a.tar": PLAIN, "a.json": sidecar(PLAIN, PLAIN_PARTS, **more)})
        assert indexed(store) is None
    assert indexed(MemoryStore({"a.tar": PLAIN, "a.json": b"{"})) is None
    assert indexed(MemoryStore({"a.tar": PLAIN, "a.json": b"[]"})) is None
    assert indexed(MemoryStore({"a.tar": PLAIN})) is None
    assert indexed(MemoryStore({"a.tar": PLAIN, "a.json/x": b""})) is None


def test_the_content_is_compared_where_the_source_tells_it() -> None:
    class HashedStore(MemoryStore):
        def stat(self, path: str, /) -> Any:
            entry = super().stat(path)
            return type(entry)(entry.path, entry.size, 0, "f" * 64, entry.is_dir)

    right = sidecar(PLAIN, PLAIN_PARTS, hash_lfs="f" * 64)
    wrong = sidecar(PLAIN, PLAIN_PARTS, hash_lfs="0" * 64)
    silent = sidecar(PLAIN, PLAIN_PARTS)
    assert indexed(HashedStore({"a.tar": PLAIN, "a.json": right})) == PLAIN_PARTS
    assert indexed(HashedStore({"a.tar": PLAIN, "a.json": wrong})) is None
    assert indexed(HashedStore({"a.tar": PLAIN, "a.json": silent})) == PLAIN_PARTS


def test_sidecars_of_hfutils_say_what_a_scan_finds() -> None:
    folder = DATA / "json-sidecar"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for index in range(3):
        shards = [
            WebDataset.open(store, sorted(store.files), FakeServices()).open_shard(index)
            for store in (MemoryStore(files), FarStore(files), FarStore({**files, "x": b""}))
        ]
        seen = [
            [(f.filename, bytes(read_all(f.data))) for n in range(len(s)) for f in s.fields(n)]
            for s in shards
        ]
        assert seen[0] == seen[1] == seen[2]


class Asked(FarStore):
    """Counts what is asked for beside archives."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.asked: list[str] = []

    def stat(self, path: str, /) -> Entry:
        self.asked.append(path)
        return super().stat(path)


def test_far_archives_without_a_sidecar_are_asked_for_one_once_a_folder() -> None:
    paths = ["a.tar", "b.tar", "deep/a.tar", "deep/b.tar"]
    store = Asked({**dict.fromkeys(paths, PLAIN), "deep/b.json": sidecar(PLAIN, PLAIN_PARTS)})
    indexes = Indexes(store, 4)
    assert not any(
        indexes.read(MemoryStore(store.files).stat(path), Bytes(PLAIN)) for path in paths
    )
    beside = [path for path in store.asked if path.endswith(".json") and "nv-meta" not in path]
    assert beside == ["a.json", "deep/a.json"]


def test_a_far_archive_alone_is_not_worth_the_index_of_all() -> None:
    for archives, asks in ((1, False), (2, True)):
        store = Asked({"a.tar": PLAIN})
        Indexes(store, archives).read(MemoryStore(store.files).stat("a.tar"), Bytes(PLAIN))
        assert (".nv-meta/.info.json" in store.asked) == asks


def test_local_archives_are_looked_at_one_by_one(tmp_path: Path) -> None:
    for name, content in (
        ("a.tar", PLAIN),
        ("b.tar", PLAIN),
        ("b.json", sidecar(PLAIN, PLAIN_PARTS)),
    ):
        (tmp_path / name).write_bytes(content)
    store = LocalStore(str(tmp_path))
    indexes = Indexes(store, 1)
    assert indexes.read(store.stat("a.tar"), store.open("a.tar")) is None
    assert indexes.read(store.stat("b.tar"), store.open("b.tar")) == PLAIN_PARTS


# --- Energon ---


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Energon's dataset with its archives beside the index."""
    shutil.copytree(DATA / "energon" / ".nv-meta", tmp_path / ".nv-meta")
    info = tmp_path / ".nv-meta" / ".info.json"
    info.write_text(info.read_text().replace("shards/", ""))
    for path in (DATA / "energon" / "shards").glob("*.tar"):
        shutil.copy(path, tmp_path)
    return tmp_path


def offsets(parts: list[Part] | None) -> list[tuple[str, int, int]]:
    return [(part.name.decode(), part.offset, part.size) for part in parts or ()]


def truth(shard: str) -> list[tuple[str, int, int]]:
    content = json.loads((DATA / "energon.truth.json").read_text())
    (found,) = [s for s in content["shards"] if s["name"].endswith(shard)]
    fields = [field for record in found["records"] for field in record["fields"]]
    return [(f["member"], f["data_offset"], f["stored_size"]) for f in fields]


@pytest.mark.parametrize("shard", ["shard_0000.tar", "shard_0003.tar"])
def test_energon_knows_where_members_lie(prepared: Path, shard: str) -> None:
    assert offsets(indexed(LocalStore(str(prepared)), shard)) == truth(shard)
    files = {
        path.relative_to(prepared).as_posix(): path.read_bytes()
        for path in prepared.rglob("*")
        if path.is_file()
    }
    assert offsets(indexed(MemoryStore(files), shard)) == truth(shard)


def test_a_shard_that_energon_does_not_list_is_scanned(prepared: Path) -> None:
    shutil.copy(prepared / "shard_0000.tar", prepared / "other.tar")
    assert indexed(LocalStore(str(prepared)), "other.tar") is None


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE sample_parts",
        "DELETE FROM sample_parts WHERE part_name = 'txt'",
        "UPDATE sample_parts SET content_byte_size = content_byte_size + 1000",
        "UPDATE sample_parts SET content_byte_offset = 'here'",
        "UPDATE samples SET sample_key = 'x' || sample_key",
    ],
)
def test_a_database_that_does_not_fit_is_not_believed(prepared: Path, change: str) -> None:
    with sqlite3.connect(prepared / ".nv-meta" / "index.sqlite") as connection:
        connection.execute(change)
    connection.close()
    assert indexed(LocalStore(str(prepared)), "shard_0000.tar") is None


def test_a_database_that_is_a_trap_is_left(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardfs.formats.webdataset.indexes._MAX_SECONDS", 0.05)
    with sqlite3.connect(prepared / ".nv-meta" / "index.sqlite") as connection:
        connection.execute("DROP TABLE samples")
        connection.execute(
            "CREATE VIEW samples AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
            " SELECT 0 AS tar_file_id, 'x' AS sample_key, -i AS sample_index FROM n WHERE i < 0"
        )
    connection.close()
    assert indexed(LocalStore(str(prepared)), "shard_0000.tar") is None


def test_what_is_no_database_is_not_believed(prepared: Path) -> None:
    (prepared / ".nv-meta" / "index.sqlite").write_bytes(b"no database" * 1000)
    assert indexed(LocalStore(str(prepared)), "shard_0000.tar") is None
