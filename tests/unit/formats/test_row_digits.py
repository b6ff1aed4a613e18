"""The digits of row numbers, foretold where there can hardly be a doubt."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes
from shardfs.formats.shared.compressed import Content
from shardfs.formats.text.csv_rows import CsvRows
from shardfs.formats.text.json_lines import JsonLines
from shardfs.formats.text.row_digits import foretold
from shardfs.formats.text.rows import Text
from tests.fakes import FailingBlob, SlowBlob

if TYPE_CHECKING:
    from shardfs.blob import Blob

MB = 1 << 20


def text(blob: Blob, size: int | None) -> Text:
    return Text(blob, size, 0, JsonLines, 1 << 30)


def plain(blob: Blob, size: int) -> int | None:
    return foretold(Content(blob, size, size), text(blob, size), by_line=True)


@pytest.mark.parametrize(
    ("line", "digits"),
    [
        (b"x" * 99 + b"\n", 6),  # 80 thousand
        (b"x" * 9 + b"\n", 6),  # 840 thousand, all alike
        (b"x" * 7 + b"\n", 7),  # a million and 48 thousand
        (b"xx\n", 7),  # 2.8 million
    ],
)
def test_an_estimate_counts_where_it_is_far_from_other_digits(
    line: bytes, digits: int | None
) -> None:
    data = line * (8 * MB // len(line))
    assert plain(Bytes(data), len(data)) == digits


def test_a_number_of_lines_near_to_more_digits_is_counted() -> None:
    data = b"xxxxxxx\n" * 1_005_000
    assert plain(Bytes(data), len(data)) is None


def test_lines_of_all_lengths_leave_more_doubt() -> None:
    chance = random.Random(1)
    data = b"".join(b"x" * int(9.5 * chance.paretovariate(1.1)) + b"\n" for _ in range(300_000))
    rates = data.count(b"\n") / len(data)
    size = int(900_000 / rates)  # of 900 thousand such lines
    assert plain(Bytes((data * (size // len(data) + 1))[:size]), size) is None


def test_little_is_read() -> None:
    blob = SlowBlob(b"x" * 99 + b"\n" + bytes(32 * MB))
    assert plain(blob, blob.size()) == 6
    assert sum(length for _, length in blob.reads) <= MB


def test_a_file_that_is_sorted_by_length_does_not_deceive() -> None:
    data = (b"x" * 9999 + b"\n") * 400 + b"x\n" * (4 * MB)
    assert plain(Bytes(data), len(data)) != 6


def test_small_files_are_counted() -> None:
    assert plain(Bytes(b"1\n"), 2) is None


def test_compressed_rows_are_foretold_by_how_well_the_first_ones_compress() -> None:
    source = random.Random(1)
    blob = Bytes(b"".join(source.randbytes(500).hex().encode() + b"\n" for _ in range(500)))
    few = Content(blob, None, 50 * MB)
    many = Content(blob, None, 50_000 * MB)
    assert foretold(few, text(blob, None), by_line=True) == 6
    assert foretold(many, text(blob, None), by_line=True) != 6


def test_rows_that_are_no_lines_are_foretold_by_the_first_ones() -> None:
    data = (b'"' + b"\n" * 998 + b'"\n') * 9000
    rows = Text(Bytes(data), len(data), 0, partial(CsvRows, b","), 1 << 30)
    content = Content(Bytes(data), len(data), len(data))
    assert foretold(content, rows, by_line=False) == 6
    assert foretold(content, rows, by_line=True) == 7


def test_damage_leaves_it_to_the_count() -> None:
    blob = FailingBlob(bytes(8 * MB), 0)
    assert plain(blob, 8 * MB) is None


def test_few_places_are_enough_where_other_digits_are_far() -> None:
    for line, places in ((b"x" * 199 + b"\n", 4), (b"x" * 15 + b"\n", 20)):
        data = line * (8 * MB // len(line))
        blob = SlowBlob(data)
        assert plain(blob, len(data)) == 6
        assert len(blob.reads) == places
        # None lies across what is fetched together.
        assert all(at % 65536 == 0 for at, _ in blob.reads)
