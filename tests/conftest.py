"""What holds for all tests."""

from __future__ import annotations

import logging

import pytest


class _Encodable(logging.Filter):
    """Escapes what is no text in messages: names in datasets may be anything, reports of tests may not."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = record.getMessage().encode("utf-8", "backslashreplace").decode()
        record.args = ()
        return True


@pytest.fixture(autouse=True, scope="session")
def _encodable_messages() -> None:
    logging.getLogger("shardfs").addFilter(_Encodable())
