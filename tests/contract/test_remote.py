from __future__ import annotations

import shutil
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import fsspec
import pytest
from huggingface_hub import constants

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
from shardfs.sources.hub import open_source as open_hub
from shardfs.sources.zenodo import open_source as open_zenodo
from tests.contract.blobs import CONTENT, BlobContract
from tests.contract.stores import FILES, FolderStoreContract
from tests.fake_bucket import NAME as BUCKET
from tests.fake_bucket import FakeBucket
from tests.fake_hub import FakeHub
from tests.hub_repos import NAME as REPOSITORY
from tests.hub_repos import SOURCE, Repository, fresh
from tests.remote_fakes import RemoteBytes, means, open_in
from tests.web_server import WebServer
from tests.zenodo_server import SHAPES, ZenodoServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.blob import Blob
    from shardfs.stores import Store


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


@pytest.fixture(scope="module")
def hub_server() -> Iterator[FakeHub]:
    with FakeHub(".") as hub:
        yield hub


@pytest.fixture(params=[1000, 2], ids=["few pages", "many pages"])
def hub(
    request: pytest.FixtureRequest,
    hub_server: FakeHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> FakeHub:
    hub = fresh(hub_server, tmp_path, monkeypatch)
    hub.page_size = request.param
    Repository(tmp_path / "hub", {**FILES, **{f"up/{path}": FILES[path] for path in FILES}})
    return hub


class TestHubStore(FolderStoreContract):
    """In a folder, which is that of what is named in it."""

    @pytest.fixture
    def store(self, hub: FakeHub) -> Iterator[Store]:
        store, _ = open_hub(f"{SOURCE}/up/ten-bytes", Options())
        yield store
        store.close()


class TestCachedHubStore(FolderStoreContract):
    """All there is, as far as that is a few pages."""

    @pytest.fixture(params=[True, False], ids=["disk", "no disk"])
    def store(
        self, hub: FakeHub, tmp_path: Path, request: pytest.FixtureRequest
    ) -> Iterator[Store]:
        shutil.rmtree(tmp_path / "hub" / REPOSITORY / "up")
        room = Room(tmp_path / "cache", 1 << 20) if request.param else None
        store = cached(open_hub(SOURCE, Options())[0], Options(), Memory(1 << 20), room)
        yield store
        store.close()


class TestBucketStore(FolderStoreContract):
    """In the top folder, or another one."""

    @pytest.fixture(params=["", "/up/x", "cached"])
    def store(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Store]:
        folder = "up/" if request.param == "/up/x" else ""
        files = {f"{folder}{path}": content for path, content in FILES.items()}
        with FakeBucket(files, page_size=4) as bucket:
            monkeypatch.setattr(constants, "ENDPOINT", bucket.url)
            path = request.param.removeprefix("cached")
            store: Any = open_hub(f"hf://buckets/{BUCKET}{path}", Options())[0]
            if request.param == "cached":
                store = cached(store, Options(), Memory(1 << 20), None)
            yield store
            store.close()


@pytest.fixture(params=SHAPES)
def zenodo(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ZenodoServer]:
    files = {**FILES, **{f"up/{path}": FILES[path] for path in FILES}}
    with ZenodoServer(files, shape=request.param) as server:
        monkeypatch.setenv("SHARDFS_ZENODO_URL", server.url)
        monkeypatch.delenv("ZENODO_TOKEN", raising=False)
        yield server


class TestZenodoStore(FolderStoreContract):
    """In a folder, which is that of what is named in it."""

    @pytest.fixture
    def store(self, zenodo: ZenodoServer) -> Iterator[Store]:
        store, _ = open_zenodo("zenodo:123/up/ten-bytes", Options())
        yield store
        store.close()


class TestCachedZenodoStore(FolderStoreContract):
    @pytest.fixture(params=[True, False], ids=["disk", "no disk"])
    def store(
        self, zenodo: ZenodoServer, tmp_path: Path, request: pytest.FixtureRequest
    ) -> Iterator[Store]:
        zenodo.contents = dict(FILES)
        room = Room(tmp_path / "cache", 1 << 20) if request.param else None
        store = cached(open_zenodo("zenodo:123", Options())[0], Options(), Memory(1 << 20), room)
        yield store
        store.close()


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
        for module in ("blocks", "cached", "kept"):
            monkeypatch.setattr(f"shardfs.cache.{module}.BLOCK", 100)
        on_disk, memory = request.param
        disk = DiskCache(Room(tmp_path, 1 << 20), BLOCKS) if on_disk else None
        return open_in(Blobs(means(disk, memory=memory)), RemoteBytes(CONTENT), least=250)
