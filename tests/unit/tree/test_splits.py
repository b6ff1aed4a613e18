from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import ANY

import pytest

from shardfs.options import Options
from shardfs.stores import Entry
from shardfs.tree.archives import WithArchives
from shardfs.tree.patterns import Walk
from shardfs.tree.splits import find_splits, split_order
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILES = {
    "a/train-0.csv": b"",
    "a/train-1.csv": b"",
    "a/test.csv": b"",
    "a/deep/er/x.csv": b"",
    ".hidden/x.csv": b"",
    "b.csv": b"",
}


def splits(
    yaml: str,
    options: Options | None = None,
    known: list[str] | None = None,
    more: Mapping[str, bytes] | None = None,
) -> tuple[list[tuple[str, str, list[str]]], FakeServices]:
    readme = f"---\n{yaml}\n---\ntext\n---\nnot: yaml\n---\n".encode()
    store, services = (
        MemoryStore({**FILES, "README.md": readme, **(more or {})}),
        FakeServices(options),
    )
    found, _ = find_splits(store, ["README.md"], services, known)
    return [(split.config, split.name, list(split.files)) for split in found], services


DATA_DIR = b"---\nconfigs:\n- config_name: c\n  data_dir: a\n---\n"

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
    assert splits(TWO, Options(split="validation"))[0] == []


def test_no_splits_and_no_declaration_leave_folders_as_they_are() -> None:
    assert splits(TWO, Options(splits=False))[0] == []
    assert splits("license: mit")[0] == []
    assert splits("configs: 5")[0] == []
    assert splits("configs:\n- config_name: a/b\n  data_files: b.csv")[0] == []


TWO_DEFAULTS = """
configs:
- {config_name: one, default: true, data_files: b.csv}
- {config_name: two, data_files: a/test.csv}
- {config_name: default, data_files: b.csv}
"""


def test_two_default_configs_are_reported() -> None:
    found, services = splits(TWO_DEFAULTS)
    assert [config for config, _, _ in found] == ["one", "two", "default"]
    assert [str(report) for report in services.reports] == [
        "README.md: 'one' and 'default' are each the default config"
    ]


@pytest.mark.parametrize("folder", ["a", "a/", "./a", "a//"])
@pytest.mark.parametrize("known", [None, sorted(FILES)])
def test_a_config_with_a_folder_is_divided_by_the_names_in_it(
    folder: str, known: list[str] | None
) -> None:
    found, services = splits(f"configs:\n- config_name: c\n  data_dir: {folder}", known=known)
    assert found == [
        ("c", "train", ["a/train-0.csv", "a/train-1.csv"]),
        ("c", "test", ["a/test.csv"]),
    ]
    assert services.reports == []


@pytest.mark.parametrize("folder", ["..", "/a", "none", "b.csv", "a/../a", "5", "[a]"])
def test_other_folders_have_no_splits(folder: str) -> None:
    assert splits(f"configs:\n- config_name: c\n  data_dir: {folder}") == ([], ANY)


def test_files_beside_an_index_are_not_divided() -> None:
    yaml = "configs:\n- config_name: c\n  data_dir: a"
    assert splits(yaml, more={"a/index.json": b""})[0] == []
    found, _ = splits(yaml, more={"a/deep/state.json": b"", "a/deep/er/test.csv": b""})
    assert [name for _, name, _ in found] == ["train", "test"]
    assert found[1][2] == ["a/test.csv"]


def test_an_archive_is_a_file_where_names_divide() -> None:
    files = {"a/train.csv": b"", "a/b.zip": b"is not looked into", "README.md": DATA_DIR}
    services = FakeServices()
    found, _ = find_splits(WithArchives(MemoryStore(files), services), ["README.md"], services)
    assert [split.name for split in found] == ["train"]


def test_names_divide_what_nothing_declares() -> None:
    known = ["x/train.csv", "x/dev.csv"]
    wanted = [("default", "train", ["x/train.csv"]), ("default", "validation", ["x/dev.csv"])]
    assert splits("license: mit", known=known)[0] == wanted
    assert splits("license: mit", Options(split="train"), known)[0] == wanted[:1]
    assert splits("license: mit", Options(splits=False), known)[0] == []
    assert splits("license: mit", Options(config="x"), known)[0] == []
    named = [("a", split, files) for _, split, files in wanted]
    assert splits("configs: [{config_name: a, sep: x}]", known=known)[0] == named
    assert splits("configs: [{config_name: a, sep: x}]")[0] == []
    assert splits(TWO, known=known)[0] == splits(TWO)[0]


def test_yaml_that_can_not_be_read_leaves_it_to_names() -> None:
    found, services = splits("a: [", known=["x.csv"])
    assert found == [("default", "train", ["x.csv"])]
    assert len(services.reports) == 1


@pytest.mark.parametrize("key", ["data_dir: .", "data_files: '**/x.csv'"])
def test_folders_without_end_are_reported(key: str) -> None:
    services = FakeServices()
    store = Circle({"README.md": f"---\nconfigs:\n- config_name: c\n  {key}\n---".encode()})
    assert find_splits(store, ["README.md"], services) == ([], [])
    assert "perhaps links in a circle" in str(services.reports[0])


class Circle(MemoryStore):
    """A store in which each folder holds itself."""

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        return [Entry(f"{prefix}/loop".lstrip("/"), 0, 1, "", is_dir=True)]


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
        ("c/*", ["c/x.json"]),
        ("c/config.json", ["c/config.json"]),
        ("c/__x/*", ["c/__x/y.json"]),
        ("c/*/*", []),
    ],
)
def test_patterns(pattern: str, files: list[str]) -> None:
    more = dict.fromkeys(["c/config.json", "c/README.md", "c/x.json", "c/__x/y.json"], b"")
    assert Walk(MemoryStore(FILES | more)).matching(pattern) == files


def test_the_order_of_a_dataset_dict() -> None:
    def order(content: bytes) -> list[str]:
        return split_order(MemoryStore({"dataset_dict.json": content}), ["dataset_dict.json"])

    assert order(b'{"splits": ["train", "test"]}') == ["train", "test"]
    for content in (b"", b"[]", b'{"splits": 5}', b'{"splits": [1]}'):
        assert order(content) == []
    assert split_order(MemoryStore({"x": b""}), ["x"]) == []
