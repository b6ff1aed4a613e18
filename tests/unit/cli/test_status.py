"""Records of mounts: who may leave them, which are believed, what is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import status
from shardfs.system import mount_table
from shardfs.system.mount_table import Mount

if TYPE_CHECKING:
    from pathlib import Path

RECORD = status.Record(
    pid=os.getpid(),
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
    status.write(replace(RECORD, pid=os.getpid(), device="0:98"))  # about to be mounted, perhaps
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
    assert known["state"] == "running"
    assert known["pid"] == os.getpid()
    assert known["cache_bytes"] >= 8192
    assert unknown["mount_point"] == "/unknown"
    assert unknown["source"] == "hf://x"
    assert unknown["pid"] is unknown["state"] is None
    json.dumps([known, unknown])
    shown = status.show([known, unknown])
    assert f"daemon  {os.getpid()} (running)" in shown
    assert str(cache) in shown


def test_a_daemon_that_is_gone_is_called_dead(dead_pid: int) -> None:
    status.write(replace(RECORD, pid=dead_pid))
    assert [mount["state"] for mount in status.overview()] == ["dead", None]


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert not status.is_alive(child.pid)
        assert status.is_alive(os.getpid())
    finally:
        child.wait()
