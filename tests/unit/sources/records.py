"""A record of Zenodo for tests: what is in it, and ways to look at it."""

from __future__ import annotations

import io
import random
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.sources.zenodo import ZenodoStore
    from shardfs.tree.tree import Tree
    from tests.zenodo_server import ZenodoServer

CHANCE = random.Random(1)


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


TAR = archive(member("a.txt", b"first"), member("b.txt", b"second"))
MEMBERS = {f"d/{n:03d}.bin": CHANCE.randbytes(200_000) for n in range(60)}
FILES = {
    "d.zip": zipped(MEMBERS),
    "x.tar": TAR,
    "notes.txt": b"no shard",
    "owner/name-v1.zip": zipped({"a.txt": b"first"}),
    "empty": b"",
}


class OpenRecord(Protocol):
    """The fixture ``open_record``."""

    def __call__(self, source: str = "zenodo:123", **options: Any) -> ZenodoStore: ...


def mounted(cache: Path, source: str = "zenodo:123", **options: Any) -> closing[Tree]:
    return closing(open_tree(source, Options(cache_dir=cache, **options)))


def paths(record: ZenodoServer) -> list[str]:
    """What was asked for, behind the place of all records."""
    return [request.path.removeprefix("/api/records") for request in record.requests]
