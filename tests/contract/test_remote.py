from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote

import fsspec
import pytest

from shardfs.cache.cached import Blobs
from shardfs.cache.disk import BLOCKS, DiskCache, Room
from shardfs.cache.memory import Memory
from shardfs.cache.remote import cached
from shardfs.names import to_bytes
from shardfs.options import Options
from shardfs.sources._ranges import RangeBlob
from shardfs.sources._web import Origin, Web
from shardfs.sources.fsspec_source import FsspecStore
from shardfs.sources.http import HttpStore
from tests.contract.blobs import CONTENT, BlobContract
from tests.contract.stores import FILES, FolderStoreContract
from tests.remote_fakes import RemoteBytes, means, open_in
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.model import Store


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({**FILES, "content": CONTENT}) as server:
        yield server


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web(Options())
    yield web
    web.close()


def http_store(server: WebServer, web: Web) -> HttpStore:
    files = {path: f"{server.url}/{quote(to_bytes(path))}" for path in FILES}
    return HttpStore(web, server.url, files, {})


@pytest.fixture
def bucket() -> Iterator[FsspecStore]:
    fs = fsspec.filesystem("memory", skip_instance_cache=True)
    fs.store, fs.pseudo_dirs = {}, [""]
    for path, content in FILES.items():
        fs.pipe_file(f"/bucket/up/{path}", content)
    fs.pipe_file("/bucket/secret", b"")
    store = FsspecStore(fs, "/bucket/up", Options())
    yield store
    store.close()


class TerseStoreContract(FolderStoreContract):
    """For stores whose listings leave out what costs a request for each file."""

    def test_entries_say_what_they_are(self, store: Store) -> None:
        for entry in store.list():
            assert entry.is_dir == (entry.path not in self.files)
            assert not entry.problem

    def test_an_entry_is_the_same_by_itself_as_in_a_listing(self, store: Store) -> None:
        for entry in store.list():
            stated = store.stat(entry.path)
            assert (stated.path, stated.is_dir) == (entry.path, entry.is_dir)
            assert stated.is_dir or stated.version or not stated.size
            assert not entry.version or stated == entry

    def test_paths_in_folders_begin_at_the_top(self, store: Store) -> None:
        assert [entry.path for entry in store.list("sub")] == ["sub/a", "sub/deep", "sub/z"]
        assert [entry.path for entry in store.list("sub/deep")] == ["sub/deep/b"]


class TestHttpStore(TerseStoreContract):
    @pytest.fixture
    def store(self, server: WebServer, web: Web) -> Store:
        return http_store(server, web)


class TestHttpStoreOfSomeFiles(TerseStoreContract):
    """The others can be asked for, but are not listed."""

    files = MappingProxyType({path: FILES[path] for path in ("B", "ten-bytes", "sub/a", "empty")})

    @pytest.fixture
    def store(self, server: WebServer, web: Web) -> Store:
        files = {path: f"{server.url}/{path}" for path in self.files}
        return HttpStore(web, server.url, files, {})

    def test_paths_in_folders_begin_at_the_top(self, store: Store) -> None:
        assert [entry.path for entry in store.list("sub")] == ["sub/a"]

    def test_a_folder_is_no_file(self, store: Store) -> None:
        assert store.stat("sub").is_dir


class TestCachedHttpStore(TerseStoreContract):
    @pytest.fixture(params=[True, False])
    def store(
        self, server: WebServer, web: Web, tmp_path: Path, request: pytest.FixtureRequest
    ) -> Store:
        room = Room(tmp_path, 1 << 20) if request.param else None
        return cached(http_store(server, web), Options(), Memory(1 << 20), room)


class TestFsspecStore(FolderStoreContract):
    @pytest.fixture
    def store(self, bucket: FsspecStore) -> Store:
        return bucket


class TestCachedFsspecStore(FolderStoreContract):
    @pytest.fixture
    def store(self, bucket: FsspecStore, tmp_path: Path) -> Store:
        return cached(bucket, Options(), Memory(1 << 20), Room(tmp_path, 1 << 20))


class TestRangeBlob(BlobContract):
    @pytest.fixture
    def blob(self, server: WebServer, web: Web) -> Blob:
        origin = Origin(url=f"{server.url}/content", name="the content")
        return RangeBlob(web, origin, len(CONTENT), server.validators(CONTENT)["ETag"])


class TestFsspecBlob(BlobContract):
    @pytest.fixture
    def blob(self, bucket: FsspecStore) -> Blob:
        bucket._fs.pipe_file("/bucket/up/content", CONTENT)
        return bucket.open("content")


class TestCachedBlob(BlobContract):
    @pytest.fixture(params=[(True, 1 << 20), (True, 1), (False, 1 << 20), (False, 1)])
    def blob(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Blob:
        for module in ("blocks", "cached"):
            monkeypatch.setattr(f"shardfs.cache.{module}.BLOCK", 100)
        on_disk, memory = request.param
        disk = DiskCache(Room(tmp_path, 1 << 20), BLOCKS) if on_disk else None
        return open_in(Blobs(means(disk, memory=memory)), RemoteBytes(CONTENT), least=250)
