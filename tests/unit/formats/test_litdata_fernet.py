"""Fernet tokens are read as the package that writes them reads them, and never before they are found to be right."""

from __future__ import annotations

import base64
import random
import tracemalloc

import cryptography.fernet
import pytest

from shardfs.blob import Bytes, read_all
from shardfs.formats.litdata.fernet import Fernet, WrongToken

KEY = bytes(range(32))
WRITER = cryptography.fernet.Fernet(base64.urlsafe_b64encode(KEY))


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 46, 47, 48, 1000, 3 * (64 << 10), 1_000_003])
def test_what_was_encrypted_comes_back(size: int) -> None:
    plain = random.Random(size).randbytes(size)
    found = Fernet(Bytes(WRITER.encrypt(plain)), KEY)
    assert found.size() == size
    assert bytes(read_all(found)) == plain


def test_any_part_of_it_can_be_read() -> None:
    plain = random.Random(1).randbytes(1_000_003)
    found = Fernet(Bytes(WRITER.encrypt(plain)), KEY)
    dice = random.Random(2)
    for _ in range(300):
        offset, length = dice.randrange(len(plain) + 50), dice.choice([0, 1, 15, 17, 100, 400_000])
        assert bytes(found.read(offset, length)) == plain[offset : offset + length]


def test_a_large_token_costs_little() -> None:
    token = Bytes(WRITER.encrypt(bytes(8 << 20)))
    tracemalloc.start()
    try:
        found = Fernet(token, KEY)
        for offset in range(0, found.size(), 128 << 10):
            found.read(offset, 128 << 10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 << 20


def test_every_character_counts() -> None:
    for size in (5, 16, 40):  # each with another end of its base64 text
        token = WRITER.encrypt(bytes(size))
        for at in range(len(token)):
            for other in (b"A", b"B", b"=", b"\n", b"\xff"):
                changed = token[:at] + other + token[at + 1 :]
                try:
                    expected = WRITER.decrypt(changed)
                except cryptography.fernet.InvalidToken:
                    with pytest.raises(WrongToken):
                        Fernet(Bytes(changed), KEY)
                else:  # bits behind the end of base64 text mean nothing
                    assert bytes(read_all(Fernet(Bytes(changed), KEY))) == expected


def test_every_cut_is_told() -> None:
    token = WRITER.encrypt(bytes(40))
    for stop in range(len(token)):
        with pytest.raises(WrongToken):
            Fernet(Bytes(token[:stop]), KEY)
    with pytest.raises(WrongToken):
        Fernet(Bytes(token + token), KEY)


def test_either_half_of_the_key_counts() -> None:
    token = Bytes(WRITER.encrypt(bytes(40)))
    with pytest.raises(WrongToken):
        Fernet(token, bytes(16) + KEY[16:])
    with pytest.raises(WrongToken):
        # The signature fits, but what comes of it has no padding.
        Fernet(token, KEY[:16] + bytes(16))
