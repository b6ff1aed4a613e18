from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard

from shardfs.blob import Blob, Bytes, Concat, Slice
from shardfs.cache.disk import DiskCache, Room
from shardfs.cache.memory import Derived, Memory
from shardfs.cache.spill import Spills
from shardfs.codecs import checked
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.unpacked import Means, Packed, Unpacked
from shardfs.codecs.zstd import Zstd
from shardfs.formats.webdataset.indexes import Checked, Part
from shardfs.formats.webdataset.sparse import Sparse
from shardfs.localfile import LocalFile
from shardfs.model import Array, Field
from shardfs.registry import CODECS, INDEXERS, load
from shardfs.tree.listing import Remembered
from shardfs.views.present import Presenter
from tests.contract.blobs import CONTENT, BlobContract
from tests.fakes import SlowBlob
from tests.packed_files import INDEXED, PLAIN
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path

ALL = {**INDEXED, **PLAIN}


class TestBytes(BlobContract):
    @pytest.fixture(params=[bytes, bytearray, memoryview])
    def blob(self, request: pytest.FixtureRequest) -> Blob:
        return Bytes(request.param(CONTENT))


class TestSlice(BlobContract):
    @pytest.fixture
    def blob(self) -> Blob:
        return Slice(Slice(Bytes(b"before" + CONTENT + b"behind"), 3, 2000), 3, len(CONTENT))


class TestConcat(BlobContract):
    @pytest.fixture(params=[[0], [5, 5, 600], [1] * 50, [len(CONTENT)], []])
    def blob(self, request: pytest.FixtureRequest) -> Blob:
        parts, start = [], 0
        for length in request.param:
            parts.append(CONTENT[start : start + length])
            start += length
        return Concat([*map(Bytes, parts), SlowBlob(CONTENT[start:])])


class TestSlowBlob(BlobContract):
    @pytest.fixture
    def blob(self) -> Blob:
        return SlowBlob(CONTENT)


class TestLocalFile(BlobContract):
    @pytest.fixture
    def blob(self, tmp_path: Path) -> Blob:
        file = tmp_path / "file"
        file.write_bytes(CONTENT)
        return LocalFile(str(file), "file")


class TestDiskCache(BlobContract):
    @pytest.fixture
    def blob(self, tmp_path: Path) -> Blob:
        cache = DiskCache(Room(tmp_path, 1 << 20), "index")
        cache.put("key", CONTENT)
        blob = cache.get("key")
        assert blob is not None
        return blob


class TestDerived(BlobContract):
    @pytest.fixture(params=[1 << 20, 0])
    def blob(self, request: pytest.FixtureRequest) -> Blob:
        return Derived(lambda: CONTENT, Memory(request.param))


class TestInflated(BlobContract):
    @pytest.fixture(params=[len(CONTENT), None])
    def blob(self, request: pytest.FixtureRequest) -> Blob:
        stored = SlowBlob(zstandard.compress(CONTENT))
        return Inflated(stored, Zstd, request.param, memory=Memory(1 << 20), limit=1 << 20)


class TestInflatedUnderPressure(BlobContract):
    """Two chunks share a budget that holds neither."""

    @pytest.fixture
    def blob(self) -> Blob:
        memory, stored = Memory(10), zstandard.compress(CONTENT)
        first, second = (
            Inflated(Bytes(stored), Zstd, len(CONTENT), memory=memory, limit=1 << 20)
            for _ in range(2)
        )
        middle = len(CONTENT) // 2
        return Concat([Slice(first, 0, middle), Slice(second, middle, len(CONTENT) - middle)])


class TestUnpacked(BlobContract):
    """By places to start from, by way of the disk, and anew each time."""

    @pytest.fixture(params=["gz", "zstd", "xz", "bz2", "lz4"])
    def codec(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(params=[True, False])
    def blob(self, request: pytest.FixtureRequest, codec: str, tmp_path: Path) -> Blob:
        stored = next(write for name, write in ALL.values() if name == codec)(CONTENT)
        room = Room(tmp_path, 1 << 20)
        means = Means(
            memory=Memory(1 << 20),
            index=DiskCache(room, "index") if request.param else None,
            spills=Spills(room) if request.param else None,
            report=lambda error: None,
            largest_piece=1 << 20,
            size_limit=1 << 20,
        )
        kinds = {row.name: row for row in INDEXERS}
        packed = Packed(
            blob=SlowBlob(stored),
            codec=load("codecs", next(row for row in CODECS if row.name == codec)),
            indexer=load("codecs", kinds[codec])() if codec in kinds else None,
            name="file",
            key="key",
        )
        return Unpacked(packed, means)


class TestCheckedByItsSum(BlobContract):
    @pytest.fixture
    def blob(self) -> Blob:
        return checked.Checked(SlowBlob(CONTENT), zlib.crc32(CONTENT), "file")


class TestRemembered(BlobContract):
    @pytest.fixture
    def blob(self) -> Blob:
        return Remembered(len(CONTENT), lambda file: SlowBlob(CONTENT), 0)


class TestArrayFile(BlobContract):
    """A header in front of stored bytes."""

    @pytest.fixture
    def blob(self) -> Blob:
        field = Field("a", Array("|u1", (13, 99)), SlowBlob(CONTENT))
        (file,) = Presenter(Memory(1 << 20), raw=False).files((field,))
        return file.blob

    @pytest.fixture
    def content(self) -> bytes:
        file = io.BytesIO()
        np.save(file, np.frombuffer(CONTENT, np.uint8).reshape(13, 99))
        return file.getvalue()


class TestSparse(BlobContract):
    """Parts of a file with holes between them."""

    @pytest.fixture
    def blob(self) -> Blob:
        return Sparse(SlowBlob(b"head" + CONTENT), 4, 3000, [100, 700, 800, 1, 2000, 586])

    @pytest.fixture
    def content(self) -> bytes:
        content = bytearray(3000)
        content[100:800], content[800:801] = CONTENT[:700], CONTENT[700:701]
        content[2000:2586] = CONTENT[701:]
        return bytes(content)


class TestTarMemberByAnIndex(BlobContract):
    @pytest.fixture
    def blob(self) -> Blob:
        data = archive(member("a.bin", CONTENT))
        return Checked(SlowBlob(data), Part(b"a.bin", 512, len(CONTENT)))
