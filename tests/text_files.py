"""Text files in memory as shards, and what their records show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import Bytes, read_all
from shardfs.cache.memory import Memory
from shardfs.errors import ShardfsError
from shardfs.formats.text.csv import Csv
from shardfs.formats.text.jsonl import Json, Jsonl
from shardfs.formats.text.lines import Text
from shardfs.model import Parameters
from shardfs.names import distinct
from shardfs.views.present import Presenter
from tests.fakes import FakeServices, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shardfs.blob import Blob
    from shardfs.formats.text.files import TextFormat
    from shardfs.model import Shard
    from shardfs.stores import Entry, Store

FORMATS: dict[str, type[TextFormat]] = {
    ".jsonl": Jsonl,
    ".ndjson": Jsonl,
    ".json": Json,
    ".csv": Csv,
    ".tsv": Csv,
    ".txt": Text,
}


class KeepingServices(FakeServices):
    """Services with an index cache."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], bytes] = {}

    def remember(
        self, store: Store, entry: Entry, what: str, build: Callable[[], bytes], /
    ) -> Blob:
        key = entry.path, what
        if key not in self.kept:
            self.kept[key] = build()
        return Bytes(self.kept[key])


def open_shard(
    name: str,
    data: bytes,
    services: FakeServices | None = None,
    beside: Mapping[str, bytes] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Shard:
    """The shard that a file is; *beside* it lie others, and a README declares *parameters*."""
    store = MemoryStore({name: data, **(beside or {})})
    kind = next(kind for end, kind in FORMATS.items() if end in name)
    services = services or FakeServices(
        parameters=Parameters("README.md: config 'c'", parameters or {})
    )
    dataset = kind.open(store, [name], services)
    return dataset.open_shard(0)


def files(shard: Shard, index: int) -> dict[str, bytes | ShardfsError]:
    """The files of a record, by name."""
    presenter = Presenter(Memory(1 << 20), raw=False)
    shown = presenter.files(shard.fields(index))
    names = distinct((file.stem, file.extension) for file in shown)
    return {name: content(file.blob) for name, file in zip(names, shown, strict=True)}


def content(blob: Blob) -> bytes | ShardfsError:
    try:
        return bytes(read_all(blob))
    except ShardfsError as error:
        return error


def records(shard: Shard) -> list[dict[str, bytes | ShardfsError] | ShardfsError]:
    """The files of all records."""
    found: list[dict[str, bytes | ShardfsError] | ShardfsError] = []
    index = 0
    while shard.has(index):
        try:
            found.append(files(shard, index))
        except ShardfsError as error:
            found.append(error)
        index += 1
    return found
