"""`shardfs grep` beside `grep -r` over what `shardfs cp` wrote, and its own options."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from shardfs.cli.main import main
from tests import DATA
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = str(DATA / "litdata" / "plain_dict")
SOURCES = [
    "litdata/plain_dict",
    "mds/all_encodings",
    "webdataset/json-sidecar",
    "webdataset/nested-dir-keys",
    "huggingface/parquet_nested",
    "huggingface/jsonl_plain",
    "huggingface/csv_quotes",
]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def found(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, list[bytes]]:
    code = main(["grep", *words])
    return code, capfdbinary.readouterr().out.splitlines()


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("pattern", ["fox", "[0-9]", "^-", "a.*b", '"'])
def test_it_finds_what_grep_finds_in_the_files(
    name: str, pattern: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["cp", str(DATA / name), ".", str(tmp_path / "out")]) == 0
    grep = subprocess.run(
        ["grep", "-rE", pattern, ".", "--include=*.txt", "--include=*.json", "--include=*.cls"],
        cwd=tmp_path / "out",
        capture_output=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    theirs = sorted(line.removeprefix(b"./") for line in grep.stdout.splitlines())
    code, ours = found(capfdbinary, pattern, str(DATA / name))
    # Files that are no part of a record pass through, which is grep's own business.
    assert sorted(ours) == [line for line in theirs if b"/" in line.partition(b":")[0]]
    assert code == (0 if ours else 1)


def test_options(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert found(capfdbinary, "RED BICYCLE", PLAIN) == (1, [])
    code, lines = found(capfdbinary, "-i", "RED BICYCLE", PLAIN)
    assert (code, lines[0][:34]) == (0, b"chunk-0-0/000000/caption.txt:A red")
    assert found(capfdbinary, "-il", "red bicycle", PLAIN)[1] == [
        line.partition(b"/caption.txt:")[0] for line in lines
    ]
    assert found(capfdbinary, "-ic", "red bicycle", PLAIN)[1] == [b"chunk-0-0:1", b"chunk-0-1:1"]
    assert found(capfdbinary, "-c", "nothing like it", PLAIN) == (
        1,
        [b"chunk-0-0:0", b"chunk-0-1:0"],
    )
    assert found(capfdbinary, "-F", "r.d", PLAIN) == (1, [])
    assert found(capfdbinary, "--field", "label", "red", PLAIN) == (1, [])
    assert found(capfdbinary, "--field", "label", "^-3$", PLAIN)[0] == 0
    assert found(capfdbinary, "-i", "--jobs", "2", "RED BICYCLE", PLAIN) == (code, lines)


def test_records_go_on_to_cp(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    _, records = found(capfdbinary, "-l", "bicycle", PLAIN)
    (tmp_path / "list").write_bytes(b"\n".join(records))
    assert main(["cp", "--from-list", str(tmp_path / "list"), PLAIN, str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / records[0].decode() / "image.jpg").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["(", PLAIN],
            "'(' is no regular expression, from its character 1 on (-F takes it as it is)",
        ),
        (
            ["x", PLAIN, "--field", "captoin"],
            "has no field captoin; there are image, label, caption",
        ),
        (["x", "/no/such"], "no such file or folder"),
    ],
)
def test_wrong_use(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grep", *words]) != 0
    assert message in capsys.readouterr().err


def test_damage_is_told_and_hides_no_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = archive(member("a.txt", b"one fox"), member("b.txt", b"two foxes" * 2000))
    (tmp_path / "x.tar").write_bytes(whole[:2500])
    assert main(["grep", "fox", str(tmp_path / "x.tar")]) == 2
    told = capsys.readouterr()
    assert told.out == "x/a/a.txt:one fox\n"
    assert "b.txt" in told.err
