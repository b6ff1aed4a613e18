"""Media as real encoders make them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_SOURCES = {
    "sound": ["-f", "lavfi", "-i", "sine=frequency=440:duration=0.4"],
    "film": ["-f", "lavfi", "-i", "testsrc=size=176x144:rate=10:duration=0.3"],
}


class Encode(Protocol):
    def __call__(self, what: str, name: str, *arguments: str) -> bytes: ...


@pytest.fixture(scope="session")
def encode(tmp_path_factory: pytest.TempPathFactory) -> Encode:
    """ffmpeg: *what* (`sound`, `film`) as a file called *name*; skips where ffmpeg or the encoder is missing."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("needs ffmpeg")
    folder: Path = tmp_path_factory.mktemp("media")

    def run(what: str, name: str, *arguments: str) -> bytes:
        target = folder / name
        command = ["ffmpeg", "-v", "error", "-y", *_SOURCES[what], *arguments, str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and "encoder" in done.stderr.lower():
            pytest.skip(f"this ffmpeg can't encode {name}")
        assert done.returncode == 0, done.stderr
        return target.read_bytes()

    return run
