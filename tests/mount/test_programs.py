"""What other programs make of a mount: the same as of an extracted copy."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests import DATA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mount.conftest import Runner

DATASETS = (
    "litdata/typed_media",
    "litdata/audio_tuple",
    "litdata/numpy_dtypes",
    "litdata/pil_modes",
    "litdata/nested_mixed",
    "litdata/zstd_sample",
    "mds/all_encodings",
    "mds/comp_zstd",
)


@pytest.fixture(scope="module")
def mounted(shared: Runner) -> Path:
    """A mount of a folder of datasets."""
    for name in DATASETS:
        shutil.copytree(DATA / name, shared.source / name)
    (shared.source / "README.md").write_bytes(b"# Several datasets\n")
    shared.mount()
    return shared.place


@pytest.fixture(scope="module")
def copied(shared: Runner, mounted: Path) -> Path:
    """A copy of all that is in the mount."""
    copy = shared.folder / "copy"
    shutil.copytree(mounted, copy)
    return copy


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def run(*command: object, cwd: Path | None = None) -> str:
    """What a program prints; it must have nothing to complain of."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def some(folder: Path, *extensions: str) -> list[Path]:
    """Two files of each kind."""
    found = [sorted(folder.rglob(f"*{extension}"))[:2] for extension in extensions]
    assert all(found)
    return [path for paths in found for path in paths]


# --- tools for files ---


def test_rsync_has_nothing_to_do_the_second_time(shared: Runner, mounted: Path) -> None:
    need("rsync")
    command = ("rsync", "-a", "--itemize-changes", f"{mounted}/", f"{shared.folder}/synced/")
    assert len(run(*command).splitlines()) > len(files(mounted))
    assert run(*command) == ""
    assert run(*command[:2], "--checksum", *command[2:]) == ""


def test_tar_makes_an_archive_that_agrees_with_it(shared: Runner, mounted: Path) -> None:
    archive = shared.folder / "all.tar"
    run("tar", "-cf", archive, "-C", mounted, ".")
    assert run("tar", "--compare", "-f", archive, "-C", mounted) == ""


def test_cp_and_diff_agree(shared: Runner, mounted: Path) -> None:
    run("cp", "-a", mounted, shared.folder / "cp")
    assert run("diff", "-r", mounted, shared.folder / "cp") == ""


def test_find_and_grep_have_nothing_to_complain_of(mounted: Path, copied: Path) -> None:
    assert run("find", ".", "-type", "f", cwd=mounted).count("\n") == len(files(copied))
    word = ("grep", "-rlF", "bicycle", ".")
    assert sorted(run(*word, cwd=mounted).split()) == sorted(run(*word, cwd=copied).split()) != []


