from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from shardfs import journal as journal_module
from shardfs.errors import Corrupt, NoKey, ShardfsError
from shardfs.journal import Journal

if TYPE_CHECKING:
    from typing import Any

    import pytest


def rows(journal: Journal) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.lines().splitlines()]


def test_each_fault_is_logged_and_kept_once(caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal()
    for error in (Corrupt("cut").at("a.bin"), Corrupt("cut").at("a.bin"), NoKey("no key")):
        journal.note(error)
    assert caplog.messages == ["a.bin: cut", "no key"]
    assert [(row["error"], row["message"]) for row in rows(journal)] == [
        ("Corrupt", "a.bin: cut"),
        ("NoKey", "no key"),
    ]
    assert journal.count == 3
    assert rows(journal)[0]["time"] <= rows(journal)[1]["time"]


def test_lines_are_lines_whatever_a_name_holds() -> None:
    journal = Journal()
    journal.note(ShardfsError("line\nbreak \udcff é"))
    assert journal.lines().count(b"\n") == 1
    assert rows(journal)[0]["message"] == "line\nbreak \udcff é"


def test_very_many_faults_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_KEPT", 10)
    journal = Journal()
    for number in range(1000):
        journal.note(ShardfsError(str(number)))
    assert [row["message"] for row in rows(journal)] == [str(number) for number in range(10)]
    assert journal.count == 1000


def test_many_threads_write_it() -> None:
    journal = Journal()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.note(ShardfsError(str(number % 5))), range(400)))
    assert journal.count == 400
    assert sorted(row["message"] for row in rows(journal)) == list("01234")
