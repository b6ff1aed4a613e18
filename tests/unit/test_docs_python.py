"""The examples of docs/python.md, each run as a program of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import DATA

PROJECT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (PROJECT / "docs" / "python.md").read_text(), re.DOTALL
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    (tmp_path / "my_litdata").symlink_to(DATA / "litdata" / "plain_dict")
    (tmp_path / "example.py").write_text(EXAMPLES[number])
    if "torch" in EXAMPLES[number] and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    paths = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 7
