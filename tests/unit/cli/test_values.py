"""Values as people write them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from shardfs.cli import values
from shardfs.options import INDEFINITE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("12B", 12),
        ("64K", 64 << 10),
        ("64k", 64 << 10),
        ("1.5GiB", 3 << 29),
        ("2 TiB", 2 << 40),
        ("5KB", 5000),
        ("3MB", 3_000_000),
        ("9007199254740993", 9007199254740993),  # more than a float can count
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert values.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1e9", "10X", "1KiBs", "0x10", "1,5G", "nan", "٣"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        values.parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (3 << 29, "1.5 GiB"), (9 << 50, "9216 TiB")],
)
def test_sizes_are_shown_in_the_largest_unit(size: int, text: str) -> None:
    assert values.show_size(size) == text


def test_seconds() -> None:
    assert values.parse_seconds("1.5") == 1.5
    assert values.parse_seconds("indefinite") == INDEFINITE
    assert values.parse_seconds("9" * 40) == INDEFINITE


def test_modes_are_octal() -> None:
    assert values.parse_mode("022") == stat.S_IWGRP | stat.S_IWOTH
    assert values.parse_mode("0555") == 0o555


def test_users_and_groups_by_name_or_number() -> None:
    assert (values.parse_user("root"), values.parse_user("1234")) == (0, 1234)
    assert (values.parse_group("root"), values.parse_group("1234")) == (0, 1234)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (values.parse_count, "-1"),
        (values.parse_count, "two"),
        (values.parse_positive, "0"),
        (values.parse_seconds, "-1"),
        (values.parse_seconds, "nan"),
        (values.parse_mode, "888"),
        (values.parse_mode, "7777"),
        (values.parse_user, "nobody-of-that-name"),
        (values.parse_group, "nobody-of-that-name"),
        (values.parse_layout, "spiral"),
        (values.parse_path, ""),
        (values.parse_source, ""),
    ],
)
def test_nonsense_is_a_value_error(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse(text)


def test_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert values.parse_path("./a/b") == tmp_path / "a" / "b"
    assert os.fspath(values.parse_path("~/c")) == "/home/me/c"


@pytest.mark.parametrize(
    "source",
    [
        "hf://datasets/a/b@main/c",
        "http://h/x-{0..3}.tar",
        "s3://bucket/x",
        "file:///data",
        "zenodo:123",
        "doi:10.5281/zenodo.123",
        "10.5281/zenodo.123",
    ],
)
def test_what_lies_elsewhere_stays_as_it_is(source: str) -> None:
    assert values.parse_source(source) == source


def test_local_sources_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zenodo:123").mkdir()
    for source in ("ds", "shard-{000..099}.tar", "*.parquet", "zenodo:123", "a:b", "10.1234/x"):
        assert values.parse_source(source) == f"{tmp_path}/{source}"
