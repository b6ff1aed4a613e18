from __future__ import annotations

import pytest

from shardfs.errors import NotFound
from shardfs.options import Options
from shardfs.tree.splits import declared_splits, matching, split_order
from tests.fakes import FakeServices, MemoryStore

FILES = {
    "a/train-0.csv": b"",
    "a/train-1.csv": b"",
    "a/test.csv": b"",
    "a/deep/er/x.csv": b"",
    ".hidden/x.csv": b"",
    "b.csv": b"",
}


def splits(
    yaml: str, options: Options | None = None, **files: bytes
) -> tuple[list[tuple[str, str, list[str]]], FakeServices]:
    readme = f"---\n{yaml}\n---\ntext\n---\nnot: yaml\n---\n".encode()
    store, services = MemoryStore({**FILES, "README.md": readme, **files}), FakeServices(options)
    found = declared_splits(store, ["README.md"], services)
    return [(split.config, split.name, list(split.files)) for split in found], services


TWO = """
configs:
- config_name: other
  data_files: b.csv
- config_name: main
  default: true
  data_files:
  - split: train
    path: a/train-*.csv
  - split: test
    path: [a/test.csv, ../outside.csv]
"""


def test_the_default_config_comes_first_and_splits_in_their_order() -> None:
    found, services = splits(TWO)
    assert found == [
        ("main", "train", ["a/train-0.csv", "a/train-1.csv"]),
        ("main", "test", ["a/test.csv"]),
        ("other", "train", ["b.csv"]),
    ]
    assert services.reports == []


def test_config_and_split_choose() -> None:
    found, _ = splits(TWO, Options(config="main", split="test"))
    assert found == [("main", "test", ["a/test.csv"])]
    with pytest.raises(NotFound, match="there are main/train, main/test, other/train"):
        splits(TWO, Options(split="validation"))


def test_no_splits_and_no_declaration_leave_folders_as_they_are() -> None:
    assert splits(TWO, Options(splits=False))[0] == []
    assert splits("license: mit")[0] == []
    assert splits("configs: 5")[0] == []
    assert splits("configs:\n- config_name: a/b\n  data_files: b.csv")[0] == []


@pytest.mark.parametrize("yaml", ["a: [", "a: !!python/object/apply:os.getcwd []", "- " * 2000])
def test_yaml_that_can_not_be_read_is_reported_and_runs_nothing(yaml: str) -> None:
    found, services = splits(yaml)
    assert found == []
    assert len(services.reports) == 1
    assert "README.md" in str(services.reports[0])


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("a/train-*.csv", ["a/train-0.csv", "a/train-1.csv"]),
        ("a", ["a/deep/er/x.csv", "a/test.csv", "a/train-0.csv", "a/train-1.csv"]),
        ("**/x.csv", ["a/deep/er/x.csv"]),
        ("*.csv", ["b.csv"]),
        ("a/*/*/x.csv", ["a/deep/er/x.csv"]),
        ("../b.csv", []),
        ("/b.csv", []),
        ("none/*", []),
        (".hidden/x.csv", []),
    ],
)
def test_patterns(pattern: str, files: list[str]) -> None:
    assert matching(MemoryStore(FILES), pattern) == files


def test_the_order_of_a_dataset_dict() -> None:
    def order(content: bytes) -> list[str]:
        return split_order(MemoryStore({"dataset_dict.json": content}), ["dataset_dict.json"])

    assert order(b'{"splits": ["train", "test"]}') == ["train", "test"]
    for content in (b"", b"[]", b'{"splits": 5}', b'{"splits": [1]}'):
        assert order(content) == []
    assert split_order(MemoryStore({"x": b""}), ["x"]) == []
