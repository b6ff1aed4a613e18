"""All datasets in tests/data, as a web server has them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from shardfs import mounting
from shardfs.names import to_bytes
from shardfs.sources._web import Web
from shardfs.sources.http import HttpStore
from tests import DATA
from tests.corpus.test_corpus import CASES
from tests.corpus.truth import Case, problems
from tests.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.options import Options
    from shardfs.tree.paths import Node

# Thousands of records say nothing new here, and take seconds.
LARGE = ("litdata/many_tiny", "mds/many_records")


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with WebServer(DATA) as web:
        yield web


def address(web: WebServer, place: Path) -> str:
    return f"{web.url}/{quote(to_bytes(place.relative_to(DATA).as_posix()))}"


@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_it_shows_the_same_as_from_a_disk(
    name: str, web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, opened, open_source = Case(CASES[name]), ExitStack(), mounting.open_source

    def source(url: str, options: Options) -> tuple[object, list[str]]:
        """A file by its URL; of a folder, whose files no web server lists, all of them."""
        place = case.source.parent / url.removeprefix(f"{address(web, case.source.parent)}/")
        if not place.is_dir():
            return open_source(url, options)  # type: ignore[return-value]
        paths = [p.relative_to(place).as_posix() for p in sorted(place.rglob("*")) if p.is_file()]
        files = {path: f"{url}/{quote(to_bytes(path))}" for path in paths}
        return HttpStore(Web(options), url, files, {}), []

    def root(part: str) -> Node:
        url = address(web, case.source / part)
        options = case.options(cache_dir=tmp_path)
        return opened.enter_context(closing(mounting.open_tree(url, options))).root

    monkeypatch.setattr(mounting, "open_source", source)
    with opened:
        assert problems(case, root=root) == []
        web.forget()
        assert problems(case, root=root) == []
    assert not web.data(), "what was read once is kept"
