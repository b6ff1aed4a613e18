"""``info``: one shape for all formats, counts and fields of each."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shardfs.cli import progress
from shardfs.cli.main import main
from shardfs.cli.progress import Progress
from tests import DATA

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = {
    *("source", "layout", "raw", "complete", "shards", "records", "bytes", "files", "splits"),
    *("datasets", "faults"),
}
DATASET = {"format", "url", "shards", "records", "fields"}
FIELD = {"name", "type", "nullable", "example"}


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def tar(path: Path, *members: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in members:
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"1"))
    data = buffer.getvalue()
    path.write_bytes(gzip.compress(data) if path.name.endswith("gz") else data)


@pytest.fixture
def facts(capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(source: object, *options: str, code: int = 0) -> dict[str, Any]:
        assert main(["info", str(source), "--json", *options]) == code
        out = capsys.readouterr().out
        assert out.endswith("}\n")
        told: dict[str, Any] = json.loads(out)
        assert set(told) == SHAPE
        for dataset in told["datasets"]:
            assert set(dataset) >= DATASET
            for field in dataset["fields"]:
                assert set(field) == FIELD
        return told

    return ask


def fields(told: dict[str, Any]) -> dict[str, str]:
    return {f["name"]: f["type"] for dataset in told["datasets"] for f in dataset["fields"]}


@pytest.mark.parametrize(
    ("source", "records", "wanted"),
    [
        ("litdata/plain_dict", 14, {"image": "jpeg", "label": "int", "caption": "str"}),
        ("mds/comp_bz2", 10, {"caption": "str", "image": "jpeg", "label": "int"}),
        ("huggingface/disk_dataset", None, {}),
        (
            "huggingface/parquet_plain_nohf",
            12,
            {"jpg": "binary", "txt": "string", "n": "int64", "score": "double", "blob": "binary"},
        ),
    ],
)
def test_an_index_or_footer_tells_at_once(
    facts: Any, source: str, records: int | None, wanted: dict[str, str]
) -> None:
    told = facts(DATA / source)
    counted = facts(DATA / source, "--count")
    assert told["records"] == counted["records"] > 0
    assert records in (None, told["records"])
    assert wanted.items() <= fields(told).items()
    assert fields(told)
    assert told["complete"] is True
    assert told["faults"] == {"count": 0, "last": None}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_schema_tells_types_and_nulls_as_pyarrow_does(
    facts: Any, tmp_path: Path, name: str
) -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            pa.field("b", pa.list_(pa.struct([pa.field("x", pa.uint8())]))),
            pa.field("c", pa.timestamp("us", tz="UTC")),
            pa.field("d", pa.binary(4)),
            pa.field("e", pa.date32()),
            pa.field("f", pa.bool_()),
            pa.field("g", pa.float32()),
            pa.field("h", pa.time64("us")),
        ]
    )
    table = schema.empty_table()
    if name == "a.parquet":
        parquet.write_table(table, tmp_path / name)
    else:
        feather.write_feather(table, str(tmp_path / name))
    (dataset,) = facts(tmp_path)["datasets"]
    assert dataset["records"] == 0
    told = {field["name"]: (field["type"], field["nullable"]) for field in dataset["fields"]}
    inner = {"b": "list<{}: struct<x: uint8>>".format("element" if "parquet" in name else "item")}
    wanted = {f.name: (inner.get(f.name, str(f.type)), f.nullable) for f in schema}
    assert told == wanted


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_archives_are_counted_when_that_is_asked_for(
    facts: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tar(tmp_path / name, *(f"{n:04d}.{field}" for n in range(50) for field in ("txt", "cls")))
    told = facts(tmp_path)
    assert told["records"] is None
    assert list(fields(told)) == ["txt", "cls"]
    assert told["datasets"][0]["fields"][0]["example"] == "1"
    told = facts(tmp_path, "--count")
    assert told["records"] == told["datasets"][0]["records"] == 50
    assert main(["info", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "records: not counted yet (--count counts them)" in text
    assert main(["info", str(tmp_path), "--count"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^records: 50$", text, re.MULTILINE)
    assert re.search(r"^    txt +bytes +1$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"a": 1}\n{"a": 2, "b": "x"}\n'), ("a.csv", "a,b\n1,x\n2,\n")]
)
def test_text_files(facts: Any, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert facts(tmp_path)["records"] is None
    told = facts(tmp_path, "--count")
    assert told["records"] == 2
    assert list(fields(told)) == ["a", "b"]


def test_datasets_in_folders_are_found_and_summed_up(facts: Any, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}" / "deep").mkdir(parents=True)
        (tmp_path / f"{number}" / "deep" / "a.csv").write_text("a\n1\n")
    (tmp_path / "notes.md").write_text("x")
    told = facts(tmp_path, "--count")
    assert (told["shards"], told["records"], told["files"]) == (3, 3, 1)
    assert told["bytes"] == 3 * 4 + 1


def test_splits_are_told(facts: Any) -> None:
    told = facts(DATA / "huggingface/disk_datasetdict", "--count")
    assert [split["split"] for split in told["splits"]] == ["train", "test"]


def test_what_can_not_be_counted_is_a_fault(
    facts: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tar(tmp_path / "a.tar", "0.txt", "1.txt")
    (tmp_path / "b.tar").write_bytes(b"no tar at all" * 100)
    told = facts(tmp_path, "--count", code=1)
    assert told["records"] == 2
    assert told["faults"]["count"] == 1
    assert "b.tar" in told["faults"]["last"]["message"]
    assert len(caplog.messages) == 1


def test_a_terminal_is_safe_from_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("\x1b[2J,b\n\x1b[2J,2\n")
    assert main(["info", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


# --- progress ----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_ON_TERMINAL", 0.0)
    with Progress("counting", "shards", quiet=False) as tell:
        tell(0, 4)
        tell(2, 4)
    text = screen.getvalue()
    assert "counting: 2 of 4 shards, " in text
    assert "left" in text
    assert "\n" not in text
    assert text.endswith("\r")
    assert text.split("\r")[-2].strip() == ""


def test_elsewhere_there_are_plain_lines_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for every, lines in ((0.0, ["counting: 1 of 4 shards"]), (60.0, [])):
        monkeypatch.setattr(progress, "_ELSEWHERE", every)
        caplog.clear()
        with Progress("counting", "shards", quiet=False) as tell:
            tell(1, 4)
        assert [line.partition(",")[0] for line in caplog.messages] == lines


def test_the_quiet_see_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_ON_TERMINAL", 0.0)
    with Progress("counting", "shards", quiet=True) as tell:
        tell(1, 4)
    assert screen.getvalue() == ""
