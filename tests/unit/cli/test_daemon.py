"""Going to the background, without FUSE: programs that do it, seen from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import daemon

if TYPE_CHECKING:
    import signal

_BEGIN = """
import os, signal, sys, time
from shardfs.cli import daemon
from shardfs.errors import Unreadable
daemon.die_on_signals()
def background(work, patience=10.0):
    try:
        return daemon.background(work, patience=patience, log_descriptor=None)
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 9
"""


def program(rest: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + rest], capture_output=True, text=True, timeout=20
    )


def test_the_caller_goes_on_when_the_daemon_is_ready_and_keeps_its_descriptors(
    tmp_path: Path,
) -> None:
    # Were stdout or stderr still held, run() would wait for the daemon's end.
    began = time.monotonic()
    run = program(
        f"""
extra = os.open("/etc/passwd", os.O_RDONLY)
os.set_inheritable(extra, True)
def work(ready):
    print("before", file=sys.stderr, flush=True)
    ready()
    print("after", file=sys.stderr, flush=True)
    where = [os.readlink(f"/proc/self/fd/{{n}}") for n in (0, 1, 2)]
    more = [n for n in os.listdir("/proc/self/fd") if int(n) > 2]
    with open({str(tmp_path / "seen")!r}, "w") as seen:
        print(where, len(more), os.getcwd(), os.getsid(0) == os.getpid(), file=seen)
    time.sleep(3)
    return 0
sys.exit(background(work))
"""
    )
    assert time.monotonic() - began < 2.5
    assert (run.returncode, run.stderr) == (0, "before\n")
    for _ in range(100):
        if (tmp_path / "seen").exists() and (seen := (tmp_path / "seen").read_text()):
            break
        time.sleep(0.02)
    nothing = ["/dev/null"] * 3
    assert seen == f"{nothing} 1 / True\n"  # one: the folder that is being listed


def test_a_failure_comes_back_with_its_words_and_code() -> None:
    run = program(
        """
def work(ready):
    print("shardfs: no luck", file=sys.stderr)
    return 5
sys.exit(background(work))
"""
    )
    assert (run.returncode, run.stderr) == (5, "shardfs: no luck\n")


@pytest.mark.parametrize(
    ("death", "code", "words"),
    [("os.kill(os.getpid(), 11)", 128 + 11, "SIGSEGV"), ("os._exit(0)", 1, "before it was ready")],
)
def test_a_daemon_that_dies_unready(death: str, code: int, words: str) -> None:
    run = program(f"sys.exit(background(lambda ready: {death}))")
    assert run.returncode == code
    assert words in run.stderr


def test_a_daemon_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    run = program(
        f"""
def work(ready):
    with open({str(tmp_path / "pid")!r}, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)
sys.exit(background(work, patience=0.5))
"""
    )
    assert run.returncode == 9
    assert "not ready after 0.5 seconds" in run.stderr
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


@pytest.mark.parametrize("number", daemon.STOP_SIGNALS)
def test_a_signal_to_the_waiting_caller_ends_the_daemon_too(
    number: signal.Signals, tmp_path: Path
) -> None:
    text = f"""
def work(ready):
    with open({str(tmp_path / "new")!r}, "w") as file:
        file.write(str(os.getpid()))
    os.rename({str(tmp_path / "new")!r}, {str(tmp_path / "pid")!r})
    time.sleep(60)
sys.exit(background(work))
"""
    run = subprocess.Popen([sys.executable, "-c", _BEGIN + text], stderr=subprocess.PIPE)
    while not (tmp_path / "pid").exists():
        time.sleep(0.01)
    run.send_signal(number)
    _, error = run.communicate(timeout=10)
    assert run.returncode == 128 + number
    assert error == b""
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_signals_are_kept_for_those_who_can_handle_them() -> None:
    run = program(
        """
seen = []
with daemon.signals_kept() as send_again:
    for number in daemon.STOP_SIGNALS:
        os.kill(os.getpid(), number)
    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    send_again()
print(seen == [signal.SIGTERM], file=sys.stderr)
daemon.die_on_signals()
os.kill(os.getpid(), signal.SIGHUP)
"""
    )
    assert (run.returncode, run.stderr) == (-1, "True\n")


@pytest.mark.parametrize("address", ["{tmp}/notify", "@shardfs-test-{pid}"])
def test_the_service_manager_is_told(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address.format(tmp=tmp_path, pid=os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0"))
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        daemon.notify("READY=1")
        assert manager.recv(100) == b"READY=1"


def test_a_service_manager_that_is_gone_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    daemon.notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    daemon.notify("READY=1")
