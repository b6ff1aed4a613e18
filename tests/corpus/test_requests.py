"""What it costs to look at one picture in a large remote file, as the server counts it."""

from __future__ import annotations

import io
import random
import shutil
import struct
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.mounting import open_tree
from shardfs.options import Options
from tests.litdata_files import chunk, entry, index, mapping, record, spec
from tests.tar_files import archive, member
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNT = 150
MIB = 1 << 20


def pictures(size: int) -> list[bytes]:
    chance = random.Random(size)
    return [b"\xff\xd8\xff\xe0" + chance.randbytes(size + 100 * n) for n in range(COUNT)]


def litdata(images: list[bytes]) -> dict[str, bytes]:
    data = chunk(*(record(image, struct.pack("<q", n)) for n, image in enumerate(images)))
    fields = {"data_format": ["jpeg", "int"], "data_spec": spec(mapping("image", "label"))}
    return {"index.json": index(entry("x.bin", COUNT, len(data)), **fields), "x.bin": data}


def webdataset(images: list[bytes]) -> dict[str, bytes]:
    members = [
        part
        for n, image in enumerate(images)
        for part in (member(f"{n:06d}.jpg", image), member(f"{n:06d}.cls", b"5"))
    ]
    return {"x.tar": archive(*members)}


def parquet(images: list[bytes]) -> dict[str, bytes]:
    """As `datasets` writes it since 4.6: pictures uncompressed, pages cut by content, with an index of pages."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": image, "path": f"{n}.jpg"} for n, image in enumerate(images)]
    table = pa.table({"image": pa.array(rows, kind), "label": pa.array(range(COUNT))})
    file = io.BytesIO()
    pq.write_table(
        table,
        file,
        write_page_index=True,
        use_content_defined_chunking=True,
        compression={"image.bytes": "none", "image.path": "none", "label": "snappy"},
        use_dictionary=["label"],
    )
    return {"x.parquet": file.getvalue()}


# What makes the files, what is mounted, the picture, what it may cost beside its own bytes. In a Parquet file, the
# lengths of all values in a page are looked at, which may be 1 MiB by itself.
KINDS: dict[str, tuple[Any, str, str, int]] = {
    "litdata": (litdata, "", "image.jpg", MIB // 2),
    "webdataset": (webdataset, "x.tar", "{record}.jpg", MIB // 2),
    "parquet": (parquet, "x.parquet", "image.jpg", MIB + MIB // 2),
}


@pytest.fixture(scope="module", params=[30_000, 110_000], ids=["30 KB", "110 KB"])
def images(request: pytest.FixtureRequest) -> list[bytes]:
    return pictures(request.param)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str, images: list[bytes], tmp_path: Path) -> Iterator[WebServer]:
    """The files, and what only a scan tells of them in the cache."""
    with WebServer(KINDS[kind][0](images)) as server:
        with closing(open_tree(source(server, kind), Options(cache_dir=tmp_path))) as tree:
            if kind == "webdataset":
                list(tree.root.__truediv__("x").children())
        shutil.rmtree(tmp_path / "blocks", ignore_errors=True)
        server.forget()
        yield server


def source(server: WebServer, kind: str) -> str:
    return f"{server.url}/{KINDS[kind][1]}"


def test_a_picture_costs_few_requests_and_little_more_than_itself_and_nothing_again(
    server: WebServer, kind: str, images: list[bytes], tmp_path: Path
) -> None:
    for mount in range(2):
        with closing(open_tree(source(server, kind), Options(cache_dir=tmp_path))) as tree:
            assert len(server.requests) - len(server.data()) <= 1
            assert [r.path for r in server.data()] in ([], ["/index.json"])
            server.forget()
            for look in range(2):
                path = f"x/000077/{KINDS[kind][2].format(record='000077')}"
                assert bytes((tree.root / path).read()) == images[77]
                server.settle()
                if mount or look:
                    assert not server.data()
                else:
                    assert len(server.data()) <= 4
                    assert server.sent() <= len(images[77]) + KINDS[kind][3]
                server.forget()
