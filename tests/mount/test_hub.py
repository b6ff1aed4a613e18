"""Repositories on the Hub, mounted for real: faults on the way, stalls, tokens, a full disk, no network."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from huggingface_hub import snapshot_download

from shardfs.cache.kept import BLOCK
from shardfs.cache.sums import seal_size
from tests.corpus.test_requests import litdata, parquet, pictures, webdataset
from tests.fake_hub import FakeHub, Faults
from tests.hub_repos import NAME, SOURCE, TOKEN, Repository, data, fresh
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mount.conftest import Runner

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a tmpfs")

COUNT = 3
CONTROL = ("info.json", "stats.json", "errors.jsonl")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeHub]:
    with FakeHub(".") as hub:
        yield hub


@pytest.fixture
def hub(server: FakeHub, shardfs: Runner, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    shardfs.env.update(HF_ENDPOINT=server.url, HF_HOME=str(shardfs.folder / "hf"))
    fresh(server, shardfs.folder, monkeypatch)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(shardfs.folder / "hf/hub"))
    return server


def mount(shardfs: Runner, source: str = SOURCE, *options: object) -> int:
    """Mount in the background; the daemon's number."""
    run = shardfs("mount", source, shardfs.place, "--no-splits", *options)
    assert (run.returncode, run.stderr) == (0, "")
    (pid,) = shardfs.daemons(shardfs.place)
    return pid


def errors(shardfs: Runner) -> list[str]:
    lines = (shardfs.place / ".shardfs/errors.jsonl").read_text().splitlines()
    return [json.loads(line)["message"] for line in lines]


def is_gone(shardfs: Runner, pid: int) -> bool:
    """Whether neither the mount nor the daemon is there any more."""
    try:
        is_dead = b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        is_dead = True
    return is_dead and not shardfs.mounts(shardfs.place)


def outcome(read: Callable[[], bytes]) -> bytes | int:
    """What is read, or the number of the error."""
    try:
        return read()
    except OSError as error:
        return error.errno or 0


# --- what goes wrong on the way ---


