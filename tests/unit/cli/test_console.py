"""One-line messages, exit codes, the log."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

from shardfs.cli import console
from shardfs.errors import Corrupt, ShardfsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def outcome(error: BaseException, options: console.LogOptions | None = None) -> int:
    def work(messages: console.Log) -> NoReturn:
        messages.configure(options or console.LogOptions())
        raise error

    return console.run(work)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ShardfsError("no luck"), 1, "shardfs: no luck\n"),
        (Corrupt("two\nlines \x1b[31mred"), 1, "shardfs: two\\nlines \\x1b[31mred\n"),
        (UsageError("not so"), 2, "shardfs: not so\n"),
        (FileNotFoundError(2, "No such file", "/x"), 1, "shardfs: /x: No such file\n"),
        (OSError(28, "No space left"), 1, "shardfs: No space left\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(error) == code
    assert capsys.readouterr().err == line


def test_debugging_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    outcome(ShardfsError("no luck"), console.LogOptions(debug=True))
    assert "Traceback" in capsys.readouterr().err


def test_the_log_file_gets_what_stderr_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "folder" / "log"
    for _ in range(2):
        outcome(ShardfsError("no luck"), console.LogOptions(log_file=file))
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    assert all(line.endswith("ERROR no luck") for line in lines)
    assert capsys.readouterr().err == "shardfs: no luck\n" * 2


def test_quiet_hides_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    def work(messages: console.Log) -> int:
        messages.configure(console.LogOptions(quiet=True))
        console.log.warning("a hint")
        console.log.error("a failure")
        return 0

    assert console.run(work) == 0
    assert capsys.readouterr().err == "shardfs: a failure\n"


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_whoever_wants_only_the_first_line_gets_it(asked: str) -> None:
    program = [sys.executable, "-c", f"from shardfs.cli.main import main; exit(main(['{asked}']))"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == console.BY_SIGNAL + signal.SIGPIPE


def test_a_bug_is_one_line_too() -> None:
    program = "from shardfs.cli import console; console.run(lambda messages: 1 // 0)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("shardfs: internal error: ZeroDivisionError")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ü", "plain ü"), ("a\x1b]0;b", "a\\x1b]0;b"), ("\udcff\n", "\\udcff\\n"), ("", "")],
)
def test_nothing_steers_the_terminal(text: str, shown: str) -> None:
    assert console.printable(text) == shown
