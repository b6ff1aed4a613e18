"""A record of Zenodo as people mount it."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.zenodo_server import ZenodoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mount.conftest import Runner

PICTURE = random.Random(1).randbytes(300_000)


@pytest.fixture
def server() -> Iterator[ZenodoServer]:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(50):
            made.writestr(f"p/{number:02d}.bin", PICTURE + bytes([number]))
    with ZenodoServer({"d.zip": file.getvalue(), "README.txt": b"read me", "a/b.txt": b"b"}) as web:
        yield web


def test_a_record_by_its_number(shardfs: Runner, server: ZenodoServer) -> None:
    shardfs.env["SHARDFS_ZENODO_URL"] = server.url
    run = shardfs("mount", "zenodo:123", shardfs.place)
    assert (run.returncode, run.stderr) == (0, "")
    place = shardfs.place
    subprocess.run(["ls", "-lR", place / "a", place / "README.txt"], check=True)
    assert sorted(os.listdir(place)) == ["README.txt", "a", "d"]
    assert {entry.stat().st_mtime_ns for entry in os.scandir(place)} == {1_706_933_106 * 10**9}
    assert [request.path for request in server.requests] == ["/api/records/123"]
    assert (place / "d/p/07.bin").read_bytes() == PICTURE + bytes([7])
    server.settle()
    assert len(server.requests) <= 3
    assert (place / "README.txt").read_bytes() == b"read me"
    info = json.loads((place / ".shardfs/info.json").read_text())
    assert (info["source"], info["revision"]) == (f"{server.url}/records/123", "123.4")
    assert shardfs("umount", place).returncode == 0
    server.forget()
    for path, content in (("d/p/07.bin", PICTURE + bytes([7])), ("README.txt", b"read me")):
        shown = subprocess.run(
            shardfs.command("cat", "--offline", "10.5281/zenodo.123", path),
            capture_output=True,
            env=shardfs.env,
        )
        assert (shown.stdout, shown.stderr) == (content, b"")
    assert not server.requests


@pytest.mark.parametrize("in_foreground", [False, True])
def test_tokens_are_shown_nowhere(
    shardfs: Runner, server: ZenodoServer, in_foreground: bool
) -> None:
    shardfs.env.update({"SHARDFS_ZENODO_URL": server.url, "ZENODO_TOKEN": "SECRET1"})
    server.access, server.password = "restricted", "Bearer SECRET1"
    source, log = "https://zenodo.org/records/123?token=SECRET2", shardfs.folder / "log"
    arguments = ("mount", source, shardfs.place, "-vv", "--log-file", log)
    process = None
    if in_foreground:
        process = shardfs.start(*arguments, "-f")
        assert shardfs.wait_until(lambda: (shardfs.place / "d").is_dir())
    else:
        assert shardfs(*arguments).returncode == 0
    assert {request.query for request in server.requests} == {"token=SECRET2"}
    (pid,) = shardfs.daemons(shardfs.place)
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"https://zenodo.org/records/123\0" in words
    server.fail(status=403)
    with pytest.raises(PermissionError) as caught:
        (shardfs.place / "README.txt").read_bytes()
    assert caught.value.errno == errno.EACCES
    told = [words, log.read_bytes(), shardfs("status", "--json").stdout.encode()]
    names = ("info.json", "stats.json", "errors.jsonl")
    told += [(shardfs.place / ".shardfs" / name).read_bytes() for name in names]
    assert b"its files are restricted; the token in ZENODO_TOKEN has no access" in told[-1]
    told += [line.encode() for line in shardfs.mounts(shardfs.place)]
    assert shardfs("umount", shardfs.place).returncode == 0
    if process is not None:
        _, text = process.communicate(timeout=10)
        told.append(text.encode())
    failed = shardfs("mount", source, shardfs.place)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert not any(b"SECRET" in text for text in [*told, failed.stderr.encode()])


def test_a_restricted_record_is_refused_in_one_line(shardfs: Runner, server: ZenodoServer) -> None:
    shardfs.env["SHARDFS_ZENODO_URL"] = server.url
    server.access = "restricted"
    run = shardfs("mount", "zenodo:123", shardfs.place)
    assert run.returncode == 1
    assert run.stderr == (
        f"shardfs: {server.url}/records/123: its files are restricted; "
        "put a token that has access into ZENODO_TOKEN\n"
    )
    assert not shardfs.mounts(shardfs.place)


def test_it_can_be_mounted_over_the_folder_that_one_is_in(
    shardfs: Runner, server: ZenodoServer
) -> None:
    shardfs.env["SHARDFS_ZENODO_URL"] = server.url
    process = subprocess.Popen(
        shardfs.command("mount", "-f", "zenodo:123", "."), cwd=shardfs.place, env=shardfs.env
    )
    assert shardfs.wait_until(lambda: (shardfs.place / "d").is_dir())
    assert shardfs("umount", shardfs.place).returncode == 0
    assert process.wait(10) == 0
