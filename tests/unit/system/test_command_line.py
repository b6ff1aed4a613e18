from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

PROGRAM = """
import sys
from pathlib import Path
from shardfs.system.command_line import show_instead

show_instead(sys.argv[1], sys.argv[2])
print(sys.argv[1], Path("/proc/self/cmdline").read_bytes())
"""


@pytest.mark.parametrize(
    ("secret", "shown", "found"),
    [
        ("https://h/x?token=SECRET", "https://h/x", b"\0https://h/x\0" + bytes(13) + b"https://h/"),
        ("é?SECRET", "é", "\0é\0".encode() + bytes(7)),
        ("same", "same", b"\0same\0same\0"),
        ("short", "what is longer", b"\0short\0what"),
    ],
)
def test_an_argument_is_shown_as_another(secret: str, shown: str, found: bytes) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, secret, shown, "end"], capture_output=True, check=True
    )
    assert run.stdout.startswith(secret.encode())  # the program itself has it still
    assert repr(found)[2:-1].encode() in run.stdout
    assert run.stdout.endswith(b"end\\x00'\n")
    assert run.stdout.count(b"SECRET") == secret.count("SECRET")
