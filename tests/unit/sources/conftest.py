"""Zenodo on this machine, and stores that are closed in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shardfs.options import Options
from shardfs.sources import _waits, zenodo
from tests.unit.sources.records import FILES, OpenRecord
from tests.zenodo_server import ZenodoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shardfs.sources.zenodo import ZenodoStore


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZENODO_TOKEN", "SHARDFS_ZENODO_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def record(plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ZenodoServer]:
    """The record 123 and what serves it. Nobody has to wait long between two tries."""
    monkeypatch.setattr(_waits, "_FIRST", 0.002)
    monkeypatch.setattr(_waits, "_SPREAD", 0.01)
    with ZenodoServer(FILES) as server:
        monkeypatch.setenv("SHARDFS_ZENODO_URL", f"{server.url}/")
        yield server


@pytest.fixture
def open_record() -> Iterator[OpenRecord]:
    stores: list[ZenodoStore] = []

    def open_record(source: str = "zenodo:123", **options: Any) -> ZenodoStore:
        store, _ = zenodo.open_source(source, Options(**options))
        stores.append(store)
        return store

    yield open_record
    for store in stores:
        store.close()
