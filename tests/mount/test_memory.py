"""``--memory-limit`` holds, however much is open at a time: real mounts, in real memory cgroups where there are any."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import random
import struct
import tarfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from tests.litdata_files import entry, index, mapping, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.mount.conftest import Runner

MB = 1 << 20
LIMIT = 64
# What DESIGN promises beside the limit: Python, its modules, what is on its way.
BESIDE = 100
# Bytes that zstd makes much smaller, and yet of which no part is like another.
_WORDS = [random.Random(3).randbytes(40) for _ in range(512)]


def record(chunk: int, number: int, size: int) -> bytes:
    """The content of a record, unlike all others."""
    dice = random.Random(chunk << 20 | number)
    block = b"".join(dice.choices(_WORDS, k=1024))
    return (struct.pack("<II", chunk, number) + block * (size // len(block) + 1))[:size]


def mds(folder: Path, chunks: int, records: int, size: int) -> Path:
    """An MDS dataset of zstd chunks of so many records of *size* bytes, each the value `a`."""
    folder.mkdir()
    columns = {"column_names": ["a"], "column_encodings": ["bytes"], "column_sizes": [None]}
    about = {**columns, "compression": "zstd", "format": "mds", "hashes": [], "version": 2}
    config = json.dumps({**about, "size_limit": 1 << 26}).encode()
    begin = 4 + 4 * (records + 1) + len(config)
    offsets = [begin + number * (4 + size) for number in range(records + 1)]
    shards = []
    for chunk in range(chunks):
        parts = [struct.pack(f"<{records + 2}I", records, *offsets), config]
        for number in range(records):
            parts += [struct.pack("<I", size), record(chunk, number, size)]
        stored = zstandard.compress(b"".join(parts), 1)
        name = f"shard.{chunk:05d}.mds"
        (folder / f"{name}.zstd").write_bytes(stored)
        raw = {"basename": name, "bytes": offsets[-1], "hashes": {}}
        zipped = {"basename": f"{name}.zstd", "bytes": len(stored), "hashes": {}}
        shards.append({**about, "samples": records, "raw_data": raw, "zip_data": zipped})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return folder


def litdata(folder: Path, chunks: int, records: int, size: int) -> Path:
    """The same as LitData writes it."""
    folder.mkdir()
    entries, begin = [], 4 + 4 * (records + 1)
    offsets = [begin + number * (4 + size) for number in range(records + 1)]
    for chunk in range(chunks):
        parts = [struct.pack(f"<{records + 2}I", records, *offsets)]
        for number in range(records):
            parts += [struct.pack("<I", size), record(chunk, number, size)]
        name = f"shard.{chunk:05d}.zstd.bin"
        (folder / name).write_bytes(zstandard.compress(b"".join(parts), 1))
        entries.append(entry(name, records, offsets[-1]))
    about = {"data_format": ["bytes"], "data_spec": spec(mapping("a")), "compression": "zstd"}
    (folder / "index.json").write_bytes(index(*entries, **about))
    return folder


class Group:
    """A memory cgroup for one daemon."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._is_new = folder, (folder.parent / "cgroup.controllers").exists()
        folder.mkdir()
        name = "memory.max" if self._is_new else "memory.limit_in_bytes"
        (folder / name).write_text(str(limit))
        with contextlib.suppress(OSError):  # swap is no way out
            (folder / "memory.swap.max").write_text("0")

    def add(self, pid: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(pid))

    @property
    def killed(self) -> int:
        """How many processes in it were killed for want of memory."""
        name = "memory.events" if self._is_new else "memory.oom_control"
        words = (self._folder / name).read_text().split()
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0

    def close(self) -> None:
        for pid in (self._folder / "cgroup.procs").read_text().split():
            (self._folder.parent / "cgroup.procs").write_text(pid)
        self._folder.rmdir()


def _group_root() -> Path | None:
    """Where cgroups for memory can be made, None where they can't."""
    for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        probe = root / f"shardfs-probe-{os.getpid()}"
        with contextlib.suppress(OSError):
            probe.mkdir()
            found = (probe / "memory.max").exists() or (probe / "memory.limit_in_bytes").exists()
            probe.rmdir()
            if found:
                return root
    return None


@pytest.fixture
def group() -> Iterator[Callable[[int], Group]]:
    root = _group_root()
    if root is None:
        pytest.skip("no memory cgroup can be made here")
    made: list[Group] = []

    def make(limit: int) -> Group:
        made.append(Group(root / f"shardfs-test-{os.getpid()}-{len(made)}", limit))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Peak:
    """The most memory of its own that a process has taken, in MB, since this began."""

    def __init__(self, pid: int) -> None:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self._status = Path(f"/proc/{pid}/status")

    @property
    def mb(self) -> float:
        return int(self._status.read_text().partition("VmHWM:")[2].split()[0]) / 1024


def mount(shardfs: Runner, source: Path, *options: object) -> int:
    shardfs.place_source(source)
    return shardfs.mount("--memory-limit", f"{LIMIT}M", *options)


