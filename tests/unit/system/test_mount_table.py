"""The kernel's mount table, and what is unmounted and what never."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardfs.errors import NotFound
from shardfs.system import mount_table
from shardfs.system.mount_table import Mount

TABLE = rb"""22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw
30 28 8:1 /sub /data\040set rw shared:1 master:2 - ext4 /dev/sda1 rw,errors=x
31 30 0:51 / /data\040set/m\134n\011t\012x\043 ro,nosuid,nodev - fuse.shardfs shardfs:/a\040b ro,user_id=0
32 28 0:52 / /mnt\303\274 ro - fuse.shardfs shardfs:x ro,user_id=1000
33 28 0:53 / /odd\377 ro - fuse.sshfs host: rw
half a line
34 28 0:54 / /mnt\303\274 ro - tmpfs none rw
"""


def test_lines_with_and_without_optional_fields() -> None:
    assert mount_table.parse(TABLE)[:2] == [
        Mount("/sys", "0:20", "sysfs", "sysfs"),
        Mount("/data set", "8:1", "ext4", "/dev/sda1"),
    ]


def test_octal_escapes_become_bytes() -> None:
    ours = mount_table.parse(TABLE)[2]
    assert ours == Mount("/data set/m\\n\tt\nx#", "0:51", "fuse.shardfs", "shardfs:/a b")
    assert ours.is_ours


def test_undecodable_names_survive() -> None:
    assert mount_table.parse(TABLE)[4].path == "/odd\udcff"


def test_only_our_type_is_ours() -> None:
    assert [m.device for m in mount_table.parse(TABLE) if m.is_ours] == ["0:51", "0:52"]


@pytest.mark.parametrize("text", [b"", b"\n\n", b" - ", b"a b c d e f - ", rb"\999 - \1 - \n"])
def test_nonsense_gives_no_mounts(text: bytes) -> None:
    assert mount_table.parse(text) == []


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "mountinfo"
    file.write_bytes(TABLE)
    monkeypatch.setattr(mount_table, "_MOUNTINFO", file)
    return file


@pytest.mark.usefixtures("table")
def test_the_uppermost_of_several_mounts_counts() -> None:
    found = mount_table.top("/mntü")
    assert found is not None
    assert found.type == "tmpfs"
    assert mount_table.top("/mnt") is None


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("path", ["/nowhere", "/sys", "/odd\udcff", "/mntü"])
def test_nothing_but_our_own_is_ever_unmounted(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(path: str, *, lazy: bool) -> None:
        raise AssertionError(f"{path} would have been unmounted")

    monkeypatch.setattr(mount_table, "_unmount", never)
    with pytest.raises(NotFound):
        mount_table.unmount(path)


def test_the_real_table_has_a_root() -> None:
    assert mount_table.top("/") is not None


def test_a_live_file_system_is_not_dead() -> None:
    root = mount_table.top("/")
    assert root is not None
    assert not mount_table.is_dead(root)


def test_places_are_found_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    real = str(tmp_path.resolve() / "real")
    assert mount_table.locate(Path("link")) == real
    assert mount_table.locate(Path("real/")) == real
    assert mount_table.locate(Path("link/../real/new")) == f"{real}/new"
