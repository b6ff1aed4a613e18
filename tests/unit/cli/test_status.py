"""Records of mounts: who may leave them, which are believed, what is shown."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import answers, status
from shardfs.system import mount_table, process
from shardfs.system.mount_table import Mount

if TYPE_CHECKING:
    from pathlib import Path

RECORD = status.Record(
    pid=os.getpid(),
    birth=process.birth(os.getpid()),
    device="0:51",
    source="/data",
    mount_point="/mnt",
    since=1e9,
    cache_dir=None,
    made=True,
)
MOUNTED = [
    Mount("/mnt", "0:51", "fuse.shardfs", "shardfs:/data"),
    Mount("/sys", "0:20", "sysfs", "sysfs"),
    Mount("/unknown", "0:52", "fuse.shardfs", "shardfs:hf://x"),
]


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(mount_table, "read", lambda: MOUNTED)
    return tmp_path / "shardfs"


@pytest.fixture
def dead_pid() -> int:
    """The number of a process that was."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    return ended.pid


def test_what_is_written_is_found(runtime: Path) -> None:
    status.write(RECORD)
    assert status.records() == {"0:51": RECORD}
    assert runtime.stat().st_mode & 0o777 == 0o700
    status.remove(RECORD)
    assert status.records() == {}


def test_a_runtime_folder_of_somebody_else_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert status.folder() == tmp_path / f"shardfs-{os.getuid() + 1}"


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_a_folder_that_others_can_enter_is_not_trusted(
    mode: int, runtime: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status.write(RECORD)
    runtime.chmod(mode)
    assert status.records() == {}
    status.write(replace(RECORD, pid=1))
    assert "not this user's own" in caplog.text
    assert not (runtime / "1.json").exists()


def test_a_link_in_place_of_the_folder_is_not_followed(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    runtime.symlink_to("elsewhere")
    status.write(RECORD)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_records_of_mounts_that_are_gone_are_cleared_away(runtime: Path, dead_pid: int) -> None:
    status.write(replace(RECORD, pid=dead_pid, device="0:99"))
    status.write(replace(RECORD, device="0:98"))  # about to be mounted, perhaps
    assert status.records() == {}
    assert [file.name for file in runtime.iterdir()] == [f"{os.getpid()}.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1, "surprise": 2}'])
def test_nonsense_is_no_record(text: str, runtime: Path) -> None:
    status.write(RECORD)
    (runtime / "7.json").write_text(text)
    assert status.records() == {"0:51": RECORD}


def test_the_overview_has_all_our_mounts_and_only_those(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "a").mkdir(parents=True)
    (cache / "a" / "block").write_bytes(os.urandom(8192))
    status.write(replace(RECORD, cache_dir=str(cache)))
    known, unknown = status.overview()
    assert known["mount_point"] == "/mnt"
    assert known["source"] == "/data"
    assert known["state"] == "silent", "nobody answers"
    assert known["pid"] == os.getpid()
    assert known["cache_bytes"] >= 8192
    assert unknown["mount_point"] == "/unknown"
    assert unknown["source"] == "hf://x"
    assert unknown["pid"] is unknown["state"] is None
    json.dumps([known, unknown])
    shown = status.show([known, unknown])
    assert f"daemon  {os.getpid()} (does not answer), up " in shown
    assert str(cache) in shown


def test_a_daemon_that_is_gone_is_called_dead(dead_pid: int) -> None:
    status.write(replace(RECORD, pid=dead_pid))
    assert [mount["state"] for mount in status.overview()] == ["dead", None]


def test_an_earlier_mount_of_the_same_number_is_not_taken_for_this_one(
    runtime: Path, dead_pid: int
) -> None:
    old = replace(RECORD, pid=dead_pid, birth="another boot 1")
    status.write(old)
    status.write(RECORD)
    assert [file.name for file in runtime.iterdir()] == [f"{os.getpid()}.json"]
    for late in ("0", "9" * 9):  # in whichever order the folder lists them
        (runtime / f"{late}.json").write_text(json.dumps(asdict(old)))
    assert status.records() == {"0:51": RECORD}


def test_a_process_that_has_the_number_of_a_dead_daemon_is_not_that_daemon() -> None:
    status.write(replace(RECORD, birth="another boot 1"))
    assert [mount["state"] for mount in status.overview()] == ["dead", None]


def test_what_a_daemon_answers_is_shown(runtime: Path) -> None:
    last = {"time": "2026-01-01T00:00:00.000Z", "error": "Corrupt", "message": "a.tar: cut\x1b[2J"}
    facts = {
        "requests": 1234,
        "bytes_read": 4096,
        "memory": {"bytes": 7},
        "faults": {"count": 2, "last": last},
    }
    status.write(replace(RECORD, since=time.time() - 3700, log="/log"))
    with answers.given(status.socket_of(os.getpid()), lambda: facts):
        known, _ = status.overview()
    assert not status.socket_of(os.getpid()).exists()
    assert known["state"] == "running"
    assert (known["requests"], known["bytes_read"], known["memory_bytes"]) == (1234, 4096, 7)
    assert known["faults"] == {"count": 2, "last": last}
    assert known["uptime"] == pytest.approx(3700, abs=60)
    assert datetime.fromisoformat(known["since"].replace("Z", "+00:00")).year >= 2026
    shown = status.show([known])
    assert "up 1 h 1 min" in shown
    assert "1,234 requests, 4 KiB" in shown
    assert "2, the last: a.tar: cut\\x1b[2J" in shown
    assert "log     /log" in shown


def test_a_stopped_daemon_is_not_waited_for(runtime: Path) -> None:
    status.write(RECORD)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(status.socket_of(os.getpid())))
        listener.listen()
        began = time.monotonic()
        assert [mount["state"] for mount in status.overview()] == ["silent", None]
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("answer", [b"", b"{", b"[1]", b"\xff"])
def test_nonsense_is_no_answer(runtime: Path, answer: bytes) -> None:
    status.write(RECORD)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(status.socket_of(os.getpid())))
        listener.listen()

        def speak() -> None:
            speaker, _ = listener.accept()
            with speaker:
                speaker.sendall(answer)

        speaking = threading.Thread(target=speak)
        speaking.start()
        assert status.ask(RECORD) is None
        speaking.join()


def test_a_place_with_a_long_name_can_be_asked(tmp_path: Path) -> None:
    place = tmp_path / ("long" * 40)
    place.mkdir()
    with answers.given(place / "socket", lambda: {"requests": 1}):
        assert answers.asked(place / "socket") == {"requests": 1}


def test_a_mount_goes_on_where_it_can_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with answers.given(tmp_path / "none" / "socket", dict):
        pass
    assert "no answers for `shardfs status`" in caplog.text


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert process.birth(child.pid) == ""
        assert process.birth(os.getpid()) == RECORD.birth != ""
    finally:
        child.wait()
