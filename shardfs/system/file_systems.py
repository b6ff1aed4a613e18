"""What can be relied on in the file systems of this machine, by their types in the kernel's mount table."""

from __future__ import annotations

import os
from typing import NamedTuple

from shardfs.system import mount_table

# Of these, a file keeps its inode number, and no other has it meanwhile. Others make numbers up as they go (FAT, many
# FUSE file systems).
_CLASSIC = frozenset(("ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "xfs"))
_NUMBERED_NEARBY = _CLASSIC | {"bcachefs", "btrfs", "erofs", "overlay", "squashfs", "tmpfs", "zfs"}
_NUMBERED = _NUMBERED_NEARBY | {"ceph", "gpfs", "lustre", "nfs", "nfs4"}
_NEARBY = _NUMBERED_NEARBY | {"exfat", "iso9660", "msdos", "ntfs3", "udf", "vfat"}


class Traits(NamedTuple):
    """What holds for the files of a file system.

    Attributes:
        numbered: a file's inode number tells it from all others, and stays.
        nearby: asking for attributes waits for no server and no other process.
        ours: it is a mount of shardfs.
    """

    numbered: bool
    nearby: bool
    ours: bool


class FileSystems:
    """The file systems that some files lie on; each is looked up once."""

    def __init__(self) -> None:
        self._known: dict[int, Traits] = {}

    def traits(self, device: int, place: str) -> Traits:
        """Those of the file system with the number *device*, which *place* lies on."""
        known = self._known.get(device)
        if known is None:
            kind = _type(device, place)
            known = Traits(kind in _NUMBERED, kind in _NEARBY, kind == mount_table.TYPE)
            self._known[device] = known
        return known


def _type(device: int, place: str) -> str:
    mounts = mount_table.read()
    number = f"{os.major(device)}:{os.minor(device)}"
    for mount in mounts:
        if mount.device == number:
            return mount.type
    # Subvolumes of Btrfs and layers of overlayfs have numbers that are not in the table.
    real = os.path.realpath(place)
    above = [mount for mount in mounts if real.startswith(mount.path.rstrip("/") + "/")]
    return max(above, key=lambda mount: len(mount.path)).type if above else ""
