from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

import shardfs
from shardfs.blob import no_wait, read_all
from shardfs.cache.disk import Room
from shardfs.cache.memory import Memory
from shardfs.errors import Corrupt, NotFound, UsageError, WouldBlock
from shardfs.journal import Journal
from shardfs.mounting import Workshop, open_source, open_tree
from shardfs.options import Options
from shardfs.stores import Entry
from tests import DATA
from tests.fakes import MemoryStore, UnwatchedStore

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.model import Services

PLAIN = DATA / "litdata" / "plain_dict"


def test_the_python_side(tmp_path: Path) -> None:
    tree = shardfs.open(str(PLAIN), cache_dir=tmp_path).tree
    assert bytes((tree.root / "chunk-0-0/000000/caption.txt").read()).startswith(b"A red bicycle")
    flat = shardfs.open(str(PLAIN), layout="flat", disk_cache=False).tree
    assert bytes((flat.root / "chunk-0-0/000000.caption.txt").read()).startswith(b"A red bicycle")


def test_two_trees_are_apart() -> None:
    first, second = (shardfs.open(str(PLAIN), disk_cache=False).tree for _ in range(2))
    list((first.root / "chunk-0-0").children())
    first.close()
    assert (second.root / "chunk-0-0/000000/caption.txt").size > 0
    assert (first.root / "chunk-0-0/000000/caption.txt").size > 0, "it opens again"


@pytest.mark.parametrize(
    ("files", "source", "words"),
    [
        ({}, "none", "none: no such file or folder"),
        ({}, "", "no dataset found, the folder is empty"),
        ({".hidden": b""}, "", "no dataset found, the folder is empty"),
        ({"x.pdf": b"x"}, "x.pdf", "x.pdf: not a shard of a format that shardfs knows"),
    ],
)
def test_what_can_not_be_opened_is_refused_in_one_line(
    tmp_path: Path, files: dict[str, bytes], source: str, words: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises((NotFound, UsageError, Corrupt)) as caught:
        open_tree(str(tmp_path / source), Options(disk_cache=False))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_dataset_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"x")
    tree = open_tree(str(tmp_path), Options(disk_cache=False))
    assert [node.name for node in tree.root.children()] == ["notes.txt"]


def test_a_source_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="shardfs reads no gopher:// sources"):
        open_source("gopher://somewhere", Options())


def test_a_password_is_in_no_text_of_the_options() -> None:
    assert "secret" not in repr(Options(password="secret"))


# --- services ---


def workshop(folder: Path | None, **options: Any) -> Services:
    room = Room(folder, 1 << 20) if folder else None
    chosen = Options(disk_cache=folder is not None, cache_dir=folder, **options)
    return Workshop(chosen, Memory(1 << 20), room, Journal())


class Build:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bytes:
        self.count += 1
        return b"learned"


FILE = Entry("a/file", 10, 1, "v1")


class Single(MemoryStore):
    """A store of one file."""

    def __init__(self, entry: Entry) -> None:
        super().__init__({entry.path: b""})
        self._entry = entry

    def stat(self, path: str, /) -> Entry:
        return self._entry


def remember(services: Services, entry: Entry = FILE, what: str = "sizes 1") -> int:
    """How often something is built that is asked for, and asked for again."""
    build, store = Build(), Single(entry)
    for _ in range(2):
        assert bytes(read_all(services.remember(store, entry, what, build))) == b"learned"
    return build.count


def test_what_was_learned_of_a_file_is_known_to_the_next_mount(tmp_path: Path) -> None:
    assert remember(workshop(tmp_path)) == 1
    assert remember(workshop(tmp_path)) == 0


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        (Entry("a/file", 10, 1, "v2"), "sizes 1"),
        (Entry("b/file", 10, 1, "v1"), "sizes 1"),
        (FILE, "sizes 2"),
    ],
)
def test_what_was_learned_of_something_else_is_not_taken(
    tmp_path: Path, entry: Entry, what: str
) -> None:
    remember(workshop(tmp_path))
    assert remember(workshop(tmp_path), entry, what) == 1


def test_learning_needs_waiting_and_knowing_does_not_where_it_is_at_hand(tmp_path: Path) -> None:
    services, store = workshop(tmp_path), UnwatchedStore({})
    with no_wait(), pytest.raises(WouldBlock):
        services.remember(store, FILE, "sizes 1", lambda: b"learned")
    kept = services.remember(store, FILE, "sizes 1", lambda: b"learned")
    with contextlib.suppress(WouldBlock), no_wait():  # as far as the page cache has it
        assert services.remember(store, FILE, "sizes 1", lambda: b"").size() == kept.size()


def test_what_has_no_version_is_learned_each_time(tmp_path: Path) -> None:
    entry = Entry("a/file", 10, 1, "")
    assert remember(workshop(tmp_path), entry) == 2
    assert remember(workshop(tmp_path), entry) == 2


def test_without_a_disk_it_is_learned_by_each_mount() -> None:
    assert remember(workshop(None)) == 2


def test_on_demand_it_is_learned_anew(tmp_path: Path) -> None:
    remember(workshop(tmp_path))
    assert remember(workshop(tmp_path, rebuild_index=True)) >= 1


def test_chunks_are_inflated_within_the_limits() -> None:
    store = MemoryStore({"a": zstandard.compress(b"content")})
    services = workshop(None)
    assert bytes(read_all(services.inflate(store.open("a"), "zstd", 7))) == b"content"
    small = workshop(None, max_chunk_size=6)
    with pytest.raises(Corrupt, match="max-chunk-size"):
        small.inflate(store.open("a"), "zstd", 7).read(0, 1)


def test_a_whole_file_is_unpacked_once_for_all_who_read_it() -> None:
    store = MemoryStore({"a.zst": zstandard.compress(b"content" * 99)})
    services, entry = workshop(None), store.stat("a.zst")
    first = services.unpack(store, entry, "zstd")
    assert services.unpack(store, entry, "zstd") is first
    assert bytes(first.read(7, 7)) == b"content"
    assert first.size() == 7 * 99
