"""What holds for all tests."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, settings

# Time says nothing about what is generated: machines are shared, and the first value may import a library.
settings.register_profile(
    "shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared machine")


class _Encodable(logging.Filter):
    """Escapes what is no text in messages: names in datasets may be anything, reports of tests may not."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = record.getMessage().encode("utf-8", "backslashreplace").decode()
        record.args = ()
        return True


@pytest.fixture(autouse=True, scope="session")
def _encodable_messages() -> None:
    logging.getLogger("shardfs").addFilter(_Encodable())
