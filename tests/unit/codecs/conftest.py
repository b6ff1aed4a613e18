from __future__ import annotations

from typing import Any

import pytest

from shardfs.codecs import gzip_points, replayed, spilled, zstd_frames
from tests.unit.codecs.shop import CACHES


@pytest.fixture(params=CACHES)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return CACHES[str(request.param)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of a megabyte take several pieces, steps and chunks."""
    monkeypatch.setattr(gzip_points, "_SPACING", 150_000)
    monkeypatch.setattr(gzip_points, "_STEP", 30_000)
    monkeypatch.setattr(gzip_points, "_MEMBER_SPACING", 100_000)
    monkeypatch.setattr(zstd_frames, "_GROUP", 150_000)
    monkeypatch.setattr(replayed, "_CHUNK", 100_000)
    monkeypatch.setattr(spilled, "_STEP", 60_000)
