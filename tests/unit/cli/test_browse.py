"""``ls``, ``cat``, ``cp`` and ``info`` on a small LitData dataset: the tree without FUSE."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shardfs.cli.main import main
from shardfs.errors import Corrupt
from shardfs.tree.paths import Node
from tests import DATA

SOURCE = DATA / "litdata" / "plain_dict"
FIELDS = ["image.jpg", "label.txt", "caption.txt"]
CAPTION = b"A red bicycle leaning against a brick wall"


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The dataset, to be damaged."""
    return Path(shutil.copytree(SOURCE, tmp_path / "source"))


def shardfs(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_ls(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert shardfs("ls", SOURCE) == 0
    assert capfdbinary.readouterr().out == b"chunk-0-0\nchunk-0-1\nindex.json\n"
    assert shardfs("ls", SOURCE, "chunk-0-0/000000/") == 0
    assert capfdbinary.readouterr().out.decode().split() == FIELDS
    assert shardfs("ls", SOURCE, "chunk-0-0/000000/image.jpg") == 0
    assert capfdbinary.readouterr().out == b"image.jpg\n"


def test_ls_long(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert shardfs("ls", "-l", SOURCE, "chunk-0-0/000000") == 0
    first = capfdbinary.readouterr().out.decode().splitlines()[0].split()
    assert (first[0], first[1], first[-1]) == ("-r--r--r--", "780", "image.jpg")
    assert shardfs("ls", "-l", SOURCE) == 0
    assert capfdbinary.readouterr().out.startswith(b"dr-xr-xr-x ")


def test_names_that_are_no_text_pass_as_they_are(
    source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    Path(os.fsdecode(os.fsencode(source) + b"/odd\xff\x1b.md")).touch()
    assert shardfs("ls", source) == 0
    assert b"odd\xff\x1b.md\n" in capfdbinary.readouterr().out


def test_cat(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    paths = ["chunk-0-0/000000/caption.txt", "/chunk-0-0/000000/caption.txt"]
    assert shardfs("cat", SOURCE, *paths) == 0
    assert capfdbinary.readouterr().out == CAPTION * 2


def test_a_record_by_its_index_in_the_dataset(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert shardfs("cat", SOURCE, ".shardfs/by-index/0/caption.txt") == 0
    assert capfdbinary.readouterr().out == CAPTION
    assert shardfs("ls", SOURCE, ".shardfs/by-index/0") == 0
    assert capfdbinary.readouterr().out.decode().split() == FIELDS


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["cat", SOURCE, "chunk-0-0"], "chunk-0-0 is a folder"),
        (["cat", SOURCE, "nope"], "nope: no such file"),
        (["ls", SOURCE, "chunk-0-0/999999"], "999999"),
        (["ls", SOURCE, "index.json/x"], "index.json"),
        (["ls", "/nowhere/at/all"], "/nowhere/at/all"),
        (["cp", SOURCE, "nope", "/tmp"], "nope: no such file"),
        (["cp", SOURCE, "chunk-0-0", "chunk-0-1", "/nowhere"], "/nowhere is not a folder"),
    ],
)
def test_failures_are_one_line(
    line: list[object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shardfs(*line) in (1, 2)
    captured = capsys.readouterr()
    assert captured.err.startswith("shardfs: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_a_reader_that_has_enough_is_no_failure_to_tell() -> None:
    program = "import sys; from shardfs.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-c",
        program,
        "cat",
        str(SOURCE),
        *["chunk-0-0/000000/image.jpg"] * 500,
    ]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stdout.read(4) == b"\xff\xd8\xff\xe0"
    reader.stdout.close()
    assert reader.stderr is not None
    assert reader.stderr.read() == b""
    reader.stderr.close()
    assert reader.wait(10) == 128 + 13


# --- cp ----------------------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_cp_a_file(tmp_path: Path) -> None:
    target = tmp_path / "new.txt"
    assert shardfs("cp", SOURCE, "chunk-0-0/000000/caption.txt", target) == 0
    assert target.read_bytes() == CAPTION
    assert target.stat().st_mtime_ns == (SOURCE / "chunk-0-0.bin").stat().st_mtime_ns
    target.write_text("another")
    assert shardfs("cp", SOURCE, "chunk-0-0/000000/caption.txt", target) == 0
    assert target.read_bytes() == CAPTION


def test_cp_a_folder(tmp_path: Path) -> None:
    assert shardfs("cp", "-r", SOURCE, "chunk-0-0/000000", tmp_path / "new") == 0
    assert names(tmp_path / "new") == sorted(FIELDS)
    assert shardfs("cp", SOURCE, "chunk-0-0/000000", "chunk-0-0/000001/", tmp_path) == 0
    assert names(tmp_path / "000000") == names(tmp_path / "000001") == sorted(FIELDS)
    shard = SOURCE / "chunk-0-0.bin"
    assert (tmp_path / "000000").stat().st_mtime_ns == shard.stat().st_mtime_ns


@pytest.mark.parametrize("path", [".", "/", ""])
def test_cp_all_of_it(path: str, tmp_path: Path) -> None:
    assert shardfs("cp", SOURCE, path, tmp_path) == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "chunk-0-0",
        "chunk-0-1",
        "index.json",
    ]
    assert (tmp_path / "chunk-0-0/000000/caption.txt").read_bytes() == CAPTION
    assert len(names(tmp_path)) == 3 + 14 + 14 * 3


def test_cp_a_record_by_its_index(tmp_path: Path) -> None:
    assert shardfs("cp", SOURCE, ".shardfs/by-index/9", tmp_path) == 0
    assert names(tmp_path / "9") == sorted(FIELDS)


def test_cp_writes_through_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("precious")
    (target / "000000").mkdir(parents=True)
    (target / "000000" / "caption.txt").symlink_to(outside / "file")
    (target / "000001").symlink_to(outside / "folder")
    assert shardfs("cp", SOURCE, "chunk-0-0/.", target) == 1
    assert "000001 is a symbolic link" in capsys.readouterr().err
    assert (outside / "file").read_text() == "precious"
    assert names(outside) == ["file", "folder"]
    assert (target / "000000" / "caption.txt").read_bytes() == CAPTION
    assert not (target / "000000" / "caption.txt").is_symlink()
    assert names(target / "000002") == sorted(FIELDS)
    assert shardfs("cp", SOURCE, "chunk-0-0/000001", target) == 1
    assert names(outside) == ["file", "folder"]


def test_cp_goes_on_after_damage_and_leaves_no_half_files(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunk = source / "chunk-0-0.bin"
    with chunk.open("r+b") as file:
        file.truncate(chunk.stat().st_size // 2)
    target = tmp_path / "target"
    assert shardfs("cp", source, ".", target) == 1
    assert "shardfs: " in capsys.readouterr().err
    whole = tmp_path / "whole"
    assert shardfs("cp", SOURCE, ".", whole) == 0
    copied = [path for path in target.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert copied
    for path in copied:
        assert path.read_bytes() == (whole / path.relative_to(target)).read_bytes()
    assert names(target / "chunk-0-1") == names(whole / "chunk-0-1")
    assert (target / "chunk-0-0" / "000000" / "caption.txt").read_bytes() == CAPTION


def test_cp_leaves_nothing_of_a_file_that_fails_midway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(node: Node, offset: int = 0, length: int | None = None) -> memoryview:
        raise Corrupt("torn")

    monkeypatch.setattr(Node, "read", fail)
    assert shardfs("cp", SOURCE, "chunk-0-0/000000", tmp_path / "new") == 1
    assert capsys.readouterr().err == "shardfs: torn\n" * 3
    assert names(tmp_path / "new") == []


# --- what is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["ls"], ["cat"], ["cp"], ["ls", "-l"]])
def test_each_fault_is_told_once(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = DATA / "litdata" / "damaged" / "zstd_flipped"
    more = [tmp_path / "copy"] if command == ["cp"] else []
    path = "chunk-0-1/000000" + ("/image.jpg" if command == ["cat"] else "")
    assert shardfs(*command, source, path, *more) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) == 1
    assert "chunk-0-1" in lines[0]


def test_a_fault_is_told_to_the_quiet_too(capfd: pytest.CaptureFixture[str]) -> None:
    source = DATA / "litdata" / "damaged" / "zstd_flipped"
    assert shardfs("ls", "-q", source, "chunk-0-1/000000") == 1
    assert len(capfd.readouterr().err.splitlines()) == 1
