"""What holds for every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

import pytest

from shardfs.blob import read_all
from shardfs.errors import IsAFolder, NotAFolder, NotFound, OutsideSource
from shardfs.names import to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardfs.stores import Store

FILES = {
    "B": b"",
    "a b\n": b"odd name",
    "empty": b"",
    "sub.txt": b"sorts before the folder's files, behind the folder",
    "sub/a": b"a",
    "sub/deep/b": b"b",
    "sub/z": b"z",
    "ten-bytes": b"0123456789",
    "é": b"not ASCII",
}


class StoreContract:
    """A subclass gives a store of ``FILES``, or of some of them."""

    files: ClassVar[Mapping[str, bytes]] = FILES

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_a_listing_names_what_lies_directly_in_a_folder(self, store: Store) -> None:
        top = sorted({path.partition("/")[0] for path in self.files}, key=to_bytes)
        assert [entry.path for entry in store.list()] == top
        assert [entry.name for entry in store.list()] == top

    def test_entries_say_what_they_are(self, store: Store) -> None:
        for entry in store.list():
            assert entry.is_dir == (entry.path not in self.files)
            assert entry.size == (0 if entry.is_dir else len(self.files[entry.path]))
            assert not entry.problem
            assert entry.is_dir or entry.version

    def test_an_entry_is_the_same_by_itself_as_in_a_listing(self, store: Store) -> None:
        for entry in store.list():
            assert store.stat(entry.path) == entry

    def test_the_top_is_a_folder(self, store: Store) -> None:
        assert store.stat("").is_dir

    def test_all_files_can_be_read(self, store: Store) -> None:
        for path, content in self.files.items():
            blob = store.open(path)
            assert store.stat(path).size == blob.size() == len(content)
            assert bytes(read_all(blob)) == content

    def test_reading_past_the_end_is_short_not_an_error(self, store: Store) -> None:
        blob = store.open("ten-bytes")
        assert bytes(blob.read(8, 100)) == b"89"
        assert bytes(blob.read(100, 100)) == b""

    def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        for path in ("none", "ten-bytes2", "none/ten-bytes"):
            for use in (store.stat, store.open, store.list):
                with pytest.raises(NotFound):
                    use(path)

    def test_a_file_is_no_folder(self, store: Store) -> None:
        with pytest.raises((NotAFolder, NotFound)):
            store.list("ten-bytes")
        for use in (store.stat, store.open):
            with pytest.raises((NotAFolder, NotFound)):
                use("ten-bytes/x")

    @pytest.mark.parametrize("path", ["../secret", "sub/../../secret", "/etc/passwd", "a\0b"])
    def test_no_path_leads_out(self, store: Store, path: str) -> None:
        for use in (store.stat, store.open, store.list):
            with pytest.raises((OutsideSource, NotFound)):
                use(path)

    def test_its_place_has_a_name(self, store: Store) -> None:
        assert "://" in store.url
        assert not store.url.endswith("/") or store.url.endswith("://")

    def test_many_threads_use_it(self, store: Store) -> None:
        def use(number: int) -> int:
            return len(store.list()) + len(read_all(store.open("ten-bytes")))

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(use, range(64)))) == 1


class FolderStoreContract(StoreContract):
    """For stores that have folders."""

    def test_paths_in_folders_begin_at_the_top(self, store: Store) -> None:
        assert [(entry.path, entry.name) for entry in store.list("sub")] == [
            ("sub/a", "a"),
            ("sub/deep", "deep"),
            ("sub/z", "z"),
        ]
        assert [entry.path for entry in store.list("sub/deep")] == ["sub/deep/b"]
        for entry in store.list("sub"):
            assert store.stat(entry.path) == entry

    def test_a_folder_is_no_file(self, store: Store) -> None:
        for path in ("sub", "sub/deep"):
            assert store.stat(path).is_dir
            with pytest.raises(IsAFolder):
                store.open(path)
