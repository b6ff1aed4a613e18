from __future__ import annotations

import struct

import numpy as np
import pytest

from shardfs.numbers import scalar_text


def test_every_half_is_the_same_again_and_no_longer_than_numpy_makes_it() -> None:
    for pattern in range(1 << 16):
        data = pattern.to_bytes(2, "little")
        value = np.frombuffer(data, "<f2")[0]
        got = scalar_text("<f2", data)
        assert got is not None
        if np.isnan(value):
            assert got == "nan"
            continue
        assert struct.pack("<e", float(got)) == data
        assert len(got) <= len(np.format_float_positional(value, trim="0"))


@pytest.mark.parametrize("exponent", range(1, 255))
def test_powers_of_two_have_uneven_neighbours(exponent: int) -> None:
    data = (exponent << 23).to_bytes(4, "little")
    got = scalar_text("<f4", data)
    assert got is not None
    assert np.float32(got).tobytes() == data
    value = np.frombuffer(data, "<f4")[0]
    fewest = np.format_float_scientific(value).partition("e")[0].replace(".", "")
    digits = got.partition("e")[0].replace(".", "").strip("0")
    # more digits only where they cost no room
    assert len(digits) <= len(fewest) or len(got) <= len(
        np.format_float_positional(value, trim="0")
    )
