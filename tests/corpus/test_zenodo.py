"""The datasets in tests/data that are zip files, as a record of Zenodo has them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from shardfs.mounting import open_tree
from tests.corpus.test_corpus import CASES
from tests.corpus.truth import Case, problems
from tests.zenodo_server import SHAPES, ZenodoServer

if TYPE_CHECKING:
    from pathlib import Path

    from shardfs.tree.paths import Node


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("zip/")])
def test_it_shows_the_same_as_from_a_disk(
    name: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, opened = Case(CASES[name]), ExitStack()
    files = {file.name: file.read_bytes() for file in case.source.iterdir()}
    assert files

    def root(part: str) -> Node:
        options = case.options(cache_dir=tmp_path)
        tree = open_tree(f"zenodo:123/{quote(part)}", options)
        return opened.enter_context(closing(tree)).root

    with ZenodoServer(files, shape=shape) as server, opened:
        monkeypatch.setenv("SHARDFS_ZENODO_URL", server.url)
        assert problems(case, root=root) == []
        server.forget()
        assert problems(case, root=root) == []
        assert not [request for request in server.requests if request.range], "it is kept"
