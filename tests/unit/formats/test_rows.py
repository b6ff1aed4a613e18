"""Rows of a text: found piece by piece, marked, kept, and looked up again."""

from __future__ import annotations

import threading
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from shardfs.blob import Bytes, no_wait
from shardfs.errors import Corrupt, Unreadable, WouldBlock
from shardfs.formats.text import rows as _rows
from shardfs.formats.text.csv_rows import CsvRows
from shardfs.formats.text.json_lines import JsonLines
from shardfs.formats.text.line_rows import AllLines
from shardfs.formats.text.rows import Rows, Table, Text
from tests.fakes import FailingBlob, SlowBlob

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardfs.blob import Blob
    from shardfs.formats.text.rows import Finder


class Kept:
    """Takes the packed table."""

    def __init__(self) -> None:
        self.tables: list[bytes] = []
        self.reports: list[str] = []

    def keep(self, packed: bytes) -> Blob:
        self.tables.append(packed)
        return Bytes(packed)


def rows_of(
    blob: Blob,
    finder: Callable[[], Finder] = JsonLines,
    *,
    kept: Kept | None = None,
    size: int | None = None,
    limit: int = 1 << 20,
    table: Table | None = None,
    digits: int | None = None,
) -> Rows:
    kept = kept or Kept()
    text = Text(blob, size, 0, finder, limit)
    return Rows(text, table, keep=kept.keep, digits=lambda: digits, report=kept.reports.append)


def spans(rows: Rows) -> list[tuple[int, int]]:
    return [rows.span(index) for index in range(len(rows))]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and marks so small that a few bytes have many of them."""
    monkeypatch.setattr(_rows, "PIECE", 16)
    monkeypatch.setattr(_rows, "_BETWEEN_MARKS", 8)


LINES = b"".join(b"%d%s\n" % (n, b"x" * (n % 30)) for n in range(200))
STARTS = [0, *(at + 1 for at, byte in enumerate(LINES) if byte == 10)]
SPANS = list(pairwise(STARTS))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [len(LINES), None])
@pytest.mark.parametrize("finder", [JsonLines, AllLines, partial(CsvRows, b",")])
def test_every_row_reaches_to_the_next_one(finder: Callable[[], Finder], size: int | None) -> None:
    assert spans(rows_of(Bytes(LINES), finder, size=size)) == SPANS


@pytest.mark.usefixtures("small")
def test_rows_are_found_backwards_too() -> None:
    rows = rows_of(Bytes(LINES))
    assert [rows.span(index) for index in reversed(range(200))] == SPANS[::-1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("data", [b"", b"\n", b" \n\r\n\t"])
def test_nothing_has_no_rows(data: bytes) -> None:
    rows = rows_of(Bytes(data))
    assert (len(rows), rows.has(0), rows.digits) == (0, False, 6)
    with pytest.raises(IndexError):
        rows.span(0)


def test_a_row_is_there_before_the_end_was_reached() -> None:
    blob = SlowBlob(b"1\n" * (4 * _rows.PIECE))
    rows = rows_of(blob)
    assert rows.has(5)
    assert rows.span(5) == (10, 12)
    assert sum(length for _, length in blob.reads) <= _rows.PIECE + (64 << 10)


def test_only_who_may_wait_looks_on() -> None:
    rows = rows_of(SlowBlob(b"1\n2\n"))
    with no_wait(), pytest.raises(WouldBlock):
        rows.has(0)
    assert len(rows) == 2
    with no_wait():
        assert rows.has(1)
        assert not rows.has(2)


@pytest.mark.usefixtures("small")
def test_many_threads_look_once() -> None:
    blob = SlowBlob(LINES)
    rows = rows_of(blob)
    found: list[list[tuple[int, int]]] = []
    threads = [threading.Thread(target=lambda: found.append(spans(rows))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [SPANS] * 8
    assert sum(length == 16 for _, length in blob.reads) < 2 * len(LINES) / 16


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("small_table", [1 << 20, 0], ids=["in memory", "read when needed"])
def test_a_kept_table_is_not_made_again(monkeypatch: pytest.MonkeyPatch, small_table: int) -> None:
    monkeypatch.setattr(_rows, "_SMALL", small_table)
    kept = Kept()
    assert spans(rows_of(Bytes(LINES), kept=kept)) == SPANS
    (packed,) = kept.tables
    blob = SlowBlob(LINES)
    again = rows_of(blob, kept=kept, table=Table.load(Bytes(packed)))
    assert (len(again), again.digits, blob.reads) == (200, 6, [])
    assert spans(again) == SPANS
    assert len(kept.tables) == 1
    assert len(packed) <= 32 + 16 * (len(LINES) // 8)


def test_a_table_of_another_text_is_noticed() -> None:
    kept = Kept()
    len(rows_of(Bytes(b"1\n2\n3\n"), kept=kept))
    again = rows_of(Bytes(b"1 2 3\n"), table=Table.load(Bytes(kept.tables[0])))
    with pytest.raises(Corrupt, match="rebuild-index"):
        again.span(1)


@pytest.mark.parametrize("damage", [lambda t: t[:20], lambda t: t[:-1], lambda t: t + b"x"])
def test_a_damaged_table_is_none(damage: Callable[[bytes], bytes]) -> None:
    kept = Kept()
    len(rows_of(Bytes(LINES), kept=kept))
    with pytest.raises(Corrupt):
        Table.load(Bytes(damage(kept.tables[0])))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("damaged_at", range(0, 60, 7))
def test_rows_before_damage_are_right_and_the_one_in_it_fails(damaged_at: int) -> None:
    kept = Kept()
    rows = rows_of(FailingBlob(LINES, damaged_at), kept=kept)
    whole = [span for span in SPANS if span[1] <= damaged_at]
    assert len(rows) == len(whole) + 1
    assert [rows.span(index) for index in range(len(whole))] == whole
    with pytest.raises(Corrupt, match="injected"):
        rows.span(len(whole))
    assert kept.reports == [f"injected at {damaged_at}"]


@pytest.mark.usefixtures("small")
def test_a_kept_table_tells_of_the_damage() -> None:
    kept = Kept()
    len(rows_of(FailingBlob(LINES, 30), kept=kept))
    again = rows_of(FailingBlob(LINES, 30), kept=kept, table=Table.load(Bytes(kept.tables[0])))
    with pytest.raises(Corrupt, match="injected"):
        again.span(len(again) - 1)
    assert kept.reports == ["injected at 30"] * 2


class Flaky(SlowBlob):
    """Fails once at every new place."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._tried: set[int] = set()

    def read(self, offset: int, length: int, /) -> memoryview:
        if offset not in self._tried:
            self._tried.add(offset)
            raise Unreadable("try again")
        return super().read(offset, length)


