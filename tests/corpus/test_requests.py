"""What it costs to look at one field of a large remote file, as the server counts it."""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import zipfile
from contextlib import closing
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pyarrow import ipc
from pyarrow import parquet as pq

from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.litdata_files import chunk, entry, index, mapping, record, spec
from tests.tar_files import archive, member
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from shardfs.tree.tree import Tree

COUNT, ROW = 150, 77
KIB, MIB = 1 << 10, 1 << 20
LABEL = b"a label of two hundred bytes or so".ljust(200, b".")


def pictures(size: int, count: int = COUNT) -> list[bytes]:
    chance = random.Random(size)
    return [b"\xff\xd8\xff\xe0" + chance.randbytes(size + size // 300 * n) for n in range(count)]


def litdata(images: Sequence[bytes]) -> dict[str, bytes]:
    data = chunk(*(record(image, LABEL) for image in images))
    fields = {"data_format": ["jpeg", "str"], "data_spec": spec(mapping("image", "label"))}
    return {"index.json": index(entry("x.bin", len(images), len(data)), **fields), "x.bin": data}


def mds(images: Sequence[bytes]) -> dict[str, bytes]:
    columns = {
        "column_names": ["image", "label"],
        "column_encodings": ["jpeg", "str"],
        "column_sizes": [None, None],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": None,
        "version": 2,
    }
    data = chunk(*(record(image, LABEL) for image in images))  # the same but for the config text
    raw = {"basename": "x.mds", "bytes": len(data), "hashes": {}}
    shard = {**columns, "raw_data": raw, "samples": len(images), "zip_data": None}
    return {"index.json": json.dumps({"shards": [shard], "version": 2}).encode(), "x.mds": data}


def webdataset(images: Sequence[bytes]) -> dict[str, bytes]:
    members = [
        part
        for n, image in enumerate(images)
        for part in (member(f"{n:06d}.jpg", image), member(f"{n:06d}.txt", LABEL))
    ]
    return {"x.tar": archive(*members)}


def zipped(images: Sequence[bytes]) -> dict[str, bytes]:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for n, image in enumerate(images):
            made.writestr(f"{n:06d}.jpg", image)
            made.writestr(f"{n:06d}.txt", LABEL)
    return {"x.zip": file.getvalue()}


def table(images: Sequence[bytes], columns: int = 0) -> pa.Table:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": image, "path": f"{n}.jpg"} for n, image in enumerate(images)]
    label = [LABEL.decode()] * len(images)
    more = {f"more_{n}": [f"{n} {row}" for row in range(len(images))] for n in range(columns)}
    return pa.table({"image": pa.array(rows, kind), "label": label, **more})


def parquet(images: Sequence[bytes], *, columns: int = 0, **options: Any) -> dict[str, bytes]:
    """As `datasets` writes it since 4.6: pictures uncompressed, pages cut by content, with an index of pages."""
    made, file = table(images, columns), io.BytesIO()
    packed = dict.fromkeys((name for name in made.column_names if name != "image"), "snappy")
    pq.write_table(
        made,
        file,
        write_page_index=True,
        use_content_defined_chunking=True,
        compression={"image.bytes": "none", "image.path": "none", **packed},
        use_dictionary=list(packed),
        **options,
    )
    return {"x.parquet": file.getvalue()}


def groups(images: Sequence[bytes]) -> dict[str, bytes]:
    """The same in several row groups, so that small columns lie far from the footer."""
    return parquet(images, row_group_size=len(images) // 3)


def wide(images: Sequence[bytes]) -> dict[str, bytes]:
    """The same with a footer of 200 KB."""
    made = parquet(images, columns=40, row_group_size=4)
    (length,) = struct.unpack("<I", made["x.parquet"][-8:-4])
    assert 150 * KIB < length < 250 * KIB
    return made


def arrow(images: Sequence[bytes]) -> dict[str, bytes]:
    sink, made = pa.BufferOutputStream(), table(images)
    with ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=40)
    return {"x.arrow": sink.getvalue().to_pybytes()}


class Case(NamedTuple):
    """Files, what of them is mounted, two fields of a record, and what a look at one may cost.

    Attributes:
        spare: bytes beside those of the picture.
        requests: after mounting; the size of the shard is one of them where an index names it.
    """

    make: Callable[[Sequence[bytes]], dict[str, bytes]]
    source: str
    image: str
    label: str
    spare: int
    requests: int


FIELDS = f"x/{ROW:06d}/image.jpg", f"x/{ROW:06d}/label.txt"
MEMBERS = f"x/{ROW:06d}/{ROW:06d}.jpg", f"x/{ROW:06d}/{ROW:06d}.txt"
CASES = {
    "litdata": Case(litdata, "", *FIELDS, MIB // 2, 3),
    "mds": Case(mds, "", *FIELDS, MIB // 2, 3),
    "tar": Case(webdataset, "x.tar", *MEMBERS, MIB // 4, 2),
    "zip": Case(zipped, "x.zip", f"{ROW:06d}.jpg", f"{ROW:06d}.txt", MIB // 2, 3),
    "parquet": Case(parquet, "x.parquet", *FIELDS, MIB, 4),
    # The last picture in its page, so that most of that lies before it: how much depends on the version of pyarrow.
    "row groups": Case(groups, "x.parquet", *FIELDS, MIB + MIB // 2, 4),
    "large footer": Case(wide, "x.parquet", *FIELDS, MIB, 4),
    # Where batches or pages lie, they tell themselves: a block each.
    "arrow": Case(arrow, "x.arrow", *FIELDS, MIB + MIB // 2, 8),
}


@pytest.fixture(scope="module", params=[30_000, 110_000], ids=["30 KB", "110 KB"])
def images(request: pytest.FixtureRequest) -> list[bytes]:
    return pictures(request.param)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def server(case: Case, images: list[bytes], tmp_path: Path) -> Iterator[WebServer]:
    """The files, and what only a scan tells of them in the cache."""
    with WebServer(case.make(images)) as server:
        if case.make is webdataset:
            scan(server, "x.tar", tmp_path)
        yield server


def scan(server: WebServer, source: str, cache: Path) -> None:
    with mounted(server, source, cache) as tree:
        list((tree.root / "x").children())
    shutil.rmtree(cache / "blocks", ignore_errors=True)
    server.forget()


def mounted(server: WebServer, source: str, cache: Path) -> closing[Tree]:
    return closing(open_tree(f"{server.url}/{source}", Options(cache_dir=cache)))


def test_a_picture_costs_few_requests_and_little_more_than_itself_and_nothing_again(
    server: WebServer, case: Case, images: list[bytes], tmp_path: Path
) -> None:
    for mount in range(2):
        with mounted(server, case.source, tmp_path) as tree:
            assert len(server.requests) == (1 if case.make is not zipped or mount else 2)
            for look in range(2):
                assert bytes((tree.root / case.image).read()) == images[ROW]
                server.settle()
                if mount or look:
                    assert not server.data()
                else:
                    assert len(server.requests) <= case.requests
                    assert server.sent() <= len(images[ROW]) + case.spare
                server.forget()


def test_a_small_field_costs_no_more_than_a_picture(
    server: WebServer, case: Case, images: list[bytes], tmp_path: Path
) -> None:
    with mounted(server, case.source, tmp_path) as tree:
        assert bytes((tree.root / case.label).read()) == LABEL
        server.settle()
        assert len(server.requests) <= case.requests
        assert server.sent() <= len(images[ROW]) + case.spare


def test_a_record_is_listed_without_its_bytes(
    server: WebServer, case: Case, images: list[bytes], tmp_path: Path
) -> None:
    with mounted(server, case.source, tmp_path) as tree:
        sizes = [n.size for n in (tree.root / case.image.rpartition("/")[0]).children()]
        assert len(images[ROW]) in sizes
        server.settle()
        assert len(server.requests) <= case.requests
        assert server.sent() <= len(images[ROW]) + case.spare


@pytest.mark.parametrize(
    ("size", "count"), [(5_000, 3000), (110_000, 100), (700_000, 20), (3_000_000, 6)], ids=str
)
@pytest.mark.parametrize("make", [parquet, groups])
def test_a_picture_anywhere_in_a_parquet_file(
    make: Callable[[Sequence[bytes]], dict[str, bytes]], size: int, count: int, tmp_path: Path
) -> None:
    images = pictures(size, count)
    spare, requests = [], []
    with WebServer(make(images)) as server:
        for row in [*range(0, count, -(-count // 13)), count - 1]:
            with closing(open_tree(f"{server.url}/x.parquet", Options(disk_cache=False))) as tree:
                server.forget()
                assert bytes((tree.root / f"x/{row:06d}/image.jpg").read()) == images[row]
                server.settle()
                spare.append(server.sent() - len(images[row]))
                requests.append(len(server.data()))
    # What lies before it in its page, up to 1 MiB, has to be gone through; a long one comes by several requests.
    assert fmean(spare) <= MIB
    assert max(spare) <= MIB + MIB // 2
    assert max(requests) <= 4 + size // (2 * MIB)


def lines(count: int) -> bytes:
    rows = ({"label": LABEL.decode(), "text": f"{n} " * (600 + n % 40)} for n in range(count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def cells(count: int) -> bytes:
    rows = (b"%b,%b\n" % (LABEL, b"%d " % n * (600 + n % 40)) for n in range(count))
    return b"label,text\n" + b"".join(rows)


@pytest.mark.parametrize("make", [lines, cells])
def test_a_row_of_a_large_text_file(make: Callable[[int], bytes], tmp_path: Path) -> None:
    source = "x.jsonl" if make is lines else "x.csv"
    with WebServer({source: make(4000)}) as server:
        with closing(open_tree(f"{server.url}/{source}", Options(disk_cache=False))) as tree:
            assert bytes((tree.root / "x/000010/label.txt").read()) == LABEL
            server.settle()
            # Where rows begin is not known, and how many there are is estimated in a few places.
            assert server.sent() <= MIB + MIB // 4
            assert len(server.data()) <= 6
        scan(server, source, tmp_path)
        with mounted(server, source, tmp_path) as tree:
            assert bytes((tree.root / "x/002000/label.txt").read()) == LABEL
            server.settle()
            assert server.sent() <= MIB // 2 + 1
            assert len(server.data()) <= 2


def test_an_arrow_stream_is_walked_through_by_small_steps(tmp_path: Path) -> None:
    images = pictures(110_000)
    sink, made = pa.BufferOutputStream(), table(images)
    with ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=30)
    with (
        WebServer({"x.arrow": sink.getvalue().to_pybytes()}) as server,
        mounted(server, "x.arrow", tmp_path) as tree,
    ):
        assert bytes((tree.root / FIELDS[1]).read()) == LABEL
        server.settle()
        assert server.sent() <= len(images[ROW]) + MIB + MIB // 4


def test_many_archives_are_asked_for_indexes_once(tmp_path: Path) -> None:
    tar = archive(member("a.txt", b"first"), member("b.txt", b"second"))
    files = {f"x-{n:02d}.tar": tar for n in range(40)}
    with (
        WebServer(files) as server,
        mounted(server, "x-{00..39}.tar", tmp_path) as tree,
    ):
        for shard in tree.root.children():
            assert bytes((shard / "a/a.txt").read()) == b"first"
        missing = [request.path for request in server.requests if request.status == 404]
        assert missing == ["/x-00.json", "/.nv-meta/.info.json"]
