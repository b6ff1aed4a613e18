"""Arrays of numbers that somebody stored as bytes have no signature but by a chance that is nearly none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardfs.views.signatures import _TABLE, HEAD
from shardfs.views.sniff import extension

VOCABULARIES = (4, 16, 256, 1000, 32000, 50257)
# The first bytes of each format, as far as an array has them by chance.
BEGINNINGS = sorted({magic[:length] for magic, _, _ in _TABLE for length in (2, 3)})


def sniff(data: bytes) -> str:
    return extension(data[:HEAD], len(data))


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<u4", ">u4", "<i8", ">i8"])
def test_tokens_are_no_media(dtype: str) -> None:
    dice, found = np.random.default_rng(1), []
    for size in VOCABULARIES:
        for beginning in BEGINNINGS:
            for length in (20, 150):
                row = dice.integers(0, min(size, 256 if dtype == "u1" else size), length)
                data = row.astype(dtype).tobytes()
                found.append(sniff(beginning + data[len(beginning) :]))
    others = [suffix for suffix in found if suffix not in (".bin", ".txt")]
    assert len(others) <= len(found) // 500  # beginnings are none of chance, though


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_measurements_are_no_media(dtype: str) -> None:
    dice = np.random.default_rng(2)
    rows = (dice.normal(size=60).astype(dtype).tobytes() for _ in range(2000))
    assert {sniff(row) for row in rows} <= {".bin"}


@given(
    st.lists(st.integers(0, 50256), min_size=60, max_size=300),
    st.sampled_from(["<u2", "<u4", "<i8"]),
)
def test_tokens_that_begin_as_jpeg_xl(tokens: list[int], dtype: str) -> None:
    row = np.array([2815, *tokens]).astype(dtype)
    row[1:8] |= 1  # not all nothing
    assert sniff(row.tobytes()) == ".bin"
