"""The rules against what `datasets` 5.2.0 makes of the same files, checked with the library itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis.strategies import lists, sampled_from, text, tuples

from shardfs.tree.hub_rules import inferred_splits

CASES = {
    "text before the numbers in data/": (
        """data/zz-00000-of-00001.parquet data/aa-00000-of-00001.parquet data/test-00000-of-00001.parquet
        data/train-00001-of-00002.parquet data/train-00000-of-00002.parquet data/validation-00000-of-00001.parquet
        data/notes.txt other.csv data/sub/train-00000-of-00001.parquet""",
        {
            "train": "data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet",
            "validation": "data/validation-00000-of-00001.parquet",
            "test": "data/test-00000-of-00001.parquet",
            "aa": "data/aa-00000-of-00001.parquet",
            "zz": "data/zz-00000-of-00001.parquet",
        },
    ),
    "with a dot and more behind the numbers": (
        "data/a.b-00000-of-00001-c0ffee.parquet data/.x-00000-of-00001.parquet data/x-0000-of-0001.parquet",
        {"a.b": "data/a.b-00000-of-00001-c0ffee.parquet"},
    ),
    "what no split can be called": (
        "data/my-x-00000-of-00001.parquet data/train-00000-of-00001.parquet",
        {},
    ),
    "numbers twice": ("data/a-00000-of-00001-00000-of-0002.parquet", {}),
    "nothing before the numbers": ("data/-00000-of-00001.parquet x.parquet", {}),
    "numbers without a suffix are none": (
        "data/train-00000-of-00001 data/zz-00000-of-00001 a.csv",
        {},
    ),
    "numbers elsewhere": (
        "train-00000-of-00001.csv more/zz-00000-of-00001.csv",
        {"train": "train-00000-of-00001.csv"},
    ),
    "logs": ("logs/a.eval train.csv", {}),
    "logs that are called as tables are": (
        "a.csv.eval b.csv.eval train.csv",
        {"logs": "a.csv.eval b.csv.eval"},
    ),
    "tasks": ("a/task.toml a/instruction.md train.csv test.csv", {}),
    "words in folders": (
        "my-dev/a.csv Train/b.csv x/training/y/c.csv d.csv train.csv latest/e.csv",
        {"train": "x/training/y/c.csv", "validation": "my-dev/a.csv"},
    ),
    "words in folders by the patterns of the library": (
        "training/a.csv train.x/a.csv x_train/a.csv x_train_y/a.csv train/z.csv",
        {"train": "train/z.csv train.x/a.csv x_train/a.csv x_train_y/a.csv training/a.csv"},
    ),
    "a folder in a folder": (
        "train/test/a.csv train/b.csv",
        {"train": "train/b.csv train/test/a.csv", "test": "train/test/a.csv"},
    ),
    "words in names": (
        "train_0.csv my.val.csv sub/eval-2.csv contest.csv training1.csv train Train.csv 1test0.csv",
        {"train": "train_0.csv training1.csv", "validation": "my.val.csv", "test": "1test0.csv sub/eval-2.csv"},
    ),
    "two words in a name": (
        "train_test.csv train-train.csv",
        {"train": "train-train.csv train_test.csv", "test": "train_test.csv"},
    ),
    "a word at the end of a name": ("x.csv.test", {"train": "x.csv.test"}),
    "no words": ("b.csv a/c.csv a-b/d.csv", {"train": "a-b/d.csv a/c.csv b.csv"}),
    "what is never data": (
        "README.md config.json dataset_info.json x/dataset_infos.json dataset_dict.json dummy_data.zip .a.json"
        " .git/a.json __pycache__/train/a.json a/__x/b.json __a.json",
        {"train": "__a.json"},
    ),
    "names of dots are not hidden": (".../a.csv", {"train": ".../a.csv"}),
    "what has no suffix that counts divides all the same": ("train/a.npy b.csv", {}),
    "a split without any that counts": ("train.csv test.npy", {}),
    "splits that disagree": ("train.csv test.json", {}),
    "tabs are another format": ("train.csv test.tsv", {}),
    "but read with commas": ("a.csv b.csv c.tsv", {"train": "a.csv b.csv c.tsv"}),
    "the most frequent suffix": ("a.txt b.txt c.csv", {"train": "a.txt b.txt"}),
    "each suffix counts": ("a.txt.gz b.json.gz c.json.gz d.npy.gz", {"train": "b.json.gz c.json.gz"}),
    "any suffix is enough": ("a.csv.md5 b.csv c.md5", {"train": "a.csv.md5 b.csv"}),
    "parquet wins a draw": ("a.csv b.parquet c.tar", {"train": "b.parquet"}),
    "so does json lines": ("a.txt b.csv c.json d.jsonl", {"train": "c.json d.jsonl"}),
    "else what is last in the alphabet": ("a.txt b.tar", {"train": "a.txt"}),
    "upper case alone does not": ("a.CSV b.CSV c.json", {"train": "c.json"}),
    "upper case counts but is not read": ("a.txt.CSV b.txt.CSV c.csv", {"train": "c.csv"}),
    "a suffix of a folder": ("v.csv.d/a.json b.csv c.csv", {"train": "b.csv c.csv v.csv.d/a.json"}),
    "tables count last": ("metadata.csv a/metadata.csv a/0.jpg", {"train": "a/metadata.csv metadata.csv"}),
    "tables alone": ("metadata.csv a/metadata.csv", {"train": "a/metadata.csv metadata.csv"}),
    "media with a table": (
        "train/metadata.jsonl train/a.JPG train/c.JPG train/xmetadata.csv train/b.txt test/0.png test/1.csv test/2.png",
        {"train": "train/metadata.jsonl", "test": ""},
    ),
    "media without one": ("train/dog/a.jpg train/cat/b.jpg test/dog/c.jpg", {}),
    "media of which the table is in no split": ("train_0.jpg test_0.jpg metadata.csv", {}),
    "media of two sorts": ("train/metadata.csv train/a.jpg test/metadata.csv test/b.wav", {}),
    "upper case that no suffix has": ("a.CIF b.CIF metadata.csv c.csv", {"train": "c.csv metadata.csv"}),
    "no shards": ("train.h5 test.h5", {}),
    "archives are their own folders": ("train.zip test.zip", {}),
    "beside tables they are none": ("train.zip train.csv", {"train": "train.csv"}),
    "nothing": ("", {}),
    "nothing that counts": ("model.bin a.npy .gitattributes", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_files_fall_into_splits(name: str) -> None:
    files, wanted = CASES[name]
    found = inferred_splits(files.split())
    assert [split.config for split in found] == ["default"] * len(wanted)
    assert [(s.name, list(s.files)) for s in found] == [(s, f.split()) for s, f in wanted.items()]


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (["a train b.csv", "my test/c.csv"], {"test": ["my test/c.csv"]}),
        (["a train b.csv", "my test.csv"], {"train": ["a train b.csv"], "test": ["my test.csv"]}),
        (["data/\u56f3-00000-of-00001.csv"], {"\u56f3": ["data/\u56f3-00000-of-00001.csv"]}),
        (["\udcff/train.csv", "test.csv"], {"train": ["\udcff/train.csv"], "test": ["test.csv"]}),
        (["a\nb.csv", "c.csv"], {"train": ["c.csv"]}),
    ],
)
def test_names_with_odd_characters(files: list[str], wanted: dict[str, list[str]]) -> None:
    assert {split.name: list(split.files) for split in inferred_splits(files)} == wanted


PARTS = sampled_from(
    [
        "train",
        "dev",
        "test",
        "eval",
        "Train",
        "data",
        "x",
        "a-train_0",
        "val.x",
        ".git",
        "__x",
        ".",
        "..",
        "metadata",
    ]
) | text("ta-._ 0/\n\ud800", max_size=6)
ENDS = sampled_from(["", ".csv", ".jsonl", ".jpg", ".tar", "-00000-of-00001.csv", ".csv.x"])
PATHS = tuples(lists(PARTS, min_size=1, max_size=3).map("/".join), ENDS).map("".join)


@given(lists(PATHS, max_size=9), sampled_from([list, reversed, sorted, lambda files: files * 2]))
def test_splits_hold_files_in_an_order_of_their_own(files: list[str], reorder: object) -> None:
    found = inferred_splits(files)
    assert callable(reorder)
    assert inferred_splits(reorder(files)) == found
    assert len({split.name for split in found}) == len(found)
    assert not found or any(split.files for split in found)
    for split in found:
        assert set(split.files) <= set(files)
        assert len(set(split.files)) == len(split.files)
        assert re.fullmatch(r"\w+(\.\w+)*", split.name)
