"""How the columns of a table become fields of records, for Arrow files and for Parquet alike.

A ``Column`` is made of an Arrow field and what Hugging Face's features say of it. Where its values lie, ``Cells`` know.
A column asks them for no more than its ``access`` says, so that a format which finds plain values by itself need not
know nested ones. Nothing here decodes a value before somebody looks at it, and sizes of bytes and texts are those of
their blobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from shardfs.blob import Broken
from shardfs.errors import ShardfsError, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from shardfs.blob import Blob
    from shardfs.formats._arrow_types import ArrowField, DataType, Schema
    from shardfs.model import Field, Kind, Services


class Cells(Protocol):
    """The values of a column, or of a part of a nested one, over some rows; they are numbered from 0.

    Immutable and thread-safe; reads obey ``blob.no_wait``. Every method raises Corrupt where the stored bytes
    contradict the format or the numbers lead outside.
    """

    def is_null(self, index: int, /) -> bool:
        """Whether a value is null; for a member of a struct, without regard to the struct."""
        ...

    def stored(self, index: int, /) -> Blob:
        """The bytes of a value: of text and binary its content, of fixed width the value in little-endian.

        A truth value is one byte, 0 or 1. A dictionary is looked up already. Undefined for a null.
        """
        ...

    def child(self, number: int, /) -> Cells:
        """The members *number* of structs, under the same index; the items of lists are child 0."""
        ...

    def span(self, index: int, /) -> tuple[int, int]:
        """(start, stop): which of the items are those of a list."""
        ...

    def even(self, start: int, stop: int, size: int, /) -> tuple[int, int] | None:
        """The span of the lists from *start* to *stop* together.

        None unless each has *size* items, they lie side by side, and none is null.
        """
        ...

    def run(self, start: int, stop: int, /) -> Blob | None:
        """The bytes of the numbers or truth values from *start* to *stop*, one behind the other; None if one is null."""
        ...

    def values(self, start: int, stop: int, /) -> Sequence[Any]:
        """The values from *start* to *stop* as ``_json.compact`` takes them."""
        ...


class Access(Enum):
    """What a column needs of its cells."""

    STORED = "is_null and stored"
    MEDIA = "is_null; child(bytes_member) and child(path_member), of these is_null and stored"
    ANY = "everything"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: as the table calls it; names may be empty, and may be there twice.
        type: of its values.
        access: what its cells must be able to do.
        kind: what its fields are, as far as that is known without a look at one.
        members: for ``Access.MEDIA``, the numbers of the members `bytes` and `path` in the struct.
    """

    name: str
    type: DataType
    access: Access
    kind: Kind
    members: tuple[int, int] = (0, 1)

    def field(self, cells: Cells, index: int, services: Services) -> Field | None:
        """The field of a row, None where there is nothing: a null. Raises Corrupt."""
        raise NotImplementedError


def columns_of(schema: Schema, features: Mapping[str, Any] | None = None) -> tuple[Column, ...]:
    """The columns of a table.

    *features* are Hugging Face's, by column (as in dataset_info.json); None for those in the schema's metadata.
    A feature counts only where it fits the stored type.
    """
    raise NotImplementedError


def row_fields(
    cells: Iterable[tuple[Column, Cells]], index: int, services: Services
) -> list[Field]:
    """The fields of a row; one that can't be read is a field all the same, of a ``Broken`` blob."""
    raise NotImplementedError


# For Parquet (in _arrow_ipc.py):
#   read_schema(message: memoryview) -> Schema           of base64-decoded `ARROW:schema`, or pyarrow's Schema.serialize()
#   Decoded columns: blob = services.derive(lambda: to_stream(table)); IpcStream(blob, services) gives batches, and
#   batch.cells(number) the Cells of a column in place, whatever its type. It is evicted and built again as memory asks.
