"""Whatever a README says, the files are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from hypothesis import given
from hypothesis import strategies as st

from shardfs.errors import ShardfsError
from shardfs.tree.discover import discover
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from shardfs.model import Dataset

KEYS = ["configs", "config_name", "data_files", "data_dir", "split", "path", "default", "train"]
KEYS += ["sep", "header", "names", "encoding", "skiprows", "field", "sample_by", "na_values"]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.binary(max_size=5),
    st.text(max_size=8),
    st.sampled_from(
        ["x.csv", "*", "**", "d", "d/*", "../x.csv", "/", "train", "a.b", "[", "", "."]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        st.lists(inside, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from(KEYS), st.integers(), st.none()), inside, max_size=5
        ),
    ),
    max_leaves=20,
)
CONFIGS = st.lists(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6).flatmap(
        lambda config: st.sampled_from(["a", "b", "default"]).map(
            lambda n: {"config_name": n, **config}
        )
    ),
    max_size=4,
)
FILES = {"x.csv": b"a\n1\n", "d/y.csv": b"b\n2\n", "d/z.json": b'{"c": 3}', "d/t.txt": b"text\n"}


@given(configs=st.one_of(VALUES, CONFIGS))
def test_values_of_any_kind(configs: object) -> None:
    check(yaml.safe_dump({"configs": configs}))


PIECES = [
    "- ",
    "  ",
    "\n",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "&a",
    "*a",
    "<<",
    "!!int ",
    "!!set ",
    "|",
    ">",
    "'",
    '"',
    "#",
]


@given(
    text=st.lists(st.sampled_from(PIECES + KEYS + ["x.csv", "5", "null"]), max_size=40).map("".join)
)
def test_text_of_any_kind(text: str) -> None:
    check(text)
    check(f"configs:\n- config_name: a\n  {text}")


def check(text: str) -> None:
    readme = f"---\n{text}\n---\n".encode("utf-8", "surrogatepass")
    store, services = MemoryStore({**FILES, "README.md": readme}), FakeServices()
    found = discover(store, store.list(), services, indexed=True, named=False)
    shown = {f"{one.base}/{ref.file}".lstrip("/") for one in found for ref in one.dataset.shards}
    assert "x.csv" in shown  # in a split, or beside them
    for one in found:
        for number in range(len(one.dataset.shards)):
            look(one.dataset, number)
    assert all("\n" not in str(report) for report in services.reports)


def look(dataset: Dataset, number: int) -> None:
    """Look at a shard: if it can't be read, that has a name."""
    try:
        shard = dataset.open_shard(number)
        for index in range(min(len(shard), 3)):
            shard.fields(index)
    except ShardfsError:
        return
