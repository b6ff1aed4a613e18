"""Trees over stores in memory, of datasets in the toy format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shardfs import mounting
from shardfs.options import Options
from shardfs.tree import discover
from tests.fakes import MemoryStore
from tests.toy import ROW, Toy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shardfs.stores import Store
    from shardfs.tree.tree import Tree


@pytest.fixture
def open_tree(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tree]:
    """Opens the tree of a store, or of files by path."""
    monkeypatch.setattr(discover, "FORMATS", (ROW,))
    monkeypatch.setattr(discover, "load", lambda package, row: Toy)

    def opened(
        source: Store | Mapping[str, bytes], names: Sequence[str] = (), **options: Any
    ) -> Tree:
        store = source if hasattr(source, "list") else MemoryStore(source)
        monkeypatch.setattr(mounting, "open_source", lambda source, options: (store, names))
        return mounting.open_tree("memory", Options(disk_cache=False, **options))

    return opened
