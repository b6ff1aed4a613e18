from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

from shardfs.blob import no_wait, read_all
from shardfs.cache.kept import BLOCK
from shardfs.errors import (
    AccessDenied,
    MissingPackage,
    NotFound,
    ShardfsError,
    Unreadable,
    UsageError,
    WouldBlock,
)
from shardfs.mounting import open_tree
from shardfs.options import Options
from shardfs.sources.fsspec_source import FsspecStore, open_source
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fsspec import AbstractFileSystem

TAR = archive(member("a.txt", b"first"), member("b.txt", b"second"))
FILES = {
    "set/x-00.tar": TAR,
    "set/x-01.tar": TAR,
    "set/y.tar": TAR,
    "set/deep/z.tar": TAR,
    "set/notes.txt": b"notes",
}


@pytest.fixture
def fs() -> Iterator[AbstractFileSystem]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    for path, content in FILES.items():
        fs.pipe_file(f"/{path}", content)
    yield fs
    fs.store.clear()


@pytest.mark.parametrize(
    ("source", "url", "names"),
    [
        ("memory://set", "memory:///set", []),
        ("memory://set/", "memory:///set", []),
        ("memory://set/deep", "memory:///set/deep", []),
        ("memory://set/y.tar", "memory:///set", ["y.tar"]),
        ("memory://set/x-{00..01}.tar", "memory:///set", ["x-00.tar", "x-01.tar"]),
        ("memory://set/x-*.tar", "memory:///set", ["x-00.tar", "x-01.tar"]),
        ("memory://set/[xy]*", "memory:///set", ["x-00.tar", "x-01.tar", "y.tar"]),
    ],
)
def test_sources(fs: AbstractFileSystem, source: str, url: str, names: list[str]) -> None:
    store, found = open_source(source, Options())
    assert (store.url, found) == (url, names)


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("memory://none", NotFound, "memory:///none: no such file or folder"),
        ("memory://set/*.zip", NotFound, "no such file or folder"),
        ("memory://{set,other}/x.tar", UsageError, "names files in several folders"),
        ("gopher://host/x", UsageError, "shardfs reads no gopher:// sources"),
        ("gopher://me:secret@host/x", UsageError, "gopher://host/x: shardfs"),
    ],
)
def test_sources_that_are_none(
    fs: AbstractFileSystem, source: str, kind: type[ShardfsError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        open_source(source, Options())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("source", "module", "cure"),
    [
        ("s3://bucket/x.tar", "s3fs", "shardfs[s3]"),
        ("gs://bucket/x.tar", "gcsfs", "shardfs[gs]"),
        ("sftp://host/x.tar", "paramiko", "shardfs[sftp]"),
        ("az://box/x.tar", "adlfs", "shardfs[az]"),
    ],
)
def test_a_driver_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, source: str, module: str, cure: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    # fsspec keeps what other tests have loaded.
    loaded = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(loaded, source.partition("://")[0], raising=False)
    with pytest.raises(MissingPackage) as caught:
        open_source(source, Options())
    assert f"pip install '{cure}'" in str(caught.value)


def mounted(source: str, cache: Path, **options: Any) -> Any:
    return closing(open_tree(source, Options(cache_dir=cache, **options)))


def test_a_folder_is_mounted(fs: AbstractFileSystem, tmp_path: Path) -> None:
    with mounted("memory://set", tmp_path) as tree:
        names = [node.name for node in tree.root.children()]
        assert names == ["x-00", "x-01", "y", "deep", "notes.txt"]
        assert bytes((tree.root / "deep/z/b/b.txt").read()) == b"second"
        assert bytes((tree.root / "notes.txt").read()) == b"notes"
        assert next(tree.root.children()).mtime_ns > 0


@pytest.mark.parametrize("source", ["memory://set/x-*.tar", "memory://set/x-{00..01}.tar"])
def test_what_was_read_is_kept(fs: AbstractFileSystem, tmp_path: Path, source: str) -> None:
    with mounted(source, tmp_path) as tree:
        assert bytes((tree.root / "x-00/b/b.txt").read()) == b"second"
        list((tree.root / "x-00").children())

    def fail(*_: object, **__: object) -> bytes:
        raise AssertionError("read again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fs), "cat_file", fail)
        with mounted(source, tmp_path) as tree:
            assert bytes((tree.root / "x-00/b/b.txt").read()) == b"second"
    with mounted("memory://set/x-00.tar", tmp_path, offline=True) as tree:
        assert bytes((tree.root / "x-00/b/b.txt").read()) == b"second"


def test_a_changed_file_is_an_error(fs: AbstractFileSystem, tmp_path: Path) -> None:
    large = archive(member("a.txt", b"first"), member("b.txt", bytes(20 * BLOCK)))
    fs.pipe_file("/set/y.tar", large)
    with mounted("memory://set/y.tar", tmp_path) as tree:
        node = tree.root / "y/b/b.txt"
        fs.pipe_file("/set/y.tar", large[:-1] + b"x")
        with pytest.raises(Unreadable, match="has changed since it was mounted"):
            node.read(15 * BLOCK, 10)


class Failing:
    """A file system of which every call fails."""

    async_impl = False

    def __init__(self, error: Exception) -> None:
        self._error = error

    def unstrip_protocol(self, path: str) -> str:
        return f"box://me:secret@host/{path}"

    def __getattr__(self, name: str) -> Any:
        def fail(*_: object, **__: object) -> None:
            raise self._error

        return fail


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError("x"), NotFound, "no such file or folder"),
        (PermissionError("Forbidden"), AccessDenied, "access denied: Forbidden"),
        (TimeoutError(), Unreadable, "TimeoutError"),
        (RuntimeError("no luck\nat all"), Unreadable, "no luck at all"),
        (OSError("GET https://u:secret@h/x?sig=secret failed"), Unreadable, "https://h/x failed"),
    ],
)
def test_failures_of_drivers_are_named(
    error: Exception, kind: type[ShardfsError], words: str
) -> None:
    store = FsspecStore(Failing(error), "path", Options())
    for use in (store.list, lambda: store.stat("x")):
        with pytest.raises(kind) as caught:
            use()
        assert words in str(caught.value)
        assert "box://host/path" in str(caught.value)
        assert "secret" not in str(caught.value)


