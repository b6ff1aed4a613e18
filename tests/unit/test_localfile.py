from __future__ import annotations

import contextlib
import errno
import gc
import os
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import AccessDenied, IsAFolder, NotAFolder, NotFound, Unreadable, WouldBlock
from shardfs.localfile import LocalFile, named_error
from shardfs.names import from_bytes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "file"
    place.write_bytes(b"0123456789")
    return place


def test_a_file_that_was_cut_is_an_error_and_no_short_read(file: Path) -> None:
    blob = LocalFile(str(file), "sub/file")
    os.truncate(file, 5)
    assert bytes(blob.read(0, 5)) == b"01234"
    with pytest.raises(Unreadable, match="sub/file: has become shorter"):
        blob.read(0, 6)
    assert blob.size() == 10


def test_a_file_that_was_replaced_is_read_as_it_was(file: Path) -> None:
    blob = LocalFile(str(file), "file")
    file.unlink()
    file.write_bytes(b"other")
    assert bytes(blob.read(0, 99)) == b"0123456789"


def descriptors(file: Path) -> int:
    """How many descriptors of this process belong to *file*."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists the folder
            count += os.readlink(f"/proc/self/fd/{name}") == str(file.resolve())
    return count


def test_its_descriptor_is_closed_with_it(file: Path) -> None:
    blob = LocalFile(str(file), "file")
    assert descriptors(file) == 1
    del blob
    gc.collect()
    assert descriptors(file) == 0


def test_what_is_no_file_is_refused_and_leaves_no_descriptor(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = set(os.listdir("/proc/self/fd"))
    for place in (tmp_path, tmp_path / "pipe"):  # opening a pipe must not wait for its writer
        with pytest.raises(OSError, match="not a file"):
            LocalFile(str(place), "x")
    with pytest.raises(FileNotFoundError):
        LocalFile(str(tmp_path / "none"), "x")
    gc.collect()
    assert set(os.listdir("/proc/self/fd")) == before


def test_any_bytes_are_a_file_name(tmp_path: Path) -> None:
    name = from_bytes(b"\xff\n")
    (tmp_path / name).write_bytes(b"x")
    assert bytes(LocalFile(str(tmp_path / name), name).read(0, 9)) == b"x"


def test_long_reads_are_put_together(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: pread(fd, min(length, 3), at))
    assert bytes(LocalFile(str(file), "file").read(1, 99)) == b"123456789"


# --- without waiting ---


def at_hand(monkeypatch: pytest.MonkeyPatch, answer: int) -> None:
    """Let the page cache hold so many bytes; a negative number is an error."""

    def preadv(descriptor: int, buffers: list[bytearray], offset: int, flags: int) -> int:
        assert flags == os.RWF_NOWAIT
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        buffers[0][:answer] = os.pread(descriptor, answer, offset)
        return answer

    monkeypatch.setattr(os, "preadv", preadv)


def test_what_is_in_the_page_cache_needs_no_waiting(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_hand(monkeypatch, 4)
    with no_wait():
        assert bytes(LocalFile(str(file), "file").read(2, 4)) == b"2345"


@pytest.mark.parametrize("answer", [0, 3, -errno.EAGAIN, -errno.EOPNOTSUPP])
def test_what_is_not_all_there_would_block(
    file: Path, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    at_hand(monkeypatch, answer)
    blob = LocalFile(str(file), "file")
    with no_wait():
        with pytest.raises(WouldBlock):
            blob.read(0, 4)
        assert bytes(blob.read(10, 4)) == b""
    assert bytes(blob.read(0, 4)) == b"0123"


def test_an_error_of_the_disk_has_a_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_hand(monkeypatch, -errno.EIO)
    with no_wait(), pytest.raises(Unreadable, match="file: Input/output error"):
        LocalFile(str(file), "file").read(0, 4)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, NotFound),
        (errno.ENOTDIR, NotAFolder),
        (errno.EISDIR, IsAFolder),
        (errno.EACCES, AccessDenied),
        (errno.EPERM, AccessDenied),
        (errno.EIO, Unreadable),
        (errno.EMFILE, Unreadable),
    ],
)
def test_errors_of_the_system_are_ours(number: int, kind: type[Exception]) -> None:
    error = named_error(OSError(number, os.strerror(number)), "a/b")
    assert type(error) is kind
    assert str(error) == f"a/b: {os.strerror(number)}"
