"""What holds for every blob."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import no_wait
from shardfs.errors import WouldBlock

if TYPE_CHECKING:
    from shardfs.blob import Blob

CONTENT = bytes(range(256)) * 5 + b"the end"


class BlobContract:
    """A subclass gives a blob of ``CONTENT``, or of other content that it gives, too."""

    @pytest.fixture
    def blob(self) -> Blob:
        raise NotImplementedError

    @pytest.fixture
    def content(self) -> bytes:
        return CONTENT

    def test_its_size_is_exact_at_every_call(self, blob: Blob, content: bytes) -> None:
        assert blob.size() == len(content)
        blob.read(0, 1)
        assert blob.size() == len(content)

    def test_it_reads_like_bytes(self, blob: Blob, content: bytes) -> None:
        chance = random.Random(1)
        for _ in range(200):
            offset, length = chance.randrange(len(content) + 9), chance.randrange(len(content))
            assert bytes(blob.read(offset, length)) == content[offset : offset + length]

    def test_it_is_short_only_where_it_ends(self, blob: Blob, content: bytes) -> None:
        size = len(content)
        assert bytes(blob.read(size - 3, 100)) == content[-3:]
        assert bytes(blob.read(0, 1 << 40)) == content
        for offset in (size, size + 1, 1 << 40):
            assert bytes(blob.read(offset, 10)) == b""

    def test_nothing_is_read_where_nothing_is_asked(self, blob: Blob, content: bytes) -> None:
        for offset in (0, 5, len(content), 1 << 40):
            assert bytes(blob.read(offset, 0)) == b""
        assert bytes(blob.read(3, -1)) == b""

    def test_it_begins_at_its_beginning(self, blob: Blob, content: bytes) -> None:
        assert bytes(blob.read(-5, 3)) == content[:3]

    def test_what_it_reads_is_bytes_one_after_another(self, blob: Blob, content: bytes) -> None:
        for data in (blob.read(0, 100), blob.read(0, 0)):
            assert isinstance(data, memoryview)
            assert (data.itemsize, data.ndim, data.contiguous) == (1, 1, True)

    def test_what_it_has_read_stays_as_it_is(self, blob: Blob, content: bytes) -> None:
        first = blob.read(0, 100)
        blob.read(500, 600)
        blob.read(0, 100)
        assert bytes(first) == content[:100]

    def test_without_waiting_it_answers_right_or_would_block(
        self, blob: Blob, content: bytes
    ) -> None:
        for _ in range(2):
            for offset in (0, 700, len(content)):
                try:
                    with no_wait():
                        assert bytes(blob.read(offset, 50)) == content[offset : offset + 50]
                        assert blob.size() == len(content)
                except WouldBlock:
                    pass
                assert bytes(blob.read(offset, 50)) == content[offset : offset + 50]

    def test_many_threads_read_it(self, blob: Blob, content: bytes) -> None:
        def read(number: int) -> bool:
            offset = number * 37 % len(content)
            return bytes(blob.read(offset, 60)) == content[offset : offset + 60]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(200)))
