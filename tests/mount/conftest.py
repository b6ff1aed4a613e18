"""Real mounts by the real command, cleared away whatever happens to the test."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and skip them where nothing can be mounted."""
    lack = _lack()
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.mount)
            if lack:
                item.add_marker(pytest.mark.skip(reason=lack))


def _lack() -> str:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened: {error.strerror}"
    return ""


@dataclass(frozen=True)
class Runner:
    """Runs shardfs on folders of the test's own."""

    folder: Path
    source: Path
    place: Path
    env: dict[str, str]
    scripts: Path = Path(sysconfig.get_path("scripts"))

    @staticmethod
    def mounts(place: Path) -> list[str]:
        """The lines of the mount table for *place*."""
        text = str(place).replace(" ", "\\040")
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [line for line in lines if line.split()[4] == text]

    @staticmethod
    def daemons(place: Path) -> list[int]:
        """The processes that have *place* among their arguments."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                arguments = (folder / "cmdline").read_bytes().split(b"\0")
                if os.fsencode(place) in arguments:
                    found.append(int(folder.name))
        return found

    @staticmethod
    def wait_until(condition: Callable[[], object], seconds: float = 5.0) -> bool:
        """Whether *condition* came true in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def command(self, *arguments: object, program: str = "shardfs") -> list[str]:
        return [str(self.scripts / program), *map(str, arguments)]

    def __call__(
        self,
        *arguments: object,
        program: str = "shardfs",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end, with what it prints."""
        return subprocess.run(
            self.command(*arguments, program=program),
            capture_output=True,
            text=True,
            timeout=30,
            cwd=cwd,
            env={**self.env, **(env or {})},
        )

    def place_source(self, folder: Path) -> None:
        """Have *folder* as the source."""
        shutil.rmtree(self.source, ignore_errors=True)
        self.source.symlink_to(folder)

    def mount(self, *options: object) -> int:
        """Mount in the background; the daemon's number."""
        run = self("mount", self.source, self.place, *options)
        assert (run.returncode, run.stderr) == (0, "")
        (pid,) = self.daemons(self.place)
        return pid

    @staticmethod
    def memory(pid: int) -> float:
        """Megabytes that a process holds now."""
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    @staticmethod
    def work(pid: int) -> float:
        """Seconds that a process has computed."""
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def status(self, place: Path) -> list[dict[str, Any]]:
        """What `shardfs status` says of the mounts on *place*."""
        every = json.loads(self("status", "--json").stdout)
        return [mount for mount in every if mount["mount_point"] == str(place)]

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start it and do not wait."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
        )


@pytest.fixture
def shardfs(tmp_path: Path) -> Iterator[Runner]:
    """For one test, with a small dataset."""
    runner = _runner(tmp_path.resolve())
    shutil.copytree(DATA / "litdata" / "plain_dict", runner.source)
    yield runner
    _clear(runner.folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """For the tests of a module, which put a dataset there."""
    runner = _runner(tmp_path_factory.mktemp("shared").resolve())
    yield runner
    _clear(runner.folder)


def _runner(folder: Path) -> Runner:
    source, place = folder / "source", folder / "mnt"
    place.mkdir()
    (folder / "run").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
    }
    return Runner(folder, source, place, env)


def _clear(folder: Path) -> None:
    """End all daemons and mounts below *folder*."""
    table = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    below = [place for place in table if place.startswith(f"{folder}/")]
    for place in below:
        for pid in Runner.daemons(Path(place.replace("\\040", " "))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
    detach = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
    for place in reversed(below):
        subprocess.run([*detach, place.replace("\\040", " ")], check=False, capture_output=True)