def fresh(place: Path, offset: int, length: int) -> bytes:
    """Bytes of a file that the kernel does not have yet."""
    with place.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(file.fileno(), length, offset)


def together(jobs: Iterable[Callable[[], None]]) -> None:
    """Do all of that at a time. Raises what one of them raises."""
    jobs = list(jobs)
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """50 chunks of 16 MB, in two formats."""
    folder = tmp_path_factory.mktemp("fifty")
    return {
        "mds": mds(folder / "mds", 50, 10, 16 * MB // 10),
        "litdata": litdata(folder / "litdata", 50, 10, 16 * MB // 10),
    }


@pytest.mark.parametrize("kind", ["mds", "litdata"])
@pytest.mark.parametrize("options", [(), ("--no-disk-cache",)])
def test_500_open_files_in_50_chunks(
    shardfs: Runner, fifty: dict[str, Path], kind: str, options: tuple[str, ...]
) -> None:
    pid = mount(shardfs, fifty[kind], *options)
    peak = Peak(pid)
    with contextlib.ExitStack() as stack:
        files = {}
        for chunk in range(50):
            for number in range(10):
                place = shardfs.place / f"shard.{chunk:05d}/{number:06d}/a.bin"
                files[chunk, number] = stack.enter_context(place.open("rb", buffering=0))

        def read(begin: int) -> None:
            dice = random.Random(begin)
            for _ in range(25):
                chunk, number = dice.randrange(50), dice.randrange(10)
                offset = dice.randrange(MB)
                file = files[chunk, number].fileno()
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                found = os.pread(file, 200_000, offset)
                assert found == record(chunk, number, 16 * MB // 10)[offset : offset + 200_000]

        together([lambda begin=begin: read(begin) for begin in range(12)])  # type: ignore[misc]
        assert peak.mb < LIMIT + BESIDE
        assert shardfs.memory(pid) < LIMIT + BESIDE


# Without a disk cache, each of the four streams that begin again has a window beside the limit.
@pytest.mark.parametrize(("options", "beside"), [((), BESIDE), (("--no-disk-cache",), BESIDE + 32)])
def test_four_readers_of_64_mb_chunks_in_a_cgroup_of_256_mb(
    shardfs: Runner,
    group: Callable[[int], Group],
    tmp_path: Path,
    options: tuple[str, ...],
    beside: int,
) -> None:
    pid = mount(shardfs, mds(tmp_path / "four", 4, 8, 8 * MB), *options)
    cgroup = group(256 * MB)
    cgroup.add(pid)
    peak = Peak(pid)

    def read(chunk: int) -> None:
        for number in (0, 3, 1, 7):
            place = shardfs.place / f"shard.{chunk:05d}/{number:06d}/a.bin"
            assert place.read_bytes() == record(chunk, number, 8 * MB)

    together([lambda chunk=chunk: read(chunk) for chunk in range(4)])  # type: ignore[misc]
    assert cgroup.killed == 0
    assert peak.mb < LIMIT + beside
    assert shardfs.daemons(shardfs.place) == [pid]


def bomb(folder: Path, size: int) -> Path:
    """A chunk of a few KB that becomes *size* bytes, most of them zeros: three records."""
    folder.mkdir()
    length = (size - 20 - 12) // 3
    begin = 4 + 4 * 4
    offsets = [begin + number * (4 + length) for number in range(4)]
    stored = BytesIO()
    writer = zstandard.ZstdCompressor(level=1, write_content_size=False).stream_writer(stored)
    writer.write(struct.pack("<5I", 3, *offsets))
    for number in range(3):
        writer.write(struct.pack("<I", length) + b"%08d" % number)
        for at in range(8, length, MB):
            writer.write(bytes(min(MB, length - at)))
    writer.flush(zstandard.FLUSH_FRAME)
    (folder / "one.zstd.bin").write_bytes(stored.getvalue())
    about = {"data_format": ["bytes"], "data_spec": spec(mapping("a")), "compression": "zstd"}
    (folder / "index.json").write_bytes(index(entry("one.zstd.bin", 3, offsets[-1]), **about))
    return folder


@pytest.mark.parametrize("options", [(), ("--no-disk-cache",)])
def test_one_chunk_that_is_larger_than_the_limit(
    shardfs: Runner, tmp_path: Path, options: tuple[str, ...]
) -> None:
    pid = mount(shardfs, bomb(tmp_path / "bomb", 768 * MB), *options)
    peak = Peak(pid)
    for number in (2, 0):
        place = shardfs.place / f"one/{number:06d}/a.bin"
        size = place.stat().st_size
        assert 255 * MB < size <= 256 * MB
        assert fresh(place, 0, 100) == b"%08d" % number + bytes(92)
        assert fresh(place, size - 10, 100) == bytes(10)
    assert peak.mb < LIMIT + BESIDE
    told = (shardfs.place / ".shardfs/errors.jsonl").read_text()
    assert ("--memory-limit" in told) == bool(options), "slow without a disk cache, and said so"


def test_what_is_not_kept_leaves_no_file(shardfs: Runner, tmp_path: Path) -> None:
    cache = shardfs.folder / "cache" / "shardfs" / "unpacked"
    mount(shardfs, bomb(tmp_path / "bomb", 200 * MB))
    fresh(shardfs.place / "one/000002/a.bin", 0, 10)
    (left,) = cache.iterdir()
    assert left.stat().st_size > 100 * MB
    assert shardfs("umount", shardfs.place).returncode == 0
    assert shardfs.wait_until(lambda: not list(cache.iterdir()))


def test_gzip_tars_under_many_readers(shardfs: Runner, tmp_path: Path) -> None:
    source = tmp_path / "tars"
    source.mkdir()
    for shard in range(4):
        with tarfile.open(source / f"{shard}.tar.gz", "w:gz", compresslevel=1) as tar:
            for number in range(12):
                content = record(shard, number, 4 * MB)
                info = tarfile.TarInfo(f"{number:04d}.bin")
                info.size = len(content)
                tar.addfile(info, BytesIO(content))
    pid = mount(shardfs, source)
    peak = Peak(pid)

    def read(shard: int, begin: int) -> None:
        dice = random.Random(begin)
        for _ in range(6):
            number, offset = dice.randrange(12), dice.randrange(3 * MB)
            place = shardfs.place / f"{shard}/{number:04d}/{number:04d}.bin"
            expected = record(shard, number, 4 * MB)[offset : offset + 300_000]
            assert fresh(place, offset, 300_000) == expected

    together(
        [
            lambda shard=shard, begin=begin: read(shard, begin)  # type: ignore[misc]
            for shard in range(4)
            for begin in range(3)
        ]
    )
    assert peak.mb < LIMIT + BESIDE


def test_large_parquet_pages_under_many_readers(shardfs: Runner, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    source = tmp_path / "rows"
    source.mkdir()
    for shard in range(4):
        values = [record(shard, number, 2 * MB) for number in range(16)]
        parquet.write_table(
            pa.table({"a": pa.array(values, pa.binary())}),
            source / f"{shard}.parquet",
            compression="zstd",
            data_page_size=64 * MB,
            use_dictionary=False,
            write_statistics=False,
        )
    pid = mount(shardfs, source)
    peak = Peak(pid)

    def read(shard: int, begin: int) -> None:
        for number in (begin, 15 - begin, begin + 5):
            place = shardfs.place / f"{shard}/{number:06d}/a.bin"
            assert fresh(place, 0, 2 * MB) == record(shard, number, 2 * MB)

    together(
        [
            lambda shard=shard, begin=begin: read(shard, begin)  # type: ignore[misc]
            for shard in range(4)
            for begin in range(4)
        ]
    )
    assert peak.mb < LIMIT + BESIDE


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four chunks of 64 MB as LitData writes them with Fernet encryption of whole chunks."""
    fernet = pytest.importorskip("cryptography.fernet")
    folder = tmp_path_factory.mktemp("encrypted")
    plain = litdata(folder / "plain", 4, 8, 8 * MB)
    salt = bytes(range(16))
    key = hashlib.pbkdf2_hmac("sha256", b"secret", salt, 480_000)
    about = {"algorithm": "fernet", "level": "chunk"}
    stored = {**about, "salt": base64.urlsafe_b64encode(salt).decode()}
    (folder / "key").write_text(json.dumps(stored))
    (folder / "data").mkdir()
    entries = []
    for place in sorted(plain.glob("*.bin")):
        body = zstandard.decompress(place.read_bytes())
        token = fernet.Fernet(base64.urlsafe_b64encode(key)).encrypt(body)
        name = place.name.replace(".zstd", "")
        (folder / "data" / name).write_bytes(token)
        place.unlink()
        entries.append(entry(name, 8, len(token)))
    config = {"data_format": ["bytes"], "data_spec": spec(mapping("a")), "encryption": about}
    (folder / "data/index.json").write_bytes(index(*entries, **config))
    return folder


@pytest.mark.parametrize("options", [(), ("--no-disk-cache",)])
def test_encrypted_chunks_of_64_mb_under_four_readers(
    shardfs: Runner, encrypted: Path, options: tuple[str, ...]
) -> None:
    shardfs.env["SHARDFS_PASSWORD"] = "secret"
    pid = mount(shardfs, encrypted / "data", "--key-file", encrypted / "key", *options)
    peak = Peak(pid)

    def read(chunk: int) -> None:
        for number in (0, 3, 1, 7):
            place = shardfs.place / f"shard.{chunk:05d}/{number:06d}/a.bin"
            assert place.read_bytes() == record(chunk, number, 8 * MB)

    together([lambda chunk=chunk: read(chunk) for chunk in range(4)])  # type: ignore[misc]
    assert peak.mb < LIMIT + BESIDE
