"""Zenodo and the Hub on this machine, and stores that are closed in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shardfs.options import Options
from shardfs.sources import _waits, zenodo
from tests.fake_hub import FakeHub
from tests.hub_repos import TAR, Repository, fresh
from tests.unit.sources.records import FILES, OpenRecord
from tests.zenodo_server import ZenodoServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shardfs.sources.http import HttpStore
    from shardfs.sources.zenodo import ZenodoStore


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to wait long between two tries."""
    monkeypatch.setattr(_waits, "_FIRST", 0.002)
    monkeypatch.setattr(_waits, "_SPREAD", 0.01)


@pytest.fixture
def opened(
    hasty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[HttpStore]]:
    """Stores of web servers that the test has opened, without passwords from this machine."""
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    stores: list[HttpStore] = []
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZENODO_TOKEN", "SHARDFS_ZENODO_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def record(
    plain_environment: None, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ZenodoServer]:
    """The record 123 and what serves it."""
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


@pytest.fixture(scope="module")
def fake_hub() -> Iterator[FakeHub]:
    with FakeHub(".") as hub:
        yield hub


@pytest.fixture
def hub(fake_hub: FakeHub, hasty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """The Hub that this process knows."""
    return fresh(fake_hub, tmp_path, monkeypatch)


@pytest.fixture
def repository(hub: FakeHub, tmp_path: Path) -> Repository:
    return Repository(tmp_path / "hub", {"data/x.tar": TAR, "data/y.tar": TAR, "notes": b"notes"})
