"""The call of mount(8)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import console, helper, mounter
from shardfs.errors import Unreadable, UsageError
from shardfs.options import MountOptions, Options

if TYPE_CHECKING:
    from shardfs.cli.request import MountRequest


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[MountRequest]:
    """What would have been mounted."""
    requests: list[MountRequest] = []

    def take(request: MountRequest, messages: console.Log) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr(mounter, "mount", take)
    return requests


def test_an_fstab_line(asked: list[MountRequest]) -> None:
    options = r"rw,noauto,user=me,nosuid,x-systemd.idle-timeout=1min,allow_other,cache_dir=/c\,d"
    assert helper.main(["/data set", "/mnt", "-o", options]) == 0
    (request,) = asked
    assert request.source == "/data set"
    assert request.mount_point == Path("/mnt")
    assert request.settings == MountOptions(allow_other=True, fsname="shardfs:/data set")
    assert request.options == Options(cache_dir=Path("/c,d"))
    assert not request.run.foreground


def test_the_flags_of_mount(asked: list[MountRequest]) -> None:
    line = "hf://datasets/o/n /mnt -s -n -v -t fuse.shardfs -N 4 -o ro -o layout=flat"
    assert helper.main(shlex.split(line)) == 0
    assert asked[0].source == "hf://datasets/o/n"
    assert asked[0].options.layout == "flat"


def test_a_fake_mount(asked: list[MountRequest]) -> None:
    assert helper.main(["/src", "/mnt", "-f"]) == 0
    assert asked == []


def test_an_unknown_option(asked: list[MountRequest], capsys: pytest.CaptureFixture[str]) -> None:
    assert helper.main(["/src", "/mnt", "-o", "frob"]) == 1
    assert capsys.readouterr().err == "shardfs: -o frob: there is no such mount option\n"
    assert asked == []


@pytest.mark.parametrize(("error", "code"), [(UsageError("x"), 1), (Unreadable("x"), 32)])
def test_exit_codes_are_those_of_mount(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: MountRequest, messages: console.Log) -> int:
        raise error

    monkeypatch.setattr(mounter, "mount", fail)
    assert helper.main(["/src", "/mnt"]) == code
