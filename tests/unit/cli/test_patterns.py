from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from shardfs.cli.main import main
from tests import DATA

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = str(DATA / "litdata" / "plain_dict")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def tree(folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("chunk-0-1/00000[01]", ["chunk-0-1/000000", "chunk-0-1/000001"]),
        ("chunk-0-?/000003/label.*", ["chunk-0-0/000003/label.txt", "chunk-0-1/000003/label.txt"]),
        ("**/000004/*.jpg", ["chunk-0-0/000004/image.jpg", "chunk-0-1/000004/image.jpg"]),
        ("**/chunk-0-1/000000/label.txt", ["chunk-0-1/000000/label.txt"]),
        ("chunk-0-1/000002/**", [f"chunk-0-1/000002/{name}" for name in ("image.jpg", "label.txt", "caption.txt")]),
        ("*.json", ["index.json"]),
    ],
)  # fmt: skip
def test_patterns_are_paths(
    pattern: str, found: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ls", PLAIN, pattern]) == 0
    assert capsys.readouterr().out.splitlines() == found


@pytest.mark.parametrize("command", ["ls", "cat"])
def test_a_pattern_that_matches_nothing_is_told(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, PLAIN, "chunk-9*"]) != 0
    assert "chunk-9*: nothing there matches" in capsys.readouterr().err


def test_several_paths(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["cat", PLAIN, "chunk-0-0/00000[01]/label.txt", "chunk-0-1/000000/label.txt"]) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 3


def test_cp_takes_patterns_and_lets_no_file_be_lost(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cp", PLAIN, "chunk-0-0/00000[01]", str(out)]) == 0
    assert len(tree(out)) == 6
    assert main(["cp", PLAIN, "*/000003/label.txt", str(out)]) == 1
    assert (
        "label.txt: a second file would go there; --from-list keeps folders"
        in capsys.readouterr().err
    )
    assert main(["cp", PLAIN, "*/000003/label.txt", str(out / "new")]) == 2


@pytest.mark.parametrize("way", ["file", "-"])
def test_cp_from_a_list_keeps_folders(
    way: str,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = b"chunk-0-0/000001\nchunk-0-1/000001/label.txt\nchunk-0-0/000001\n\nno/such\n"
    (tmp_path / "list").write_bytes(lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    name = "-" if way == "-" else str(tmp_path / "list")
    assert main(["cp", "--from-list", name, PLAIN, str(out)]) == 1
    assert tree(out) == [
        *(f"chunk-0-0/000001/{file}" for file in ("caption.txt", "image.jpg", "label.txt")),
        "chunk-0-1/000001/label.txt",
    ]
    assert capsys.readouterr().err.count("no such file or folder") == 1


def test_nothing_is_copied_through_a_link(out: Path, tmp_path: Path) -> None:
    (out / "chunk-0-0").symlink_to(tmp_path)
    (tmp_path / "list").write_text("chunk-0-0/000001/label.txt\n")
    assert main(["cp", "--from-list", str(tmp_path / "list"), PLAIN, str(out)]) == 1
    assert not (tmp_path / "000001").exists()


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"], ["--jobs", "2"]])
def test_all_records_as_json_lines(
    jobs: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["cat", PLAIN, "--jsonl", "--columns", "label,caption", *jobs]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert len(rows) == 14
    assert list(rows[0]["fields"]) == ["label", "caption"]
    assert [row["index"] for row in rows] == [*range(9), *range(5)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cat", PLAIN], "which PATH?"),
        (["cat", PLAIN, "x", "--jsonl"], "name no PATH"),
        (["cp", PLAIN, "/tmp"], "which PATH?"),
        (["cp", "--from-list", "/no/such", PLAIN, "/tmp"], "/no/such: No such file"),
        (["cp", "--from-list", "-", PLAIN, "x", "/tmp"], "name no PATH"),
    ],
)
def test_wrong_use_is_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
