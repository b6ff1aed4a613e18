"""Encodings as codecs."""

from __future__ import annotations

import random

import pytest

from shardfs.blob import Bytes
from shardfs.codecs.charset import Charset, CharsetPieces
from shardfs.codecs.pieces import Unsuited

TEXT = "".join(random.Random(1).choices("ab\n\xe9", k=50_000))
WIDE = "".join(random.Random(1).choices("ab\n数\U0001f98a", k=50_000))
CASES = [(name, TEXT) for name in ("latin-1", "cp1252")]
CASES += [(name, WIDE) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "gb18030")]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_streams_and_pieces_give_the_text(name: str, text: str) -> None:
    blob, codec = Bytes(text.encode(name)), Charset(name)
    stream, target, made = codec.stream(blob, 1 << 20), memoryview(bytearray(1000)), b""
    while count := stream.readinto1(target):
        made += target[:count]
    assert made == text.encode()
    pieces = list(CharsetPieces(name).pieces(blob, 100_000))
    assert len(pieces) > 3
    assert b"".join(piece.content or b"" for piece in pieces) == text.encode()
    assert pieces[-1].last == blob.size()
    for piece in pieces:
        part, again = CharsetPieces(name).open(
            Bytes(bytes(blob.read(piece.first, piece.last - piece.first))), piece.state
        )
        whole = memoryview(bytearray(piece.size + 1))
        assert again.stream(part, 1 << 20).readinto1(whole) == min(piece.size, piece.size)
        assert bytes(whole[: piece.size]) == piece.content


def test_text_without_lines_or_with_a_state_has_no_pieces() -> None:
    with pytest.raises(Unsuited):
        list(CharsetPieces("latin-1").pieces(Bytes(b"a" * 100_000), 100_000))
    with pytest.raises(Unsuited):
        list(CharsetPieces("iso2022_jp").pieces(Bytes(b"a\n" * 100_000), 100_000))


def test_what_can_not_be_decoded_stays() -> None:
    target = memoryview(bytearray(10))
    count = Charset("cp1252").stream(Bytes(b"a\x81b"), 99).readinto1(target)
    assert bytes(target[:count]) == b"a\x81b"
    count = Charset("utf-16-le").stream(Bytes(b"a\0b"), 99).readinto1(target)
    assert bytes(target[:count]) == b"a"
