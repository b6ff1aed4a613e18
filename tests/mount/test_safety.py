"""What is hostile or wrong harms nobody."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests import DATA
from tests.litdata_files import chunk, entry, index, mapping, record, spec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mount.conftest import Runner


class Bait:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = str(marker)

    def __reduce__(self) -> tuple[object, ...]:
        return open, (self._marker, "w")


def test_nothing_is_ever_unpickled(shardfs: Runner) -> None:
    marker = shardfs.folder / "marker"
    bait = pickle.dumps(Bait(marker))
    array = io.BytesIO()
    np.save(array, np.array([Bait(marker)], dtype=object), allow_pickle=True)
    stored = {"a.pyd": bait, "a.pickle": bait, "a.npy": array.getvalue(), "a.pth": bait}

    source = shardfs.folder / "baits"
    source.mkdir()
    with tarfile.open(source / "baits.tar", "w") as tar:
        for name, content in stored.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    (source / "litdata").mkdir()
    content = chunk(record(bait, array.getvalue()))
    (source / "litdata" / "c.bin").write_bytes(content)
    kinds = {"data_format": ["pickle", "bytes"], "data_spec": spec(mapping("a", "b"))}
    listed = index(entry("c.bin", 1, len(content)), **kinds)
    (source / "litdata" / "index.json").write_bytes(listed)

    shardfs.place_source(source)
    shardfs.mount()
    subprocess.run(["grep", "-r", "marker", shardfs.place], capture_output=True, check=True)
    shown = {path.name: path.read_bytes() for path in shardfs.place.rglob("*") if path.is_file()}
    for name, stored_bytes in stored.items():
        assert shown[name] == stored_bytes
    assert shown["a.pkl"] == bait
    assert shown["b.npy"] == array.getvalue()
    assert not marker.exists()
    pickle.loads(bait).close()
    assert marker.exists(), "the bait works"


# Runs shardfs with a fault in it: reading the file `bad.txt` raises an exception that nobody thought of.
FAULTY = """
import sys
from shardfs.cli.main import main
from shardfs.tree.shards import ShardSpace

def attr(self, number, shard, record, field, plain=ShardSpace._attr):
    if record == 1:
        raise ValueError("nobody thought of this")
    return plain(self, number, shard, record, field)

ShardSpace._attr = attr
sys.exit(main(sys.argv[1:]))
"""


def test_a_fault_of_our_own_is_an_error_there_and_nowhere_else(shardfs: Runner) -> None:
    log = shardfs.folder / "log"
    arguments = ["mount", shardfs.source, shardfs.place, "-f", "--log-file", log]
    daemon = subprocess.Popen([sys.executable, "-c", FAULTY, *map(str, arguments)], env=shardfs.env)
    try:
        assert shardfs.wait_until(lambda: shardfs.mounts(shardfs.place), 10)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                os.listdir(shardfs.place / "chunk-0-0/000001")
        assert (shardfs.place / "chunk-0-0/000000/caption.txt").read_bytes()
        assert (shardfs.place / "chunk-0-0/000002/caption.txt").read_bytes()
        lines = (shardfs.place / ".shardfs/errors.jsonl").read_text().splitlines()
        messages = [json.loads(line)["message"] for line in lines]
        assert any("ValueError: nobody thought of this" in message for message in messages)
        assert "please report" in log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(10) == 0


def test_a_source_that_changes_under_a_mount_is_an_error_and_no_mix(shardfs: Runner) -> None:
    shardfs.mount()
    caption = shardfs.place / "chunk-0-0/000000/caption.txt"
    words = caption.read_bytes()
    for name in ("chunk-0-1.bin", "index.json"):
        with (shardfs.source / name).open("ab") as file:
            file.write(b" ")
    with pytest.raises(OSError, match="Stale file handle"):
        os.listdir(shardfs.place / "chunk-0-1")
    with pytest.raises(OSError, match="Stale file handle"):
        (shardfs.place / "index.json").read_bytes()
    assert caption.read_bytes() == words
    assert (
        "has changed since it was mounted" in (shardfs.place / ".shardfs/errors.jsonl").read_text()
    )


def test_a_file_that_is_cut_while_it_is_open_is_an_error_and_no_short_read(shardfs: Runner) -> None:
    shutil.rmtree(shardfs.source)
    shutil.copytree(DATA / "litdata" / "audio_tuple", shardfs.source)
    shardfs.mount()
    first, *_, last = sorted((shardfs.place / "chunk-0-0").glob("*/0.wav"))
    chunk = shardfs.source / "chunk-0-0.bin"
    with last.open("rb", buffering=0) as file:
        os.truncate(chunk, chunk.stat().st_size // 4)
        with pytest.raises(OSError, match="Input/output error"):
            file.read()
    with pytest.raises(OSError, match="Stale file handle"):
        first.read_bytes()
