"""What the machine may lack, and what the user is told then."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import UsageError
from shardfs.options import MountOptions
from shardfs.system import environment

if TYPE_CHECKING:
    from pathlib import Path


def test_no_device(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \S+/fuse: .*modprobe fuse"):
        environment.check_device(str(tmp_path / "fuse"))


def test_what_is_called_fuse_and_is_no_fuse_device_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "file", tmp_path / "folder", "/dev/null"):
        with pytest.raises(UsageError, match=f"^{place} is no FUSE device; .*mknod .* c 10 229"):
            environment.check_device(str(place))


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.EACCES, r"Permission denied; .*chmod 666"),
        (errno.EPERM, r"not permitted; .*--device"),
        (errno.ENODEV, "modprobe"),
    ],
)
def test_a_device_that_may_not_be_opened(
    number: int, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match=cure):
        environment.check_device("/dev/fuse")


def test_an_ordinary_user_needs_fusermount3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "check_device", lambda device: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="fusermount3 is not installed"):
        environment.check(MountOptions())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    environment.check(MountOptions(allow_other=True))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("user_allow_other\n", True),
        ("# a\n  user_allow_other  \n", True),
        ("#user_allow_other\n", False),
        ("user_allow_others\n", False),
        ("", False),
        (None, False),
    ],
)
def test_others_are_let_in_only_where_the_administrator_says_so(
    text: str | None, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "fuse.conf"
    if text is not None:
        conf.write_text(text)
    monkeypatch.setattr(environment, "check_device", lambda device: None)
    monkeypatch.setattr(environment, "_FUSE_CONF", conf)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    environment.check(MountOptions())
    for settings in (MountOptions(allow_other=True), MountOptions(allow_root=True)):
        if allowed:
            environment.check(settings)
        else:
            with pytest.raises(UsageError, match="user_allow_other in"):
                environment.check(settings)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "/m: libfuse gives no reason"),
        ("fuse: unknown option", "/m: unknown option"),
        ("fusermount3: mount failed: Operation not permitted", "apparmor"),
        ("fusermount3: user has no write access to mountpoint /m", "user has no write access"),
        ("fuse: a; fusermount3: b", "/m: a; b"),
    ],
)
def test_refusals_come_with_a_cure(words: str, told: str) -> None:
    assert told in str(environment.refusal("/m", words))
