"""A Hub in a process of its own, as far away as told, that says what it was asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = Path(__file__).parents[1] / "tests" / "fake_hub.py"

# Where clients keep things: in memory, if that can be. ext4 takes half a millisecond instead of 20 us to make a file
# where thousands have gone in the last minute, as they do here after each repeat: it does not use their inodes so soon.
_SHM = Path("/dev/shm")
_KEPT = _SHM if os.access(_SHM, os.W_OK) else None


@dataclass(frozen=True, slots=True)
class Distance:
    """How far away a server is.

    Attributes:
        latency: seconds before each answer.
        bandwidth: bytes a second of each connection.
    """

    latency: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Trips:
    """What was asked: so many requests, of which at most *in_a_row* can have waited for one another."""

    requests: int
    in_a_row: int


@dataclass(frozen=True, slots=True)
class Hub:
    """A server, by its URL."""

    url: str
    distance: Distance

    @contextmanager
    def client(self) -> Iterator[dict[str, str]]:
        """What to add to the environment of a client that has never been here: it keeps things for itself alone."""
        with tempfile.TemporaryDirectory(dir=_KEPT) as home:
            yield {
                "HF_ENDPOINT": self.url,
                "HF_HOME": home,
                "XDG_CACHE_HOME": home,
                "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            }

    def forget(self) -> None:
        """Count requests from here."""
        self._call("reset", b"")

    def trips(self) -> Trips:
        """The requests since the last ``forget``."""
        log = json.loads(self._call("log", None))
        # One that began less than the latency after another can't have waited for its answer.
        count, last = 0, -self.distance.latency
        for began in sorted(entry["t"] for entry in log):
            if began - last >= self.distance.latency:
                count, last = count + 1, began
        return Trips(len(log), count)

    def _call(self, what: str, body: bytes | None) -> bytes:
        with urllib.request.urlopen(f"{self.url}/_fake/{what}", body) as answer:
            content: bytes = answer.read()
            return content


@contextmanager
def serving(root: Path, distance: Distance) -> Iterator[Hub]:
    """The repositories in *root*, ``owner/name/``, on a Hub at a *distance*."""
    # All that is asked takes its time, not the files only.
    told = {"latency": distance.latency, "bandwidth": distance.bandwidth, "only": ".*"}
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, str(_PROGRAM), str(root), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            if program.stdout is None:
                raise RuntimeError("a Hub without a pipe")
            hub = Hub(json.loads(program.stdout.readline())["url"], distance)
            for path in sorted(root.glob("*/*/")):
                # It looks at every byte of a repository when it is first asked for it.
                name = f"{path.parent.name}/{path.name}"
                urllib.request.urlopen(f"{hub.url}/api/datasets/{name}").close()
            yield hub
        finally:
            program.terminate()
