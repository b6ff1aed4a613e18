from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

from shardfs.blob import no_wait
from shardfs.errors import (
    Corrupt,
    NoKey,
    ShardfsError,
    Unreadable,
    Unsupported,
    WouldBlock,
)
from shardfs.sources import zip as zip_module
from shardfs.sources.zip import ZipStore
from shardfs.stores import Entry
from tests.fakes import FakeServices, MemoryStore, SlowBlob, UnwatchedStore
from tests.unit.sources.zips import ONE, opened, read, store_of
from tests.zip_files import (
    BZIP2,
    CLOCK,
    DEFLATED,
    ENCRYPTED,
    LZMA,
    Item,
    make_zip,
)

if TYPE_CHECKING:
    from shardfs.blob import Blob

# --- what can't be read ---


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (Item(name=b"a", data=b"secret", flags=ENCRYPTED), NoKey, "encrypted"),
        (Item(name=b"a", data=b"secret", flags=ENCRYPTED, method=99), NoKey, "encrypted"),
        (Item(name=b"a", data=b"x", method=9), Unsupported, "deflate64"),
        (Item(name=b"a", data=b"x", method=77), Unsupported, "method 77"),
        (Item(name=b"a", data=b"x", crc=1), Corrupt, "CRC-32"),
        (
            Item(name=b"a", data=b"x" * 99, crc=1, method=DEFLATED),
            Corrupt,
            "a checksum that is not that of its content",
        ),
        (Item(name=b"a", data=b"x" * 99, crc=1, method=BZIP2), Corrupt, "CRC-32"),
        (Item(name=b"a", data=b"x", size=2), Corrupt, "1 stored bytes, but a size of 2"),
        (
            Item(name=b"a", data=b"x" * 99, size=100, method=DEFLATED),
            Corrupt,
            "a length that is not that of its content",
        ),
        (Item(name=b"a", data=b"x" * 99, size=98, method=DEFLATED), Corrupt, "98 bytes"),
        (Item(name=b"a", data=b"x", size=1 << 31, method=DEFLATED), Corrupt, "can't come to"),
        (Item(name=b"a", data=b"x", size=1 << 31, packed_size=1 << 31), Corrupt, "reach"),
        (Item(name=b"a", data=b"x", offset=5), Corrupt, "no local header"),
        (Item(name=b"a", data=b"x", offset=1 << 31), Corrupt, "local header"),
        (Item(name=b"a", packed=b"\0\0\6\0123456", size=9, method=LZMA), Corrupt, "properties"),
        (Item(name=b"a", packed=b"\0", size=9, method=LZMA), Corrupt, "properties"),
        (Item(name=b"a", packed=b"?" * 50, size=9, method=93), Corrupt, "zstd"),
    ],
)
def test_what_cannot_be_read_is_listed_and_does_no_harm(
    item: Item, error: type[ShardfsError], message: str
) -> None:
    store = store_of(Item(name=b"before", data=b"1"), item, Item(name=b"zzz", data=b"2"))
    assert [entry.path for entry in store.list()] == ["a", "before", "zzz"]
    with pytest.raises(error, match=message):
        read(store, "a")
    assert (read(store, "before"), read(store, "zzz")) == (b"1", b"2")


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 100, b"PK\5\6" * 30, make_zip([ONE])[:-1]])
def test_what_is_no_zip(content: bytes) -> None:
    with pytest.raises(Corrupt, match="no zip file"):
        opened(content)


def test_a_damaged_directory_is_damage_to_all() -> None:
    content = bytearray(make_zip([ONE, ONE, ONE]))
    at = content.rindex(b"PK\1\2")
    content[at] = 0
    with pytest.raises(Corrupt, match="central directory"):
        opened(bytes(content))


def test_an_entry_that_reaches_beyond_the_directory_is_damage() -> None:
    content = bytearray(make_zip([ONE, ONE]))
    at = content.rindex(b"PK\1\2")
    content[at + 28 : at + 30] = b"\xff\xff"  # the length of its name
    with pytest.raises(Corrupt, match="is cut"):
        opened(bytes(content))


def test_a_zip_that_was_replaced_is_an_error_not_a_mix() -> None:
    above = MemoryStore({"x.zip": make_zip([ONE])})
    store = ZipStore(above, above.stat("x.zip"), FakeServices())
    above.files["x.zip"] += b"more"
    with pytest.raises(Unreadable, match="has changed"):
        store.open("a.txt")


# --- the rest ---


def test_times() -> None:
    local = int(time.mktime((2021, 5, 6, 7, 8, 10, 0, 0, -1)))
    stamp = struct.pack("<2HBl", 0x5455, 5, 1, 1_600_000_001)
    store = store_of(
        Item(name=b"a", clock=CLOCK),
        Item(name=b"b", extra=stamp),
        Item(name=b"c", clock=0),
        Item(name=b"d/", extra=stamp),
    )
    seconds = {entry.path: entry.mtime_ns / 10**9 for entry in store.list()}
    # What has no time of its own has that of the zip.
    assert seconds == {"a": local, "b": 1_600_000_001, "c": 1e-9, "d": 1_600_000_001}


def test_versions_change_with_the_zip() -> None:
    def version(of: str) -> str:
        content = make_zip([ONE])
        store = UnwatchedStore({"x.zip": content})
        entry = Entry("x.zip", len(content), 1, of)
        return ZipStore(store, entry, FakeServices()).stat("a.txt").version

    assert version("1") != version("2")
    assert version("") == ""


@pytest.mark.parametrize("method", [DEFLATED, BZIP2, LZMA])
def test_large_members_are_not_held_in_memory(monkeypatch: pytest.MonkeyPatch, method: int) -> None:
    monkeypatch.setattr(zip_module, "_IN_MEMORY", 1000)
    asked = []

    class Services(FakeServices):
        def unpack(self, store: Any, entry: Entry, codec: str, /) -> Blob:
            asked.append((store.url, entry.path, store.open(entry.path).size() == entry.size))
            return super().unpack(store, entry, codec)

    data = b"0123456789" * 1000
    items = [
        Item(name=b"d/large", data=data, method=method),
        Item(name=b"less", data=data, size=len(data) + 1, method=method),
        Item(name=b"more", data=data, size=len(data) - 1, method=method),
        Item(name=b"wrong", data=data, crc=1, method=method),
    ]
    above = MemoryStore({"x.zip": make_zip(items)})
    store = ZipStore(above, above.stat("x.zip"), Services())
    assert read(store, "d/large") == data
    assert asked == [("memory:///x.zip#packed", "d/large", True)]
    for path in ("less", "more", "wrong"):
        with pytest.raises(Corrupt):
            read(store, path)


def test_stored_members_are_read_where_they_lie() -> None:
    class Store(MemoryStore):
        def open(self, path: str, /) -> Blob:
            return SlowBlob(self.files[path])

    data = bytes(20 << 20)
    above = Store({"x.zip": make_zip([Item(name=b"big", data=data), ONE])})
    store = ZipStore(above, above.stat("x.zip"), FakeServices())
    blob: Any = store.open("big")
    with pytest.raises(WouldBlock), no_wait():
        blob.read(0, 10)
    slow = blob._blob.parent
    slow.reads.clear()
    blob.read(10 << 20, 100)
    assert sum(length for _, length in slow.reads) == 100
