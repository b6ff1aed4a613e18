"""What READMEs declare, right and wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from shardfs.errors import Corrupt
from shardfs.stores import Entry
from shardfs.tree.readme import declared_configs
from shardfs.tree.splits import find_splits
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence


def declared(yaml: str, *, overlay: str = "") -> tuple[list[str], list[str]]:
    """The configs that YAML declares, and what is reported."""
    files = {"README.md": f"---\n{yaml}\n---\n".encode()}
    if overlay:
        files[".huggingface.yaml"] = overlay.encode()
    services = FakeServices()
    try:
        found = declared_configs(MemoryStore(files), list(files), services)
    except Corrupt as error:
        return [], [str(error)]
    return [config.name for config in found], [str(report) for report in services.reports]


def config(lines: str) -> str:
    return f"configs:\n- config_name: good\n  data_files: b.csv\n- config_name: bad\n{lines}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("  data_files:\n  - path: x.csv", "an item of data_files has no split"),
        ("  data_files:\n  - {split: null, path: x.csv}", "has no split"),
        ("  data_files:\n  - {split: 5, path: x.csv}", "a split can't be called 5"),
        ("  data_files:\n  - {split: a-b, path: x.csv}", "a split can't be called 'a-b'"),
        ("  data_files:\n  - {split: a}", "the path of the split 'a' must be text"),
        ("  data_files:\n  - {split: a, path: [1]}", "the path of the split 'a' must be text"),
        ("  data_files:\n  - {split: a, path: {b: c}}", "must be text"),
        ("  data_files: [{split: a, path: b}, {split: a, path: c}]", "'a' is declared twice"),
        ("  data_files: [b.csv, {split: a, path: c}]", "data_files must be a path"),
        ("  data_files: 5", "data_files must be a path, a list of paths or a list of items"),
        ("  data_files: [[b.csv]]", "data_files must be a path"),
        ("  data_dir: [a]", "data_dir must be text"),
        ("  data_dir: ../a", "data_dir leads out of the source"),
    ],
)
def test_a_config_that_is_wrong_is_told_of_and_left_out(lines: str, words: str) -> None:
    found, told = declared(config(lines))
    assert found == ["good"]
    assert len(told) == 1
    assert told[0].startswith("README.md: config 'bad': ")
    assert words in told[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a/b", "may not have any of"),
        ("5", "has no config_name that is text"),
        ("''", "has no config_name that is text"),
        ("null", "has no config_name that is text"),
        ("[a]", "has no config_name that is text"),
    ],
)
def test_names_of_configs_are_checked(name: str, words: str) -> None:
    found, told = declared(f"configs:\n- config_name: {name}\n  data_files: b.csv")
    assert found == []
    assert len(told) == 1
    assert words in told[0]


@pytest.mark.parametrize("value", ["5", "{a: b}", "text", "true", "1.5", "2024-01-01"])
def test_configs_are_a_list(value: str) -> None:
    assert declared(f"configs: {value}")[1][0].startswith("README.md: configs must be a list")


@pytest.mark.parametrize("value", ["null", "[]", ""])
def test_no_configs_are_none(value: str) -> None:
    assert declared(f"configs: {value}") == ([], [])


def test_items_that_are_no_configs_are_told_of() -> None:
    found, told = declared("configs: [5, {config_name: a, data_files: b.csv}, [x], null]")
    assert found == ["a"]
    assert [message.split(": ")[1] for message in told] == ["config 1", "config 3", "config 4"]


def test_the_later_of_two_configs_counts() -> None:
    yaml = "configs: [{config_name: a, data_files: x}, {config_name: b}, {config_name: a}]"
    assert declared(yaml) == (
        ["a", "b"],
        ["README.md: config 'a' is declared twice: the later one counts"],
    )


def test_null_data_files_and_mappings_are_taken() -> None:
    assert declared("configs: [{config_name: a, data_files: null}]") == (["a"], [])
    assert declared("configs: [{config_name: a, data_files: {train: b.csv}}]") == (["a"], [])


def test_more_keys_of_an_item_are_told_of() -> None:
    yaml = "configs: [{config_name: a, data_files: [{split: b, path: c, 5: d}]}]"
    assert declared(yaml) == (["a"], ["README.md: config 'a': data_files: the key 5 is not known"])


@pytest.mark.parametrize("yaml", ["? [a]\n: b", "!!int x", "a: !!timestamp x", "a: !!bool x"])
def test_tags_and_keys_that_mean_nothing_are_told_of(yaml: str) -> None:
    found, (told,) = declared(yaml)
    assert found == []
    assert told.startswith("README.md: its YAML can't be read")


@pytest.mark.parametrize("yaml", ["a: 2024-13-01", "a: !!float ''", "a: \x01", "a: &b [*c]"])
def test_a_message_is_one_line(yaml: str) -> None:
    _, (told,) = declared(yaml)
    assert told.startswith("README.md: its YAML can't be read")
    assert "\n" not in told


def test_the_line_of_a_mistake_is_that_of_the_file() -> None:
    assert "in line 3:" in declared("a: b\nb: c: d")[1][0]


def test_the_overlay_wins() -> None:
    overlay = "configs: [{config_name: over}]"
    assert declared("configs: [{config_name: under}]", overlay=overlay) == (["over"], [])
    assert declared("configs: [{config_name: under}]", overlay="a: b") == (["under"], [])


BOMB = "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" if n else "a0: &a0 [x]" for n in range(30)
)
MERGES = "\n".join(
    f"a{n}: &a{n} {{k{n}: v, <<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" if n else "a0: &a0 {x: y}"
    for n in range(30)
)


@pytest.mark.parametrize("bomb", [BOMB, MERGES, "a29: &a29 [*a29]"])
@pytest.mark.parametrize(
    "use", ["configs: *a29", "configs: [*a29]", "configs: [{config_name: *a29}]"]
)
def test_bombs_are_harmless(bomb: str, use: str) -> None:
    begin = time.process_time()
    found, told = declared(f"{bomb}\n{use}")
    assert found == []
    assert all(len(message) < 1000 for message in told)
    assert time.process_time() - begin < 5


def test_what_anchors_multiply_is_bounded() -> None:
    patterns = ", ".join(["x"] * 6000)
    configs = "".join(f"- {{config_name: c{n}, data_files: *p}}\n" for n in range(100))
    _, told = declared(f"p: &p [{patterns}]\nconfigs:\n{configs}")
    assert "declares more than" in told[0]
    uses = "".join(f"- *p{n}\n" for n in range(2000))
    assert "anchors" in declared(f"p: &p x\nq:\n{uses}")[1][0]


def test_thousands_of_configs_cost_little() -> None:
    count = 1000
    readme = "".join(
        f"- config_name: c{n}\n  data_files:\n  - {{split: train, "
        f"path: ['data/c{n}-*.csv', data/c{n}-*.csv, '*/c{n}-?.csv']}}\n"
        f"  - {{split: test, path: [test/c{n}.csv, 'c{n}/*/x.csv']}}\n"
        for n in range(count)
    )
    places = ("data/c{}-0.csv", "test/c{}.csv", "c{}/d/x.csv")
    files = {place.format(n): b"" for n in range(count) for place in places}
    store = CountingStore({**files, "README.md": f"---\nconfigs:\n{readme}---\n".encode()})
    services = FakeServices()
    found, _ = find_splits(store, ["README.md"], services)
    assert len(found) == 2 * count
    assert sum(len(split.files) for split in found) == 3 * count
    assert store.listed == 2 * count + 3  # each folder once
    assert services.reports == []


class CountingStore(MemoryStore):
    listed = 0

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self._inside: dict[str, dict[str, None]] = {}
        for path in files:
            parts = path.split("/")
            for depth in range(len(parts)):
                self._inside.setdefault("/".join(parts[:depth]), {})[
                    "/".join(parts[: depth + 1])
                ] = None

    def list(self, prefix: str = "", /) -> Sequence[Entry]:
        self.listed += 1
        return [Entry(p, 0, 1, "", is_dir=p not in self.files) for p in self._inside[prefix]]


def test_splits_without_files_are_told_of_once() -> None:
    yaml = (
        "configs: [{config_name: a, data_files: [{split: b, path: n-*}, {split: c, path: none}]}]"
    )
    services = FakeServices()
    find_splits(MemoryStore({"README.md": f"---\n{yaml}\n---\n".encode()}), ["README.md"], services)
    assert [str(report) for report in services.reports] == [
        "README.md: config 'a': no file is there for the split 'b', nor for 1 other splits"
    ]
