from __future__ import annotations

import pytest

from tests.remote_fakes import RemoteBytes
from tests.unit.cache.far import DATA


@pytest.fixture
def source() -> RemoteBytes:
    """The long file of ``far``."""
    return RemoteBytes(DATA)
