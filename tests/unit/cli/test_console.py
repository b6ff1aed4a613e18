"""One-line messages, exit codes, the log."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NoReturn

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


# --- the log of daemons ------------------------------------------------------------------------------------


def kept(state: Path, *lines: str, **options: Any) -> str:
    """What a daemon's log has after these messages."""

    def work(messages: console.Log) -> int:
        messages.configure(console.LogOptions(**options))
        messages.keep()
        for line in lines:
            console.log.info("%s", line)
        return 0

    console.run(work)
    file = state / "shardfs" / "shardfs.log"
    return file.read_text() if file.exists() else ""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_daemons_keep_a_log(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(state, "one")
    assert [line.split("INFO ")[1] for line in kept(state, "two").splitlines()] == ["one", "two"]
    assert capsys.readouterr().err == "", "stderr is as talkative as the user wants it"
    assert (state / "shardfs").stat().st_mode & 0o777 == 0o700


def test_a_log_file_takes_the_place_of_the_log(state: Path, tmp_path: Path) -> None:
    assert kept(state, "one", log_file=tmp_path / "log", verbose=1) == ""
    assert "one" in (tmp_path / "log").read_text()


def test_the_log_stays_small(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_MAX_LOG", 1000)
    for number in range(100):
        kept(state, f"line {number:03d} " + "x" * 50)
    files = sorted((state / "shardfs").iterdir())
    assert [file.name for file in files] == ["shardfs.log", "shardfs.log.1"]
    assert all(0 < file.stat().st_size < 1300 for file in files)
    assert "line 099" in files[0].read_text()


def test_a_daemon_goes_on_in_a_log_that_another_has_begun(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(messages: console.Log) -> int:
        messages.configure(console.LogOptions())
        messages.keep()
        file = state / "shardfs" / "shardfs.log"
        file.rename(f"{file}.1")
        file.write_text("of another\n")
        console.log.info("after")
        return 0

    console.run(work)
    assert "after" in kept(state)


def test_a_log_that_can_not_be_written_is_told_and_no_failure(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.write_text("a file")
    assert kept(state, "one") == ""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"shardfs: no log is kept: {state}/shardfs/shardfs.log: ")