class Odd(Failing):
    """Answers as given."""

    def __init__(self, listed: dict[str, Any], alone: dict[str, Any]) -> None:
        super().__init__(AssertionError())
        self.listed, self.alone, self.content = listed, alone, b"0123456789"

    def ls(self, path: str, detail: bool) -> list[dict[str, Any]]:
        return [{"name": "path/f", "type": "file", "size": 10, **self.listed}]

    def info(self, path: str) -> dict[str, Any]:
        return {"name": "path/f", "type": "file", "size": 10, **self.alone}

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        return self.content[start:end]


@pytest.mark.parametrize(
    ("said", "version", "second"),
    [
        ({"ETag": '"abc"', "mtime": 5}, 'ETag:"abc"', 5),
        ({"generation": "7", "updated": "2020-01-01T00:00:00.500Z"}, "generation:7", 1577836800),
        ({"mtime": 5.25}, "mtime:138eca480-a", 5),
        ({"updated": "some day"}, "", 0),
        ({}, "", 0),
    ],
)
def test_versions_and_times(said: dict[str, Any], version: str, second: int) -> None:
    (entry,) = FsspecStore(Odd(said, said), "path", Options()).list()
    assert (entry.version, entry.mtime_ns) == (version, second * 10**9)


def test_a_driver_that_says_more_of_a_file_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = Odd({"mtime": 5}, {"mtime": 5, "ETag": "one"})
    store = FsspecStore(fs, "path", Options())
    (entry,) = store.list()
    blob = store.blob(entry)
    assert bytes(read_all(blob)) == b"0123456789"
    fs.alone["ETag"] = "two"
    with pytest.raises(Unreadable, match="has changed"):
        blob.read(0, 5)


def test_a_driver_that_gives_too_little() -> None:
    fs = Odd({"mtime": 5}, {"mtime": 5})
    blob = FsspecStore(fs, "path", Options()).open("f")
    fs.content = b"0123"
    assert bytes(blob.read(0, 4)) == b"0123"
    with pytest.raises(Unreadable, match="has changed"):
        blob.read(0, 5)


def test_nothing_is_asked_without_waiting_or_when_closed() -> None:
    store = FsspecStore(Odd({}, {}), "path", Options())
    blob = store.open("f")
    uses = (store.list, lambda: store.stat("f"), lambda: blob.read(0, 1))
    with no_wait():
        for use in uses:
            with pytest.raises(WouldBlock):
                use()
    store.close()
    for use in uses:
        with pytest.raises(Unreadable, match="closed"):
            use()
