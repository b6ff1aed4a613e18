from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import OutsideSource
from shardfs.sources.local import LocalStore
from shardfs.tree.discover import Selection, SubStore
from tests.contract.stores import FILES, FolderStoreContract, StoreContract
from tests.fakes import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shardfs.model import Store


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


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


class TestSelection(StoreContract):
    """What was named is listed; other files may still be read."""

    files = MappingProxyType({path: FILES[path] for path in ("B", "empty", "ten-bytes", "é")})

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return Selection(LocalStore(str(write(tmp_path, FILES))), list(self.files))

    def test_files_beside_the_named_ones_can_be_read(self, store: Store) -> None:
        assert bytes(store.open("sub/a").read(0, 9)) == b"a"
