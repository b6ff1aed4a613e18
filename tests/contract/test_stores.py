from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import OutsideSource
from shardfs.sources.local import LocalStore
from shardfs.sources.zip import ZipStore
from shardfs.tree.archives import WithArchives
from shardfs.tree.discover import Selection, SubStore
from tests.contract.stores import FILES, FolderStoreContract, StoreContract
from tests.fakes import FakeServices, MemoryStore
from tests.zip_files import DEFLATED, METHODS, UTF8, Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shardfs.stores import Store


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def zipped(method: int) -> bytes:
    items = [
        Item(name=path.encode(), data=data, method=method, flags=UTF8)
        for path, data in FILES.items()
    ]
    return make_zip(items)


class TestMemoryStore(FolderStoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore({**FILES})


class TestLocalStore(FolderStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        (tmp_path / "secret").write_bytes(b"")
        return LocalStore(str(write(tmp_path / "source", FILES)))

    @pytest.mark.parametrize("path", ["../secret", "sub/../../secret", "/etc/passwd"])
    def test_a_way_out_is_named_as_such(self, store: Store, path: str) -> None:
        with pytest.raises(OutsideSource, match="leads outside"):
            store.open(path)


class TestLocalStoreThatFollowsLinks(FolderStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(str(write(tmp_path / "source", FILES)), follow_links=True)


class TestSubStore(FolderStoreContract):
    @pytest.fixture
    def store(self) -> Store:
        above = MemoryStore({f"up/here/{path}": data for path, data in FILES.items()} | {"x": b""})
        return SubStore(SubStore(above, "up"), "here")


class TestSubStoreOfAFolder(FolderStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        write(tmp_path / "up", FILES)
        (tmp_path / "secret").write_bytes(b"")
        return SubStore(LocalStore(str(tmp_path)), "up")


class TestZipStore(FolderStoreContract):
    @pytest.fixture(params=METHODS)
    def store(self, request: pytest.FixtureRequest) -> Store:
        above = MemoryStore({"in/x.zip": zipped(request.param)})
        return ZipStore(above, above.stat("in/x.zip"), FakeServices())


class TestWithArchives(FolderStoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return WithArchives(MemoryStore({**FILES}), FakeServices())


class TestArchiveInAnArchive(FolderStoreContract):
    @pytest.fixture
    def store(self) -> Store:
        outer = make_zip([Item(name=b"in/x.zip", data=zipped(DEFLATED), method=DEFLATED)])
        store = WithArchives(MemoryStore({"up/o.ZIP": outer}), FakeServices())
        return SubStore(store, "up/o.ZIP/in/x.zip")


class TestSelection(StoreContract):
    """What was named is listed; other files may still be read."""

    files = MappingProxyType({path: FILES[path] for path in ("B", "empty", "ten-bytes", "é")})

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return Selection(LocalStore(str(write(tmp_path, FILES))), list(self.files))

    def test_files_beside_the_named_ones_can_be_read(self, store: Store) -> None:
        assert bytes(store.open("sub/a").read(0, 9)) == b"a"