@pytest.mark.usefixtures("small")
def test_what_may_go_better_is_tried_again() -> None:
    rows, tries = rows_of(Flaky(LINES)), 0
    while tries < 1000:
        try:
            assert len(rows) == 200
            break
        except Unreadable:
            tries += 1
    assert 0 < tries < 1000


@pytest.mark.usefixtures("small")
def test_more_rows_than_there_is_room_for_are_told_of() -> None:
    kept = Kept()
    rows = rows_of(Bytes(LINES), kept=kept, limit=10)
    assert len(rows) == 10
    assert [rows.span(index) for index in range(9)] == SPANS[:9]
    with pytest.raises(Corrupt, match="more than 10 rows"):
        rows.span(9)
    assert kept.reports == ["more than 10 rows: the rest is not shown"]


@pytest.mark.usefixtures("small")
def test_a_row_that_is_left_open_harms_no_other() -> None:
    data = b'1,"a\n"\n2,"open\n3,c\n4,d\n5,e\n'
    rows = rows_of(Bytes(data), partial(CsvRows, b","))
    assert [data[slice(*span)] for span in spans(rows)] == [
        *(b'1,"a\n"\n', b'2,"open\n', b"3,c\n", b"4,d\n", b"5,e\n")
    ]


@pytest.mark.usefixtures("small")
def test_rows_that_are_left_open_one_after_another_end_somewhere() -> None:
    data = b'x,"open\n""\n' * 40 + b'"'
    rows = rows_of(Bytes(data), partial(CsvRows, b","))
    assert 1 <= len(rows) <= 81
    assert spans(rows)[-1][1] == len(data)


@pytest.mark.parametrize(("count", "digits"), [(1, 6), (1_000_000, 6), (1_000_001, 7)])
def test_numbers_have_as_many_digits_as_the_largest(count: int, digits: int) -> None:
    assert rows_of(Bytes(b"1\n" * count)).digits == digits


def test_digits_that_are_foretold_need_no_count() -> None:
    blob = SlowBlob(b"1\n" * (4 * _rows.PIECE))
    rows = rows_of(blob, digits=7)
    assert rows.digits == 7
    assert blob.reads == []


def test_digits_are_the_same_when_all_is_known() -> None:
    kept = Kept()
    len(rows_of(Bytes(LINES), kept=kept, digits=7))
    assert rows_of(Bytes(LINES), table=Table.load(Bytes(kept.tables[0]))).digits == 7