def shards(number: int) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Three shards, and the pictures in them by where they are shown."""
    images = pictures(200_000 + number, COUNT)
    files = {f"set/{name}": content for name, content in litdata(images).items()}
    files["t.tar"], files["p.parquet"] = webdataset(images)["x.tar"], parquet(images)["x.parquet"]
    shown = {}
    for n, image in enumerate(images):
        shown[f"set/x/{n:06d}/image.jpg"] = shown[f"p/{n:06d}/image.jpg"] = image
        shown[f"t/{n:06d}/{n:06d}.jpg"] = image
    return files, shown


class Album:
    """The same shards with other pictures in each of the folders *names* of a repository."""

    def __init__(self, root: Path, names: list[str]) -> None:
        made = {name: shards(number) for number, name in enumerate(names)}
        files = {f"{n}/{p}": data for n, (files, _) in made.items() for p, data in files.items()}
        self.repository = Repository(root, files)
        self.shown = {name: shown for name, (_, shown) in made.items()}

    def look(self, place: Path, name: str) -> dict[str, bytes | int]:
        """What reading the pictures of a folder comes to where that is wrong: bytes, or the number of the error."""
        shown = self.shown[name]
        with ThreadPoolExecutor(4) as pool:
            got = pool.map(lambda path: outcome((place / name / path).read_bytes), shown)
            return {
                path: found
                for (path, wanted), found in zip(shown.items(), got, strict=True)
                if found != wanted
            }

    def failed(self, name: str) -> dict[str, int]:
        """What ``look`` gives where nothing can be read."""
        return dict.fromkeys(self.shown[name], errno.EIO)


PASSING: dict[str, dict[str, Any]] = {
    "nothing": {},
    "cut": {"drop_every": 1, "drop_after": 10_000, "times": 3},
    "500": {"error_every": 2, "times": 3},
    "503": {"error_every": 1, "error_status": 503, "times": 3},
    "short": {"range_mode": "short", "times": 3},
    "liar": {"range_mode": "liar", "times": 3},
    "no etag": {"no_etag": True},
    "retry-after": {"rate_limit": 3, "rate_headers": "retry-after", "rate_window": 1.0},
    "ratelimit": {"rate_limit": 3, "rate_headers": "ratelimit", "rate_window": 1.0},
    "both": {"rate_limit": 3, "rate_window": 1.0},
    "429": {"rate_limit": 3, "rate_headers": "none", "rate_window": 1.0},
}


def test_what_passes_is_not_seen(shardfs: Runner, hub: FakeHub) -> None:
    album = Album(shardfs.folder / "hub", [*PASSING, "expired"])
    mount(shardfs, SOURCE, "--retries", "5")
    for name, fault in PASSING.items():
        hub.reset()
        hub.faults = Faults()
        hub.faults.update(latency=0.05, **fault)
        assert album.look(shardfs.place, name) == {}, name
        faults = [entry for entry in hub.log if entry["fault"] not in (None, "client went away")]
        assert bool(faults) == (bool(fault) and name != "no etag"), name
    hub.faults = Faults()
    hub.faults.update(latency=0.05)
    hub.url_ttl = 0.5
    shown = album.shown["expired"]
    for path in sorted(shown, key=lambda path: "000000" not in path):
        if path == "set/x/000001/image.jpg":  # the first that is not the first in its shard
            time.sleep(0.5)
        assert (shardfs.place / "expired" / path).read_bytes() == shown[path]
    assert any(entry["status"] == 403 for entry in hub.log)
    assert errors(shardfs) == []
    assert shardfs("umount", shardfs.place).returncode == 0


STAYING: dict[str, dict[str, Any]] = {
    "cut": {"drop_every": 1, "drop_after": 1000},
    "503": {"error_every": 1, "error_status": 503},
    "short": {"range_mode": "short"},
    "liar": {"range_mode": "liar"},
    "ignore": {"range_mode": "ignore"},
    "changed": {},
    "429": {"rate_limit": 1, "rate_window": 300.0},
}


def test_what_stays_is_an_error_in_time_and_heals(shardfs: Runner, hub: FakeHub) -> None:
    album = Album(shardfs.folder / "hub", list(STAYING))
    repository, commit = album.repository, album.repository.keep()
    mount(shardfs, SOURCE, "--retries", "1", "--timeout", "5")
    for name, fault in STAYING.items():
        files = {}
        if name == "changed":  # to others of the same size
            for path in ("set/x.bin", "t.tar", "p.parquet"):
                place = repository.place(f"{name}/{path}", commit)
                files[place] = place.read_bytes()
                place.write_bytes(files[place][::-1])
        os.listdir(shardfs.place / name / "set")
        hub.reset()
        hub.faults.update(**{"latency": 0.05, **fault})
        if fault.get("rate_limit"):
            urlopen(f"{hub.url}/api/datasets/{NAME}").close()
        began, known = time.monotonic(), len(errors(shardfs))
        assert album.look(shardfs.place, name) == album.failed(name), name
        assert time.monotonic() - began < 5, name
        said = errors(shardfs)[known:]
        for file in ("set/x.bin", "t.tar", "p.parquet"):
            lines = [line for line in said if f"{NAME}/{name}/{file}" in line]
            # One, or two where all that follows the first has another reason: to wait as the Hub asked.
            assert 1 <= len(lines) <= (2 if name == "429" else 1), said
        for place, content in files.items():
            place.write_bytes(content)
        hub.faults = Faults()
        if name != "429":  # the Hub has asked to wait for five minutes
            assert album.look(shardfs.place, name) == {}, name
    assert shardfs("umount", shardfs.place).returncode == 0


# --- what does not come at all ---


def test_a_stalled_file_is_an_error_in_time_and_holds_up_nothing_else(
    shardfs: Runner, hub: FakeHub
) -> None:
    album = Album(shardfs.folder / "hub", ["slow", "other"])
    mount(shardfs, SOURCE, "--timeout", "1", "--retries", "1")
    os.listdir(shardfs.place / "slow")
    assert album.look(shardfs.place, "other") == {}
    hub.faults.update(only="/cdn/.*slow", latency=60)
    stalled = shardfs.place / "slow/set/x/000001/image.jpg"
    done: list[bytes | int] = []
    began = time.monotonic()
    thread = threading.Thread(target=lambda: done.append(outcome(stalled.read_bytes)))
    thread.start()
    longest = 0.0
    while thread.is_alive():
        start = time.monotonic()
        assert sorted(os.listdir(shardfs.place / "slow")) == ["p", "set", "t"]
        assert album.look(shardfs.place, "other") == {}
        longest = max(longest, time.monotonic() - start)
        time.sleep(0.02)
    assert done == [errno.EIO]
    assert 1 < time.monotonic() - began < 6
    assert longest < 0.5
    (said,) = errors(shardfs)
    assert "slow/set/x.bin: 127.0.0.1" in said
    assert "no answer in time" in said
    hub.faults = Faults()
    assert album.look(shardfs.place, "slow") == {}


def length(entry: dict[str, Any]) -> int:
    """The bytes that a request asked for."""
    first, last = entry["range"].removeprefix("bytes=").split("-")
    return int(last) + 1 - int(first)


@pytest.mark.parametrize("way", ["SIGTERM", "umount", "umount -l"])
def test_a_mount_ends_while_something_stalls(shardfs: Runner, hub: FakeHub, way: str) -> None:
    big = os.urandom(24 << 20)
    Repository(shardfs.folder / "hub", {"big.tar": archive(member("a.bin", big))})
    pid = mount(shardfs)
    file = shardfs.place / "big/a/a.bin"
    hub.faults.update(bandwidth=4e6)
    with file.open("rb", buffering=0) as opened:
        assert b"".join(opened.read(1 << 20) for _ in range(4)) == big[: 4 << 20]
    hub.faults.update(bandwidth=20_000.0, latency=3.0)
    assert any(entry["bytes"] < length(entry) for entry in data(hub)), "more is fetched ahead"
    reader = None
    if way != "umount":
        hub.faults.update(latency=60.0)
        reader = subprocess.Popen(["cat", file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.3)
        assert reader.poll() is None
    began, unmounting = time.monotonic(), None
    if way == "SIGTERM":
        os.kill(pid, signal.SIGTERM)
    else:
        unmounting = shardfs.start(*way.split(), shardfs.place)
    assert shardfs.wait_until(lambda: not shardfs.mounts(shardfs.place), 2)
    if way == "umount -l":  # which leaves those their mount who have files open
        os.kill(pid, signal.SIGTERM)
    if unmounting is not None:
        assert unmounting.communicate(timeout=2) == ("", "")
    assert shardfs.wait_until(lambda: is_gone(shardfs, pid), 2)
    assert time.monotonic() - began < 2.5
    if reader is not None:
        _, words = reader.communicate(timeout=5)
        assert reader.returncode
        assert words


# --- who may see it ---


@pytest.mark.parametrize("way", ["--token-file", "HF_TOKEN", "token"])
def test_a_token_is_sent_to_the_hub_and_shown_nowhere(
    shardfs: Runner, hub: FakeHub, way: str
) -> None:
    repository = Repository(
        shardfs.folder / "hub",
        {"x.tar": archive(member("a.txt", b"words")), "notes": b"notes", "y.tar": b"\0" * 1024},
        private=True,
        gated="auto",
        tokens=[TOKEN],
    )
    log, options = shardfs.folder / "log", ["--log-file", shardfs.folder / "log", "-f", "--debug"]
    run = shardfs("mount", SOURCE, shardfs.place, *options)
    assert run.returncode != 0
    assert f"{hub.url}/datasets/{NAME} is private or gated" in run.stderr
    assert "HF_TOKEN" in run.stderr
    if way == "HF_TOKEN":
        shardfs.env["HF_TOKEN"] = TOKEN
    else:
        file = shardfs.folder / ("hf/token" if way == "token" else "a token")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{TOKEN}\n")
        options += [] if way == "token" else [way, file]
    hub.reset()
    process = shardfs.start("mount", SOURCE, shardfs.place, "--no-splits", *options)
    assert shardfs.wait_until(lambda: shardfs.mounts(shardfs.place))
    assert shardfs.wait_until(lambda: (shardfs.place / "x/a/a.txt").exists())
    (pid,) = shardfs.daemons(shardfs.place)
    assert (shardfs.place / "x/a/a.txt").read_bytes() == b"words"
    rules = {"private": True, "gated": "auto", "tokens": []}
    (repository.folder / ".fakehub.json").write_text(json.dumps(rules))
    # It is private, so that with a token that is no good it is not there.
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        (shardfs.place / "notes").read_bytes()
    (repository.folder / ".fakehub.json").write_text(json.dumps({**rules, "private": False}))
    with pytest.raises(PermissionError):
        os.listdir(shardfs.place / "y")
    shown = [
        Path(f"/proc/{pid}/cmdline").read_text(),
        Path("/proc/self/mountinfo").read_text(),
        shardfs("status", "--json").stdout,
        *((shardfs.place / ".shardfs" / name).read_text() for name in CONTROL),
    ]
    process.send_signal(signal.SIGTERM)
    shown += process.communicate(timeout=5)
    shown.append(log.read_text())
    assert "is private or gated, the token has no access" in log.read_text()
    assert {entry["auth"] for entry in hub.log if entry["role"] == "hub"} == {True}
    assert {entry["auth"] for entry in data(hub)} == {False}
    kept = [path for path in (shardfs.folder / "cache").rglob("*") if path.is_file()]
    assert kept
    shown += [path.read_text("latin-1") for path in kept]
    for secret in (TOKEN, "Signature="):  # also what is signed is nobody else's business
        assert secret not in "".join(shown)


# --- the cache ---


@needs_root
def test_a_cache_on_a_full_disk(shardfs: Runner, hub: FakeHub) -> None:
    images = pictures(1_500_000, 20)
    Repository(shardfs.folder / "hub", webdataset(images))
    cache = shardfs.folder / "full"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=700", "none", cache], check=True)
    log = shardfs.folder / "log"
    pid = mount(shardfs, SOURCE, "--cache-dir", cache, "--memory-limit", "8M", "--log-file", log)
    for _ in range(2):
        for n, image in enumerate(images):
            assert (shardfs.place / f"x/{n:06d}/{n:06d}.jpg").read_bytes() == image
    assert (
        f"disk cache {cache}/blocks: No space left on device; going on without" in log.read_text()
    )
    assert not is_gone(shardfs, pid)
    sizes = {path.stat().st_size for path in (cache / "blocks").iterdir()}
    count, last = divmod(len(webdataset(images)["x.tar"]), BLOCK)
    groups = [BLOCK, 8 * BLOCK, last, count % 8 * BLOCK + last]
    assert sizes <= {size + seal_size(size) for size in groups}
    assert not [path for path in cache.rglob(".new-*")]
    assert errors(shardfs) == []


def test_offline_shows_what_was_seen_or_downloaded(shardfs: Runner, hub: FakeHub) -> None:
    tar = archive(member("a.txt", b"words"))
    repository = Repository(shardfs.folder / "hub", {"x.tar": tar, "y.tar": tar, "z.tar": tar})
    snapshot_download(NAME, repo_type="dataset", allow_patterns="x.tar")
    place, words = shardfs.place, "a/a.txt"
    hub.reset()
    shardfs.env["HF_HUB_OFFLINE"] = "1"
    mount(shardfs, SOURCE)
    assert (place / "x" / words).read_bytes() == b"words"
    assert sorted(os.listdir(place)) == ["x", "y", "z"]
    assert outcome(lambda: (place / "y" / words).read_bytes()) == errno.EIO
    assert shardfs("umount", place).returncode == 0
    assert not hub.log
    del shardfs.env["HF_HUB_OFFLINE"]
    mount(shardfs, SOURCE)
    assert (place / "x" / words).read_bytes() == b"words"
    assert not data(hub)
    assert (place / "y" / words).read_bytes() == b"words"
    assert shardfs("umount", place).returncode == 0
    hub.reset()
    mount(shardfs, SOURCE, "--offline")
    began = time.monotonic()
    assert [(place / name / words).read_bytes() for name in "xy"] == [b"words"] * 2
    assert outcome(lambda: (place / "z" / words).read_bytes()) == errno.EIO
    assert time.monotonic() - began < 1
    info = json.loads((place / ".shardfs/info.json").read_text())
    assert (info["source"], info["revision"]) == (SOURCE, repository.commit)
    assert "offline" in errors(shardfs)[0]
    assert not hub.log
