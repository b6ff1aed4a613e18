"""What the docs say of the project is what is enforced."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def enforced_layers() -> list[list[str]]:
    """Of each contract of layers, from the top down."""
    text = (PROJECT / "pyproject.toml").read_text()
    lists = re.findall(r"^layers = (\[.*?\])$", text, re.MULTILINE | re.DOTALL)
    return [ast.literal_eval(each) for each in lists]


def test_the_picture_of_the_architecture_is_what_is_enforced() -> None:
    text = (PROJECT / "docs" / "architecture.md").read_text()
    picture = text.partition("```\n")[2].partition("```")[0]
    whole, formats = enforced_layers()
    assert [line.split("  ")[0] for line in picture.splitlines()] == whole
    assert f"`{formats[0]}` stand side by side over `formats/{formats[1]}`" in text


def test_every_test_that_the_promises_name_is_there() -> None:
    text = (PROJECT / "docs" / "security.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    assert len(named) > 30
    lacking = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (PROJECT / "tests" / file).read_text()
    ]
    assert not lacking
