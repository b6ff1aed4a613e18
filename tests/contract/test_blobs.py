from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard

from shardfs.blob import Blob, Bytes, Concat, Slice
from shardfs.cache.index import IndexCache
from shardfs.cache.memory import Derived, Memory
from shardfs.codecs.inflated import Inflated
from shardfs.codecs.zstd import Zstd
from shardfs.formats._tar_index import Checked, Part
from shardfs.formats._tar_sparse import Sparse
from shardfs.localfile import LocalFile
from shardfs.model import Array, Field
from shardfs.tree.listing import Remembered
from shardfs.views.present import Presenter
from tests.contract.blobs import CONTENT, BlobContract
from tests.fakes import SlowBlob
from tests.tar_files import archive, member

if TYPE_CHECKING:
    from pathlib import Path


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


class TestIndexCache(BlobContract):
    @pytest.fixture
    def blob(self, tmp_path: Path) -> Blob:
        cache = IndexCache(tmp_path, 1 << 20)
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
