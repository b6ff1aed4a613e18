"""Sources that change while they are mounted are noticed at the next open; and links that would make a tree endless."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import DATA
from tests.tar_files import archive, member
from tests.zip_files import DEFLATED, Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.mount.conftest import Runner

CHANGED, GONE = "has changed since it was mounted: mount again", "is gone"
OLD, NEW = b"old text", b"new text"  # of one length


def tar_of(text: bytes) -> bytes:
    return archive(*[member(f"{number:04d}.txt", text) for number in range(20)])


def parquet_of(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [text.decode()] * 4}), sink, compression="zstd")
    return bytes(sink.getvalue())


def jsonl_of(text: bytes) -> bytes:
    return b'{"text": "%s"}\n' % text * 4


def zip_of(text: bytes) -> bytes:
    inner = Item(name=b"deep/inner.tar", data=tar_of(text))
    return make_zip([Item(name=b"note.txt", data=text, method=DEFLATED), inner])


# The file, what is read in it, and its content by the text in it.
SHARDS: dict[str, tuple[list[str], Callable[[bytes], bytes]]] = {
    "a.tar": (["a/0003/0003.txt"], tar_of),
    "a.tar.gz": (["a/0003/0003.txt"], lambda text: gzip.compress(tar_of(text), mtime=0)),
    "a.parquet": (["a/000003/text.txt"], parquet_of),
    "a.jsonl": (["a/000003/text.txt"], jsonl_of),
    "a.csv.gz": (["a/000001/t.txt"], lambda text: gzip.compress(b"t\n%s\n%s\n" % (text, text))),
    "a.zip": (["a/note.txt", "a/deep/inner/0003/0003.txt"], zip_of),
    "note.txt": (["note.txt"], lambda text: text),
}


def renamed(place: Path, content: bytes) -> None:
    """Replaced by another file, with the time and size of the old one."""
    new, before = place.with_name(".new"), place.stat()
    new.write_bytes(content)
    os.utime(new, ns=(before.st_mtime_ns, before.st_mtime_ns))
    new.rename(place)


def rewritten(place: Path, content: bytes) -> None:
    place.write_bytes(content)


def appended(place: Path, content: bytes) -> None:
    with place.open("ab") as file:
        file.write(bytes(512))


def cut(place: Path, content: bytes) -> None:
    os.truncate(place, place.stat().st_size - 1)


def removed(place: Path, content: bytes) -> None:
    place.unlink()


def refused(place: Path) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        place.read_bytes()
    assert caught.value.errno == errno.ESTALE


def faults(shardfs: Runner) -> list[str]:
    lines = (shardfs.place / ".shardfs/errors.jsonl").read_text().splitlines()
    return [json.loads(line)["message"] for line in lines]


@pytest.mark.parametrize("change", [renamed, rewritten, appended, cut, removed])
@pytest.mark.parametrize("name", list(SHARDS))
def test_a_file_that_changes_is_no_longer_opened(
    shardfs: Runner, name: str, change: Callable[[Path, bytes], None]
) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    inside, content_of = SHARDS[name]
    file = shardfs.source / name
    file.write_bytes(content_of(OLD))
    (shardfs.source / "same.tar").write_bytes(tar_of(OLD))
    shardfs.mount()
    places = [shardfs.place / path for path in inside]
    for place in places:
        assert place.read_bytes() == OLD
    change(file, content_of(NEW))
    for place in places:
        for _ in range(2):
            refused(place)
        said = [message for message in faults(shardfs) if name in message]
        assert len(said) == len({message for message in said})
        assert all(CHANGED in message or GONE in message for message in said)
    assert faults(shardfs)
    assert (shardfs.place / "same/0003/0003.txt").read_bytes() == OLD
    if change is not removed:
        assert shardfs("umount", shardfs.place).returncode == 0
        if change in (renamed, rewritten):
            shardfs.mount()
            for place in places:
                assert place.read_bytes() == NEW, "not what the cache has of the old file"


def test_a_shard_that_changed_before_anybody_looked_into_it(shardfs: Runner) -> None:
    (shardfs.source / "a.tar").write_bytes(tar_of(OLD))
    shardfs.mount()
    renamed(shardfs.source / "a.tar", tar_of(NEW))
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        os.listdir(shardfs.place / "a")
    assert faults(shardfs) == [f"a.tar: {CHANGED}"]


def test_what_is_open_reads_on(shardfs: Runner) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    long = os.urandom(3 << 20)
    (shardfs.source / "a.tar").write_bytes(archive(member("x.bin", long)))
    shardfs.mount()
    with (shardfs.place / "a/x/x.bin").open("rb", buffering=0) as file:
        begin = os.pread(file.fileno(), 4096, 0)
        renamed(shardfs.source / "a.tar", archive(member("x.bin", bytes(3 << 20))))
        refused(shardfs.place / "a/x/x.bin")
        assert begin + os.pread(file.fileno(), 1 << 20, 4096) == long[: 4096 + (1 << 20)]


def test_media_beside_their_table(shardfs: Runner) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    (shardfs.source / "metadata.csv").write_text("file_name,n\na.txt,1\nb.txt,2\n")
    for name in ("a.txt", "b.txt"):
        (shardfs.source / name).write_bytes(OLD)
    shardfs.mount()
    first, second = (shardfs.place / f"metadata/00000{n}/file.txt" for n in (0, 1))
    assert (first.read_bytes(), second.read_bytes()) == (OLD, OLD)
    renamed(shardfs.source / "a.txt", NEW)
    refused(first)
    assert second.read_bytes() == OLD
    renamed(shardfs.source / "metadata.csv", b"file_name,n\nb.txt,1\na.txt,2\n")
    refused(second)


@pytest.mark.parametrize("part", ["shard.00000.csv", "shard.00000.csv.meta"])
def test_each_file_that_a_shard_is_made_of_counts(shardfs: Runner, part: str) -> None:
    shutil.rmtree(shardfs.source)
    shutil.copytree(DATA / "mds/csv_plain", shardfs.source)
    shardfs.mount()
    (shard,) = [place for place in shardfs.place.iterdir() if place.name == "shard.00000"]
    field = next((shard / "000000").iterdir())
    assert field.read_bytes()
    renamed(shardfs.source / part, (shardfs.source / part).read_bytes())
    refused(field)


def test_a_link_that_comes_to_lead_elsewhere(shardfs: Runner) -> None:
    shutil.rmtree(shardfs.source)
    shardfs.source.mkdir()
    for name, text in (("v1", OLD), ("v2", NEW)):
        (shardfs.source / f".{name}").write_bytes(tar_of(text))
    link = shardfs.source / "a.tar"
    link.symlink_to(".v1")
    shardfs.mount()
    place = shardfs.place / "a/0003/0003.txt"
    assert place.read_bytes() == OLD
    link.unlink()
    link.symlink_to(".v2")
    refused(place)


def test_what_does_not_touch_the_content_is_no_change(shardfs: Runner) -> None:
    file = shardfs.source / "a.tar"
    file.write_bytes(tar_of(OLD))
    shardfs.mount()
    place = shardfs.place / "a/0003/0003.txt"
    assert place.read_bytes() == OLD
    file.chmod(0o600)
    (shardfs.source / "hard").hardlink_to(file)
    subprocess.run(["cat", file], check=True, capture_output=True)
    assert place.read_bytes() == OLD
    assert faults(shardfs) == []


@pytest.mark.parametrize("options", [(), ("--follow-links",)])
def test_links_in_circles_have_an_end(shardfs: Runner, options: tuple[str, ...]) -> None:
    for name in ("x", "y"):
        (shardfs.source / name).mkdir()
        (shardfs.source / name / "a.tar").write_bytes(tar_of(OLD))
    (shardfs.source / "self").symlink_to(".")
    (shardfs.source / "x/y").symlink_to("../y")
    (shardfs.source / "y/x").symlink_to("../x")
    shardfs.mount(*options)
    find = ["find", str(shardfs.place), "-name", "0003.txt"]
    found = subprocess.run(find, check=True, capture_output=True, text=True, timeout=20).stdout
    places = {str(Path(line).relative_to(shardfs.place)) for line in found.splitlines()}
    inside = "a/0003/0003.txt"
    assert places == {f"{where}/{inside}" for where in ("x", "y", "x/y", "y/x")}
    for loop in ("self", "x/y/x", "y/x/y"):
        with pytest.raises(OSError, match="Input/output error"):
            (shardfs.place / loop).read_bytes()
        with pytest.raises(OSError, match="Not a directory"):
            os.listdir(shardfs.place / loop)
    said = faults(shardfs)
    assert len(said) == 3
    assert all("a loop" in message for message in said)
