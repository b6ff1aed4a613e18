"""Members of tar archives under names that look alike: in every layout each has its own name and its own bytes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardfs.blob import read_all
from shardfs.cache.memory import Memory
from shardfs.formats.webdataset.dataset import WebDataset
from shardfs.formats.webdataset.keys import place
from shardfs.model import ShardRef
from shardfs.options import Options
from shardfs.tree.inodes import FOLDER, SHARD_ROOT, Places
from shardfs.tree.records import KnownRecords, OpenShard
from shardfs.views.present import Presenter
from tests.fakes import FakeServices, MemoryStore
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Layout = Literal["record", "flat", "field"]

# Names of Zarr chunks, DICOM files, Lhotse cuts, and of files that were named twice.
BASES = (
    *("a.jpg", "a.jpg.jpg", "a.jpg.jpg.jpg", "a.JPG.jpg", "a.jpeg.jpg", "b.json.json", "a~1.jpg"),
    *("0.0.0", "0.0", "0.1.1.1", "1.2.840.1.1", "1.2.840.1", "1.2.840.1.1.1", "a.v1.v1", "a.v1"),
    *("sph2pipe-1089.0.0", "rec-1-0.wav.flac", "a.tar.tar", "a..txt", "a.txt.", "a.", "a.b~1.c"),
    *("noext", "a", "..jpg.jpg", ".jpg", ".zarray", "__meta__.jpg", "a~2.jpg", "a.nii.gz"),
)
FOLDERS = ("", "x/", "x.y/", "x.jpg.jpg/", "x/a/")
paths = st.builds("{}{}".format, st.sampled_from(FOLDERS), st.sampled_from(BASES))


def opened(names: Sequence[str], layout: Layout, *, raw: bool) -> OpenShard:
    """An archive of members that hold their number, a space and their path."""
    data = archive(*(member(name, f"{n} {name}".encode()) for n, name in enumerate(names)))
    shard = WebDataset.open(MemoryStore({"s.tar": data}), ["s.tar"], FakeServices()).open_shard(0)
    return OpenShard(
        shard,
        ShardRef("s", "s.tar", None, 0, ""),
        Presenter(Memory(1 << 20), raw=raw),
        Options(layout=layout, raw=raw),
        None,
        KnownRecords(),
        Places(shard.capacity),
    )


def walk(shard: OpenShard, folder: int = SHARD_ROOT, above: str = "") -> Iterator[tuple[str, str]]:
    """(path, content) of all files. Names of a folder are distinct and lead to what was listed."""
    items = list(shard.layout.scan(folder, 0))
    assert len({item.name for item in items}) == len(items)
    for item in items:
        assert shard.layout.find(folder, item.name) == (item.record, item.field)
        if item.field == FOLDER:
            yield from walk(shard, item.record, f"{above}{item.name}/")
        else:
            blob = shard.file(item.record, item.field).blob
            yield above + item.name, bytes(read_all(blob)).decode()


def unmarked(name: str) -> str:
    return re.sub(r"(~\d+)+(?=\.[^.]*$|$)", "", name)


def base(path: str) -> str:
    return path.rpartition("/")[2]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("layout", ["record", "flat", "field"])
@given(st.lists(paths, max_size=12))
@example(["a.jpg", "a.jpg", "a~1.jpg"])
@example(["x/a.jpg", "x/a~1.jpg", "x/a.jpg", "x/a.jpg", "x/a~2.jpg"])
@example(["a.jpg.jpg", "a.jpg", "a.jpg.jpg"])
def test_members_keep_their_names_and_bytes(layout: Layout, raw: bool, names: list[str]) -> None:
    shown = dict(walk(opened(names, layout, raw=raw)))
    stored = [f"{number} {name}" for number, name in enumerate(names)]
    assert sorted(shown.values()) == sorted(stored)
    seen: Counter[str] = Counter()
    for path, content in sorted(shown.items(), key=lambda item: int(item[1].partition(" ")[0])):
        member_name = content.partition(" ")[2]
        name = path.replace("%2F", "/") if layout == "field" else path
        seen[member_name] += 1
        if seen[member_name] == 1 and place(member_name.encode()).has_key:
            assert base(name) == base(member_name)
        else:  # the same path again, or a file without a key that yields its name to a record
            assert unmarked(base(name)) == unmarked(base(member_name))