def test_du_adds_up(mounted: Path) -> None:
    total = sum((mounted / name).stat().st_size for name in files(mounted))
    assert int(run("du", "--apparent-size", "-sb", mounted).split()[0]) == total
    blocks = sum(-(-(mounted / name).stat().st_size // 512) for name in files(mounted))
    assert int(run("du", "-s", "--block-size=512", mounted).split()[0]) == blocks


def test_df_shows_a_full_disk(mounted: Path) -> None:
    _, row = run("df", "--output=size,used,avail,pcent,fstype", mounted).splitlines()
    size, used, available, percent, kind = row.split()
    assert int(size) == int(used) > 0
    assert (available, percent, kind) == ("0", "100%", "fuse.shardfs")


def test_file_tells_the_same(mounted: Path, copied: Path) -> None:
    need("file")
    names = files(copied)
    command = ("file", "--brief", "--mime-type", *names)
    assert run(*command, cwd=mounted) == run(*command, cwd=copied)


# --- programs for media ---


def test_ffprobe_tells_the_same(mounted: Path, copied: Path) -> None:
    need("ffprobe")
    command = ("ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams")
    for path in some(copied, ".wav", ".webm", ".png"):
        name = path.relative_to(copied)
        told = json.loads(run(*command, name, cwd=mounted))
        assert told == json.loads(run(*command, name, cwd=copied))
        assert told["streams"]


def test_ffmpeg_decodes(mounted: Path) -> None:
    need("ffmpeg")
    for path in some(mounted, ".wav", ".webm", ".jpg"):
        run("ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f", "null", "-")


def test_pillow_opens_every_picture(mounted: Path) -> None:
    for extension in (".jpg", ".png", ".webp", ".tif"):
        for path in some(mounted, extension):
            with Image.open(path) as image:
                image.verify()
            with Image.open(path) as image:
                image.load()


def test_soundfile_opens_audio(mounted: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for path in some(mounted, ".wav"):
        information = soundfile.info(str(path))
        samples, rate = soundfile.read(str(path))
        assert len(samples) == information.frames > 0
        assert rate == information.samplerate


def test_numpy_maps_every_array(mounted: Path) -> None:
    paths = sorted(mounted.rglob("*.npy"))
    assert len(paths) > 20
    for path in paths:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        np.testing.assert_array_equal(mapped, np.load(path, allow_pickle=False))


# --- many readers ---


def test_random_reads_by_many_threads_are_right(mounted: Path, copied: Path) -> None:
    contents = {name: (copied / name).read_bytes() for name in files(copied)}

    def read(seed: int) -> str:
        """What is wrong with 500 reads, across the end of files and past it, too."""
        chance = random.Random(seed)
        for _ in range(500 // 8):
            name = chance.choice(names)
            content = contents[name]
            with (mounted / name).open("rb", buffering=0) as file:
                for _ in range(8):
                    offset, size = chance.randrange(len(content) + 99), chance.randrange(1, 70_000)
                    if os.pread(file.fileno(), size, offset) != content[offset : offset + size]:
                        return f"{name}: {size} bytes at {offset}"
        return ""

    names = list(contents)
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(read, range(16))) == {""}


def test_many_processes_read_everything(mounted: Path, copied: Path) -> None:
    command = ("sh", "-c", "find . -type f -print0 | xargs -0 -P 32 -n 8 sha256sum")
    told = dict(line.split("  ", 1)[::-1] for line in run(*command, cwd=mounted).splitlines())
    assert told == {
        f"./{name}": hashlib.sha256((copied / name).read_bytes()).hexdigest()
        for name in files(copied)
    }


# --- what stat says ---


def test_stat_tells_the_truth(shared: Runner, mounted: Path) -> None:
    paths = [mounted, *mounted.rglob("*")]
    facts = {path: path.lstat() for path in paths}
    assert len({fact.st_ino for fact in facts.values()}) == len(paths)
    assert all(0 < fact.st_ino < 2**63 for fact in facts.values())
    for path, fact in facts.items():
        is_folder = stat.S_ISDIR(fact.st_mode)
        assert stat.S_IMODE(fact.st_mode) == (0o555 if is_folder else 0o444)
        assert fact.st_nlink == (2 if is_folder else 1)
        assert (fact.st_uid, fact.st_gid) == (os.getuid(), os.getgid())
        assert fact.st_blocks == -(-fact.st_size // 512)
        if not is_folder:
            assert len(path.read_bytes()) == fact.st_size
    chunk = shared.source / "litdata/typed_media/chunk-0-0.bin"
    inside = mounted / "litdata/typed_media/chunk-0-0"
    for path in (inside, inside / "000000", inside / "000000/text.txt"):
        assert facts[path].st_mtime_ns == chunk.stat().st_mtime_ns
    index = "litdata/typed_media/index.json"
    assert facts[mounted / index].st_mtime_ns == (shared.source / index).stat().st_mtime_ns


def test_owner_and_modes_can_be_chosen(shardfs: Runner) -> None:
    # Files of somebody else could not be read by an ordinary user.
    uid, gid = (12, 34) if os.getuid() == 0 else (os.getuid(), os.getgid())
    shardfs.mount("-o", f"uid={uid},gid={gid},umask=027")
    for path in (shardfs.place, *shardfs.place.rglob("*")):
        fact = path.lstat()
        assert stat.S_IMODE(fact.st_mode) == (0o550 if path.is_dir() else 0o440)
        assert (fact.st_uid, fact.st_gid) == (uid, gid)


def test_the_kernel_agrees_with_a_listing(mounted: Path) -> None:
    """Types and numbers in a listing are those that stat tells; programs rely on either."""
    for folder, _, _ in os.walk(mounted):
        with os.scandir(folder) as entries:
            for entry in entries:
                fact = os.stat(entry.path)
                assert entry.inode() == fact.st_ino
                assert entry.is_dir() == stat.S_ISDIR(fact.st_mode)
