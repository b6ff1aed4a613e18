"""The tests of shardfs."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
"""Datasets that real libraries wrote, with truth files beside them."""
