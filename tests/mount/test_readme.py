"""Repositories whose README says how they are read, through real mounts."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.mount.conftest import Runner

README = """---
configs:
- config_name: plain
  data_files: plain.csv
- config_name: table
  data_files: [t.tsv, t.csv.gz]
  sep: "|"
  header: null
  names: [x, y]
  encoding: latin-1
  colour: blue
- config_name: doc
  data_files: [{split: test, path: d.json}]
  field: data
- config_name: lines
  data_files: l.jsonl
  encoding: cp1251
- config_name: text
  data_files: t.txt
  sample_by: paragraph
- config_name: wrong
  data_files: w.csv
  nrows: many
- config_name: bad
  data_files: [{path: b.csv}]
---
"""
FILES = {
    "plain.csv": b"a,b\n1,2\n",
    "t.tsv": b"\xe9|1\n2|'\n",
    "t.csv.gz": gzip.compress(b"\xe8|3\n"),
    "d.json": b'{"v": 1, "data": [{"a": 1},\n {"a": 2}], "z": 0}',
    "l.jsonl": '{"a": "\u0436"}\n'.encode("cp1251"),
    "t.txt": "one\ntwo\n\nthree".encode("utf-16"),
    "w.csv": b"a\n1\n",
    "b.csv": b"a\n1\n",
}
RIGHT = {
    "plain/train/plain/000000/a.txt": b"1",
    "plain/train/plain/000000/b.txt": b"2",
    "table/train/t.tsv/000000/x.txt": "\xe9".encode(),
    "table/train/t.tsv/000000/y.txt": b"1",
    "table/train/t.tsv/000001/x.txt": b"2",
    "table/train/t.tsv/000001/y.txt": b"'",
    "table/train/t.csv.gz/000000/x.txt": "\xe8".encode(),
    "table/train/t.csv.gz/000000/y.txt": b"3",
    "doc/test/d/000000/a.txt": b"1\n",
    "doc/test/d/000001/a.txt": b"2\n",
    "lines/train/l/000000/a.txt": "\u0436".encode(),
    "text/train/t/000000/text.txt": b"one\ntwo",
    "text/train/t/000001/text.txt": b"three",
    "b/000000/a.txt": b"1",
}


def test_rows_are_read_as_declared_and_faults_are_told(shardfs: Runner) -> None:
    source, mnt = shardfs.folder / "repo", shardfs.place
    source.mkdir()
    (source / "README.md").write_text(README)
    for name, data in FILES.items():
        (source / name).write_bytes(data)
    ran = shardfs("mount", source, mnt)
    assert ran.returncode == 0, ran.stderr
    with pytest.raises(OSError, match="Input/output error"):
        os.listdir(mnt / "wrong/train/w")
    found = {
        path.relative_to(mnt).as_posix(): path.read_bytes()
        for place in ("plain", "table", "doc", "lines", "text", "b")
        for path in (mnt / place).rglob("*.txt")
        if path.is_file()
    }
    assert found == RIGHT
    told = (mnt / ".shardfs/errors.jsonl").read_text()
    for words in (
        "'colour' is no parameter that is known for csv",
        "config 'wrong': nrows must be a whole number",
        "config 'bad': an item of data_files has no split",
    ):
        assert told.count(words) == 1
    assert told.count("no parameter") == 1
