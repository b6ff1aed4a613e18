"""Zips in memory, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardfs.blob import read_all
from shardfs.sources.zip import ZipStore
from tests.fakes import FakeServices, MemoryStore
from tests.zip_files import Item, make_zip

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = Item(name=b"a.txt", data=b"content")


def opened(content: bytes) -> ZipStore:
    store = MemoryStore({"x.zip": content})
    return ZipStore(store, store.stat("x.zip"), FakeServices())


def store_of(*items: Item, **how: Any) -> ZipStore:
    return opened(make_zip(items, **how))


def read(store: ZipStore, path: str) -> bytes:
    return bytes(read_all(store.open(path)))


def paths(store: ZipStore, prefix: str = "") -> Iterator[str]:
    for entry in store.list(prefix):
        yield entry.path + "/" * entry.is_dir
        if entry.is_dir:
            yield from paths(store, entry.path)
