"""The program that compares suites finds what is wrong, and passes on the files that are here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.conformance import parquet_suite, peers
from tests.conformance.report import Outcome, Tally, finish

HERE = Path(__file__).parents[1] / "data" / "parquet"


def written(folder: Path, name: str, values: list[object]) -> None:
    parquet.write_table(pa.table({"v": values}), folder / name)


def test_files_that_are_read_alike(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", [1, None, 3])
    written(tmp_path, "b.parquet", [{"x": [1.5, None]}, None])
    (tally,) = [parquet_suite.run(tmp_path)]
    assert [verdict.outcome for verdict in tally.verdicts] == [Outcome.EQUAL] * 2
    assert finish([tally]) == 0


def test_a_wrong_value_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "a.parquet", [1, 2])
    other = pa.chunked_array([[1, 3]])
    found = [peers.Column("v", other)]
    monkeypatch.setattr(peers, "columns_of", lambda _: (found, ""))
    tally = parquet_suite.run(tmp_path)
    assert tally.verdicts[0].outcome is Outcome.WRONG
    assert "row 1" in tally.verdicts[0].reason
    assert finish([tally]) == 1


def test_damage_that_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 is not enough")
    assert parquet_suite.run(tmp_path).verdicts[0].outcome is Outcome.UNREAD


def test_how_much_may_be_refused() -> None:
    tally = Tally("suite")
    for number in range(50):
        tally.add(str(number), Outcome.EQUAL)
    tally.add("one", Outcome.REFUSED, "why")
    assert finish([tally]) == 0
    tally.add("two", Outcome.REFUSED, "why")
    assert finish([tally]) == 1
    assert finish([]) == 1


@pytest.mark.parametrize("name", ["spark", "arrow_11_0_0_v2", "fastparquet_zstd"])
def test_files_that_are_here(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.parquet").write_bytes((HERE / f"{name}.parquet").read_bytes())
    assert [v.outcome for v in parquet_suite.run(tmp_path).verdicts] == [Outcome.EQUAL]
