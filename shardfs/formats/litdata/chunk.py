"""Chunks of LitData as shards: what is around them is undone, then their bytes decide how they are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardfs.blob import Blob, Broken, Bytes, Slice
from shardfs.errors import Corrupt, NoKey, Unsupported
from shardfs.formats.litdata.arrow_rows import ArrowShard, arrow_file
from shardfs.formats.litdata.crypt import Cipher
from shardfs.formats.litdata.leaves import width
from shardfs.formats.litdata.readers import PyTreeReader, Reader, WholeReader, guess_reader
from shardfs.formats.litdata.records import (
    FRAMES_MAGIC,
    BlockRecords,
    FrameRecords,
    LockedRecords,
    PackedRecords,
    Records,
    TableRecords,
)
from shardfs.formats.shared.offsets import OffsetTable, read_u32
from shardfs.model import Array, Field, NumberedKeys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardfs.formats.litdata.index import Chunk, Config, Leaf
    from shardfs.model import Services, Shard

# No chunk and no record begins like this that is not compressed: it would have more than 4 GiB.
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_U32 = 4
_OFFSETS = 1 << 32


class ChunkShard(NumberedKeys):
    """A chunk as a shard."""

    __slots__ = ("_reader", "_records", "columns", "costly")

    def __init__(self, records: Records, reader: Reader, *, costly: bool) -> None:
        self._records, self._reader, self.costly = records, reader, costly
        self.columns = tuple(dict.fromkeys(name for name, _ in reader.declared))

    def __len__(self) -> int:
        return len(self._records)

    def fields(self, index: int, /) -> Sequence[Field]:
        try:
            return self._reader.fields(self._records.record(index))
        except NoKey as error:  # what is in it is known all the same
            broken = Broken(error)
            return [Field(name, kind, broken) for name, kind in self._reader.declared]

    def close(self) -> None:
        """Nothing is held open but by the blobs."""


class ChunkOpener:
    """Opens the chunks of one dataset."""

    def __init__(self, config: Config, services: Services) -> None:
        """Raises Unsupported where the chunks are encrypted in an unknown way."""
        self._config, self._services = config, services
        self._reader = _known_reader(config)
        self._encrypted = config.encryption.level if config.encryption else ""
        self._cipher = (
            Cipher(config.encryption.algorithm, services.options) if config.encryption else None
        )

    def open(self, blob: Blob, chunk: Chunk) -> Shard:
        """The chunk in the file *blob*, of which only the head is read.

        Raises:
            Corrupt: it is no such chunk, or not the one that the index tells of.
            Unsupported: it is of a kind that can't be read.
        """
        body = self._unzipped(blob, chunk.size)
        try:
            if self._encrypted == "chunk":
                body = self._decrypted(body)
            return self._shard(body, chunk, costly=body is not blob)
        except NoKey as error:
            if self._reader is None:
                raise
            records = LockedRecords(chunk.records or 0, error)
            return ChunkShard(records, self._reader, costly=True)

    def _shard(self, body: Blob, chunk: Chunk, *, costly: bool) -> Shard:
        records: Records
        if body.read(0, len(FRAMES_MAGIC)) == FRAMES_MAGIC:
            records = FrameRecords(body, chunk.records, self._services)
            return self._chunk(records, costly=True)
        table = OffsetTable.of(body, chunk.records)
        rows = arrow_file(table)
        if rows is not None:
            costly = costly or self._config.ipc_compressed
            return ArrowShard(rows, table.count, self._services, costly=costly)
        leaf = self._config.tokens
        records = TableRecords(table) if leaf is None else self._tokens(table, chunk, leaf)
        if self._encrypted == "sample":
            return self._chunk(PackedRecords(records, self._decrypted), costly=True)
        if self._config.level == "sample" or self._reader is None:
            return self._chunk(PackedRecords(records, self._unzipped), costly=True)
        return self._chunk(records, costly=costly)

    def _chunk(self, records: Records, *, costly: bool) -> Shard:
        return ChunkShard(records, self._reader or guess_reader(records), costly=costly)

    def _tokens(self, table: OffsetTable, chunk: Chunk, leaf: Leaf) -> Records:
        """The records of a chunk of tokens: documents, or blocks where the user asks for them."""
        block = self._services.options.block_size
        if not block:
            if table.blob.size() > _OFFSETS:
                raise Unsupported(
                    "has more than 4 GiB, so that its documents can't be told apart; try --block-size"
                )
            return TableRecords(table)
        kind = leaf.means.kind(Bytes(b""))
        if not isinstance(kind, Array):
            raise Unsupported(f"has tokens of the type {leaf.type}")
        size = read_u32(table.blob, _U32 * (table.count + 1), "an offset table") - table.end
        token = width(kind.dtype)
        if chunk.tokens is not None:
            if (chunk.tokens * token - size) % _OFFSETS:
                raise Corrupt(
                    f"has documents of {size} bytes, but the index tells of {chunk.tokens} tokens"
                )
            size = chunk.tokens * token
        return BlockRecords(Slice(table.blob, table.end, size), block * token)

    def _unzipped(self, blob: Blob, size: int | None = None) -> Blob:
        zipped = blob.read(0, len(_ZSTD_MAGIC)) == _ZSTD_MAGIC
        return self._services.inflate(blob, "zstd", size) if zipped else blob

    def _decrypted(self, blob: Blob) -> Blob:
        return blob if self._cipher is None else self._cipher.decrypt(blob)


def _known_reader(config: Config) -> Reader | None:
    """What takes the records apart, None where that must be guessed."""
    if config.temporal is not None:
        return config.temporal
    if config.tokens is not None:
        return WholeReader(config.tokens.name, config.tokens.means)
    if config.leaves is None:
        return None
    return PyTreeReader([(leaf.name, leaf.means) for leaf in config.leaves])
